// 1x1 convolutions and dense layers on maps of few pixels. A vector is a run of output channels z,
// all of which one element of X multiplies:
//
//     Y[z][q] = f(b[z] + sum over i of W[z][i] * X[i][q])
//
// On a map of one pixel, the layer is a matrix times a vector.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"

namespace laminate {

[[nodiscard]] GroupCode map_channels_code(LayerOutput output, const MapChannelsLayout& at);

}  // namespace laminate
