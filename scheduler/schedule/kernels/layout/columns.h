// Lines, tiles and scratch of the kernel `columns`: chains of convolutions by minimal filtering
// along columns (generators/kernels/columns.h).
//
// Nest k reads tensor k, and tensor 0 is X; the last tensor is Y. A tile is four columns of a
// tensor, whose first is a multiple of four of the whole picture; tiles of Y are those of the input
// positions of the last layer.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// How a layer's reader takes finished rows.
enum class LineForm {
    plain,      ///< columns as they are, for filters of one column
    gathered,   ///< transformed rows, kept until all of the window's rows are there
    scattered,  ///< transformed blocks of tiles, added at once to the sums of all output rows
};

/// What the chain keeps of a tensor for its reader, [row][plane][channel][tile]. A plane holds
/// every fourth column, or one frequency.
struct ColumnLine {
    LineForm form = LineForm::plain;
    int64_t rows = 1;
    int64_t channels = 1;
    int64_t planes = tile_columns;
    int64_t pitch = 0;        ///< elements from one channel to the next
    int64_t coordinates = 1;  ///< rows of the whole tensor
    int64_t offset = 0;       ///< in the scratch block, elements
    [[nodiscard]] int64_t row_elements() const { return planes * channels * pitch; }
};

/// Sums that are in registers together: the products of `vectors` vectors of tiles with a block of
/// `scalars` scalars, which are output channels or rows of a kernel. Vectors at the end of a row
/// that are fewer go one by one, with `rest` blocks at once.
struct ColumnBlocks {
    int64_t scalars = 1;
    int64_t vectors = 1;
    int64_t count = 1;  ///< blocks of all outputs; zero weights fill up the last one
    int64_t rest = 1;   ///< a divisor of `count`
    [[nodiscard]] int64_t together(int64_t vectors_now) const {
        return vectors_now == vectors ? 1 : rest;
    }
};

struct ColumnsLayout {
    int64_t lanes = 1;
    std::vector<ColumnWindow> windows;  ///< by nest
    std::vector<ColumnBlocks> blocks;   ///< by nest
    /// By nest: output channels whose products wait for their last frequency while one vector of
    /// tiles, or blocks.vectors of them, goes through all frequencies.
    struct ProductsAtOnce {
        int64_t of_one = 0;
        int64_t of_all = 0;
    };
    std::vector<ProductsAtOnce> products_at_once;
    std::vector<ColumnLine> lines;       ///< by tensor but Y
    std::vector<int64_t> row_pitch;      ///< by tensor but Y: of a row that will be transformed
    std::vector<int64_t> picture_tiles;  ///< by tensor but Y: of a whole row
    std::vector<int64_t> most_tiles;     ///< by tensor: that a strip computes

    // Sums of a scattered last layer, [output row][channel and phase][frequency][tile].
    int64_t outputs_at_once = 1;  ///< output channels and phases
    int64_t sums_rows = 0, sums_pitch = 0, sums_row_elements = 0;

    // The scratch block: lines, sums, a row that is being finished, products by frequency.
    int64_t row_offset = 0, products_offset = 0, sums_offset = 0;
    int64_t elements = 0;

    [[nodiscard]] int sink() const { return static_cast<int>(windows.size()) - 1; }
    /// How many elements a line of the caches has, or a vector where that is longer.
    [[nodiscard]] static constexpr int64_t elements_of_line(int64_t lanes) {
        constexpr int64_t usual = 16;
        return lanes < usual ? usual : lanes;
    }
    [[nodiscard]] int64_t line() const { return elements_of_line(lanes); }
    /// Vectors of tiles behind a block's that its last pieces read.
    [[nodiscard]] int64_t extra_vectors(int k) const {
        return windows[static_cast<size_t>(k)].pieces > 1 ? 1 : 0;
    }
    /// Whether sums are finished outputs.
    [[nodiscard]] bool is_direct(int k) const {
        return windows[static_cast<size_t>(k)].is_plain() && k != sink();
    }
    [[nodiscard]] int64_t scratch_elements() const { return elements; }

    struct Tiles {
        int64_t first = 0;
        int64_t end = 0;
        [[nodiscard]] int64_t count() const { return end - first; }
    };
    /// By tensor: the tiles that a strip of the output's columns [begin, end) computes, whole ones,
    /// so that no patch reads what is not computed.
    [[nodiscard]] std::vector<Tiles> tiles_for(int64_t begin, int64_t end) const;

    /// Products of one row of `tiles` tiles of nest k (its output's; the last layer's input
    /// positions): row y of its output, or, if its line is scattered, of its input.
    ///     rows of the kernel * D_i * pieces * frequencies * channels of all blocks * lanes.
    /// Counts tiles behind the last one up to a vector, channels of zero weights, and columns
    /// behind the picture. Padding rows are left out, but not those of a scattered layer: it
    /// computes all rows of its kernel, blocks filled up. Does not count the products with
    /// constants in the transforms of patches and products.
    [[nodiscard]] int64_t multiplications_of_row(const LayerProblem& problem, int k, int64_t y,
                                                 int64_t tiles) const;
    /// Products of each nest in a strip of the output's columns [begin, end) of all rows, every row
    /// computed once. Column strips repeat tiles at their ends.
    [[nodiscard]] std::vector<int64_t> multiplications(const std::vector<LayerProblem>& chain,
                                                       int64_t begin, int64_t end) const;
};

/// `kept_rows`: of each tensor but Y, the rows that its buffer holds (buffer_shapes());
/// `strip_columns`: of the output, 0 without column strips.
[[nodiscard]] ColumnsLayout columns_layout(const std::vector<LayerProblem>& chain,
                                           const std::vector<int64_t>& kept_rows,
                                           int64_t strip_columns, const VectorUnit& unit);

}  // namespace laminate
