// Small networks with forks and joins, one group each: the shapes in which branches share tensors
// and meet again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "nets/network/network.h"
#include "nets/network/picture_views.h"

namespace laminate {

/// Layers are named by kind and number: conv1, pool2, add3, ... Weights are whole numbers from -2
/// to 2, so sums are exact.
class JoinBuilder {
public:
    TensorId input(int64_t channels, int64_t rows, int64_t columns) {
        network_.tensors.push_back(
            {"input" + std::to_string(network_.inputs.size() + 1), {1, channels, rows, columns}});
        network_.inputs.push_back(static_cast<TensorId>(network_.tensors.size()) - 1);
        return network_.inputs.back();
    }
    TensorId conv(TensorId x, int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1,
                  ActivationKind activation = ActivationKind::none) {
        return padded_conv(x, out, kernel, stride, kernel / 2, groups, activation);
    }
    TensorId padded_conv(TensorId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad,
                         int64_t groups = 1, ActivationKind activation = ActivationKind::none) {
        Layer layer = windowed(LayerKind::conv, kernel, stride, pad);
        layer.groups = groups;
        layer.activation.kind = activation;
        const std::vector<int64_t> dims{out, network_.tensor(x).dims[1] / groups, kernel, kernel};
        std::vector<float> weights(static_cast<size_t>(element_count(dims)));
        for (float& w : weights) w = static_cast<float>(rng_.between(-2, 2));
        layer.weights = std::make_shared<const Constant>(Constant{dims, std::move(weights)});
        return append(std::move(layer), {x});
    }
    TensorId max_pool(TensorId x, int64_t kernel, int64_t stride, int64_t pad) {
        return append(windowed(LayerKind::max_pool, kernel, stride, pad), {x});
    }
    TensorId average_pool(TensorId x, int64_t kernel, int64_t stride, int64_t pad,
                          bool counts_padding) {
        Layer layer = windowed(LayerKind::average_pool, kernel, stride, pad);
        layer.count_include_pad = counts_padding;
        return append(std::move(layer), {x});
    }
    TensorId global_pool(TensorId x) {
        return append({.kind = LayerKind::global_average_pool}, {x});
    }
    TensorId add(TensorId a, TensorId b, ActivationKind activation = ActivationKind::none) {
        Layer layer{.kind = LayerKind::add};
        layer.activation.kind = activation;
        return append(std::move(layer), {a, b});
    }
    TensorId concat(std::vector<TensorId> parts) {
        return append({.kind = LayerKind::concat}, std::move(parts));
    }
    TensorId relu(TensorId x) {
        Layer layer{.kind = LayerKind::activation};
        layer.activation.kind = ActivationKind::relu;
        return append(std::move(layer), {x});
    }
    TensorId shuffle(TensorId x, int64_t block, bool crd) {
        Layer layer{.kind = LayerKind::depth_to_space};
        layer.block = block;
        layer.depth_to_space_crd = crd;
        return append(std::move(layer), {x});
    }
    TensorId both(GeneralFunction function, TensorId a, TensorId b) {
        return append({.kind = LayerKind::general,
                       .general = {.kind = GeneralKind::binary, .function = function}},
                      {a, b});
    }
    TensorId part(TensorId x, const std::array<int64_t, 3>& first,
                  const std::array<int64_t, 3>& extent) {
        return append({.kind = LayerKind::general,
                       .general = part_of(network_.tensor(x).dims, first, extent)},
                      {x});
    }
    TensorId blocks(TensorId x, int64_t block, int64_t shuffle) {
        return append({.kind = LayerKind::general, .general = blocks_of(block, shuffle)}, {x});
    }
    TensorId pad(TensorId x, const Padding& padding) {
        return append({.kind = LayerKind::general,
                       .general = padded(network_.tensor(x).dims, padding)},
                      {x});
    }
    TensorId interpolate(TensorId x, int64_t rows, int64_t columns) {
        return append({.kind = LayerKind::general,
                       .general = interpolated(network_.tensor(x).dims, {rows, columns})},
                      {x});
    }
    TensorId enlarge(TensorId x, int64_t rows, int64_t columns) {
        return append({.kind = LayerKind::general,
                       .general = repeated(network_.tensor(x).dims, {rows, columns})},
                      {x});
    }
    TensorId normalise(TensorId x, GeneralFunction function) {
        return append({.kind = LayerKind::general,
                       .general = {.kind = GeneralKind::normalise,
                                   .function = function,
                                   .axes = {1},
                                   .alpha = 0.25F}},
                      {x});
    }
    TensorId extreme(TensorId x, GeneralFunction function) {
        return append({.kind = LayerKind::general,
                       .general = {.kind = GeneralKind::reduce, .function = function, .axes = {1}}},
                      {x});
    }
    TensorId softmax(TensorId x) { return append({.kind = LayerKind::softmax}, {x}); }
    Network finish(const std::string& name) {
        network_.name = name;
        network_.outputs = {network_.layers.back().output};
        check(network_);
        return std::move(network_);
    }

private:
    static Layer windowed(LayerKind kind, int64_t kernel, int64_t stride, int64_t pad) {
        Layer layer{.kind = kind};
        layer.window.kernel = {kernel, kernel};
        layer.window.stride = {stride, stride};
        layer.window.pad_begin = layer.window.pad_end = {pad, pad};
        return layer;
    }
    TensorId append(Layer layer, std::vector<TensorId> inputs) {
        std::string kind = to_string(layer.kind);
        layer.name = kind + std::to_string(network_.layers.size() + 1);
        layer.onnx_name = layer.name;
        layer.inputs = std::move(inputs);
        layer.output = static_cast<TensorId>(network_.tensors.size());
        std::vector<std::vector<int64_t>> dims;
        for (const TensorId id : layer.inputs) dims.push_back(network_.tensor(id).dims);
        network_.tensors.push_back({layer.name + "_out", infer_output_dims(layer, dims)});
        network_.layers.push_back(std::move(layer));
        return network_.layers.back().output;
    }

    Network network_;
    Rng rng_{5};
};

/// conv1 and the input, which bypasses it, meet in add2.
inline Network small_residual() {
    JoinBuilder b;
    const TensorId x = b.input(2, 6, 6);
    b.add(x, b.conv(x, 2, 3));
    return b.finish("residual");
}

/// Two convolutions of one input, side by side.
inline Network small_concat() {
    JoinBuilder b;
    const TensorId x = b.input(2, 4, 4);
    const TensorId narrow = b.conv(x, 2, 1);
    b.concat({narrow, b.conv(x, 3, 3)});
    return b.finish("concat");
}

/// Joins as networks for pictures have them.
inline std::vector<Network> picture_joins() {
    std::vector<Network> all;
    {
        JoinBuilder b;  // enlarged by convolutions, and the input beside it by repetition
        const TensorId x = b.input(3, 6, 7);
        const TensorId y = b.shuffle(b.conv(b.conv(x, 4, 3), 12, 3), 2, true);
        b.add(y, b.enlarge(x, 2, 2));
        all.push_back(b.finish("enlarged"));
    }
    {
        JoinBuilder b;  // a gate, a difference, and a crop of what goes around
        const TensorId x = b.input(3, 8, 7);
        const TensorId y = b.conv(x, 6, 3);
        const TensorId gate = b.both(GeneralFunction::multiply, b.part(y, {0, 0, 0}, {3, 8, 7}),
                                     b.part(y, {3, 0, 0}, {3, 8, 7}));
        const TensorId z = b.padded_conv(gate, 3, 3, 1, 0);
        b.shuffle(b.conv(b.both(GeneralFunction::subtract, z, b.part(x, {0, 1, 1}, {3, 6, 5})), 9,
                         1),
                  3, false);
        all.push_back(b.finish("gated"));
    }
    {
        JoinBuilder b;  // squeeze and excitation, and attention to positions
        const TensorId x = b.input(3, 8, 8);
        const TensorId y = b.conv(x, 4, 3);
        const TensorId factors = b.conv(b.conv(b.global_pool(y), 2, 1), 4, 1);
        const TensorId z = b.both(GeneralFunction::multiply, y, factors);
        b.both(GeneralFunction::multiply, b.conv(z, 1, 3), b.conv(z, 3, 3));
        all.push_back(b.finish("excited"));
    }
    {
        JoinBuilder b;  // a U-Net of one level: reflected borders, halved, enlarged, joined
        const TensorId x = b.input(2, 8, 8);
        const TensorId y = b.padded_conv(
            b.pad(x, {Padding::Mode::reflect, {2, 1}, {1, 2}}), 3, 3, 1, 1);
        const TensorId low = b.conv(b.interpolate(x, 4, 4), 3, 3);
        const TensorId high = b.pad(b.interpolate(low, 8, 8), {Padding::Mode::edge, {1, 2}, {2, 1}});
        b.conv(b.pad(b.add(y, high), {Padding::Mode::constant, {0, 2}, {1, 0}, 3}), 2, 3);
        all.push_back(b.finish("resampled"));
    }
    {
        JoinBuilder b;  // a block of NAFNet, and weights of positions that sum to 1
        const TensorId x = b.conv(b.input(3, 7, 9), 4, 3);
        const TensorId y =
            b.conv(b.normalise(x, GeneralFunction::standardise), 4, 3, 1, 4);
        const TensorId z = b.conv(b.normalise(b.add(x, y), GeneralFunction::root_mean_square), 4, 1);
        b.normalise(b.both(GeneralFunction::multiply, z, b.softmax(b.conv(x, 4, 3))),
                    GeneralFunction::log_softmax);
        all.push_back(b.finish("normalised"));
    }
    {
        JoinBuilder b;  // SpaceToDepth in both orders, and a shuffle of all channels
        const TensorId x = b.conv(b.input(2, 8, 12), 3, 3);
        const TensorId y = b.concat({b.blocks(x, 2, 1), b.blocks(x, 2, 3)});
        b.conv(b.blocks(b.conv(b.blocks(y, 1, 2), 6, 3, 1, 2), 1, 3), 4, 3);
        all.push_back(b.finish("shuffled"));
    }
    {
        JoinBuilder b;  // quotients of maps, by one channel and by one pixel; some divisors are 0
        const TensorId x = b.input(3, 8, 7);
        const TensorId y = b.both(GeneralFunction::divide, x, b.conv(x, 3, 3));
        const TensorId z = b.both(GeneralFunction::divide, y, b.conv(x, 1, 1));
        b.both(GeneralFunction::divide, z, b.conv(b.global_pool(x), 3, 1));
        all.push_back(b.finish("divided"));
    }
    {
        JoinBuilder b;  // attention to places (CBAM), and the smallest channel of what it makes
        const TensorId x = b.conv(b.input(3, 8, 9), 5, 3);
        const TensorId seen = b.concat({b.conv(x, 1, 1), b.extreme(x, GeneralFunction::largest)});
        const TensorId y = b.both(GeneralFunction::multiply, x, b.conv(seen, 1, 5));
        b.concat({b.conv(y, 2, 3), b.extreme(y, GeneralFunction::smallest)});
        all.push_back(b.finish("attended"));
    }
    return all;
}

/// Every shape of join that groups may have.
inline std::vector<Network> join_networks() {
    std::vector<Network> all = picture_joins();
    all.push_back(small_residual());
    all.push_back(small_concat());
    {
        JoinBuilder b;  // a bottleneck with a projection, as in ResNet
        const TensorId x = b.input(3, 9, 8);
        const TensorId branch = b.conv(
            b.conv(b.conv(x, 2, 1, 1, 1, ActivationKind::relu), 2, 3, 2, 1, ActivationKind::relu),
            4, 1);
        b.add(branch, b.conv(x, 4, 1, 2), ActivationKind::relu);
        all.push_back(b.finish("bottleneck"));
    }
    {
        JoinBuilder b;  // Inception: four branches, one of them a pooling
        const TensorId x = b.conv(b.input(2, 7, 9), 3, 3);
        const TensorId one = b.conv(x, 2, 1);
        const TensorId three = b.conv(b.conv(x, 2, 1), 3, 3);
        const TensorId average = b.conv(b.average_pool(x, 3, 1, 1, false), 1, 1);
        b.concat({one, three, average, b.max_pool(x, 3, 1, 1)});
        all.push_back(b.finish("inception"));
    }
    {
        JoinBuilder b;  // an external and an internal tensor, two external ones
        const TensorId first = b.input(2, 6, 7);
        const TensorId second = b.input(2, 6, 7);
        b.add(b.add(b.conv(first, 2, 3), second), b.relu(first));
        all.push_back(b.finish("inputs"));
    }
    {
        JoinBuilder b;  // MobileNetV2: expand, depthwise, project, around
        const TensorId x = b.input(2, 8, 7);
        b.add(x, b.conv(b.conv(b.conv(x, 6, 1), 6, 3, 1, 6), 2, 1));
        all.push_back(b.finish("inverted_residual"));
    }
    {
        JoinBuilder b;  // padding that counts, strides, the whole map in one value
        const TensorId x = b.conv(b.input(3, 11, 9), 4, 3, 1, 1, ActivationKind::relu);
        const TensorId y = b.add(b.average_pool(x, 4, 2, 1, true), b.max_pool(x, 4, 2, 1));
        b.global_pool(b.conv(y, 4, 3, 1, 2));
        all.push_back(b.finish("pools"));
    }
    {
        JoinBuilder b;  // joins of joins
        const TensorId x = b.input(2, 6, 6);
        const TensorId left = b.conv(x, 2, 3);
        const TensorId sum = b.add(left, x);
        b.concat({sum, b.conv(sum, 3, 3), left});
        all.push_back(b.finish("nested"));
    }
    return all;
}

}  // namespace laminate
