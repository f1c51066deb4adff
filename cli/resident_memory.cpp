#include "cli/resident_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace laminate::cli {

namespace {

/// A line such as "VmHWM:     12345 kB" of /proc/self/status, in bytes.
std::optional<int64_t> status_bytes(const std::string& field) {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word) {
        int64_t kibibytes = 0;
        if (word == field + ":" && status >> kibibytes) return kibibytes * 1024;
        std::getline(status, word);
    }
    return std::nullopt;
}

}  // namespace

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
