// Private to nets: activations and normalisations in several nodes become one layer.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Recognises activations and normalisations that exporters spell with several nodes because their
/// opset or their framework lacks the operator, and makes each one layer again.
void recognise_layers_in_nodes(RawNetwork& raw);

}  // namespace laminate::onnx
