// Slices with steps and Pads of channels: layers that groups hold.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Rewrites layers of maps [N, C, H, W]. Rows and columns that a Slice takes in steps, or backwards,
/// are a resampling of one tap. Channels that it takes in steps, of which the map has a multiple, are
/// neighbours after a shuffle. Channels of one value before and behind a map are maps of constants
/// in a Concat.
void write_parts_as_layers(RawNetwork& raw);

}  // namespace laminate::onnx
