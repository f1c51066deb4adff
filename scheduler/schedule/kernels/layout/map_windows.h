// The copy of the input, tiles and scratch of map_windows: convolutions of narrow maps.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// A copy of X in which every tap of the window finds the pixels of a tile side by side, whatever
/// the stride and over the ends of rows. Rows and columns that the same taps read lie together (a
/// phase), padding is in the copy, and rows follow each other without gap: output pixel q is in row
/// q / columns. The code computes the last columns of a row for nothing.
struct PixelGrid {
    std::array<int64_t, 2> phases{1, 1};  ///< of rows, of columns
    int64_t rows = 1, columns = 1;        ///< of a phase
    int64_t pixels = 1;                   ///< from the first output to the last
    explicit PixelGrid(const LayerProblem& problem);
    [[nodiscard]] int64_t plane() const { return rows * columns; }
    [[nodiscard]] int64_t channel() const { return phases[0] * phases[1] * plane(); }
};

struct MapWindowsLayout {
    int64_t lanes = 1;
    int64_t inputs = 1;  ///< input channels
    int64_t taps = 1;    ///< of the window
    PixelGrid grid;
    std::vector<VectorRun> grid_runs{};  ///< of a row of a phase
    std::vector<VectorRun> row_runs{};   ///< of a row of the output

    // The register tile.
    int64_t block = 1;    ///< output channels whose sums are in registers together
    int64_t blocks = 1;   ///< of all output channels; the last one is filled up with zero weights
    int64_t vectors = 1;  ///< vectors of pixels of a whole tile

    // Tiles along the grid's pixels: first whole ones, then those of `rest`.
    struct Tile {
        int64_t first = 0;  ///< pixel
        std::vector<VectorRun> runs{};
    };
    int64_t whole_tiles = 0;
    std::vector<Tile> rest{};

    // Parts for threads: chunks of tiles x parts of the blocks of output channels.
    int64_t chunks = 1;
    int64_t channel_parts = 1;

    // The scratch block: a panel of pixels for a row of the window; sums, [channel][pixel], where
    // the window has more taps than one; the grid of all input channels.
    int64_t sums_offset = 0, grid_offset = 0;
    int64_t elements = 0;

    [[nodiscard]] int64_t step() const { return vectors * lanes; }
    [[nodiscard]] int64_t tiles() const { return whole_tiles + std::ssize(rest); }
    [[nodiscard]] int64_t parts() const { return chunks * channel_parts; }
    [[nodiscard]] bool has_one_tap() const { return taps == 1; }
    [[nodiscard]] int64_t scratch_elements() const { return elements; }
    /// Products of the whole layer: D_i * K_y * K_x for each lane of each tile and each channel of
    /// each block. Counts the columns between rows, lanes behind the last pixel, taps on padding,
    /// and channels of zero weights.
    [[nodiscard]] int64_t multiplications() const;
};

/// The grid has at least a vector of pixels (pixel_tile()).
[[nodiscard]] MapWindowsLayout map_windows_layout(const LayerProblem& problem,
                                                  const VectorUnit& unit);

}  // namespace laminate
