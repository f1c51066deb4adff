// What a layer alone and a stack of layers move between external and on-chip memory, and what they
// hold on chip. HW-Flow-Fusion sections 3.2 and 4.1, equations 1 to 9 and 13.
//
// Volumes and footprints are in elements; the paper's are these times the bytes of an element.
// There are two ways to count:
//
//   Reading::paper  what the authors counted. Tiles fetch their whole span, including padding and
//                   what hangs over the map. Halos of a stack's input are fetched again. Weights of
//                   a stack's bottom layer come once, even if its channels are tiled and there are
//                   several tiles.
//   Reading::exact  what a machine must move. Only real pixels count, each once where halos are
//                   kept. Weights come once if they stay on chip, and otherwise once per tile.
//
// The exact volumes are those of the schedules that fusion_schedule.h writes, count for count
// (docs/counting.md).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "papers/spatial_fusion/tiles.h"

namespace laminate::spatial_fusion {

enum class Reading { exact, paper };
[[nodiscard]] const char* to_string(Reading reading);  ///< "exact", "paper"

/// What is kept of the overlap of tiles: Eq. 8 or Eq. 9.
enum class ReuseModel {
    own,  ///< rows for the tiles below; columns for the next tile stay in the layer's tile buffer
    alwani,  ///< a buffer for these columns too (Alwani et al., MICRO 2016)
};
[[nodiscard]] const char* to_string(ReuseModel model);  ///< "own", "alwani"

/// A tile of the bottom layer's output; for a layer alone also of its input channels.
struct Tile {
    int64_t x = 1;             ///< Tox
    int64_t y = 1;             ///< Toy
    int64_t out_channels = 1;  ///< Tof; all in a stack that ends in a channelwise layer
    int64_t in_channels = 1;   ///< Tif; all in a stack
    friend auto operator<=>(const Tile&, const Tile&) = default;
};

/// Whether one output channel reads one input channel, as in pools and depthwise convolutions. Tif
/// is then Tof.
[[nodiscard]] bool is_channelwise(const LayerProblem& layer);
/// Multiplications of a layer alone. A pool counts the elements that it reads (the paper's Nif :=
/// 1).
[[nodiscard]] int64_t operations(const LayerProblem& layer);
/// The elements of all tensors of the layer, without padding.
[[nodiscard]] int64_t each_tensor_once(const LayerProblem& layer);

/// Eq. 1.
[[nodiscard]] int64_t single_layer_footprint(const LayerProblem& layer, const Tile& tile);
/// Eq. 2 as Table 7 supports it. Spatial tiles are outermost, then output channels, then input
/// channels; halos are fetched again.
///     V = n_x n_y Tix Tiy Nif (1 if Tif = Nif else Nof / Tof) + n_x n_y W + Nox Noy Nof
/// Reading::exact counts tiles without padding, and weights once if Tif = Nif and Tof = Nof.
[[nodiscard]] int64_t single_layer_volume(const LayerProblem& layer, const Tile& tile,
                                          Reading reading);

/// The parts of Eq. 5 with Eq. 8 or 9, in elements.
struct StackFootprint {
    int64_t inputs = 0;   ///< the layers' input tiles
    int64_t reuse = 0;    ///< what is kept between tiles beside them
    int64_t weights = 0;  ///< of all layers, but only Tof channels of the bottom one
    int64_t output = 0;   ///< the bottom layer's output tile
    [[nodiscard]] int64_t total() const { return inputs + reuse + weights + output; }
};
[[nodiscard]] StackFootprint stack_footprint(const Stack& stack, const Tile& tile,
                                             ReuseModel model);
/// The same with kept_inputs() as `inputs` and no `reuse`. Never more than stack_footprint().
[[nodiscard]] StackFootprint exact_stack_footprint(const Stack& stack, const Tile& tile);

/// Eq. 6. A stack of one layer keeps its halos too.
[[nodiscard]] int64_t stack_volume(const Stack& stack, const Tile& tile, Reading reading);
/// Eq. 13. No pixel is computed twice, and rows and columns that no layer reads are not computed.
[[nodiscard]] int64_t stack_operations(const Stack& stack, const Tile& tile);

/// One way to cut an axis into tiles. Volumes are sums of products of these numbers.
struct AxisCut {
    int64_t tile = 1;
    int64_t tiles = 1;
    int64_t input = 0;  ///< coordinates of the top layer's input that all tiles fetch together
};
[[nodiscard]] AxisCut single_layer_cut(const LayerProblem& layer, size_t axis, int64_t tile,
                                       Reading reading);
[[nodiscard]] AxisCut stack_cut(const Stack& stack, size_t axis, int64_t tile, Reading reading);
[[nodiscard]] int64_t single_layer_volume(const LayerProblem& layer, const AxisCut& y,
                                          const AxisCut& x, const Tile& tile, Reading reading);
[[nodiscard]] int64_t stack_volume(const Stack& stack, const AxisCut& y, const AxisCut& x,
                                   const Tile& tile, Reading reading);

}  // namespace laminate::spatial_fusion
