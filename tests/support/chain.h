// Builds chains of convolutions, and networks layer by layer, for tests. Weights are zeros, because
// the model reads shapes only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct LayerSpec {
    int64_t channels = 1;  ///< of the output
    Window window;
    int64_t groups = 1;
    LayerKind kind = LayerKind::conv;
};

/// A window with the same numbers along rows and columns.
inline Window square_window(int64_t kernel, int64_t stride = 1, int64_t pad = 0,
                            int64_t dilation = 1) {
    Window w;
    w.kernel = {kernel, kernel};
    w.stride = {stride, stride};
    w.dilation = {dilation, dilation};
    w.pad_begin = {pad, pad};
    w.pad_end = {pad, pad};
    return w;
}

/// A transposed layer whose kernel is its stride: each position becomes rows x columns outputs.
inline LayerSpec enlarged(int64_t channels, int64_t rows, int64_t columns) {
    LayerSpec spec{.channels = channels, .window = square_window(1)};
    spec.window.kernel = spec.window.stride = {rows, columns};
    spec.kind = LayerKind::conv_transpose;
    return spec;
}

/// Adds a layer that writes a new tensor, which becomes the network's only output.
inline TensorId append(Network& network, const std::string& name, Layer layer) {
    layer.name = layer.onnx_name = name;
    std::vector<std::vector<int64_t>> dims;
    for (const TensorId id : layer.inputs) dims.push_back(network.tensor(id).dims);
    layer.output = static_cast<TensorId>(network.tensors.size());
    network.tensors.push_back({name + "_out", infer_output_dims(layer, dims)});
    network.layers.push_back(std::move(layer));
    network.outputs = {network.layers.back().output};
    return network.outputs.front();
}

inline TensorId append(Network& network, const std::string& name, TensorId input,
                       const LayerSpec& spec) {
    const int64_t channels = network.tensor(input).dims[1];
    const auto [kernel_y, kernel_x] = spec.window.kernel;
    std::vector<int64_t> dims{spec.channels, channels / spec.groups, kernel_y, kernel_x};
    if (spec.kind == LayerKind::conv_transpose)
        dims = {channels, spec.channels / spec.groups, kernel_y, kernel_x};
    Constant weights{dims, std::vector<float>(static_cast<size_t>(element_count(dims)), 0.0f)};
    return append(network, name,
                  {.kind = spec.kind,
                   .inputs = {input},
                   .window = spec.window,
                   .groups = spec.groups,
                   .weights = std::make_shared<const Constant>(std::move(weights))});
}

/// A network without layers. Its input is tensor 0, of channels x rows x columns.
inline Network empty_network(int64_t channels, int64_t rows, int64_t columns) {
    Network network;
    network.name = "chain";
    network.tensors.push_back({"input", {1, channels, rows, columns}});
    network.inputs = {0};
    return network;
}

/// conv1, conv2, ... one after the other, on an input of channels x rows x columns.
inline Network chain(int64_t channels, int64_t rows, int64_t columns,
                     const std::vector<LayerSpec>& specs) {
    Network network = empty_network(channels, rows, columns);
    TensorId last = 0;
    for (const LayerSpec& spec : specs)
        last = append(network, "conv" + std::to_string(network.layers.size() + 1), last, spec);
    check(network);
    return network;
}

/// ConvFusion Table 6: 3x3 convolutions without padding; conv1 3 -> 4 maps of 18 x 18, conv2 4 -> 4
/// maps of 16 x 16.
inline Network l2net() { return chain(3, 20, 20, {{4, square_window(3)}, {4, square_window(3)}}); }
inline Network l3net() {
    return chain(3, 22, 22, {{4, square_window(3)}, {4, square_window(3)}, {4, square_window(3)}});
}

inline std::vector<LayerId> all_layers(const Network& network) {
    std::vector<LayerId> ids;
    for (size_t n = 0; n < network.layers.size(); ++n) ids.push_back(static_cast<LayerId>(n));
    return ids;
}

/// A random schedulable chain of 2 to `most` tiny convolutions with any kernel, stride, dilation
/// and padding.
inline Network tiny_chain(uint64_t seed, int64_t most) {
    for (Rng rng(seed);;) {
        std::vector<LayerSpec> specs;
        const int64_t layers = rng.between(2, most);
        for (int64_t k = 0; k < layers; ++k) {
            LayerSpec spec;
            spec.channels = rng.between(1, 3);
            const int64_t pad = rng.chance(1, 2) ? 1 : 0;
            spec.window = square_window(rng.between(1, 3), rng.chance(1, 4) ? 2 : 1, pad);
            if (rng.chance(1, 4))
                spec.window.kernel[1] = 1, spec.window.pad_begin[1] = spec.window.pad_end[1] = 0;
            if (rng.chance(1, 6)) spec.window.dilation = {2, 1};
            specs.push_back(spec);
        }
        try {
            Network network = chain(rng.between(1, 2), rng.between(4, 9), rng.between(4, 8), specs);
            const auto chains = schedulable_chains(network);
            if (chains.size() == 1 && chains.front().size() == specs.size()) return network;
        } catch (const InputError&) {  // an output without extent: draw again
        }
    }
}

/// input -> conv1 3x3 pad 1 -> add2, which adds the input: 8 x 8 x 1 throughout.
inline Network residual() {
    Network network = empty_network(1, 8, 8);
    const TensorId conv1 = append(network, "conv1", 0, {1, square_window(3, 1, 1)});
    append(network, "add2", {.kind = LayerKind::add, .inputs = {conv1, 0}});
    return network;
}

}  // namespace laminate
