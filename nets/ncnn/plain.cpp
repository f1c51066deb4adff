// Layers that compute without weights: activations, arithmetic, pooling, softmax.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "nets/ncnn/translate.h"

namespace laminate::ncnn {

namespace {

// ---- activations

void clip(Translator& to, const FileLayer& layer, const std::string& x, float low, float high,
          const std::string& result) {
    to.add(layer, "Clip", {x, to.floats(layer, {}, {low}), to.floats(layer, {}, {high})}, result);
}

void leaky(Translator& to, const FileLayer& layer, const std::string& x, float slope,
           const std::string& result) {
    if (slope == 0) {
        to.add(layer, "Relu", {x}, result);
    } else {
        set(to.add(layer, "LeakyRelu", {x}, result), "alpha", slope);
    }
}

std::string hard_sigmoid(Translator& to, const FileLayer& layer, const std::string& x, float alpha,
                         float beta, const std::string& result) {
    auto& node = to.add(layer, "HardSigmoid", {x}, result);
    set(node, "alpha", alpha);
    set(node, "beta", beta);
    return result;
}

/// x times a function of x.
void gate(Translator& to, const FileLayer& layer, const std::string& x, const std::string& factor,
          const std::string& result) {
    to.add(layer, "Mul", {x, factor}, result);
}

/// The only input, and the only output of the same kind.
struct OneToOne {
    OneToOne(Translator& to, const FileLayer& layer) {
        layer.expect_blobs(1, 1);
        Blob blob = to.input(layer, 0);
        x = std::exchange(blob.value, layer.outputs()[0]);
        result = to.output(layer, 0, std::move(blob));
    }
    std::string x, result;
};

void relu_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    leaky(to, layer, names.x, layer.real(0, 0), names.result);
}

void clip_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    constexpr float largest = std::numeric_limits<float>::max();
    const float low = layer.real(0, -largest), high = layer.real(1, largest);
    clip(to, layer, names.x, low, high, names.result);
}

void hard_sigmoid_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    const float alpha = layer.real(0, 0.2f), beta = layer.real(1, 0.5f);
    hard_sigmoid(to, layer, names.x, alpha, beta, names.result);
}

void hard_swish_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    const float alpha = layer.real(0, 0.2f), beta = layer.real(1, 0.5f);
    gate(to, layer, names.x,
         hard_sigmoid(to, layer, names.x, alpha, beta, to.inner(layer)), names.result);
}

void swish_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    const std::string factor = to.inner(layer);
    to.add(layer, "Sigmoid", {names.x}, factor);
    gate(to, layer, names.x, factor, names.result);
}

void elu_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    set(to.add(layer, "Elu", {names.x}, names.result), "alpha", layer.real(0, 0.1f));
}

void gelu_layer(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    auto& node = to.add(layer, "Gelu", {names.x}, names.result);
    set(node, "approximate", layer.integer(0, 0) == 0 ? "none" : "tanh");
}

/// A layer without parameters that ONNX has too.
template <const char* const& op>
void same_in_onnx(Translator& to, FileLayer& layer) {
    const OneToOne names(to, layer);
    to.add(layer, op, {names.x}, names.result);
}

constexpr const char *sigmoid = "Sigmoid", *tangent = "Tanh", *mish = "Mish";

// ---- arithmetic

void unary(Translator& to, FileLayer& layer) {
    constexpr const char* ops[] = {"Abs",  "Neg", "Floor", "Ceil", nullptr, "Sqrt",
                                   nullptr, "Exp", "Log",   "Sin",  "Cos"};
    constexpr int64_t square = 4, reciprocal_root = 6, reciprocal = 15, hyperbolic = 16;
    const OneToOne names(to, layer);
    const int64_t op = layer.size(0, 0);
    if (op == square) return gate(to, layer, names.x, names.x, names.result);
    if (op == reciprocal_root) {
        const std::string root = to.inner(layer);
        to.add(layer, "Sqrt", {names.x}, root);
        to.add(layer, "Reciprocal", {root}, names.result);
        return;
    }
    const char* name = op == reciprocal                ? "Reciprocal"
                       : op == hyperbolic              ? tangent
                       : op < std::ssize(ops) ? ops[op]
                                                       : nullptr;
    if (name == nullptr) layer.fail("operation " + std::to_string(op) + " is not supported");
    to.add(layer, name, {names.x}, names.result);
}

void binary(Translator& to, FileLayer& layer) {
    constexpr const char* ops[] = {"Add", "Sub", "Mul", "Div", "Max",
                                   "Min", "Pow", "Sub", "Div", "Pow"};
    constexpr int64_t first_reversed = 7;
    const int64_t op = layer.size(0, 0), has_scalar = layer.integer(1, 0);
    const float scalar = layer.real(2, 0);
    if (op >= std::ssize(ops)) layer.fail("operation " + std::to_string(op) + " is not supported");
    layer.expect_blobs(has_scalar != 0 ? 1 : 2, 1);
    std::string a = to.value(layer, 0), b;
    Blob result = to.input(layer, 0);
    if (has_scalar != 0) {
        b = to.floats(layer, {1}, {scalar});
    } else {
        const Blob& other = to.input(layer, 1);
        b = other.value;
        result.is_map = result.is_map || other.is_map;
        result.open_input = std::max(result.open_input, other.open_input);
    }
    if (op >= first_reversed) std::swap(a, b);
    result.value = layer.outputs()[0];
    to.add(layer, ops[op], {a, b}, to.output(layer, 0, result));
}

void eltwise(Translator& to, FileLayer& layer) {
    constexpr const char* ops[] = {"Mul", "Sum", "Max"};
    constexpr int64_t product = 0, sum = 1;
    const int64_t op = layer.size(0, 0);
    const std::vector<float> factors = layer.reals(1);
    const size_t count = layer.inputs().size();
    if (op > 2) layer.fail("operation " + std::to_string(op) + " is not supported");
    if (count < 2) layer.fail("has " + std::to_string(count) + " inputs, expected at least 2");
    if (!factors.empty() && (op != sum || factors.size() != count))
        layer.fail("has " + std::to_string(factors.size()) +
                   " factors, expected one for each part of a sum");
    Translator::Inputs parts;
    for (size_t k = 0; k < count; ++k) {
        std::string part = to.value(layer, k);
        if (!factors.empty() && factors[k] != 1) {
            const std::string scaled = to.inner(layer);
            to.add(layer, "Mul", {part, to.floats(layer, {1}, {factors[k]})}, scaled);
            part = scaled;
        }
        parts.push_back(std::move(part));
    }
    const std::string result = to.output(layer, to.input(layer, 0).is_map);
    if (op != product) {
        to.add(layer, ops[op], parts, result);
        return;
    }
    for (size_t k = 1; k < count; ++k) {
        const std::string value = k + 1 == count ? result : to.inner(layer);
        to.add(layer, ops[op], {parts[0], parts[k]}, value);
        parts[0] = value;
    }
}

// ---- windows

void pooling(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const std::string& x = to.value(layer, 0);
    const int64_t is_average = layer.size(0, 0);
    if (is_average > 1) layer.fail("is of kind " + std::to_string(is_average) + ", expected 0 or 1");
    const int64_t kernel_x = layer.size(1, 0), kernel_y = layer.size(11, kernel_x);
    const int64_t stride_x = layer.size(2, 1, 1), stride_y = layer.size(12, stride_x, 1);
    const int64_t left = layer.size(3, 0), right = layer.size(14, left),
                  top = layer.size(13, left), bottom = layer.size(15, top);
    const int64_t is_global = layer.integer(4, 0), pads = layer.size(5, 0),
                  counts_padding = layer.integer(6, 0), is_adaptive = layer.integer(7, 0);
    const int64_t out_x = layer.integer(8, 0), out_y = layer.integer(18, out_x);
    if (is_adaptive != 0 && (out_x != 1 || out_y != 1))
        layer.fail("makes windows of " + std::to_string(out_y) + "x" + std::to_string(out_x) +
                   " results (parameter 7), expected one result");
    if (is_global != 0 || is_adaptive != 0) {
        to.add(layer, is_average != 0 ? "GlobalAveragePool" : "GlobalMaxPool", {x},
               to.output(layer, is_global == 0));
        return;
    }
    constexpr int64_t full = 0, same_upper = 2, same_lower = 3;
    if (pads > same_lower) layer.fail("pads in way " + std::to_string(pads) + ", expected 0 to 3");
    if (is_average != 0 && counts_padding != 0 && pads == full && (stride_x > 1 || stride_y > 1))
        layer.fail("counts padding beyond the last whole window (parameters 5 and 6)");
    auto& node =
        to.add(layer, is_average != 0 ? "AveragePool" : "MaxPool", {x}, to.output(layer, true));
    set(node, "kernel_shape", std::vector{kernel_y, kernel_x});
    set(node, "strides", std::vector{stride_y, stride_x});
    if (pads == same_upper || pads == same_lower) {
        set(node, "auto_pad", pads == same_upper ? "SAME_UPPER" : "SAME_LOWER");
    } else {
        set(node, "pads", std::vector{top, left, bottom, right});
        set(node, "ceil_mode", int64_t{pads == full ? 1 : 0});
    }
    if (is_average != 0) set(node, "count_include_pad", int64_t{counts_padding != 0 ? 1 : 0});
}

void softmax(Translator& to, FileLayer& layer) {
    layer.expect_blobs(1, 1);
    const Blob& x = to.input(layer, 0);
    const int64_t axis = layer.integer(0, 0), is_right = layer.integer(1, 0);
    if (axis != 0 && is_right == 0) layer.fail("is of an old kind, whose axis is wrong");
    auto& node = to.add(layer, "Softmax", {x.value}, to.output(layer, x.is_map));
    set(node, "axis", Translator::axis_of(layer, to.input(layer, 0), axis));
}

void input(Translator& to, FileLayer& layer) {
    const int64_t w = layer.size(0, 0), h = layer.size(1, 0), c = layer.size(2, 0);
    layer.expect(11, 0, "the depth");
    to.add_input(layer, {w, h, c});
}

}  // namespace

FusedActivation::FusedActivation(FileLayer& layer) : kind(layer.size(9, 0)) {
    constexpr size_t counts[] = {0, 0, 1, 2, 0, 0, 2};
    parameters = layer.reals(10);
    if (kind >= std::ssize(counts) || parameters.size() < counts[kind])
        layer.fail("activation " + std::to_string(kind) + " with " +
                   std::to_string(parameters.size()) + " parameters is not supported");
}

std::string FusedActivation::before(Translator& to, const FileLayer& layer,
                                    const std::string& output) const {
    if (kind == 0) return output;
    const std::string x = to.inner(layer);
    switch (kind) {
        case 1:
            to.add(layer, "Relu", {x}, output);
            break;
        case 2:
            leaky(to, layer, x, parameters[0], output);
            break;
        case 3:
            clip(to, layer, x, parameters[0], parameters[1], output);
            break;
        case 4:
            to.add(layer, sigmoid, {x}, output);
            break;
        case 5:
            to.add(layer, mish, {x}, output);
            break;
        default:
            gate(to, layer, x,
                 hard_sigmoid(to, layer, x, parameters[0], parameters[1], to.inner(layer)), output);
    }
    return x;
}

void add_plain(Handlers& handlers) {
    handlers["Input"] = input;
    handlers["ReLU"] = relu_layer;
    handlers["Clip"] = clip_layer;
    handlers["Sigmoid"] = same_in_onnx<sigmoid>;
    handlers["TanH"] = same_in_onnx<tangent>;
    handlers["Mish"] = same_in_onnx<mish>;
    handlers["HardSigmoid"] = hard_sigmoid_layer;
    handlers["HardSwish"] = hard_swish_layer;
    handlers["Swish"] = swish_layer;
    handlers["ELU"] = elu_layer;
    handlers["GELU"] = gelu_layer;
    handlers["UnaryOp"] = unary;
    handlers["BinaryOp"] = binary;
    handlers["Eltwise"] = eltwise;
    handlers["Pooling"] = pooling;
    handlers["Softmax"] = softmax;
}

}  // namespace laminate::ncnn
