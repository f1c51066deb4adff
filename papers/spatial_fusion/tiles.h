// The geometry of a stack of layers executed tile by tile with nothing computed twice: the pixels
// of every layer that a tile of the bottom layer's output needs. HW-Flow-Fusion (Valpreda et al.,
// Electronics 2022, 11, 2933), sections 4.1-4.2, equations 4 and 10 to 12.
//
// A stack is the problems of consecutive layers from top (executed first) to bottom. Tiles walk
// over the bottom layer's output along x, then y. The axes are independent; `axis` 0 is y (rows)
// and 1 is x (columns), as in LayerProblem::window. T is the tile's extent along the axis, No the
// output's, and n = ceil(No / T) the number of tiles. T need not divide No; the last tile may be
// ragged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/window.h"

namespace laminate::spatial_fusion {

using Stack = std::vector<LayerProblem>;

/// Whether the model's formulas hold for the layer: it has one input and no transposed window. This
/// covers convolutions, pools, fully connected layers and activations; additions and concatenations
/// end a stack.
[[nodiscard]] bool can_be_stacked(const LayerProblem& layer);

/// The paper's K: input coordinates under one output, including the gaps of a dilated kernel.
[[nodiscard]] inline int64_t window_extent(const AxisWindow& window) {
    return (window.kernel - 1) * window.dilation + 1;
}

/// Eq. 4: the extent of each layer's input tile, Ti = (To - 1) S + K. To is the input tile of the
/// layer below, or T at the bottom. Includes padding and what hangs over the map.
[[nodiscard]] std::vector<int64_t> tile_spans(const Stack& stack, size_t axis, int64_t tile);

/// The coordinates of a layer's input that no earlier tile had, [layer][tile]; empty if there are
/// none. A layer's new outputs are the new inputs of the layer below. Padding has no coordinates.
/// As in docs/counting.md, a tile asks for a box that begins at or after the end of what is there,
/// so with S > K what lies between two tiles is left out.
[[nodiscard]] std::vector<std::vector<Range>> new_inputs(const Stack& stack, size_t axis,
                                                         int64_t tile);

/// New pixels of one layer's input along one axis, for the first tile, each tile between, and the
/// last tile. A single tile is `first`; two are `first` and `last`.
struct TileClasses {
    int64_t tiles = 1;
    int64_t first = 0;   ///< X1
    int64_t middle = 0;  ///< X2, tiles - 2 times
    int64_t last = 0;    ///< X3
    [[nodiscard]] int64_t different() const { return tiles < 3 ? tiles : 3; }
};

/// Eq. 10 to 12 for each layer, with the misprints mended: X1 = (first - 1) S + K - P, X2 = step S,
/// X3 = what is left. Gaps between tiles (S > K) belong to the later tile. Throws InputError naming
/// a layer with X3 < 0: overhang has piled up until the last tile is empty, there are more than
/// three sizes, and only new_inputs() knows them.
[[nodiscard]] std::vector<TileClasses> tile_classes(const Stack& stack, size_t axis, int64_t tile);

/// For each layer, the most elements of its input that have to be kept at once so that nothing is
/// fetched or computed twice: new ones, and those of earlier tiles that this or a later tile still
/// reads. `tile_y` x `tile_x` of the bottom layer, all channels. Never more than Eq. 4 and Eq. 8
/// together (volume.h).
[[nodiscard]] std::vector<int64_t> kept_inputs(const Stack& stack, int64_t tile_y, int64_t tile_x);

}  // namespace laminate::spatial_fusion
