// Bands of a depthwise layer and of the 1x1 layer behind it: the first computes some rows of all
// channels into a panel, from which the second takes its pixels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"
#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapBandsLayout {
    MapDepthwiseLayout depthwise;  ///< a band has whole tiles of it

    int64_t lanes = 1;
    int64_t inputs = 1;       ///< channels between the two layers
    int64_t band_pixels = 1;  ///< of a whole band, its rows as one axis
    int64_t bands = 1;  ///< parts for threads
    int64_t band_tiles = 1;  ///< depthwise tiles of a whole band

    // The register tile of the 1x1 layer, as in MapPixelsLayout.
    int64_t block = 1;
    int64_t blocks = 1;
    int64_t vectors = 1;

    PixelTiles whole_band, last_band;  ///< the last one may have fewer rows

    /// Elements from one channel of the panel to the next: a band's pixels, and room for what a
    /// vector has behind the end of a short row.
    int64_t pitch = 1;

    /// Whether the first block of output channels copies a tile's pixels to a panel of its own,
    /// behind the band's, from which the others take them.
    bool has_tile_panel = false;

    [[nodiscard]] int64_t step() const { return vectors * lanes; }
    [[nodiscard]] int64_t tile_panel_offset() const { return inputs * pitch; }
    [[nodiscard]] int64_t scratch_elements() const {
        return tile_panel_offset() + (has_tile_panel ? inputs * step() : 0);
    }
    /// Products of the 1x1 layer, as MapPixelsLayout counts them.
    [[nodiscard]] int64_t multiplications() const;
};

/// `rows`: of a band. Every band has at least a vector of pixels.
[[nodiscard]] MapBandsLayout map_bands_layout(const LayerProblem& depthwise,
                                              const VectorUnit& depthwise_unit,
                                              const LayerProblem& pointwise, const VectorUnit& unit,
                                              int64_t rows);

}  // namespace laminate
