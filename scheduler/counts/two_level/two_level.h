// The closed form of the two-level memory model: counts of a group without executing its nest. It
// extends ConvFusion (IEEE Access 2021) sections IV and VI to ragged tiles, padding, dilation,
// groups, transposed convolution, strips and every legal pair of store and compute levels.
// docs/counting.md is normative, and the counts are exact for every legal schedule.
//
// Axes are independent (axis.h), so every count is a product over axes of sums along one axis. The
// model shares nothing with the instrumented or interpreted execution of a group.
//
//   const GroupCounts counts = two_level_counts(network, group);
#pragma once

#include <memory>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/counts/two_level/axis.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Remembers the sums along single axes, many of which schedules of one network share. Not
/// thread-safe.
class TwoLevelCache {
public:
    TwoLevelCache();
    TwoLevelCache(TwoLevelCache&&) noexcept;
    TwoLevelCache& operator=(TwoLevelCache&&) noexcept;
    ~TwoLevelCache();
    /// The reference is valid as long as the cache lives.
    [[nodiscard]] const two_level::AxisCounts& counts(const two_level::AxisProblem& problem);

private:
    struct Entries;
    std::unique_ptr<Entries> entries_;
};

/// `group` is legal in `network` (check_group). Throws std::overflow_error if a count exceeds 64
/// bits, which takes recomputation through very many layers.
[[nodiscard]] GroupCounts two_level_counts(const Network& network, const GroupSchedule& group,
                                           TwoLevelCache* cache = nullptr);

/// The same for given group_problems().
[[nodiscard]] GroupCounts two_level_counts(const std::vector<LayerProblem>& problems,
                                           const GroupSchedule& group,
                                           TwoLevelCache* cache = nullptr);

/// The work of executing the group, recomputation included: its MACs, and for layers without
/// weights the elements that they read.
[[nodiscard]] Macs two_level_work(const std::vector<LayerProblem>& problems,
                                  const GroupSchedule& group);

[[nodiscard]] NetworkCounts two_level_counts(const Network& network, const Schedule& schedule,
                                             TwoLevelCache* cache = nullptr);

}  // namespace laminate
