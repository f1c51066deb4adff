// Which chains are filtered by tiles of columns (generators/column_tiles.h): the planner, which may cut their rows, and the generator agree on it here.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/problem.h"

namespace laminate {

/// Dense convolutions of stride 1, the last one perhaps transposed, of an input of 64 columns or more, none of which suits Winograd's filtering, and some
/// with kernels wide enough that products saved outweigh transforms. It depends on no schedule and, beyond 64 columns, not on the size of the picture.
[[nodiscard]] bool suits_column_tiles(const std::vector<LayerProblem>& chain);

/// Whether a layer may be filtered by tiles of columns in some chain, on rows long enough: its sums then round by the place of a column in its tile of four.
[[nodiscard]] bool filters_columns(const LayerProblem& problem);
/// Columns of a tile; of a transposed convolution, of its input.
inline constexpr int64_t tile_columns = 4;

}  // namespace laminate
