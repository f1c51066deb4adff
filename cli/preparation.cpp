#include "cli/preparation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace laminate::cli {

namespace {

/// Null for a variable that is not set.
const char* variable(const char* name) { return std::getenv(name); }

double total(const std::vector<GroupTimes>& groups, double GroupTimes::*stage) {
    double sum = 0;
    for (const GroupTimes& group : groups) sum += group.*stage;
    return sum;
}

double total(const GroupTimes& group) { return group.halide + group.llvm + group.check; }

}  // namespace

std::optional<std::filesystem::path> cache_directory() {
    if (const char* given = variable("LAMINATE_CACHE")) {
        const std::string directory = given;
        if (directory.empty() || directory == "off") return std::nullopt;
        return directory;
    }
    const char* caches = variable("XDG_CACHE_HOME");
    if (caches != nullptr && *caches == '/') return std::filesystem::path(caches) / "laminate";
    const char* home = variable("HOME");
    if (home == nullptr || *home != '/') return std::nullopt;
    return std::filesystem::path(home) / ".cache" / "laminate";
}

void CacheArgument::declare(CLI::App* verb) {
    verb->add_flag("--no-cache", is_off,
                   "Choose the schedule, compile and check anew, and keep nothing for later (laminate "
                   "cache)");
}

std::shared_ptr<DiskCache> CacheArgument::open(const Output& output) const {
    const std::optional<std::filesystem::path> directory = cache_directory();
    if (is_off || !directory) return nullptr;
    DiskCache::Options options{.directory = *directory};
    options.note = [&output](const std::string& line) { output.note("laminate: " + line); };
    return std::make_shared<DiskCache>(std::move(options));
}

std::string PreparationTimes::text() const {
    std::vector<GroupTimes> groups = compile.groups;
    std::string text = fmt::format(
        "CPU seconds: import {:.3f}, planning {:.3f}, Halide {:.3f}, LLVM {:.3f}, check {:.3f}, "
        "libraries {:.3f}, session {:.3f}",
        import, planning, total(groups, &GroupTimes::halide), total(groups, &GroupTimes::llvm),
        total(groups, &GroupTimes::check), compile.libraries, session);
    std::ranges::stable_sort(groups, std::greater<>(),
                             [](const GroupTimes& group) { return total(group); });
    for (const GroupTimes& group : groups) {
        text += fmt::format("\n  {:.3f}  {}: Halide {:.3f}, LLVM {:.3f}{}, check {:.3f}",
                            total(group), group.name, group.halide, group.llvm,
                            group.is_equal    ? " (equal code)"
                            : group.is_cached ? " (cached)"
                                              : "",
                            group.check);
    }
    return text;
}

nlohmann::ordered_json PreparationTimes::json() const {
    auto groups = nlohmann::ordered_json::array();
    for (const GroupTimes& group : compile.groups) {
        groups.push_back({{"name", group.name},
                          {"halide", group.halide},
                          {"llvm", group.llvm},
                          {"check", group.check},
                          {"equal", group.is_equal},
                          {"cached", group.is_cached}});
    }
    return {{"import", import},
            {"planning", planning},
            {"halide", total(compile.groups, &GroupTimes::halide)},
            {"llvm", total(compile.groups, &GroupTimes::llvm)},
            {"check", total(compile.groups, &GroupTimes::check)},
            {"libraries", compile.libraries},
            {"session", session},
            {"groups", std::move(groups)}};
}

}  // namespace laminate::cli
