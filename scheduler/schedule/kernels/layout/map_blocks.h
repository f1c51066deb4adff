// Blocks of channels of a 1x1 layer and of the depthwise layer behind it: the first computes a block's
// whole map into the scratch block, where the second finds it.
#pragma once

#include <cstdint>

#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapBlocksLayout {
    MapChannelsLayout pointwise;  ///< its blocks of channels are parts for threads
    MapDepthwiseLayout depthwise;

    /// Parts of one block for threads, next to each other: all of it, or the tiles of the depthwise
    /// layer before `second_tile` and the others. Their 1x1 layer is in tiles 0 .. first_end - 1
    /// and second_begin .. tiles - 1, which share what halos have in common; one call for both
    /// computes that once.
    int64_t block_parts = 1;
    int64_t second_tile = 0;
    int64_t first_end = 0, second_begin = 0;

    /// Sums of the 1x1 layer that wait come first in the scratch block, then the map.
    [[nodiscard]] int64_t map_offset() const;
    [[nodiscard]] int64_t parts() const { return pointwise.blocks * block_parts; }
    [[nodiscard]] int64_t parts_together() const {
        return pointwise.has_panel ? pointwise.blocks : block_parts;
    }
    [[nodiscard]] int64_t scratch_elements() const {
        return map_offset() + pointwise.block() * pointwise.pixels;
    }
};

/// The map has several pixels.
[[nodiscard]] MapBlocksLayout map_blocks_layout(const LayerProblem& pointwise,
                                                const VectorUnit& unit,
                                                const LayerProblem& depthwise,
                                                const VectorUnit& depthwise_unit);

}  // namespace laminate
