// Search for schedules of a whole network: Pareto fronts of external accesses, memory and MACs
// under the two-level model.
//
// Four of the spaces are ConvFusion's (IEEE Access 2021, section VII), searched completely:
// docs/search.md says what is in them, why nothing is lost on the way, and how long it takes. A
// *sequence* is a run of ungrouped convolutions that feed one another; a *segment* is a contiguous
// run of a sequence, executed as one group. Every layer that must be scheduled is in one group;
// pooling, additions and concatenations stay outside and are not counted, as in the paper.
// Space::dag counts them all.
//
// Counts of every point come from two_level_counts(): the search throws std::logic_error where its
// own differ. The result does not depend on the number of threads. What a limit or an interrupt
// left out is bounded from below, never cut silently: Front::bounds, Front::gap. Groups that were
// not searched to the end get the tile and line-buffer family of search/dag_groups.h besides.
#pragma once

#include "scheduler/explore/front.h"
#include "scheduler/explore/group_front.h"
#include "scheduler/explore/options.h"

namespace laminate {

/// Throws InputError for a network without schedulable layers. Empty when nothing fits in
/// options.memory.
[[nodiscard]] Front explore(const Network& network, const ExploreOptions& options = {});

}  // namespace laminate
