// Shared by `run`, `bench` and `compile`: the choice of a schedule, and the way from NET to a
// session.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "answers/network_argument.h"
#include "answers/output.h"
#include "answers/program.h"
#include "base/caches.h"
#include "base/error.h"
#include "cli/preparation.h"
#include "generators/compile/compile.h"
#include "nets/network/network.h"
#include "runtime/session.h"
#include "scheduler/explore/timed/timed_front.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// --schedule F, --memory SIZE, --layer-by-layer, --no-winograd, --winograd-tiles, --strict and
/// --speed. Without --schedule and --layer-by-layer: the schedule that the model of time takes for the
/// fastest.
struct ScheduleArgument {
    std::string schedule;
    std::string memory;
    std::string speed;  ///< of a processor, a name or file; empty: the usual one
    bool layer_by_layer = false;
    bool no_winograd = false;
    bool strict = false;
    int64_t tile_rows = KernelOptions{}.tile_rows;
    /// Cache sizes of one core of the machine that will run the code.
    Bytes second_level_cache = laminate::second_level_cache();

    void declare(CLI::App* verb, bool with_layer_by_layer = true);
    [[nodiscard]] bool is_given() const {
        return !schedule.empty() || !memory.empty() || layer_by_layer;
    }
    /// Kernels without minimal filtering for --no-winograd and --strict, tiles of it within
    /// --winograd-tiles, and with --memory only
    /// those that stay within it.
    [[nodiscard]] KernelOptions kernels() const;
    /// What will run the schedule, and where a choice is kept for later.
    struct For {
        int threads = 1;
        std::shared_ptr<DiskCache> cache{};
        std::string target = CompileOptions{}.target;
        const TensorSizes* any_size = nullptr;  ///< of the network, for code of any size
        Bytes strips_cache = usual_second_level_cache;  ///< of code of any size
    };
    /// The schedule, with kernels and with groups for layers that a given schedule leaves out
    /// (with_layers_alone). Throws InfeasibleError when nothing fits in --memory, InputError for a
    /// bad schedule.
    [[nodiscard]] Schedule choose(const Network& network, const For& what) const;

    /// For::strips_cache, and CompileOptions::strips_cache.
    [[nodiscard]] Bytes strips_cache(const For& what) const;

    /// What the fastest schedule is chosen by.
    [[nodiscard]] TimedOptions timed_options(
        int threads, const std::string& target = CompileOptions{}.target) const;

private:
    [[nodiscard]] Schedule fastest(const Network& network, const TimedOptions& options) const;
};

/// Throws InfeasibleError when checking the code of some group takes more memory than is available.
void require_memory_to_check(const Network& network, const Schedule& schedule);

/// A network ready to run, compiled here or loaded from a compiled directory.
class Execution {
public:
    /// Compiles the network for this process. Remarks go to `output`.
    Execution(Network network, Schedule schedule, const KernelOptions& kernels,
              std::shared_ptr<DiskCache> cache, const CommonOptions& common, const Output& output);
    /// Opens a directory of `laminate compile`. `times_steps`: as SessionOptions has it.
    Execution(const std::string& directory, const CommonOptions& common, bool times_steps = false);

    [[nodiscard]] Session& session() { return *session_; }
    /// For measuring the memory of a session. Not for a compiled directory.
    void close_session() { session_.reset(); }
    void open_session(const CommonOptions& common, bool times_steps = false);
    /// Null for a compiled directory, which holds neither network nor schedule.
    [[nodiscard]] const Network* network() const { return network_ ? &*network_ : nullptr; }
    [[nodiscard]] const Schedule* schedule() const { return schedule_ ? &*schedule_ : nullptr; }
    /// The schedule with the kernels that its code has. Not for a compiled directory.
    [[nodiscard]] Schedule schedule_of_code() const;
    /// What compiling took, and the session.
    [[nodiscard]] PreparationTimes& times() { return times_; }

private:
    std::optional<Network> network_;
    std::optional<Schedule> schedule_;
    KernelOptions kernels_;
    PreparationTimes times_;
    std::unique_ptr<JitNetwork> compiled_;
    std::unique_ptr<Session> session_;  // ends before what it runs
};

/// Whether NET is a compiled directory. Throws UsageError for one with options for sizes, because
/// its sizes are fixed.
[[nodiscard]] bool is_compiled_directory(const NetworkArgument& argument);

/// "arena 1.2 MiB: 0 B between steps, 2 threads × 612.0 KiB of scratch"
[[nodiscard]] std::string arena_text(const ArenaUse& use);

}  // namespace laminate::cli
