// The window of a Pad or Resize along rows or columns, found from what each output reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nets/network/general_operator.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The window of rows (axis 0) or columns (axis 1) of an operator that samples_pixels() of a map
/// with `in` of them. Its intervals hold all sources of every output, and are the tightest that
/// Sampling can say with the rate of the operator: that of its period (PeriodicAxis), if it has one.
[[nodiscard]] AxisWindow sampled_window(const GeneralOperator& op, size_t axis, int64_t in);
/// Whether both read by the same rule along rows and columns: maps of two sizes, for example.
[[nodiscard]] bool same_samplings(const LayerProblem& a, const LayerProblem& b);

}  // namespace laminate
