// Private to nets: maps with their channels last, as layers between two Transposes have them, become
// maps with their channels first.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Moves Transposes from [N, C, H, W] to [N, H, W, C], or with Reshapes to tokens [N, H W, C],
/// behind the layers that read them: what works element by element or on the channels of a pixel
/// (normalisations, means, MatMul with weights, constants per channel) reads the map itself, and so
/// do Concat, Slice, Split, Pad and means over pixels. Where a Transpose back follows, nothing reads
/// either.
void put_channels_first(RawNetwork& raw);

}  // namespace laminate::onnx
