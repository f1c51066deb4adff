// Which chains are filtered by tiles of columns (generators/kernels/column_tiles.h): the planner,
// which may cut their rows, and the generator agree on it here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// Dense convolutions of stride 1, the last one perhaps transposed, of an input of 64 columns or
/// more, none of which suits Winograd's filtering, and some with kernels wide enough that products
/// saved outweigh transforms. It depends on no schedule and, beyond 64 columns, not on the size of
/// the picture.
[[nodiscard]] bool suits_column_tiles(const std::vector<LayerProblem>& chain);

/// Whether a layer may be filtered by tiles of columns in some chain, on rows long enough: its sums
/// then round by the place of a column in its tile of four.
[[nodiscard]] bool filters_columns(const LayerProblem& problem);
/// Columns of a tile; of a transposed convolution, of its input.
inline constexpr int64_t tile_columns = 4;

/// The filters of a layer along columns. At every input position u there is one output per phase, a
/// sum over inputs u + low .. u + high, by filters of so many taps (minimal_filter.h) of as many
/// neighbouring tiles.
struct ColumnWindow {
    int64_t phases = 1;
    int64_t low = 0;
    int64_t taps = 1;    ///< 1, 3 or 5
    int64_t pieces = 1;  ///< filters of neighbouring tiles that make up one phase

    explicit ColumnWindow(const AxisWindow& window);
    [[nodiscard]] bool is_plain() const { return taps == 1; }
    /// Inputs of a tile's outputs, and products; of a plain one its columns.
    [[nodiscard]] int64_t patch() const { return tile_columns + taps - 1; }
    /// Tiles that the patches of one tile's outputs reach into, relative to it: first and last.
    [[nodiscard]] int64_t first_tile() const { return floor_div(low, tile_columns); }
    [[nodiscard]] int64_t last_tile() const {
        return pieces - 1 + floor_div(low + patch() - 1, tile_columns);
    }
};

/// Last layers of so few outputs that sums of them are smaller than lines of their input.
[[nodiscard]] bool is_scattered(const LayerProblem& problem);

/// About what a thread keeps of a chain that suits: lines of finished or transformed rows, a row
/// that is being finished, and sums. `rows`: of each layer, rows per iteration of its own row loop;
/// `columns`: of the last layer's strip. It may be far below the live elements of the model, which
/// has lines of scattered layers' inputs.
[[nodiscard]] Bytes column_tiles_memory(const std::vector<LayerProblem>& chain,
                                        const std::vector<int64_t>& rows, int64_t columns);
/// Up to here it may be as much where nobody says. Wider strips repeat fewer columns, and were
/// faster up to here also where it is twice the second-level cache (docs/performance.md).
[[nodiscard]] inline Bytes most_column_tiles_memory(Bytes second_level_cache) {
    constexpr Bytes measured{1 << 20};
    return std::max(second_level_cache, measured);
}

}  // namespace laminate
