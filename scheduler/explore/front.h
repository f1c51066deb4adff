// A Pareto front of schedules of one network: external accesses, memory and, where asked for, MACs.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Which memory a schedule needs: docs/counting.md section 5.
enum class Footprint {
    live,  ///< the largest sum of buffers that live at the same time: what a machine needs
    sum,   ///< all buffers of a group: ConvFusion's rule, for comparison with its numbers
};

/// One schedule of a front, by the groups that it consists of.
struct FrontPoint {
    std::vector<uint32_t> groups;  ///< into Front::groups, in the order of the schedule
    NetworkCounts counts;
};

/// No schedule of the space with at most `memory` moves fewer than `accesses`, as far as it was
/// left out.
struct FrontBound {
    Elements memory;
    Elements accesses;
};

struct Front {
    std::vector<GroupSchedule>
        groups;  ///< each legal in the network, and there once: points share most of theirs
    std::vector<FrontPoint> points;  ///< by accesses, fewest first; then memory, MACs, text
    /// False: no point is beaten in (accesses, memory) together, and MACs only decide between
    /// equals.
    bool macs_is_axis = true;
    Footprint footprint = Footprint::live;
    /// Everything in the space was searched or proven worse. (The space is what the options ask
    /// for, max_depth included.)
    bool is_complete = true;
    /// When not complete: a staircase below all schedules of the space, by memory; accesses fall.
    std::vector<FrontBound> bounds;
    /// Accesses of the front over those of the bounds at equal memory, minus one, where that is
    /// largest; 0 when complete. At memories where the bounds have something and the front nothing
    /// there is no ratio.
    double gap = 0;
};

/// The memory that the front is about.
[[nodiscard]] inline Elements memory_of(const NetworkCounts& counts, Footprint footprint) {
    return footprint == Footprint::live ? counts.live_total : counts.sum_total;
}

/// The schedule of a point of `front`.
[[nodiscard]] Schedule schedule_of(const Network& network, const Front& front,
                                   const FrontPoint& point);

/// These schedules, counted and in a front's order, whichever they are: none is taken for better
/// than others, and nothing is said of a space.
[[nodiscard]] Front front_of(const Network& network, const std::vector<Schedule>& schedules);

/// Not fitting is a result: no schedule lives in less than `demand`.
struct Infeasible {
    Elements demand;
    Elements capacity;
};

/// Fewest accesses within the budget of live memory; ties by MACs, then by text. `front` is not
/// empty.
[[nodiscard]] std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget);

/// One candidate for a group, with the three axes of the search.
struct GroupPoint {
    GroupSchedule group;
    Elements accesses;
    Elements live_total;  ///< with Footprint::sum the sum of all buffers
    Macs macs;
};

}  // namespace laminate
