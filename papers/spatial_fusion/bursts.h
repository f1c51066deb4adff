// What a plan moves if external memory is read and written in whole bursts. This is Caffeine's
// refinement of the ratio of computation to communication (Zhang et al., ICCAD 2016).
// HW-Flow-Fusion (section 5.2) names it and gives a burst of 8 bytes, but no formula. Ours: every
// run of elements that lie side by side in memory costs whole bursts.
//
// Maps lie in memory by channel, row, column. What a tile reads or writes of a map is one run of
// columns for each channel and row. Tiles as wide as the map have one run of rows per channel;
// tiles of the whole map have one run for all channels that move together. Weights lie in the order
// of use, with one run for each tile of channels. Every run begins at the beginning of a burst.
#pragma once

#include <cstdint>

#include "papers/spatial_fusion/fusion_search.h"

namespace laminate::spatial_fusion {

/// Elements moved: at least stack.volume, and equal to it for bursts of one element.
[[nodiscard]] int64_t volume_in_bursts(const Stack& problems, const PlannedStack& stack,
                                       Reading reading, int64_t burst_elements);

}  // namespace laminate::spatial_fusion
