// Other compute levels for a group that a search found. A search by counts alone leaves compute
// levels as deep as it found them, and code that computes or copies little at a time is slow.
#pragma once

#include <vector>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Levels on the paths of all readers of a tensor, outermost first.
[[nodiscard]] std::vector<Level> common_path(const GroupSchedule& group, const GroupTensor& tensor);

/// The group with inputs and outputs of producers computed as far out as no count changes. The
/// group is legal, and so is the result.
[[nodiscard]] GroupSchedule with_outer_compute_levels(const Network& network, GroupSchedule group,
                                                      TwoLevelCache& cache);

/// The same of several groups, in their places. Of groups that differ in sizes only, the first shows
/// the others where to begin, if no count changes by it: in a long chain that takes a hundredth of the
/// time. What comes out does not depend on the number of threads.
void move_compute_levels_out(const Network& network, const std::vector<GroupSchedule*>& groups,
                             int threads);

/// The group with nothing stored or computed inside a tile, except sums: what inner loops enclose
/// is moved to the innermost outer loop of the nest. It may hold and recompute more or less. The
/// group itself if the result would be illegal.
[[nodiscard]] GroupSchedule with_whole_tiles(const Network& network, const GroupSchedule& group);

}  // namespace laminate
