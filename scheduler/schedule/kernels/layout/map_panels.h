// Tiles and panel of map_panels: strided convolutions whose outputs read few elements each.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapPanelsLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;  ///< input channels
    int64_t taps = 1;    ///< of the window
    int64_t rows = 1;    ///< of the map

    // The register tile.
    int64_t block = 1;    ///< output channels whose sums are in registers together
    int64_t blocks = 1;   ///< of all output channels; the last one is filled up with zero weights
    int64_t vectors = 1;  ///< vectors of pixels of the largest tile

    std::vector<std::vector<VectorRun>> tiles{};  ///< of a row of the map

    /// Neighbouring rows of the map whose windows share rows of the input share a panel, so many of
    /// them, and as many rows of the input as all of them together reach. `rows` is a multiple.
    int64_t rows_of_panel = 1;
    int64_t panel_rows = 1;
    int64_t panel_row = 1;  ///< elements of a row of the panel for each lane
    int64_t parts = 1;      ///< for threads: runs of panels

    [[nodiscard]] int64_t panels() const { return rows / rows_of_panel; }
    /// The panel, [row of the input][i][column of the window][vector][lane].
    [[nodiscard]] int64_t scratch_elements() const {
        return panel_rows * panel_row * vectors * lanes;
    }
    /// Products of the whole layer: D_i * K_y * K_x for each lane of each row and each channel of
    /// each block. Counts lanes behind the end of a row, taps on padding, and channels of zero
    /// weights.
    [[nodiscard]] int64_t multiplications() const;
};

/// Rows have at least a vector of pixels (pixel_tile()).
[[nodiscard]] MapPanelsLayout map_panels_layout(const LayerProblem& problem,
                                                const VectorUnit& unit);

}  // namespace laminate
