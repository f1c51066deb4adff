// Tiles of map_channels: a 1x1 convolution or dense layer whose vectors are runs of output
// channels; and which of map_pixels and map_channels is quicker.
#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapChannelsLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;  ///< input channels
    int64_t pixels = 1;  ///< of the map, rows and columns as one axis

    // The register tile.
    int64_t vectors = 1;      ///< vectors of output channels
    int64_t tile_pixels = 1;  ///< pixels of a whole tile
    int64_t blocks = 1;       ///< of all output channels; zero weights fill up the last one

    // Parts for threads: chunks of whole tiles x parts of the blocks of output channels. The last
    // chunk computes the rest of the pixels too.
    int64_t chunks = 1;
    int64_t channel_parts = 1;

    /// Predicted time of the layer in products of a vector, one a cycle; the maximum where the map
    /// has too many pixels for this kernel.
    int64_t cycles = std::numeric_limits<int64_t>::max();

    [[nodiscard]] int64_t block() const { return vectors * lanes; }  ///< output channels
    [[nodiscard]] int64_t whole_tiles() const { return pixels / tile_pixels; }
    [[nodiscard]] int64_t rest() const { return pixels % tile_pixels; }  ///< pixels
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    [[nodiscard]] int64_t scratch_elements() const { return 0; }
    /// Products of the whole layer: D_i for each pixel and each channel of each block. Counts
    /// channels of zero weights.
    [[nodiscard]] int64_t multiplications() const { return pixels * blocks * block() * inputs; }
};

[[nodiscard]] MapChannelsLayout map_channels_layout(const LayerProblem& problem,
                                                    const VectorUnit& unit);

/// Whether map_channels takes fewer cycles for a 1x1 convolution than map_pixels.
[[nodiscard]] bool prefers_map_channels(const LayerProblem& problem, const VectorUnit& unit);

}  // namespace laminate
