// Tiles and panels of map_phases: a transposed convolution whose windows do not overlap, as a matrix
// product.
//
// A row of the input is cut into vectors of positions; the last one begins early where it would end
// behind the row. Vectors of all rows follow each other as one axis, so that short rows share a tile.
#pragma once

#include <cstdint>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapPhasesLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;       ///< input channels
    int64_t phases = 1;       ///< outputs of a position and an output channel: S_y * S_x
    int64_t row_vectors = 1;  ///< vectors of a row of the input
    int64_t all_vectors = 1;  ///< of all rows

    // The register tile.
    int64_t block = 1;    ///< output channels whose phases are in registers together
    int64_t blocks = 1;   ///< of all output channels; zero weights fill up the last one
    int64_t vectors = 1;  ///< vectors of positions of a whole tile
    TileDivision tiles;   ///< of all vectors

    /// A panel in the scratch block, [tile][i][vector][lane], holds the inputs of so many whole tiles at
    /// most. A smaller tile has one of its own.
    int64_t tiles_of_panel = 1;

    // Parts for threads: chunks of panels x parts of the blocks of output channels.
    int64_t chunks = 1;
    int64_t channel_parts = 1;

    [[nodiscard]] int64_t whole_panels() const;
    [[nodiscard]] int64_t panels() const { return whole_panels() + std::ssize(tiles.rest); }
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    /// Elements of a tile of so many vectors in a panel.
    [[nodiscard]] int64_t tile_elements(int64_t tile_vectors) const {
        return inputs * tile_vectors * lanes;
    }
    [[nodiscard]] int64_t scratch_elements() const;
    /// Products of the whole layer: D_i for each phase of each lane of each vector and each channel of
    /// each block. Counts positions that the last two vectors of a row share, and channels of zero
    /// weights.
    [[nodiscard]] int64_t multiplications() const;
};

/// Rows have at least a vector of positions.
[[nodiscard]] MapPhasesLayout map_phases_layout(const LayerProblem& problem, const VectorUnit& unit);

}  // namespace laminate
