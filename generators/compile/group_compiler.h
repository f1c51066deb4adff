// The code of a network's groups: each distinct one is found in the cache, or made and compiled, once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_time.h"
#include "generators/compile/compile.h"
#include "generators/compile/executable.h"
#include "generators/compile/kept_code.h"
#include "generators/group_code.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// A group's code, compiled for this process.
struct CompiledGroup {
    GroupCode code;  ///< without arrays and inputs of equal groups, and without body if it was kept
    std::shared_ptr<const JitGroup> jit;  ///< of all groups with the same code
    GroupTimes times;
};

class GroupCompiler {
public:
    /// `target` is that of the code; what runs in this process is compiled for the host. All
    /// references live as long as this.
    GroupCompiler(const Network& network, const CompileOptions& options,
                  const Halide::Target& target);

    /// Groups that differ in names and in the values of constants alone share their code.
    [[nodiscard]] std::vector<CompiledGroup> compiled(
        const std::vector<GroupSchedule>& groups) const;
    /// The same of one group. Any thread may call it.
    [[nodiscard]] CompiledGroup compiled(const GroupSchedule& group) const;

    /// Whether the group's code depends on the size of the picture.
    [[nodiscard]] bool is_of_any_size(const GroupSchedule& group) const;
    /// All that the group's code depends on.
    [[nodiscard]] std::string key_of(const GroupSchedule& group) const;

private:
    /// A group between its schedule and its machine code.
    struct Made {
        CompiledGroup group;
        std::string key;
        std::vector<std::string> objects;  ///< of its functions; none: its body is to be compiled
        Made* code_of = nullptr;           ///< another group, whose body this one shares
    };
    void make(const GroupSchedule& schedule, Made& made) const;
    void share(const std::vector<Made*>& made, int threads) const;
    void compile(const std::vector<Made*>& made, int threads,
                 const CompileProgress& progress) const;
    void load(Made& made) const;
    void take_code(const GroupSchedule& schedule, const GroupCode& equal, GroupCode& code) const;
    [[nodiscard]] std::optional<KeptCode> kept_of(const std::string& key) const;

    const Network& network_;
    const CompileOptions& options_;
    bool is_for_host_;
};

/// The name of a single layer, or "first .. last".
[[nodiscard]] std::string name_of(const GroupSchedule& group);

/// in_parallel() that tells of each piece of work before it begins.
void tell_in_parallel(const CompileProgress& progress, const std::string& what, size_t count,
                      int threads, const std::function<void(size_t)>& work);

/// Threads of the compiler.
[[nodiscard]] int thread_count(const CompileOptions& options);

/// The CPU time of this thread from here on.
class CpuClock {
public:
    [[nodiscard]] double seconds() const { return (thread_milliseconds() - begin_) * 1e-3; }

private:
    double begin_ = thread_milliseconds();
};

}  // namespace laminate
