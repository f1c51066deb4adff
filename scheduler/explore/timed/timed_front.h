// Schedules with both halves, by accesses, memory, MACs and time: what `compile`, `run` and `bench`
// choose from, and what `explore --axes ...,time` prints.
//
// The space is what code runs at speed: tiles no smaller than what kernels compute at a time.
// Candidates are whole schedules of the planner (planner/line_buffers.h) for many budgets, for
// second-level caches smaller and larger than the machine's, and layer by layer. Layers that some
// candidate fuses form a part of the network; parts are independent, so every part takes its groups
// from any candidate. For each memory and each price of an access in time the cheapest choice of
// every part makes a point, so the fastest schedule within a memory is exact over the candidates,
// and on several axes the points are those on the convex hull of accesses and time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/caches.h"
#include "base/parallel.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/explore/front.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/machine/cpu_speed.h"
#include "scheduler/schedule/kernels/vector_unit.h"

namespace laminate {

struct TimedOptions {
    CpuSpeed speed;
    VectorUnit unit;           ///< of the processor that will run the code
    KernelOptions kernels{};   ///< of the schedules
    int threads = 1;           ///< that will run the code
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
    /// Only schedules whose live memory and whose scratch of one thread are within it.
    std::optional<Bytes> memory;
    /// Groups that a search found, without kernels: they join the planner's, as they are and with
    /// whole tiles (compute_levels.h).
    std::vector<GroupSchedule> searched{};
    /// Set it to get the front of what has been looked at so far.
    const std::atomic<bool>* stop = nullptr;

    /// Threads that look for a schedule.
    [[nodiscard]] int planning_threads() const { return std::min(threads, available_cores()); }
};

/// The groups of a searched front that TimedOptions::searched needs: those of points whose live memory
/// is 2 % apart, as that of the points of a front with time, and of the smallest one.
[[nodiscard]] std::vector<GroupSchedule> groups_of_steps(const Front& front);

/// Which of a point's numbers a front is made of.
struct FrontAxes {
    bool accesses = true;
    bool memory = true;
    bool macs = false;
    bool time = true;
};

/// Milliseconds that the model expects of a group, run by `threads` threads for so many images; the
/// group has kernels. `loops`: the group's, if known.
[[nodiscard]] double predicted_milliseconds(const GroupSchedule& group,
                                            const std::vector<LayerProblem>& problems,
                                            const CpuSpeed& speed, int threads,
                                            Bytes other_weights = {}, int64_t images = 1,
                                            GroupLoops* loops = nullptr);
/// The same of each group of a network's schedule, in order, for the images of the network's batch.
[[nodiscard]] std::vector<double> predicted_group_milliseconds(const Network& network,
                                                               const Schedule& schedule,
                                                               const CpuSpeed& speed, int threads);
/// Their sum. Layers outside groups take no time.
[[nodiscard]] double predicted_milliseconds(const Network& network, const Schedule& schedule,
                                            const CpuSpeed& speed, int threads);

/// No point is beaten on `axes` by another. Points have a time. Empty if nothing fits. Without
/// searched groups, points far below the rate of the fastest one are left out (docs/search.md).
[[nodiscard]] Front timed_front(const Network& network, const FrontAxes& axes,
                                const TimedOptions& options);

/// The fastest schedule. The planner's own groups are taken unless others are faster by more than
/// what the model of time is sure of; of groups of the same layers that differ by less, those in much
/// less memory.
[[nodiscard]] std::variant<Schedule, Infeasible> fastest_schedule(const Network& network,
                                                                  const TimedOptions& options);

/// The same as a front of one point; empty if nothing fits.
[[nodiscard]] Front fastest_front(const Network& network, const TimedOptions& options);

}  // namespace laminate
