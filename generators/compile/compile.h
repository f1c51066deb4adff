// From a network and a schedule to something that runs: in this process (JitNetwork), or as a
// directory of files that a program links or loads without Halide (compile_network). Groups of the
// schedule become the code of their kernels (group_kernels.h); every other layer becomes a step of
// the reference operators.
//
//   const JitNetwork compiled(network, schedule);
//   Session session = Session::open(&compiled.descriptor());
//
// Every group is checked against the reference operators before it is used (check_group.h). One
// that fails is replaced by its layers as groups of their own in line-buffer form, and a layer that
// fails alone by the reference operators; `note` says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/caches.h"
#include "base/disk_cache.h"
#include "generators/compile/check_group.h"
#include "nets/network/network.h"
#include "runtime/compiled_network.h"
#include "runtime/manifest.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// CPU seconds that a group took, of the threads that worked on it.
struct GroupTimes {
    std::string name;     ///< of its layer, "first .. last" of several
    double halide = 0;    ///< its statements in Halide IR, and its constants in their order
    double llvm = 0;      ///< from statements to machine code: Halide's code generator and LLVM
    double check = 0;     ///< check_group.h
    bool is_equal = false;   ///< to a group before it: its code was there
    bool is_cached = false;  ///< its code came from the cache
};

struct CompileTimes {
    std::vector<GroupTimes> groups;  ///< of the schedule and of layers outside it, in their order
    double libraries = 0;            ///< of compile_network: object files to libraries
};

/// Told what begins, "checking group", how many of these have ended and how many there are.
using CompileProgress = std::function<void(const std::string&, size_t, size_t)>;

struct CompileOptions {
    /// Identifier in file and symbol names; empty: the network's name with what is no letter, digit
    /// or _ replaced.
    std::string name{};
    std::string target = "host";  ///< or a Halide target; JitNetwork is always for the host
    int threads = 0;              ///< of the compiler, 0: one per core
    /// With hooks (runtime/trace.h). Groups compute the same bits as without.
    bool instrumented = false;
    /// For any size (scheduler/explore/planner/any_size.h has such schedules): of the network, which
    /// has the size that the code is planned for. Every group is then checked at several sizes.
    const TensorSizes* any_size = nullptr;
    /// AnySizeOptions::strips_cache, which code of any size was planned with.
    Bytes strips_cache = usual_second_level_cache;
    CheckOptions check{};
    KernelOptions kernels{};
    /// What decides whether a group may be used: empty text for yes. Called by several threads.
    /// Without one, wrong_result() does, but not again where the cache knows that it has.
    std::function<std::string(const Network&, const GroupSchedule&, const GroupCode&,
                              laminate_group_function, const CheckOptions&)>
        checker{};
    /// Where the code of groups is kept for later, and which networks passed their checks; none:
    /// nowhere. The results are the same.
    std::shared_ptr<DiskCache> cache{};
    /// Filled in where it is not null.
    CompileTimes* times = nullptr;
    /// Told about every group that failed its check, one line each, by one thread at a time.
    std::function<void(const std::string&)> note = [](const std::string&) {};
    /// Called by one thread at a time.
    CompileProgress progress = [](const std::string&, size_t, size_t) {};
    std::string compiler = "cc";  ///< assembles and links: accepts -c, -shared, -o
    std::string archiver = "ar";
};

/// The key of an entry of a cache: what it is, of what, and what made it: these sources, this
/// version of Halide, for this machine's processor.
[[nodiscard]] std::string cache_key(const std::string& kind, const std::string& of);

/// The most that a group's code keeps beside its inputs, outputs and constants, of one thread: what
/// a session's arena has for each (ArenaUse). More than the schedule's live memory, by the padding
/// of lines and the transformed patches. Of the options target, threads and kernels count. Throws
/// as compile_network for an unknown target.
[[nodiscard]] Bytes scratch_per_thread(const Network& network, const Schedule& schedule,
                                       const CompileOptions& options = {});

/// A network compiled into this process; the descriptor lives as long as the object and does not
/// move with it.
class JitNetwork {
public:
    JitNetwork(const Network& network, const Schedule& schedule,
               const CompileOptions& options = {});
    JitNetwork(JitNetwork&&) noexcept;
    JitNetwork& operator=(JitNetwork&&) noexcept;
    ~JitNetwork();

    [[nodiscard]] const laminate_compiled_network& descriptor() const;
    [[nodiscard]] const Manifest& manifest() const;

private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

/// Makes, with NAME from the options:
///   libNAME.a      a static library; its one symbol meant for users is NAME_network
///   libNAME.so     the same as a shared object, which Session::open(directory) loads
///   NAME.h         the C header of both, self-contained
///   manifest.json  runtime/manifest.h, with the hash of libNAME.so
///   schedule.json  scheduler/schedule/schedule.h: what was asked for
/// All files are made in a directory beside `directory` that is renamed at the end: on any error
/// nothing is left and an earlier `directory` stays as it was. Throws InputError when `directory`
/// exists and neither is empty nor was made by this function, for an unknown target, a name that is
/// no identifier, and when compiler or archiver cannot be run or fail; on code of the target they
/// are tried first. Returns the manifest.
Manifest compile_network(const Network& network, const Schedule& schedule,
                         const CompileOptions& options, const std::filesystem::path& directory);

}  // namespace laminate
