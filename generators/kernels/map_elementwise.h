// An elementwise layer of tensors from outside of the group, or an activation, all maps as one axis q:
//
//     Y[q] = f(X_0[q] o X_1[q] o ...)
//
// in the order of the operands, o being the operation. If the activation f has a slope for each channel,
// or an operand one element for each channel or position, each map is an axis of its own.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_elementwise.h"

namespace laminate {

[[nodiscard]] GroupCode map_elementwise_code(LayerOutput output, const MapElementwiseLayout& at);

}  // namespace laminate
