// Searches for schedules of a whole network: Pareto fronts of external accesses, memory and MACs
// under the two-level model.
//
// Four of the spaces are ConvFusion's (IEEE Access 2021, section VII), which are searched
// completely; docs/search.md says what they contain, why nothing is lost, and how long it takes. A
// *sequence* is a run of ungrouped convolutions that feed one another; a *segment* is a contiguous
// run of a sequence, executed as one group. Every layer that must be scheduled is in one group.
// Pooling, additions and concatenations stay outside and are not counted, as in the paper.
// Space::dag counts all layers.
//
// The counts of every point come from two_level_counts(), and the search throws std::logic_error if
// its own differ. The result does not depend on the number of threads. Whatever a limit or an
// interrupt left out is bounded from below, never dropped silently: Front::bounds, Front::gap.
// Groups that were not searched to the end also get the family of dag/family.h.
#pragma once

#include "scheduler/explore/front.h"
#include "scheduler/explore/group_front.h"
#include "scheduler/explore/options.h"

namespace laminate {

/// Throws InputError for a network without schedulable layers. Empty if nothing fits in
/// options.memory.
[[nodiscard]] Front explore(const Network& network, const ExploreOptions& options = {});

}  // namespace laminate
