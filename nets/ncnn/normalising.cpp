// Means and other reductions of blobs, and normalisations by the statistics of the data.
#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "nets/ncnn/translate.h"

namespace laminate::ncnn {

namespace {

/// Over the axes of a map that it names, or over all.
void reduction(Translator& to, FileLayer& layer) {
    constexpr const char* ops[] = {"ReduceSum", "ReduceL1", "ReduceSumSquare", "ReduceMean",
                                   "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                                   "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"};
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const int64_t op = layer.size(0, 0), is_of_all = layer.integer(1, 1),
                  keeps = layer.integer(4, 0);
    const float factor = layer.real(2, 1);
    std::vector<int64_t> axes;
    for (const int64_t axis : layer.integers(3)) axes.push_back(Translator::axis_of(layer, x, axis));
    layer.expect(5, 1, "the meaning of its axes");
    if (op >= std::ssize(ops)) layer.fail("operation " + std::to_string(op) + " is not supported");
    if (is_of_all != 0) axes = {1, 2, 3};
    std::ranges::sort(axes);
    const bool leaves_channels = axes == std::vector<int64_t>{2, 3};
    if (keeps == 0 && x.is_map && is_of_all == 0 && !leaves_channels)
        layer.fail("leaves two dimensions, expected 1 or 3");
    const bool is_map = keeps != 0 && x.is_map;
    const std::string result = to.output(layer, is_map), value = factor == 1 ? result : to.inner(layer);
    const bool has_axes_input = op == 0;  // ReduceSum's axes are an input of this operator set
    auto& node = has_axes_input
                     ? to.add(layer, ops[op], {x.value, to.integers(layer, axes)}, value)
                     : to.add(layer, ops[op], {x.value}, value);
    if (!has_axes_input) set(node, "axes", axes);
    if (factor != 1) to.add(layer, "Mul", {value, to.floats(layer, {1}, {factor})}, result);
}

/// `count` values of the file of weights, or as many times `otherwise`.
std::vector<float> values_of(Translator& to, const FileLayer& layer, bool are_given, int64_t count,
                             float otherwise) {
    return are_given ? to.weights().plain(layer, count)
                     : std::vector<float>(static_cast<size_t>(count), otherwise);
}

/// Over the columns of a map.
void layer_norm(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    if (!x.is_map) layer.fail("normalises a vector, expected a map");
    const int64_t count = layer.size(0, 0, 1);
    const float epsilon = layer.real(1, 0.001f);
    const bool is_affine = layer.integer(2, 1) != 0;
    const std::string scale =
        to.floats(layer, {count}, values_of(to, layer, is_affine, count, 1));
    const std::string shift =
        to.floats(layer, {count}, values_of(to, layer, is_affine, count, 0));
    auto& node =
        to.add(layer, "LayerNormalization", {x.value, scale, shift}, to.output(layer, true));
    set(node, "axis", int64_t{-1});
    set(node, "epsilon", epsilon);
}

/// Over the pixels of each channel.
void instance_norm(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const int64_t channels = layer.size(0, 0, 1);
    const float epsilon = layer.real(1, 0.001f);
    const bool is_affine = layer.integer(2, 1) != 0;
    to.learn_channels(x, channels);
    const std::string scale =
        to.floats(layer, {channels}, values_of(to, layer, is_affine, channels, 1));
    const std::string shift =
        to.floats(layer, {channels}, values_of(to, layer, is_affine, channels, 0));
    auto& node = to.add(layer, "InstanceNormalization", {x.value, scale, shift},
                        to.output(layer, x.is_map));
    set(node, "epsilon", epsilon);
}

/// Over the pixels of a group of channels.
void group_norm(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const int64_t groups = layer.size(0, 1, 1), channels = layer.size(1, 0, 1);
    const float epsilon = layer.real(2, 0.001f);
    const bool is_affine = layer.integer(3, 1) != 0;
    to.learn_channels(x, channels);
    const auto each = [&](float value) {
        return to.floats(layer, {groups},
                         std::vector<float>(static_cast<size_t>(groups), value));
    };
    const std::string split = to.inner(layer), normed = to.inner(layer), extents = to.inner(layer);
    to.add(layer, "Reshape", {x.value, to.integers(layer, {0, groups, -1})}, split);
    set(to.add(layer, "InstanceNormalization", {split, each(1), each(0)}, normed), "epsilon",
        epsilon);
    to.add(layer, "Shape", {x.value}, extents);
    const std::string result = to.output(layer, x.is_map);
    const std::string joined = is_affine ? to.inner(layer) : result;
    to.add(layer, "Reshape", {normed, extents}, joined);
    if (!is_affine) return;
    const std::string scale =
        to.floats(layer, {channels, 1, 1}, to.weights().plain(layer, channels));
    const std::string scaled = to.inner(layer);
    to.add(layer, "Mul", {joined, scale}, scaled);
    to.add(layer, "Add",
           {scaled, to.floats(layer, {channels, 1, 1}, to.weights().plain(layer, channels))},
           result);
}

}  // namespace

void add_normalising(Handlers& handlers) {
    handlers["Reduction"] = reduction;
    handlers["LayerNorm"] = layer_norm;
    handlers["InstanceNorm"] = instance_norm;
    handlers["GroupNorm"] = group_norm;
}

}  // namespace laminate::ncnn
