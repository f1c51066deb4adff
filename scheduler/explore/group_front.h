// The front of one segment: consecutive layers of a sequence, executed as one group.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/explore/front.h"
#include "scheduler/explore/group_search/halo_tables.h"
#include "scheduler/explore/options.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct SegmentFront {
    std::vector<GroupPoint> points;
    std::vector<NetworkCounts> counts;  ///< of the points, from the model
    /// Every schedule that was left out costs at least as much as one of these.
    std::vector<search::Cost> open;
};

[[nodiscard]] search::Cost cost_of(const GroupPoint& point);

/// What is said of a segment of two layers or more before it is searched.
struct SegmentOutlook {
    /// Every schedule of the space costs at least as much as one of these.
    std::vector<search::Cost> least;
    /// Schedules that its front has in any case, or that others beat.
    std::vector<GroupPoint> points;
    std::vector<NetworkCounts> counts;  ///< of the points
};
/// `halo_tables`: for CallBound.
[[nodiscard]] SegmentOutlook outlook_of(const std::vector<LayerProblem>& problems,
                                        const ExploreOptions& options,
                                        std::shared_ptr<search::HaloTables> halo_tables);

/// What a search of a segment may build on.
struct SegmentContext {
    std::vector<search::Cost> known{};  ///< costs that shorter segments reach together
    /// Costs that beat all that is not wanted (partitions.h), these among them.
    std::vector<search::Cost> limits{};
    bool parts_are_complete = true;  ///< whether shorter segments were searched to the end
    std::shared_ptr<search::HaloTables> halo_tables{};  ///< for CallBound
    const SegmentOutlook* outlook = nullptr;  ///< of several layers, if it is there already
};

[[nodiscard]] SegmentFront search_segment(const std::vector<LayerProblem>& problems,
                                          const ExploreOptions& options, bool macs_is_axis,
                                          const SegmentContext& context);

/// The three-axis front of one group of consecutive layers of one chain, by accesses, fewest first.
/// Empty if the space does not have the group: if it has several layers, of which one is grouped,
/// fully connected or a transposed convolution with kernel equal to stride.
[[nodiscard]] std::vector<GroupPoint> group_front(const Network& network,
                                                  const std::vector<LayerId>& segment,
                                                  const ExploreOptions& options);

/// The same for given loop problems. If there are several, none is fully connected.
[[nodiscard]] std::vector<GroupPoint> group_front(const std::vector<LayerProblem>& problems,
                                                  const ExploreOptions& options);

}  // namespace laminate
