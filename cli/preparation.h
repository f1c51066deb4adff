// From a file to a network that runs: where compiled code is kept between runs of the program, and
// what each stage on the way took.
#pragma once

#include <CLI/App.hpp>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "answers/output.h"
#include "base/disk_cache.h"
#include "generators/compile/compile.h"

namespace laminate::cli {

/// The directory of the cache: $LAMINATE_CACHE, else laminate in $XDG_CACHE_HOME, else
/// .cache/laminate at home. None if LAMINATE_CACHE is "off" or empty, or if nothing says where home
/// is.
[[nodiscard]] std::optional<std::filesystem::path> cache_directory();

/// --no-cache
struct CacheArgument {
    bool is_off = false;

    void declare(CLI::App* verb);
    /// Null without a cache. Its remarks go to `output`.
    [[nodiscard]] std::shared_ptr<DiskCache> open(const Output& output) const;
};

/// CPU seconds of the stages.
struct PreparationTimes {
    double import = 0;    ///< the file, or the zoo's weights
    double planning = 0;  ///< the choice of the schedule
    double session = 0;   ///< memory, and constants where they belong
    CompileTimes compile;

    /// Lines for -v: the stages, then the groups, the longest first.
    [[nodiscard]] std::string text() const;
    /// {"import", "planning", "halide", "llvm", "check", "libraries", "session", "groups":
    /// [{"name", "halide", "llvm", "check", "equal", "cached"}]}
    [[nodiscard]] nlohmann::ordered_json json() const;
};

/// Adds what `work` takes of this process' CPU time to `seconds`.
template <class Work>
auto timed(double& seconds, const Work& work) {
    struct Clock {
        double& seconds;
        std::clock_t begin = std::clock();
        ~Clock() { seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; }
    } clock{seconds};
    return work();
}

}  // namespace laminate::cli
