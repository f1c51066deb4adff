// What a layer alone and a stack of layers move between external and on-chip memory, and what they
// hold on chip. HW-Flow-Fusion sections 3.2 and 4.1, equations 1 to 9 and 13.
//
// Volumes and footprints are in elements; times the bytes of an element they are the paper's. Each
// has two readings:
//   Reading::paper  what the authors counted: tiles fetch their whole span, padding and what hangs
//   over the map included; halos of a stack's input
//                   are fetched again; weights of a stack's bottom layer once, even where its
//                   channels are tiled and tiles are several
//   Reading::exact  what a machine must move: real pixels, each once where halos are kept; weights
//   once while they are resident, else once a tile
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

/// What is kept of the overlap of tiles, Eq. 8 or Eq. 9.
enum class ReuseModel {
    own,  ///< rows for the tiles below; columns for the next tile stay in the layer's tile buffer
    alwani,  ///< Alwani et al., MICRO 2016: a buffer for these columns too
};
[[nodiscard]] const char* to_string(ReuseModel model);  ///< "own", "alwani"

/// A tile of the bottom layer's output and, for a layer alone, of its input channels.
struct Tile {
    int64_t x = 1;             ///< Tox
    int64_t y = 1;             ///< Toy
    int64_t out_channels = 1;  ///< Tof; of a stack that ends in a channelwise layer all
    int64_t in_channels = 1;   ///< Tif; in a stack all
    friend auto operator<=>(const Tile&, const Tile&) = default;
};

/// One output channel reads one input channel: pools, depthwise convolutions. Tif is Tof then.
[[nodiscard]] bool is_channelwise(const LayerProblem& layer);
/// Multiplications of the layer by itself; a pool counts the elements that it looks at (the paper's
/// Nif := 1).
[[nodiscard]] int64_t operations(const LayerProblem& layer);
/// Every tensor once, without padding.
[[nodiscard]] int64_t each_tensor_once(const LayerProblem& layer);

/// Eq. 1.
[[nodiscard]] int64_t single_layer_footprint(const LayerProblem& layer, const Tile& tile);
/// Eq. 2 as Table 7 supports it: spatial tiles outermost, then output channels, then input
/// channels; halos are fetched again.
///     V = n_x n_y Tix Tiy Nif (1 if Tif = Nif else Nof / Tof) + n_x n_y W + Nox Noy Nof
/// exact: tiles without padding; weights once where Tif = Nif and Tof = Nof.
[[nodiscard]] int64_t single_layer_volume(const LayerProblem& layer, const Tile& tile,
                                          Reading reading);

/// Parts of Eq. 5 with Eq. 8 or 9, elements.
struct StackFootprint {
    int64_t inputs = 0;   ///< the layers' input tiles
    int64_t reuse = 0;    ///< what is kept between tiles beside them
    int64_t weights = 0;  ///< of all layers; of the bottom one Tof channels
    int64_t output = 0;   ///< the bottom layer's output tile
    [[nodiscard]] int64_t total() const { return inputs + reuse + weights + output; }
};
[[nodiscard]] StackFootprint stack_footprint(const Stack& stack, const Tile& tile,
                                             ReuseModel model);
/// The same with inputs and reuse together as they are: kept_inputs(), under `inputs`. Never more
/// than stack_footprint().
[[nodiscard]] StackFootprint exact_stack_footprint(const Stack& stack, const Tile& tile);

/// Eq. 6; a stack of one layer keeps its halos too.
[[nodiscard]] int64_t stack_volume(const Stack& stack, const Tile& tile, Reading reading);
/// Eq. 13: no pixel is computed twice; rows and columns that nobody reads are not computed.
[[nodiscard]] int64_t stack_operations(const Stack& stack, const Tile& tile);

/// One way of cutting an axis, with what volumes take of it: they are sums of products of these.
struct AxisCut {
    int64_t tile = 1;
    int64_t tiles = 1;
    int64_t input = 0;  ///< coordinates of the top layer's input that all tiles together fetch
};
[[nodiscard]] AxisCut single_layer_cut(const LayerProblem& layer, size_t axis, int64_t tile,
                                       Reading reading);
[[nodiscard]] AxisCut stack_cut(const Stack& stack, size_t axis, int64_t tile, Reading reading);
[[nodiscard]] int64_t single_layer_volume(const LayerProblem& layer, const AxisCut& y,
                                          const AxisCut& x, const Tile& tile, Reading reading);
[[nodiscard]] int64_t stack_volume(const Stack& stack, const AxisCut& y, const AxisCut& x,
                                   const Tile& tile, Reading reading);

}  // namespace laminate::spatial_fusion
