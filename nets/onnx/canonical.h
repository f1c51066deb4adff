// Private to nets: from layers one to one with ONNX nodes to the canonical form of network.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nets/network/network.h"

namespace laminate::onnx {

/// A layer before canonicalisation.
struct RawLayer {
    Layer layer;          ///< `name` is not set yet
    std::string op{};     ///< operator of the node, for the notes on what was folded
    std::string label{};  ///< the node as messages call it
    /// A batch normalisation, y = weights[c] * x + bias[c]. It becomes a depthwise 1x1 convolution
    /// if it folds into no other layer.
    bool affine = false;
    /// One of several layers of its node, and not the one that carries the node's name. Removing it
    /// as unused is not worth a note.
    bool beside = false;
};

struct RawNetwork {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<RawLayer> layers;  ///< topological order
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<std::string> folded;
    /// Values that folding may still make. Nodes may share weights, so a small file could ask for
    /// one copy of large weights per node. The budget is four times the values in the file plus an
    /// allowance for small files.
    int64_t values_allowed = int64_t{1} << 26;

    [[nodiscard]] const std::vector<int64_t>& dims(TensorId id) const {
        return tensors[static_cast<size_t>(id)].dims;
    }
    [[nodiscard]] const std::string& name_of(TensorId id) const {
        return tensors[static_cast<size_t>(id)].name;
    }
    /// Appends one of the layers that `node` becomes, not the last of them. It writes a new tensor, which is
    /// returned; its name is `tensor_name` and its number.
    TensorId append_part(Layer layer, const RawLayer& node, std::vector<int64_t> output_dims,
                         const std::string& tensor_name);
    /// Appends a layer of constant values likewise, and charges nothing for them.
    TensorId append_constant(ConstantPtr constant, const RawLayer& node, const std::string& tensor_name);

    /// Takes all layers out and calls rewrite(RawLayer&) of each in order, which appends what the layer
    /// becomes.
    template <typename Rewrite>
    void rewrite_each(Rewrite rewrite) {
        std::vector<RawLayer> before;
        std::swap(before, layers);
        for (RawLayer& layer : before) rewrite(layer);
    }
    /// Calls change(RawLayer&) of each layer in order, which may append layers before it.
    template <typename Change>
    void change_each(Change change) {
        rewrite_each([&](RawLayer& layer) {
            change(layer);
            layers.push_back(std::move(layer));
        });
    }

    void weights_read(size_t values) { values_allowed += 4 * static_cast<int64_t>(values); }
    /// Spends part of the budget; throws InputError when it is exhausted.
    void charge(size_t values);
};

/// Counts how often layers and the outputs of the network read each tensor.
[[nodiscard]] std::vector<int> reader_counts(const RawNetwork& raw);
/// Finds for each tensor the places of the layers that read it.
[[nodiscard]] std::vector<std::vector<size_t>> readers_of(const RawNetwork& raw);
/// Finds for each tensor the place of the layer that writes it; inputs of the network have -1.
[[nodiscard]] std::vector<int> writers_of(const RawNetwork& raw);

/// Whether each element of a constant has this value.
[[nodiscard]] bool all_are(const Constant& constant, float value);

/// Removes what no output needs, folds, names the layers and checks the result. Throws InputError
/// (without the file's name).
[[nodiscard]] Network canonicalise(RawNetwork raw);

}  // namespace laminate::onnx
