// Addition of two or more tensors of one shape, all maps as one axis e:
//
//     Y[e] = f(X1[e] + X2[e] + ...)
//
// in the order of the operands. If the activation f has a slope for each channel, each map is an
// axis of its own.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_addition.h"

namespace laminate {

[[nodiscard]] GroupCode map_addition_code(LayerOutput output, const MapAdditionLayout& at);

}  // namespace laminate
