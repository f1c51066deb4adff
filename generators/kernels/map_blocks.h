// A 1x1 layer and the depthwise layer behind it, block by block of channels:
//
//     P[z][q] = f(c[z] + sum over i of V[z][i] * X[i][q])
//     Y[z][y][x] = g(b[z] + sum over n, m of W[z][n][m] * P[z][y s + n d - p][x s + m d - p])
//
// P holds the maps of a block's channels in the scratch block, so a thread goes on where it has
// computed, without waiting for others.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_blocks.h"

namespace laminate {

/// `pointwise` is the group's first layer, `depthwise` the second.
[[nodiscard]] GroupCode map_blocks_code(LayerOutput pointwise, LayerOutput depthwise,
                                        const MapBlocksLayout& at);

}  // namespace laminate
