// A depthwise layer and the 1x1 layer behind it, band by band of rows:
//
//     P[i][q] = f(b[i] + sum over n, m of W[i][n][m] * X[i][y s + n d - p][x s + m d - p])
//     Y[z][q] = g(c[z] + sum over i of V[z][i] * P[i][q])
//
// where q counts the pixels of a band, [y][x] as one axis. P is a panel in the scratch block: what
// the first layer computes is never a map of its own, and the second layer copies no pixels.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_bands.h"

namespace laminate {

/// `depthwise` is the group's first layer, `pointwise` the second and what follows it.
[[nodiscard]] GroupCode map_bands_code(LayerOutput depthwise, LayerOutput pointwise,
                                       const MapBandsLayout& at);

}  // namespace laminate
