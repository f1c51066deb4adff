// The register tile of products of pixels: sums of a block of output channels x some vectors of
// pixels, each input vector multiplied by one weight of every channel. map_pixels, map_panels and
// map_windows use it.
#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct PixelTile {
    int64_t channels = 1;  ///< output channels of a block
    int64_t vectors = 1;   ///< vectors of pixels
    /// Predicted time of the layer in products of a vector, one a cycle; the maximum where no tile
    /// is possible because the pixels fill no vector.
    int64_t cycles = std::numeric_limits<int64_t>::max();
};

/// Cycles per input channel of a tile of a x b sums.
[[nodiscard]] int64_t cycles_of_tile(int64_t a, int64_t b, const VectorUnit& unit);

/// The tile that computes `pixels` pixels side by side in the fewest cycles. Empty lanes at the end
/// cost as much as full ones.
[[nodiscard]] PixelTile pixel_tile(const LayerProblem& problem, int64_t pixels,
                                   const VectorUnit& unit);

}  // namespace laminate
