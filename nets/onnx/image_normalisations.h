// Normalisations by statistics of whole images: InstanceNormalization, GroupNormalization, and
// LayerNormalization over channels, rows and columns.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Rewrites normalisations of maps [N, C, H, W] over rows and columns, of each channel or of groups of
/// channels. Their mean and variance become layers of one pixel, each a pass over the map. What is done to
/// each element becomes a difference and a product with such pixels, which groups hold.
void write_image_normalisations(RawNetwork& raw);

}  // namespace laminate::onnx
