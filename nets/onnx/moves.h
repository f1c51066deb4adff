// Private to nets: nodes that move or copy elements, made one layer or none.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Whether two views list the same elements in the same order, whatever shapes they have.
[[nodiscard]] bool list_the_same(const GeneralOperator& view, const GeneralOperator& other);

/// Makes Reshape, Transpose and Reshape a DepthToSpace if that is what they do together, as older
/// exporters write pixel shuffles, lets products, sums and the like read x instead of Expand(x), and
/// makes dense layers between a Flatten of one pixel and a Reshape back convolutions of that pixel.
void recognise_moves(RawNetwork& raw);

}  // namespace laminate::onnx
