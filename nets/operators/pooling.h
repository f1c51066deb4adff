// Pooling over any number of axes, row by row: first the rows that windows hold are joined, element
// by element, then the columns.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/general_operator.h"
#include "nets/operators/convolution.h"

namespace laminate {

/// One value per spatial axis in each of the windows' lists.
struct PoolingProblem {
    GeneralKind kind = GeneralKind::max_pool;  ///< or average_pool or power_pool
    std::vector<int64_t> in{}, out{};          ///< N, C and the spatial extents
    std::vector<int64_t> kernel{}, stride{}, dilation{}, pad_begin{};
    std::vector<int64_t> pad_end{};  ///< what lies beyond it counts in no mean
    bool count_include_pad = false;
    float power = 2;  ///< power_pool
    FinishRow finish{};
};

/// A NaN is the largest of its window. Powers are summed in double precision, since they may overflow.
void pool_windows(const PoolingProblem& problem, const float* input, float* output, int threads);

}  // namespace laminate
