// Rows and vectors of map_pooling: a vector is a run of columns of one row.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/layout/runs.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct MapPoolingLayout {
    std::vector<VectorRun> runs{};  ///< of a row
    /// Rows whose windows reach no padding rows: they share their code, the others are written out.
    int64_t inner_begin = 0, inner_end = 0;
    // Parts for threads: runs of channels, or of rows of all channels.
    int64_t parts = 1;
    bool divides_rows = false;

    [[nodiscard]] int64_t scratch_elements() const { return 0; }
    /// Pooling multiplies nothing. (An average divides once per output.)
    [[nodiscard]] int64_t multiplications() const { return 0; }
};

[[nodiscard]] MapPoolingLayout map_pooling_layout(const LayerProblem& problem,
                                                  const VectorUnit& unit);

}  // namespace laminate
