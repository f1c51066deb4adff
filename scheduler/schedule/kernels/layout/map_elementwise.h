// Vectors of map_elementwise: the elements of all maps as one axis, or each map as an axis of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapElementwiseLayout {
    static constexpr int64_t vectors = 4;  ///< of a whole tile
    int64_t lanes = 1;
    int64_t axes = 1;      ///< D_z where something has one value for each channel or position, else 1
    int64_t elements = 1;  ///< of each axis
    int64_t whole_tiles = 0;
    std::vector<VectorRun> rest{};
    int64_t parts = 1;  ///< for threads: chunks of the axes or, of a single one, of its whole tiles

    [[nodiscard]] int64_t step() const { return vectors * lanes; }
    [[nodiscard]] int64_t scratch_elements() const { return 0; }
    [[nodiscard]] int64_t multiplications() const { return 0; }
};

/// `has_slopes`: the activation multiplies each channel by a value of its own.
[[nodiscard]] MapElementwiseLayout map_elementwise_layout(const LayerProblem& problem,
                                                          const VectorUnit& unit, bool has_slopes);

}  // namespace laminate
