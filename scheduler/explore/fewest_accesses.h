// Answers one question instead of finding a front: which schedule that fits in a given memory has
// the fewest external accesses?
//
// The answer is immediate if all sequences (sequences.h), each fused whole with resident weights
// and the schedules of dag/family.h, reach NetworkBound::accesses(), which no schedule in this
// memory undercuts. Such a schedule may lie outside ConvFusion's spaces, which keep no halo of the
// last layer's tiles; still, no schedule of these spaces moves less. Otherwise the answer is chosen
// from the front of explore(), which proves it or says what is left open.
#pragma once

#include "scheduler/explore/explore.h"

namespace laminate::search {

/// A front of at most one point, with the fewest accesses within options.memory, if given. Its MACs
/// are the least among schedules with as few accesses, unless the bound was reached at once. Empty
/// if nothing fits. is_complete, bounds and gap refer to accesses in this memory only. Ignores
/// options.macs_is_axis. Throws like explore().
[[nodiscard]] Front fewest_accesses(const Network& network, const ExploreOptions& options);

}  // namespace laminate::search
