// The closed form of the two-level memory model: counts of a group without executing its nest.
// ConvFusion (IEEE Access 2021) sections IV and VI, extended to ragged tiles, padding, dilation,
// groups, transposed convolution, strips and every legal pair of store and compute levels.
// Normative: docs/counting.md; exact, difference 0 to the page for every legal schedule.
//
// How: axes are independent (axis.h), so every count is a product over axes of sums along one axis.
// Nothing of the group's instrumented or interpreted execution is used here.
//
//   const GroupCounts counts = two_level_counts(network, group);   // elements and MACs of one
//   image
#pragma once

#include <memory>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/counts/two_level/axis.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Remembers the sums along single axes, which schedules of one network share to a large part. Not
/// for two threads at once.
class TwoLevelCache {
public:
    TwoLevelCache();
    TwoLevelCache(TwoLevelCache&&) noexcept;
    TwoLevelCache& operator=(TwoLevelCache&&) noexcept;
    ~TwoLevelCache();
    /// The reference stays valid as long as the cache.
    [[nodiscard]] const two_level::AxisCounts& counts(const two_level::AxisProblem& problem);

private:
    struct Entries;
    std::unique_ptr<Entries> entries_;
};

/// `group` is legal in `network` (check_group). Throws std::overflow_error when a count exceeds 64
/// bits, which needs recomputation through very many layers.
[[nodiscard]] GroupCounts two_level_counts(const Network& network, const GroupSchedule& group,
                                           TwoLevelCache* cache = nullptr);

/// The same with the group's loop problems at hand (group_problems).
[[nodiscard]] GroupCounts two_level_counts(const std::vector<LayerProblem>& problems,
                                           const GroupSchedule& group,
                                           TwoLevelCache* cache = nullptr);

/// MACs of the group, and of its layers without weights the elements that they look at: what
/// executing it costs, recomputation included.
[[nodiscard]] Macs two_level_work(const std::vector<LayerProblem>& problems,
                                  const GroupSchedule& group);

[[nodiscard]] NetworkCounts two_level_counts(const Network& network, const Schedule& schedule,
                                             TwoLevelCache* cache = nullptr);

}  // namespace laminate
