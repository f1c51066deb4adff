// Which chains are filtered by tiles of columns (generators/kernels/column_tiles.h). The planner,
// which may cut their rows, and the generator both ask here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// Whether a chain consists of dense convolutions of stride 1 (the last one may be transposed),
/// none of which suits Winograd's filtering, and reads an input of at least 64 columns. The kernels
/// must be wide enough that the saved products outweigh the transforms. The answer depends on no
/// schedule and, from 64 columns on, not on the size of the picture.
[[nodiscard]] bool suits_column_tiles(const std::vector<LayerProblem>& chain);

/// Whether some chain with long enough rows would filter this layer by tiles of columns. The
/// rounding of its sums then depends on the position of a column in its tile of four.
[[nodiscard]] bool filters_columns(const LayerProblem& problem);
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

/// Estimate of what one thread keeps of a chain for which suits_column_tiles() holds: lines of
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
