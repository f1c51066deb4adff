// Pooling with a small window, straight from the caller's array:
//
//     Y[z][y][x] = max over n, m of X[z][y s + n d - p][x s + m d - p], or their average
//
// with strides s, dilations d and paddings p of each axis. A vector is a row of the map or part of
// one, and nothing is copied. Maxima of rows are taken before those of columns; sums tap by tap, in
// the order of the kernel over lines.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_pooling.h"

namespace laminate {

[[nodiscard]] GroupCode map_pooling_code(LayerOutput output, const MapPoolingLayout& at);

}  // namespace laminate
