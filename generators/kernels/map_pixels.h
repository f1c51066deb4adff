// 1x1 convolutions of stride 1 as a matrix product. A vector is a run of pixels of the whole map,
// [y][x] as one axis q, so that maps of 14 or 7 columns leave no lanes empty:
//
//     Y[z][q] = f(b[z] + sum over i of W[z][i] * X[i][q])
//
// Where many output channels read a tile's pixels, they read them from a panel in the scratch block
// that holds the tile's pixels of all input channels side by side.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_pixels.h"

namespace laminate {

[[nodiscard]] GroupCode map_pixels_code(LayerOutput output, const MapPixelsLayout& at);

}  // namespace laminate
