#include "cli/resident_memory.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "answers/output.h"
#include "answers/program.h"
#include "base/error.h"

namespace laminate::cli {

namespace {

/// A line such as "VmHWM:     12345 kB" of a file in /proc, in bytes.
std::optional<int64_t> bytes_in(const char* path, const std::string& field) {
    std::ifstream file(path);
    std::string word;
    while (file >> word) {
        int64_t kibibytes = 0;
        if (word == field + ":" && file >> kibibytes) return kibibytes * 1024;
        std::getline(file, word);
    }
    return std::nullopt;
}

std::optional<int64_t> status_bytes(const std::string& field) {
    return bytes_in("/proc/self/status", field);
}

/// What the control group's limit leaves beside memory that cannot be written back; nullopt without
/// a limit ("max").
std::optional<int64_t> left_in_control_group() {
    int64_t limit = 0;
    if (!(std::ifstream("/sys/fs/cgroup/memory.max") >> limit)) return std::nullopt;
    std::ifstream statistics("/sys/fs/cgroup/memory.stat");
    std::string field;
    int64_t bytes = 0;
    while (statistics >> field >> bytes) {
        if (field == "anon") return std::max<int64_t>(0, limit - bytes);
    }
    return limit;
}

/// What a limit of address space leaves; nullopt without a limit.
std::optional<int64_t> left_in_address_space() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
    const int64_t used = status_bytes("VmSize").value_or(0);
    return std::max<int64_t>(0, static_cast<int64_t>(limit.rlim_cur) - used);
}

}  // namespace

std::optional<int64_t> available_memory_bytes() {
    std::optional<int64_t> least;
    for (const auto& bytes : {bytes_in("/proc/meminfo", "MemAvailable"), left_in_control_group(),
                              left_in_address_space()}) {
        if (bytes) least = std::min(least.value_or(*bytes), *bytes);
    }
    return least;
}

void require_available_memory(const std::string& what, int64_t bytes) {
    const std::optional<int64_t> available = available_memory_bytes();
    if (!available || bytes <= *available) return;
    throw InfeasibleError(fmt::format("{} {}, of {} of memory that are available", what,
                                      bytes_text(bytes), bytes_text(*available)));
}

PeakWatch::PeakWatch() {
    malloc_trim(0);
    std::ofstream reset("/proc/self/clear_refs");
    reset << "5" << std::flush;  // VmHWM starts again from the present resident set
    if (reset) start_bytes_ = status_bytes("VmRSS");
}

std::optional<int64_t> PeakWatch::growth_bytes() const {
    const std::optional<int64_t> peak = status_bytes("VmHWM");
    if (!peak || !start_bytes_) return std::nullopt;
    return std::max<int64_t>(0, *peak - *start_bytes_);
}

}  // namespace laminate::cli
