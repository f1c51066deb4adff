// A Pareto front of schedules of one network by external accesses, memory and, if asked for, MACs.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Which memory a schedule needs (docs/counting.md section 5).
enum class Footprint {
    live,  ///< the largest sum of buffers that live at the same time, which a machine needs
    sum,   ///< all buffers of a group, ConvFusion's rule, for comparison with its numbers
};

/// One schedule of a front, as the groups that it consists of.
struct FrontPoint {
    std::vector<uint32_t> groups;  ///< into Front::groups, in the order of the schedule
    NetworkCounts counts;
    /// Of fronts with time (timed/timed_front.h): what the model expects of the code, and what one
    /// of its threads keeps.
    std::optional<double> milliseconds{};
    std::optional<Bytes> scratch{};
};

/// No schedule that was left out moves fewer than `accesses` with at most `memory`.
struct FrontBound {
    Elements memory;
    Elements accesses;
};

struct Front {
    /// Each is legal in the network and listed once; points share most of their groups.
    std::vector<GroupSchedule> groups;
    std::vector<FrontPoint> points;  ///< by accesses, fewest first; then memory, MACs, text
    /// If false, no point is beaten in (accesses, memory), and MACs only decide between equals.
    bool macs_is_axis = true;
    Footprint footprint = Footprint::live;
    /// Whether everything in the space was searched or proven worse. The space is what the options
    /// ask for, max_depth included.
    bool is_complete = true;
    /// If not complete: a staircase below all schedules of the space, by memory, with falling
    /// accesses.
    std::vector<FrontBound> bounds;
    /// The largest ratio of the front's accesses to the bounds' at equal memory, minus one; 0 if
    /// complete. Memory in which the front has no point does not count.
    double gap = 0;
};

/// The memory by which the front is made.
[[nodiscard]] inline Elements memory_of(const NetworkCounts& counts, Footprint footprint) {
    return footprint == Footprint::live ? counts.live_total : counts.sum_total;
}

/// The schedule of a point of `front`.
[[nodiscard]] Schedule schedule_of(const Network& network, const Front& front,
                                   const FrontPoint& point);

/// These schedules, counted and in a front's order. Points that others beat are kept, and nothing
/// is said of a space.
[[nodiscard]] Front front_of(const Network& network, const std::vector<Schedule>& schedules);

/// Not fitting is a result: no schedule needs less than `demand`.
struct Infeasible {
    Elements demand;
    Elements capacity;
};

/// The point with the fewest accesses within a budget of live memory; ties are broken by MACs, then
/// by text. `front` is not empty.
[[nodiscard]] std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget);

/// One candidate for a group, with the three axes of the search.
struct GroupPoint {
    GroupSchedule group;
    Elements accesses;
    Elements live_total;  ///< or with Footprint::sum, the sum of all buffers
    Macs macs;
};

}  // namespace laminate
