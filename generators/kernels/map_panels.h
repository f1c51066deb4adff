// Strided convolutions of few taps and input channels, a network's first layer:
//
//     Y[z][y][x] = f(b[z] + sum over n, i, m of W[z][n][i][m] * X[i][y s + n d - p][x s + m d - p])
//
// with strides s, dilations d and paddings p of each axis. A vector is a run of columns of one row.
// A panel in the nearest cache holds all that a tile of columns of some rows reads,
// [n][i][m][vector][lane] (im2col of the tile), so that sums stay in registers from the first tap to
// the last. The code fills it once for all output channels, and copies nothing else.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_panels.h"

namespace laminate {

[[nodiscard]] GroupCode map_panels_code(LayerOutput output, const MapPanelsLayout& at);

}  // namespace laminate
