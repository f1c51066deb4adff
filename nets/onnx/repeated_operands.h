// Layers that read a tensor more than once: a group's layer reads each of its tensors once.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Of maps [N, C, H, W]: a Concat of one map alone, and a Tile of channels, become a grouped convolution
/// by ones and a shuffle of its channels; squares are products. Another Concat or product that reads a
/// map twice reads a copy of it, a depthwise convolution by ones.
void copy_repeated_operands(RawNetwork& raw);

}  // namespace laminate::onnx
