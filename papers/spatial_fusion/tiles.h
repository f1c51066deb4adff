// The geometry of a stack of layers executed tile by tile, nothing computed twice: which pixels a
// tile of the bottom layer's output asks of every layer. HW-Flow-Fusion (Valpreda et al.,
// Electronics 2022, 11, 2933), sections 4.1-4.2, equations 4 and 10 to 12.
//
// A stack is the problems of consecutive layers, top (executed first) to bottom. Tiles walk over
// the bottom layer's output along x, then y. Axes are independent; `axis` 0 is y (rows), 1 is x
// (columns), as in LayerProblem::window. T is the tile's extent along the axis, No the output's, n
// = ceil(No / T) the number of tiles; T need not divide No, the last tile is ragged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/window.h"

namespace laminate::spatial_fusion {

using Stack = std::vector<LayerProblem>;

/// Whether the model's formulas hold for the layer: one input, a window that is not transposed.
/// Convolutions, pools, fully connected layers and activations are; additions and concatenations
/// end a stack.
[[nodiscard]] bool can_be_stacked(const LayerProblem& layer);

/// Eq. 4, by layer: extent of its input tile, Ti = (To - 1) S + K with To the input tile of the
/// layer below, T at the bottom. Padding and what hangs over the map are counted.
[[nodiscard]] std::vector<int64_t> tile_spans(const Stack& stack, size_t axis, int64_t tile);

/// [layer][tile]: the coordinates of the layer's input that no earlier tile had; empty where a tile
/// brings nothing. A layer's new outputs are the new inputs of the layer below. Padding is no
/// coordinate. As in docs/counting.md a tile asks for a box that reaches down to what is there
/// already, but never back: with S > K what lies between two tiles is left out.
[[nodiscard]] std::vector<std::vector<Range>> new_inputs(const Stack& stack, size_t axis,
                                                         int64_t tile);

/// New pixels of one layer's input along one axis: the first tile, each of those between, the last
/// one. One tile: only `first`, which is all that is needed; two: `first` and `last`.
struct TileClasses {
    int64_t tiles = 1;
    int64_t first = 0;   ///< X1
    int64_t middle = 0;  ///< X2, tiles - 2 times
    int64_t last = 0;    ///< X3
    [[nodiscard]] int64_t different() const { return tiles < 3 ? tiles : 3; }
};

/// Eq. 10 to 12 by layer, with the misprints mended: X1 = (first - 1) S + K - P, X2 = step S, X3 =
/// what is left. Gaps between tiles (S > K) belong to the later tile. Throws InputError naming the
/// layer where X3 < 0: overhang has piled up until the last tile is empty, sizes are more than
/// three, and only new_inputs() tells them.
[[nodiscard]] std::vector<TileClasses> tile_classes(const Stack& stack, size_t axis, int64_t tile);

/// By layer, elements of its input that must be kept at once, so that nothing is brought in or
/// computed twice: new ones and what this or a later tile still reads of earlier ones. `tile_y` x
/// `tile_x` of the bottom layer; all channels. Never more than Eq. 4 and Eq. 8 together
/// (footprint.h).
[[nodiscard]] std::vector<int64_t> kept_inputs(const Stack& stack, int64_t tile_y, int64_t tile_x);

}  // namespace laminate::spatial_fusion
