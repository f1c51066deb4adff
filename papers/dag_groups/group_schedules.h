// Groups of operators as ordinary schedules of ours, which compile and run
// (scheduler/schedule/schedule.h).
//
// The grouping says which operators run together. How they run is chosen among our schedules of
// such a group (scheduler/explore/dag/dag_groups.h), with halos recomputed or kept and weights that
// stay or pass again, by fewest accesses within a memory. Those counts are the exact ones of
// docs/counting.md, where Optimus' cost model is a formula. They can also take part in the search
// as the cost of a group, beside Eq. 3 (GroupingOptions::other) or instead of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "nets/network/network.h"
#include "papers/dag_groups/grouping.h"
#include "scheduler/explore/options.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::dag_groups {

/// The best schedules of groups of one graph, by shape. Keeps what it found, so each thread needs
/// an object of its own. Refers to the network and the graph.
class ScheduledGroups {
public:
    /// `tiles` is for groups of several layers; for one layer, everything with divisors is
    /// searched.
    ScheduledGroups(const Network& network, const OperatorGraph& graph, Elements memory,
                    TileSizes tiles = TileSizes::all, const std::atomic<bool>* stop = nullptr);

    /// The schedule with the fewest external accesses in the memory, then the fewest MACs. None
    /// where nothing fits or no schedule can hold the group (OperatorInput::is_direct, several
    /// sinks). The front of no layer at all (depth to space alone) is a group without nests.
    [[nodiscard]] std::optional<GroupPoint> best(const std::vector<int>& operators);
    /// The accesses of that schedule for so many images, one after the other.
    [[nodiscard]] std::optional<int64_t> entries(const std::vector<int>& operators, int64_t images);
    /// A lower bound on the accesses of any schedule of the group in the memory, of our family or
    /// not, for so many images. None where no schedule can hold the group.
    [[nodiscard]] std::optional<int64_t> least_entries(const std::vector<int>& operators,
                                                       int64_t images) const;
    /// A layer alone, as best(), or where nothing fits the schedule with the least memory.
    [[nodiscard]] GroupPoint alone(LayerId layer);

private:
    const std::vector<GroupPoint>& front(const std::vector<LayerId>& layers, bool within_memory);
    [[nodiscard]] std::optional<std::vector<LayerId>> layers_of(
        const std::vector<int>& operators) const;
    [[nodiscard]] GroupPoint named(GroupPoint point, const std::vector<LayerId>& layers) const;

    const Network& network_;
    const OperatorGraph& graph_;
    Elements memory_;
    TileSizes tiles_;
    const std::atomic<bool>* stop_;
    std::map<std::pair<bool, std::vector<int64_t>>, std::vector<GroupPoint>> fronts_;
};

struct NetworkSchedule {
    Schedule schedule;
    /// Groups for which no schedule of ours fits; each of their layers runs alone.
    int64_t split = 0;
};

/// A schedule with these groups in their order. Layers that were left out of the graph run alone
/// after them. Layers that no schedule covers (softmax, flatten) are in no group.
[[nodiscard]] NetworkSchedule network_schedule(const Network& network, const OperatorGraph& graph,
                                               const std::vector<Group>& groups,
                                               ScheduledGroups& schedules);

}  // namespace laminate::dag_groups
