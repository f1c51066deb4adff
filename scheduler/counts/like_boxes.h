// Boxes of a nest that are the same work for its kernel. A map of thousands of rows has thousands of
// boxes along each axis, but only a few kinds of them.
#pragma once

#include <functional>

#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The boxes with one of each kind for all that are alike: ranges of equal size, of rows those away
/// from the borders that begin on rows of equal parity. Where a transposed window makes outputs of
/// several phases, like ranges begin with the same one.
[[nodiscard]] BoxRanges like_boxes(const BoxRanges& boxes, const LayerProblem& problem);

/// The sum over all boxes of a product of one factor for each axis, `factor(dim, range)`. Axes
/// without a dimension have the factor one.
[[nodiscard]] int64_t sum_over_boxes(const BoxRanges& boxes,
                                     const std::function<int64_t(Dim, Range)>& factor);

}  // namespace laminate
