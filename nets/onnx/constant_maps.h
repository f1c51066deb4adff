// Operators of a map and one of constants, which files hold as one input and a constant, as layers
// of two maps, which groups hold.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Makes maps of constants that are neither one value nor one per channel in sums, differences,
/// products, quotients, minima, maxima, powers and PRelus of four dimensions, of those per channel in
/// minima, maxima and powers, and of one value in powers that are no activation. Such a map has all
/// rows and columns, or one of each; all channels, or one; and all images.
void write_constants_as_maps(RawNetwork& raw);

}  // namespace laminate::onnx
