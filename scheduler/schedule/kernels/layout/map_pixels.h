// Tiles and panels of map_pixels: a 1x1 convolution whose vectors are runs of pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapPixelsLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;  ///< input channels
    int64_t pixels = 1;  ///< of the map, rows and columns as one axis

    // The register tile.
    int64_t block = 1;    ///< output channels whose sums are in registers together
    int64_t blocks = 1;   ///< of all output channels; the last one is filled up with zero weights
    int64_t vectors = 1;  ///< vectors of pixels of a whole tile

    PixelTiles tiles;

    /// Whether the pixels of a tile are copied to a panel, [i][vector][lane], for several blocks
    /// of output channels to read.
    bool has_panel = false;

    // Parts for threads: chunks of tiles x parts of the blocks of output channels.
    int64_t chunks = 1;
    int64_t channel_parts = 1;

    [[nodiscard]] int64_t step() const { return vectors * lanes; }
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    [[nodiscard]] int64_t scratch_elements() const { return has_panel ? inputs * step() : 0; }
    /// Products of the whole layer: D_i for each lane of each tile and each channel of each block.
    /// Counts lanes behind the last pixel, pixels that two runs share, and channels of zero
    /// weights.
    [[nodiscard]] int64_t multiplications() const;
};

/// `scratch`: what a thread may use; without a limit the panel may have any size. The map has at
/// least a vector of pixels (pixel_tile()).
[[nodiscard]] MapPixelsLayout map_pixels_layout(const LayerProblem& problem, const VectorUnit& unit,
                                                const std::optional<Bytes>& scratch);

}  // namespace laminate
