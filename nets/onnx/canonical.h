// Private to nets: from layers one to one with ONNX nodes to the canonical form of network.h.
#pragma once

#include <string>
#include <vector>

#include "nets/network/network.h"

namespace laminate::onnx {

/// A layer before canonicalisation.
struct RawLayer {
    Layer layer;          ///< `name` is not set yet
    std::string op{};     ///< operator of the node, for the notes on what was folded
    std::string label{};  ///< the node as messages call it
    /// A batch normalisation: y = weights[c] * x + bias[c]. Written as a depthwise 1x1 convolution
    /// when it folds into nothing.
    bool affine = false;
    /// One of several layers of its node, beside the one that has the node's name: not worth a note
    /// when nobody needs it.
    bool beside = false;
};

struct RawNetwork {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<RawLayer> layers;  ///< topological order
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<std::string> folded;
    /// Values that folding may still make. Nodes may share weights, so a small file could ask for a
    /// copy of large weights for each of very many nodes: four times what the file holds, and some
    /// for small files, is allowed.
    int64_t values_allowed = int64_t{1} << 26;

    void weights_read(size_t values) { values_allowed += 4 * static_cast<int64_t>(values); }
    /// Throws InputError when too many have been made.
    void charge(size_t values);
};

/// Removes what no output needs, folds, names the layers and checks the result. Throws InputError
/// (without the file's name).
[[nodiscard]] Network canonicalise(RawNetwork raw);

}  // namespace laminate::onnx
