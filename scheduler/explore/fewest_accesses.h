// One question instead of a front: which schedule that fits in a given memory has the fewest
// external accesses?
//
// Answered at once where a bound is reached: all sequences (sequences.h) fused whole, with the line
// buffers and tiles of the family of dag_groups.h and resident weights, move no more than
// NetworkBound::accesses() says that any schedule in this memory does. Such a schedule may lie
// outside of ConvFusion's spaces, which keep no halo of the last layer's tiles; no schedule of them
// moves less. Else the answer is chosen from the front of explore(), which proves it or says what
// is left open.
#pragma once

#include "scheduler/explore/explore.h"

namespace laminate::search {

/// A front of at most one point: fewest accesses within options.memory (without it: of all
/// schedules); the MACs of other schedules with as few accesses were not looked at where the bound
/// was reached, else they are least. Empty when nothing fits. is_complete, bounds and gap speak of
/// accesses in this memory alone. options.macs_is_axis is not looked at. Throws as explore().
[[nodiscard]] Front fewest_accesses(const Network& network, const ExploreOptions& options);

}  // namespace laminate::search
