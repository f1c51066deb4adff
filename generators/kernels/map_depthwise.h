// Depthwise convolutions:
//
//     Y[z][y][x] = f(b[z] + sum over n, m of W[z][n][m] * X[z][y s + n d - p][x s + m d - p])
//
// with strides s, dilations d and paddings p of each axis. A vector is a row of the map or part of
// one; some rows of one channel are summed at once, and an input row serves all of them that read
// it. Padding columns are lanes that are not loaded; padding rows are left out.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"

namespace laminate {

[[nodiscard]] GroupCode map_depthwise_code(LayerOutput output, const MapDepthwiseLayout& at);

}  // namespace laminate
