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

/// Sums along the middle of three axes, in double precision.
struct RunningSums {
    int64_t outer = 1, extent = 1, inner = 1;
    bool from_end = false, leaves_out_itself = false;
};
void run_sums(const RunningSums& sums, const float* input, float* output, int threads);

}  // namespace laminate
