// Tiles of map_channels: a convolution or dense layer on a small map whose vectors are runs of
// output channels; and which of map_pixels and map_channels is quicker for a 1x1 convolution.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The most taps of all pixels together whose places are written out in code; more are read from a panel.
inline constexpr int64_t most_taps_written_out = 1600;

struct MapChannelsLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;  ///< input channels
    int64_t pixels = 1;  ///< of the map, rows and columns as one axis
    int64_t taps = 1;    ///< of all pixels together that are multiplied

    // The register tile.
    int64_t vectors = 1;  ///< vectors of output channels
    int64_t runs = 1;     ///< the map, or its rows where windows are read from a panel
    int64_t tiles = 1;    ///< of the pixels, those of a run as even as can be
    int64_t blocks = 1;   ///< of all output channels; zero weights fill up the last one

    /// Whether the elements that a chunk reads are copied to a panel first, [row of the window][part of
    /// the input channels][tile][i][column of the window][pixel], with zeros for padding. All blocks of a
    /// call read them there one after the other. In place they lie a map apart, a few of each line.
    bool has_panel = false;

    /// A pass over the tiles of a block takes one row of the window and a part of the input
    /// channels, whose weights stay in the second-level cache, with a panel in the first. Sums wait
    /// in the scratch block between passes, with a panel always.
    int64_t window_rows = 1;
    int64_t window_columns = 1;
    int64_t input_parts = 1;

    // Parts for threads: chunks of tiles, of whole runs where there are several, x parts of the blocks
    // of output channels.
    int64_t chunks = 1;
    int64_t channel_parts = 1;
    /// Parts of the tiles of one block, next to each other, in place of chunks: two threads share
    /// the block in the middle of an odd number. One call computes all parts of a block as one.
    int64_t block_parts = 1;

    /// Predicted time of the layer in products of a vector, one a cycle; the maximum for a map of one
    /// pixel, where nothing is compared.
    int64_t cycles = std::numeric_limits<int64_t>::max();

    [[nodiscard]] int64_t block() const { return vectors * lanes; }  ///< output channels
    [[nodiscard]] int64_t run() const { return pixels / runs; }  ///< pixels
    [[nodiscard]] int64_t run_tiles() const { return tiles / runs; }
    /// The first tiles of a run have a pixel more than the others, so many of them.
    [[nodiscard]] int64_t larger_tiles() const { return run() % run_tiles(); }
    [[nodiscard]] int64_t tile_pixels(int64_t n) const {
        return run() / run_tiles() + (n % run_tiles() < larger_tiles() ? 1 : 0);
    }
    [[nodiscard]] int64_t first_pixel(int64_t n) const {
        const int64_t in_run = n % run_tiles();
        return n / run_tiles() * run() + in_run * (run() / run_tiles()) +
               std::min(in_run, larger_tiles());
    }
    [[nodiscard]] int64_t passes() const { return window_rows * input_parts; }
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts * block_parts; }
    /// Input channels whose products follow each other without a branch, for which weights are asked
    /// for once: with a panel, where asking for a line again and again takes the place of products.
    /// More taps leave the cache of instructions; of more products LLVM loads operands so early that sums
    /// leave the registers.
    [[nodiscard]] int64_t inputs_together() const {
        constexpr int64_t most_taps = 16, most_products = 168;
        const int64_t most =
            std::min(most_taps, most_products / (vectors * tile_pixels(0))) / window_columns;
        int64_t together = has_panel && inputs % input_parts == 0 ? 8 : 1;
        while (together > 1 && (inputs / input_parts % together != 0 || together > most))
            together /= 2;
        return together;
    }
    /// Neighbouring parts that read the same panel, which one call for all of them fills once, or
    /// that are of the same block.
    [[nodiscard]] int64_t parts_together() const { return has_panel ? channel_parts : block_parts; }
    /// Most pixels of a chunk.
    [[nodiscard]] int64_t chunk_pixels() const {
        if (runs > 1) return (runs + chunks - 1) / chunks * run();
        return chunks == 1 ? pixels : (tiles + chunks - 1) / chunks * tile_pixels(0);
    }
    /// The scratch block: sums that wait, then the panel, and what its last vector has too many.
    [[nodiscard]] int64_t panel_offset() const { return chunk_pixels() * block(); }
    [[nodiscard]] int64_t scratch_elements() const {
        if (has_panel)
            return panel_offset() + window_rows * window_columns * inputs * chunk_pixels() + lanes;
        return passes() > 1 ? pixels * block() : 0;
    }
    /// Products of the whole layer: D_i for each tap of each pixel and each channel of each block.
    /// Counts channels of zero weights. Taps on padding are left out, unless a panel has zeros there.
    [[nodiscard]] int64_t multiplications() const { return taps * blocks * block() * inputs; }
};

[[nodiscard]] MapChannelsLayout map_channels_layout(const LayerProblem& problem,
                                                    const VectorUnit& unit);

/// Whether map_channels takes fewer cycles for a 1x1 convolution than map_pixels.
[[nodiscard]] bool prefers_map_channels(const LayerProblem& problem, const VectorUnit& unit);

}  // namespace laminate
