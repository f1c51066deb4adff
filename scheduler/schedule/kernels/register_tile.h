// The register tile of a kernel: which outputs a core accumulates in registers at once.
#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

enum class VectorAxis {
    x,  ///< a vector is a run of columns of one row; needs rows at least half a vector long
    z,  ///< a vector is a run of output channels of one pixel; for small maps and dense layers
};

struct RegisterTile {
    VectorAxis axis = VectorAxis::x;
    int64_t z = 1;  ///< axis x: output channels; axis z: vectors of output channels
    int64_t y = 1;  ///< rows
    int64_t x = 1;  ///< axis x: vectors of columns; axis z: columns
    /// Axis x: half of the last vector is enough for the end of a row, which is one tile.
    /// Processors that compute wide vectors in two halves save one.
    bool has_half = false;

    [[nodiscard]] int64_t lanes(int64_t vector, const VectorUnit& unit) const {
        return has_half && vector == x - 1 ? unit.lanes / 2 : unit.lanes;
    }
};

/// The part of an extent that whole steps do not waste.
[[nodiscard]] double used_part(int64_t extent, int64_t step);
/// The part of the multipliers' time that products are computed in when `vectors` are loaded once
/// for all of `scalars`, each of which is loaded and multiplies them all.
[[nodiscard]] double product_efficiency(int64_t vectors, int64_t scalars);

/// What a register tile may be besides what the layer and the processor allow.
struct TileLimits {
    /// VectorAxis::z: its blocks of output channels divide this number; any do if it is 0.
    int64_t channel_blocks = 0;
    bool may_be_half = true;  ///< has_half, which takes whole rows
    /// Calls have some of the input channels each, so sums are stored and loaded again.
    bool has_partial_sums = false;
    /// Output channels that one call computes at most; of a group of channels where there are any.
    int64_t channels = std::numeric_limits<int64_t>::max();
};

/// Chosen from the layer's extents and `rows`, the rows that one call computes at most: the tile
/// that keeps the multipliers busiest, counting loads beside multiplications and the lanes that
/// ragged edges waste.
[[nodiscard]] RegisterTile register_tile(const LayerProblem& problem, int64_t rows, int64_t columns,
                                         const VectorUnit& unit, const TileLimits& limits = {});

/// The kernel rows, channels or phases with that tile.
[[nodiscard]] Kernel kernel_of(const LayerProblem& problem, const RegisterTile& tile,
                               int64_t lanes);
[[nodiscard]] RegisterTile tile_of(const Kernel& kernel);

}  // namespace laminate
