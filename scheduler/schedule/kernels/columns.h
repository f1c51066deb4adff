// columns: chains of convolutions by minimal filtering along columns, row by row
// (generators/kernels/column_tiles.h has the code and the layout of its lines).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// Whether the layers are a chain that the kernel `columns` can compute: each accepted by its row of
/// the table, each reading the one before, only the last transposed, an input of at least 64
/// columns.
[[nodiscard]] bool is_column_chain(const std::vector<LayerProblem>& chain);
/// Whether such a chain is faster so, that is whether its kernels are wide enough for the products
/// that are saved to outweigh the transforms. No layer of it is better off with Winograd's
/// filtering along both axes. The answer depends on no schedule and, from 64 columns on, not on the
/// size of the picture.
[[nodiscard]] bool column_chain_pays(const std::vector<LayerProblem>& chain);

/// Output columns of a tile; for a transposed convolution, input columns.
inline constexpr int64_t tile_columns = 4;

/// The filters of a layer along columns. Each input position u yields one output per phase, a sum
/// over the inputs u + low .. u + high. The sum is split into `pieces` filters of `taps` taps each
/// (minimal_filter.h), one per neighbouring tile.
struct ColumnWindow {
    int64_t phases = 1;
    int64_t low = 0;
    int64_t taps = 1;    ///< 1, 3 or 5
    int64_t pieces = 1;  ///< filters, over neighbouring tiles, that make up one phase

    explicit ColumnWindow(const AxisWindow& window);
    [[nodiscard]] bool is_plain() const { return taps == 1; }
    /// Inputs that the outputs of one tile read, which is also its number of products. For a plain
    /// window it is the number of columns.
    [[nodiscard]] int64_t patch() const { return tile_columns + taps - 1; }
    /// First and last tile, relative to this one, that the patches of its outputs reach into.
    [[nodiscard]] int64_t first_tile() const { return floor_div(low, tile_columns); }
    [[nodiscard]] int64_t last_tile() const {
        return pieces - 1 + floor_div(low + patch() - 1, tile_columns);
    }
};

/// Whether a last layer has so few outputs that its partial sums take less memory than lines of its
/// input.
[[nodiscard]] bool is_scattered(const LayerProblem& problem);

/// Estimate of what one thread keeps of a chain for which column_chain_pays() holds: lines of
/// finished or transformed rows, the row in progress, and partial sums. `rows` has each layer's
/// rows per iteration of its own row loop; `columns` is the width of the last layer's strip. The
/// estimate may be far below the model's live elements, which include lines of the inputs of
/// scattered layers.
[[nodiscard]] Bytes column_tiles_memory(const std::vector<LayerProblem>& chain,
                                        const std::vector<int64_t>& rows, int64_t columns);
/// Limit on column_tiles_memory() without a budget. Wider strips repeat fewer columns, and were
/// measured to be faster up to this limit even on a machine where it is twice the second-level
/// cache (docs/performance.md).
[[nodiscard]] inline Bytes most_column_tiles_memory(Bytes second_level_cache) {
    constexpr Bytes measured{1 << 20};
    return std::max(second_level_cache, measured);
}

}  // namespace laminate
