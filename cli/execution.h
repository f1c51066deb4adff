// What `run`, `bench` and `compile` share: which schedule, and from NET to something that can be
// executed.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>

#include "answers/network_argument.h"
#include "answers/output.h"
#include "answers/program.h"
#include "base/caches.h"
#include "base/error.h"
#include "generators/compile/compile.h"
#include "nets/network/network.h"
#include "runtime/session.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// --schedule F, --memory SIZE, --layer-by-layer, --no-winograd; none of them: the fewest accesses
/// with each group within a core's second-level cache.
struct ScheduleArgument {
    std::string schedule;
    std::string memory;
    bool layer_by_layer = false;
    bool no_winograd = false;
    Bytes second_level_cache =
        laminate::second_level_cache();  ///< of a core of the machine that will run it

    void declare(CLI::App* verb, bool with_layer_by_layer = true);
    [[nodiscard]] bool is_given() const {
        return !schedule.empty() || !memory.empty() || layer_by_layer;
    }
    /// --no-winograd; with --memory only what stays within it.
    [[nodiscard]] KernelOptions kernels() const;
    /// For code for a target (CompileOptions) that a number of threads runs. Throws InfeasibleError
    /// when nothing fits in --memory, InputError for a bad schedule.
    [[nodiscard]] Schedule choose(const Network& network, int threads,
                                  const std::string& target = CompileOptions{}.target) const;

private:
    [[nodiscard]] Schedule choose_within(const Network& network, LineBufferOptions options,
                                         const std::string& target) const;
};

/// Throws InfeasibleError when the arrays with which the code of some group is checked are more
/// than the memory that is available.
void require_memory_to_check(const Network& network, const Schedule& schedule);

/// A network ready to run, whatever NET was.
class Execution {
public:
    /// Compiles for this process. Remarks go to `output`.
    Execution(Network network, Schedule schedule, const KernelOptions& kernels,
              const CommonOptions& common, const Output& output);
    /// A directory of `laminate compile`.
    Execution(const std::string& directory, const CommonOptions& common);

    [[nodiscard]] Session& session() { return *session_; }
    /// For measuring what a session takes; not for a compiled directory.
    void close_session() { session_.reset(); }
    void open_session(const CommonOptions& common);
    /// Null for a compiled directory, which holds neither.
    [[nodiscard]] const Network* network() const { return network_ ? &*network_ : nullptr; }
    [[nodiscard]] const Schedule* schedule() const { return schedule_ ? &*schedule_ : nullptr; }

private:
    std::optional<Network> network_;
    std::optional<Schedule> schedule_;
    std::unique_ptr<JitNetwork> compiled_;
    std::unique_ptr<Session> session_;  // ends before what it runs
};

/// Throws UsageError where sizes are given to one, which has its own.
[[nodiscard]] bool is_compiled_directory(const NetworkArgument& argument);

/// "arena 1.2 MiB: 0 B between steps, 2 threads x 612.0 KiB of scratch; constants 48.1 KiB"
[[nodiscard]] std::string arena_text(const ArenaUse& use);

}  // namespace laminate::cli
