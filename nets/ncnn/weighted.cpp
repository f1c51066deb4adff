// Layers with weights: convolutions, products, normalisation, and constants.
#include <algorithm>

#include "base/error.h"
#include "nets/ncnn/translate.h"

namespace laminate::ncnn {

namespace {

namespace proto = onnx::proto;

constexpr int64_t same_upper = -233, same_lower = -234;

/// The window that Convolution and Deconvolution share.
struct WindowParameters {
    explicit WindowParameters(FileLayer& layer)
        : kernel_x(layer.size(1, 0, 1)),
          kernel_y(layer.size(11, kernel_x, 1)),
          dilation_x(layer.size(2, 1, 1)),
          dilation_y(layer.size(12, dilation_x, 1)),
          stride_x(layer.size(3, 1, 1)),
          stride_y(layer.size(13, stride_x, 1)),
          left(layer.size(4, 0, same_lower)),
          right(layer.size(15, left, same_lower)),
          top(layer.size(14, left, same_lower)),
          bottom(layer.size(16, top, same_lower)) {
        const auto pads = {left, right, top, bottom};
        is_same = left == same_upper || left == same_lower;
        const bool is_legal = is_same
                                  ? std::all_of(pads.begin(), pads.end(),
                                                [&](int64_t pad) { return pad == left; })
                                  : std::all_of(pads.begin(), pads.end(),
                                                [](int64_t pad) { return pad >= 0; });
        if (!is_legal) layer.fail("has pads that are neither sizes nor -233 or -234 on all sides");
    }

    void write(proto::NodeProto& node) const {
        set(node, "kernel_shape", std::vector{kernel_y, kernel_x});
        set(node, "dilations", std::vector{dilation_y, dilation_x});
        set(node, "strides", std::vector{stride_y, stride_x});
        if (is_same) {
            set(node, "auto_pad", left == same_upper ? "SAME_UPPER" : "SAME_LOWER");
        } else {
            set(node, "pads", std::vector{top, left, bottom, right});
        }
    }

    int64_t kernel_x, kernel_y, dilation_x, dilation_y, stride_x, stride_y, left, right, top, bottom;
    bool is_same = false;
};

/// Input channels of a group, from the number of weights. All parameters have 32 bits.
int64_t channels_of(const FileLayer& layer, int64_t weights, int64_t taps, int64_t outputs) {
    if (weights < 1 || taps > weights || weights % (taps * outputs) != 0)
        layer.fail("has " + std::to_string(weights) + " weights (parameter 6), expected " +
                   std::to_string(taps) + " taps for each of " + std::to_string(outputs) +
                   " outputs and each input");
    return weights / taps / outputs;
}

int64_t groups_of(FileLayer& layer, int64_t outputs) {
    if (!layer.kind().ends_with("DepthWise")) {
        layer.expect(7, 1, "the number of groups");
        return 1;
    }
    const int64_t groups = layer.size(7, 1, 1);
    if (outputs % groups != 0)
        layer.fail("has " + std::to_string(outputs) + " outputs, expected a multiple of its " +
                   std::to_string(groups) + " groups");
    return groups;
}

Translator::Inputs with_bias(Translator& to, const FileLayer& layer, Translator::Inputs inputs,
                             int64_t has_bias, int64_t outputs) {
    if (has_bias != 0)
        inputs.push_back(to.floats(layer, {outputs}, to.weights().plain(layer, outputs)));
    return inputs;
}

void convolution(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const int64_t outputs = layer.size(0, 0, 1), count = layer.size(6, 0);
    const WindowParameters window(layer);
    layer.expect(8, 0, "the scale of 8-bit integers");
    layer.expect(18, 0, "the value of the padding");
    layer.expect(19, 0, "weights that are computed");
    const int64_t groups = groups_of(layer, outputs), has_bias = layer.integer(5, 0);
    const int64_t in = channels_of(layer, count, window.kernel_y * window.kernel_x, outputs);
    const FusedActivation activation(layer);
    to.learn_channels(to.input(layer, 0), in * groups);
    const std::string weights = to.floats(layer, {outputs, in, window.kernel_y, window.kernel_x},
                                          to.weights().tagged(layer, count));
    const auto inputs =
        with_bias(to, layer, {to.value(layer, 0), weights}, has_bias, outputs);
    const std::string result = to.output(layer, true);
    auto& node = to.add(layer, "Conv", inputs, activation.before(to, layer, result));
    set(node, "group", groups);
    window.write(node);
}

/// ncnn has the weights as [group][output][input][taps], ONNX as [group][input][output][taps].
std::vector<float> transposed(const std::vector<float>& weights, int64_t groups, int64_t outputs,
                              int64_t inputs, int64_t taps) {
    std::vector<float> result;
    result.reserve(weights.size());
    for (int64_t g = 0; g < groups; ++g) {
        for (int64_t i = 0; i < inputs; ++i) {
            for (int64_t o = 0; o < outputs; ++o) {
                const auto* kernel = weights.data() + ((g * outputs + o) * inputs + i) * taps;
                result.insert(result.end(), kernel, kernel + taps);
            }
        }
    }
    return result;
}

void deconvolution(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const int64_t outputs = layer.size(0, 0, 1), count = layer.size(6, 0);
    const WindowParameters window(layer);
    if (window.is_same) layer.fail("has pads of -233 or -234, expected sizes");
    const int64_t more_x = layer.size(18, 0), more_y = layer.size(19, more_x);
    layer.expect(20, 0, "the output's width");
    layer.expect(21, 0, "the output's height");
    layer.expect(28, 0, "weights that are computed");
    const int64_t groups = groups_of(layer, outputs), has_bias = layer.integer(5, 0);
    const int64_t taps = window.kernel_y * window.kernel_x;
    const int64_t in = channels_of(layer, count, taps, outputs), out = outputs / groups;
    const FusedActivation activation(layer);
    to.learn_channels(to.input(layer, 0), in * groups);
    const std::string weights =
        to.floats(layer, {in * groups, out, window.kernel_y, window.kernel_x},
                  transposed(to.weights().tagged(layer, count), groups, out, in, taps));
    const auto inputs =
        with_bias(to, layer, {to.value(layer, 0), weights}, has_bias, outputs);
    const std::string result = to.output(layer, true);
    auto& node = to.add(layer, "ConvTranspose", inputs, activation.before(to, layer, result));
    set(node, "group", groups);
    set(node, "output_padding", std::vector{more_y, more_x});
    window.write(node);
}

/// A convolution of one tap on a map of one element.
void inner_product(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const int64_t outputs = layer.size(0, 0, 1), has_bias = layer.integer(1, 0);
    const int64_t count = layer.size(2, 0);
    layer.expect(8, 0, "the scale of 8-bit integers");
    const int64_t in = channels_of(layer, count, 1, outputs);
    const FusedActivation activation(layer);
    std::string x = to.value(layer, 0);
    if (to.input(layer, 0).is_map) {
        const std::string flat = to.inner(layer);
        to.add(layer, "Reshape", {x, to.integers(layer, {0, -1, 1, 1})}, flat);
        x = flat;
    }
    const std::string weights =
        to.floats(layer, {outputs, in, 1, 1}, to.weights().tagged(layer, count));
    const auto inputs = with_bias(to, layer, {x, weights}, has_bias, outputs);
    const std::string result = to.output(layer, false);
    to.add(layer, "Conv", inputs, activation.before(to, layer, result));
}

void batch_norm(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const int64_t channels = layer.size(0, 0, 1);
    const auto read = [&] {
        return to.floats(layer, {channels}, to.weights().plain(layer, channels));
    };
    const std::string slope = read(), mean = read(), variance = read(), bias = read();
    const Blob& x = to.input(layer, 0);
    to.learn_channels(x, channels);
    auto& node = to.add(layer, "BatchNormalization", {x.value, slope, bias, mean, variance},
                        to.output(layer, x.is_map));
    set(node, "epsilon", layer.real(1, 0));
}

/// One value for each channel, or for all.
std::string per_channel(Translator& to, const FileLayer& layer, int64_t count) {
    if (count < 1) layer.fail("has " + std::to_string(count) + " values, expected at least 1");
    return to.floats(layer, {count, 1, 1}, to.weights().plain(layer, count));
}

void scale(Translator& to, FileLayer& layer) {
    const int64_t count = layer.integer(0, 0), has_bias = layer.integer(1, 0);
    if (count == unset) {
        layer.expect_blobs(2, 1);
        if (has_bias != 0) layer.fail("of a computed scale has a bias, expected none");
        to.add(layer, "Mul", {to.value(layer, 0), to.value(layer, 1)},
               to.output(layer, to.input(layer, 0).is_map));
        return;
    }
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const std::string factors = per_channel(to, layer, count);
    const std::string result = to.output(layer, x.is_map);
    if (has_bias == 0) {
        to.add(layer, "Mul", {x.value, factors}, result);
        return;
    }
    const std::string product = to.inner(layer);
    to.add(layer, "Mul", {x.value, factors}, product);
    to.add(layer, "Add", {product, per_channel(to, layer, count)}, result);
}

void bias(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const std::string values = per_channel(to, layer, layer.integer(0, 0));
    to.add(layer, "Add", {x.value, values}, to.output(layer, x.is_map));
}

void prelu(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const std::string slopes = per_channel(to, layer, layer.integer(0, 0));
    to.add(layer, "PRelu", {x.value, slopes}, to.output(layer, x.is_map));
}

void memory_data(Translator& to, FileLayer& layer) {
    layer.expect_blobs(0, 1);
    const int64_t w = layer.size(0, 0), h = layer.size(1, 0), c = layer.size(2, 0);
    layer.expect(11, 0, "the depth");
    layer.expect(21, 1, "the kind of data");
    if (w == 0 || (c == 0) != (h == 0)) layer.fail("has no data, or two dimensions");
    const bool is_map = c != 0;
    const std::vector<int64_t> dims =
        is_map ? std::vector{int64_t{1}, c, h, w} : std::vector{int64_t{1}, w, int64_t{1}, int64_t{1}};
    const std::string data =
        to.floats(layer, dims, to.weights().plain(layer, element_count(dims)));
    to.add(layer, "Identity", {data}, to.output(layer, is_map));
}

}  // namespace

void add_weighted(Handlers& handlers) {
    handlers["Convolution"] = handlers["ConvolutionDepthWise"] = convolution;
    handlers["Deconvolution"] = handlers["DeconvolutionDepthWise"] = deconvolution;
    handlers["InnerProduct"] = inner_product;
    handlers["BatchNorm"] = batch_norm;
    handlers["Scale"] = scale;
    handlers["Bias"] = bias;
    handlers["PReLU"] = prelu;
    handlers["MemoryData"] = memory_data;
}

}  // namespace laminate::ncnn
