// Chunks, blocks and scratch of winograd_map: F(2x4, 3x3) on a whole map.
//
// Scratch holds V[part of the input channels][frequency][input channel][tile], patches of a chunk
// of row pairs; U[frequency][input channel][output channel], weights of a block for a part of the
// input channels; M[frequency][tile][output channel], products of a block.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct WinogradMapLayout {
    static constexpr int64_t rows_of_tile = 2;
    static constexpr int64_t columns_of_tile = 4;
    static constexpr int64_t frequencies = (rows_of_tile + 2) * (columns_of_tile + 2);

    int64_t lanes = 1;
    int64_t all_inputs = 1;  ///< input channels

    // Tiles of pairs of rows, in chunks that share V.
    int64_t row_tiles = 0;  ///< of a pair of rows
    int64_t slots = 0;  ///< the same up to a power of two: what a vector of patches has room for
    int64_t pairs_of_vector = 1;  ///< pairs of rows whose patches one vector holds
    int64_t pairs = 0;
    int64_t chunk_pairs = 0;
    int64_t chunks = 1;

    // The register tile and the blocks.
    int64_t vectors = 1;        ///< of output channels in a block
    int64_t tile = 1;           ///< tiles whose sums are in registers together
    int64_t block = 1;          ///< output channels
    int64_t blocks = 1;         ///< of all output channels; zero weights fill up the last one
    int64_t inputs = 1;         ///< input channels whose transformed weights lie in U together
    int64_t input_parts = 1;    ///< of all input channels
    int64_t channel_parts = 1;  ///< for threads: parts of the blocks of output channels

    // Where V, U and M lie, in elements. V begins at 0.
    int64_t tiles = 0;            ///< of V's rows, with what vectors and register tiles run over
    int64_t patch_frequency = 0;  ///< from one frequency of V to the next
    int64_t weights = 0, weight_frequency = 0;    ///< where U begins, its frequencies
    int64_t products = 0, product_frequency = 0;  ///< where M begins, its frequencies
    int64_t elements = 0;

    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    [[nodiscard]] int64_t scratch_elements() const { return ceil_div(elements, 16) * 16; }
    /// Products of the whole layer in the frequency domain: 24 * D_i for each tile and each channel
    /// of each block. Counts tiles behind the last one of a chunk, columns and rows behind the end
    /// of the map, and channels of zero weights. Does not count the products with constants in the
    /// transforms of patches, weights (repeated for every chunk) and outputs.
    [[nodiscard]] int64_t multiplications() const;
};

[[nodiscard]] WinogradMapLayout winograd_map_layout(const LayerProblem& problem,
                                                    const VectorUnit& unit);

}  // namespace laminate
