// Sums, extremes and norms over any axes of a tensor, in vectors of the processor's width. Sums are of
// double precision.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/general_operator.h"

namespace laminate {

/// `axes` ascend. A NaN is the largest and the smallest of its elements.
void reduce_axes(GeneralFunction function, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& axes, const float* input, float* output, int threads);

}  // namespace laminate
