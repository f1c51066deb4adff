// Chunks, blocks and scratch of winograd_map: F(2x4, 3x3), F(4x4, 3x3), F(6x6, 3x3), F(4x4, 5x5), or
// F(4, 5) and F(4, 7) along rows or columns, on a whole map.
//
// A band is as many rows as a tile has. Scratch holds
// V[part of the input channels][frequency][run of tiles][input channel][tile of the run], patches of a chunk of
// bands: products read a few tiles of all input channels, one line after the other;
// U[frequency of a group of rows][input channel][output channel], weights of a block for a part of
// the input channels; M[register tile][vector of output channels][frequency][tile][lane], products of a
// block; then a strip of outputs. Where blocks keep their products from part to part (`parts_outermost`),
// V has one part, and M[block][frequency][register tile][vector][tile][lane] those of all blocks, in the
// order in which sums of a part are added. The groups of a grouped convolution follow each other in a
// chunk. V has the patches of one group, and M the kept products of one.
#pragma once

#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct WinogradMapLayout {
    int64_t lanes = 1;
    int64_t rows_of_tile = 2;     ///< or 4 or 6; 1 where windows have one row
    int64_t columns_of_tile = 4;  ///< or 6; 1 where windows have one column
    int64_t row_taps = 3, column_taps = 3;
    int64_t frequencies = 0;
    int64_t channel_groups = 1;  ///< of a grouped convolution
    int64_t all_inputs = 1;  ///< input channels, of a group

    // Tiles of bands, in chunks that share V.
    int64_t row_tiles = 0;  ///< of a band
    int64_t slots = 0;  ///< the same up to a power of two: what a vector of patches has room for
    int64_t run = 1;  ///< tiles of an input channel that lie side by side in V: a vector's, or half of them
    int64_t row_slots = 0;  ///< room of a band in V, whole slots or runs
    int64_t bands_of_vector = 1;  ///< bands whose patches one vector holds
    int64_t bands = 0;
    int64_t chunk_bands = 0;  ///< most of a chunk
    int64_t chunks = 1;       ///< as even as can be: chunk c begins with band first_band(c)

    // The register tile and the blocks.
    bool stays_near = false;    ///< U and M stay in the first-level cache
    int64_t vectors = 1;        ///< of output channels in a block
    int64_t tile = 1;           ///< tiles whose sums are in registers together
    double pace = 1;            ///< part of the multipliers' time that products take
    int64_t block = 1;          ///< output channels
    int64_t blocks = 1;         ///< of all output channels; zero weights fill up the last one of one group
    int64_t inputs = 1;         ///< input channels whose transformed weights lie in U together
    int64_t input_parts = 1;    ///< of all input channels
    /// All blocks take their products of a part of the input channels before patches of the next part are
    /// made: V has one part and M all blocks. Else a block takes those of all parts: V has all, M one block.
    bool parts_outermost = false;
    int64_t channel_parts = 1;  ///< for threads: parts of the blocks of output channels

    // Where V, U and M lie, in elements. V begins at 0.
    int64_t patch_runs = 0;       ///< of tiles in V, with what register tiles run over
    int64_t patch_frequency = 0;  ///< from one frequency of V to the next
    int64_t weights = 0, weight_frequency = 0;    ///< where U begins, its frequencies
    int64_t products = 0;  ///< where M begins
    int64_t product_frequency = 0, product_vector = 0, product_tile = 0, product_block = 0;  ///< steps in M
    int64_t staged = 0;  ///< where a strip of outputs waits, a vector of channels
    int64_t elements = 0;

    /// The place of a chunk's tile in V's runs; bands of fewer tiles than slots leave some
    /// empty.
    [[nodiscard]] int64_t slot_of(int64_t n) const {
        return n + n / row_tiles * (row_slots - row_tiles);
    }
    [[nodiscard]] int64_t first_band(int64_t chunk) const { return chunk * bands / chunks; }
    [[nodiscard]] int64_t patch_rows() const { return rows_of_tile + row_taps - 1; }
    [[nodiscard]] int64_t patch_columns() const { return columns_of_tile + column_taps - 1; }
    /// Rows of frequencies whose weights are in U together: pairs that share the sums of their
    /// transform (points come as p and -p), and the first and the last.
    [[nodiscard]] std::vector<std::vector<int64_t>> row_groups() const;
    [[nodiscard]] int64_t frequencies_together() const {
        return std::ssize(row_groups().front()) * patch_columns();
    }
    /// Outputs of a row that are computed together: of one tile or, if tiles have one column, of several.
    [[nodiscard]] int64_t stored_columns() const { return columns_of_tile == 1 ? 4 : columns_of_tile; }
    /// Columns of outputs that are stored together: tiles that fill whole lines of the caches.
    [[nodiscard]] int64_t strip_columns() const {
        constexpr int64_t line = 16;
        return std::lcm(line, stored_columns());
    }
    /// How many values the transforms of an output handle, against tiles of two rows.
    [[nodiscard]] double transformed_part() const {
        return static_cast<double>(frequencies * 8) /
               static_cast<double>(24 * rows_of_tile * columns_of_tile);
    }
    /// Weights that are transformed, of tiles of two rows those that would take as long: every chunk
    /// transforms all of them.
    [[nodiscard]] double transformed_weights(const LayerProblem& problem) const {
        return static_cast<double>(chunks * problem[Dim::z] * problem[Dim::i] * frequencies) * 9 / 24;
    }
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    [[nodiscard]] int64_t blocks_of_group() const { return blocks / channel_groups; }
    /// Parts of the input channels whose patches V has together.
    [[nodiscard]] int64_t parts_with_patches() const { return parts_outermost ? 1 : input_parts; }
    [[nodiscard]] int64_t scratch_elements() const { return ceil_div(elements, 16) * 16; }
    /// Products of the whole layer in the frequency domain: frequencies * D_i for each tile and each
    /// channel of each block. Counts tiles behind the last one of a chunk, columns and rows behind
    /// the end of the map, and channels of zero weights. Does not count the products with constants
    /// in the transforms of patches, weights (repeated for every chunk) and outputs.
    [[nodiscard]] int64_t multiplications() const;
    /// Those of some blocks of a chunk.
    [[nodiscard]] int64_t multiplications(int64_t chunk, int64_t blocks_of_chunk) const;
};

/// How a map is cut.
struct WinogradMapChunks {
    /// Or 4 or 6. Other windows than 3x3 have tiles of four along each axis that they have taps on.
    int64_t rows_of_tile = 2;
    int64_t bands = 1;  ///< most of a chunk, whose patches are in V together
};
/// Whether a row has enough tiles of 6 x 6: more than half a vector, so that a vector has those of one
/// band.
[[nodiscard]] bool fills_wide_tiles(const LayerProblem& problem, int64_t lanes);
/// Whether the layer's window has tiles of so many rows (WinogradMapChunks).
[[nodiscard]] bool has_tiles(const LayerProblem& problem, int64_t rows);
[[nodiscard]] WinogradMapLayout winograd_map_layout(const LayerProblem& problem,
                                                    const VectorUnit& unit,
                                                    const WinogradMapChunks& chunks);
/// The cut that takes least time, of tiles of `fewest_rows` to `most_rows` rows. Tiles of four rows have
/// a quarter fewer products than those of two, and half as many weights again to transform; tiles of
/// six have a fifth fewer than those of four, and 16/9 as many weights. Every chunk transforms all
/// weights, and patches beyond the second-level cache are read once a block of output channels, slowly
/// where several cores' do not fit the third level together. None if no cut fits the scratch.
[[nodiscard]] std::optional<WinogradMapChunks> winograd_map_chunks(const LayerProblem& problem,
                                                                   const VectorUnit& unit,
                                                                   int64_t fewest_rows,
                                                                   int64_t most_rows,
                                                                   std::optional<Bytes> scratch);

}  // namespace laminate
