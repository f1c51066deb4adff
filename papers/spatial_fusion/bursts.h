// What a plan moves when external memory is read and written in whole bursts: Caffeine's refinement
// of the ratio of computation to communication (Zhang et al., ICCAD 2016), which HW-Flow-Fusion
// (section 5.2) names and gives a burst of 8 bytes for, but no formula. Ours: every run of elements
// that lie side by side costs whole bursts.
//
// Maps lie in memory by channel, row, column. What a tile brings or writes of a map is, for each
// channel and row, one run of its columns; tiles as wide as the map make one run of their rows,
// whole maps one of all channels that are moved together. Weights lie in the order in which they
// are asked for, a run for each tile of channels. Runs begin at the beginning of a burst.
#pragma once

#include <cstdint>

#include "papers/spatial_fusion/fusion_search.h"

namespace laminate::spatial_fusion {

/// Elements, at least stack.volume and equal to it for bursts of one element.
[[nodiscard]] int64_t volume_in_bursts(const Stack& problems, const PlannedStack& stack,
                                       Reading reading, int64_t burst_elements);

}  // namespace laminate::spatial_fusion
