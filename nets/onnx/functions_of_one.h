// Functions of one tensor that files spell as layers of two: activations, which layers apply to their
// results and groups hold.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// x * x and x to a constant power are activations; so is 1 / x, which is the first half of a constant
/// divided by x.
void write_functions_as_activations(RawNetwork& raw);

}  // namespace laminate::onnx
