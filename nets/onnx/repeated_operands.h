// Layers that read a tensor more than once: a group's layer reads each of its tensors once.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Rewrites layers of maps [N, C, H, W]. A Concat of one map alone and a Tile of channels become a grouped
/// convolution by ones and a shuffle of its channels. Any other Concat or layer of two maps that reads
/// a map twice reads a copy of it, which a depthwise convolution by ones makes.
void copy_repeated_operands(RawNetwork& raw);

}  // namespace laminate::onnx
