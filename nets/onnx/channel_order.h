// Private to nets: channels that a network shuffles, splits and joins between convolutions stay where
// they are, and the convolutions take them from there.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Lets a convolution behind channel shuffles read the tensors that were shuffled: parts of them, put
/// together in the order in which they lie, with its weights in the same order. A depthwise
/// convolution between, which only other convolutions read, computes its channels in that order. In
/// ShuffleNetV2 no shuffle is left, and of each map every channel is copied once, to where the
/// convolution reads it that is the first one to use it.
void take_shuffled_channels(RawNetwork& raw);

}  // namespace laminate::onnx
