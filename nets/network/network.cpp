#include "nets/network/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <type_traits>
#include <unordered_set>

#include "base/error.h"
#include "base/units.h"
#include "nets/network/taps.h"

namespace laminate {

namespace {

/// No machine holds as many. Below this bound, the product of an extent and a kernel fits in 64
/// bits.
constexpr int64_t most_elements = int64_t{1} << 40;
/// Bound on every window parameter and extent. It keeps products such as (kernel - 1) * dilation
/// far from overflow.
constexpr int64_t largest_extent = (int64_t{1} << 31) - 1;

std::string describe(const Layer& layer) { return layer.name + " (" + operation_text(layer) + ")"; }

[[noreturn]] void fail(const Layer& layer, const std::string& message) {
    throw InputError(describe(layer) + ": " + message);
}

const char* axis_name(size_t axis) { return axis == 0 ? "y" : "x"; }

bool uses_window(LayerKind kind) {
    return kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
           kind == LayerKind::max_pool || kind == LayerKind::average_pool;
}

void check_window(const Layer& layer) {
    const Window& w = layer.window;
    for (size_t axis = 0; axis < 2; ++axis) {
        const auto between = [&](int64_t value, int64_t low, const char* what) {
            if (value < low || value > largest_extent) {
                fail(layer, std::string(what) + " along " + axis_name(axis) + " is " +
                                std::to_string(value) + ", expected " + std::to_string(low) +
                                " to " + std::to_string(largest_extent));
            }
        };
        between(w.kernel[axis], 1, "kernel size");
        between(w.stride[axis], 1, "stride");
        between(w.dilation[axis], 1, "dilation");
        between(w.pad_begin[axis], 0, "leading padding");
        between(w.pad_end[axis], 0, "trailing padding");
        between(w.output_padding[axis], 0, "output padding");
        if (layer.kind != LayerKind::conv_transpose && w.output_padding[axis] != 0) {
            fail(layer, "output padding is for transposed convolutions only");
        }
        if (layer.kind == LayerKind::conv_transpose &&
            w.output_padding[axis] >= std::max(w.stride[axis], w.dilation[axis])) {
            fail(layer, "output padding " + std::to_string(w.output_padding[axis]) + " along " +
                            axis_name(axis) + ", expected less than stride or dilation");
        }
    }
}

/// Input elements that one window spans along an axis, (kernel - 1) * dilation + 1.
int64_t span(const Window& w, size_t axis) { return (w.kernel[axis] - 1) * w.dilation[axis] + 1; }

int64_t sliding_extent(const Layer& layer, size_t axis, int64_t in) {
    const Window& w = layer.window;
    const int64_t padded = in + w.pad_begin[axis] + w.pad_end[axis];
    if (span(w, axis) > padded) {
        fail(layer, "window spans " + std::to_string(span(w, axis)) + " along " + axis_name(axis) +
                        ", the padded input only " + std::to_string(padded));
    }
    return (padded - span(w, axis)) / w.stride[axis] + 1;
}

int64_t transposed_extent(const Layer& layer, size_t axis, int64_t in) {
    const Window& w = layer.window;
    const int64_t full = (in - 1) * w.stride[axis] + span(w, axis) + w.output_padding[axis];
    const int64_t out = full - w.pad_begin[axis] - w.pad_end[axis];
    if (out < 1) fail(layer, std::string("padding along ") + axis_name(axis) + " leaves no output");
    return out;
}

void expect_inputs(const Layer& layer, size_t found, size_t expected) {
    if (found != expected) {
        fail(layer,
             "has " + std::to_string(found) + " inputs, expected " + std::to_string(expected));
    }
}

void expect_rank(const Layer& layer, const std::vector<int64_t>& dims, size_t rank) {
    if (dims.size() != rank) {
        fail(layer, "input is " + dims_text(dims) + ", expected " + std::to_string(rank) +
                        " dimensions" + (rank == 4 ? " (N, C, H, W)" : ""));
    }
}

void check_constant(const Layer& layer, const ConstantPtr& constant, const char* what) {
    if (constant == nullptr) fail(layer, std::string("has no ") + what);
    if (element_count(constant->dims) != static_cast<int64_t>(constant->values.size())) {
        fail(layer, std::string(what) + " of shape " + dims_text(constant->dims) + " hold " +
                        std::to_string(constant->values.size()) + " values");
    }
}

void check_bias(const Layer& layer, int64_t channels) {
    if (layer.bias == nullptr) return;
    check_constant(layer, layer.bias, "bias");
    if (static_cast<int64_t>(layer.bias->values.size()) != channels) {
        fail(layer, "bias has " + std::to_string(layer.bias->values.size()) +
                        " values, expected one for each of " + std::to_string(channels) +
                        " output channels");
    }
}

void check_convolution_weights(const Layer& layer, int64_t channels) {
    check_constant(layer, layer.weights, "weights");
    const auto& dims = layer.weights->dims;
    if (dims.size() != 4) fail(layer, "weights are " + dims_text(dims) + ", expected 4 dimensions");
    if (dims[2] != layer.window.kernel[0] || dims[3] != layer.window.kernel[1]) {
        fail(layer, "weights are " + dims_text(dims) + ", the window is " +
                        std::to_string(layer.window.kernel[0]) + "x" +
                        std::to_string(layer.window.kernel[1]));
    }
    if (layer.groups < 1 || channels % layer.groups != 0) {
        fail(layer, std::to_string(layer.groups) + " groups do not divide " +
                        std::to_string(channels) + " input channels");
    }
    const bool transposed = layer.kind == LayerKind::conv_transpose;
    const int64_t read = transposed ? dims[0] : checked_multiply(dims[1], layer.groups);
    if (read != channels) {
        fail(layer, "weights " + dims_text(dims) + " in " + std::to_string(layer.groups) +
                        " groups read " + std::to_string(read) + " channels, the input has " +
                        std::to_string(channels));
    }
    if (!transposed && dims[0] % layer.groups != 0) {
        fail(layer, std::to_string(layer.groups) + " groups do not divide " +
                        std::to_string(dims[0]) + " output channels");
    }
}

std::vector<int64_t> convolution_dims(const Layer& layer, const std::vector<int64_t>& in) {
    expect_rank(layer, in, 4);
    check_convolution_weights(layer, in[1]);
    const auto& weights = layer.weights->dims;
    const bool transposed = layer.kind == LayerKind::conv_transpose;
    const int64_t channels = transposed ? checked_multiply(weights[1], layer.groups) : weights[0];
    check_bias(layer, channels);
    const auto extent = transposed ? transposed_extent : sliding_extent;
    return {in[0], channels, extent(layer, 0, in[2]), extent(layer, 1, in[3])};
}

std::vector<int64_t> pooling_dims(const Layer& layer, const std::vector<int64_t>& in) {
    expect_rank(layer, in, 4);
    std::vector<int64_t> out{in[0], in[1], 0, 0};
    for (size_t axis = 0; axis < 2; ++axis) {
        out[axis + 2] = sliding_extent(layer, axis, in[axis + 2]);
        const Window& w = layer.window;
        if (!every_window_reads(
                {w.kernel[axis], w.stride[axis], w.dilation[axis], w.pad_begin[axis]}, in[axis + 2],
                out[axis + 2]))
            fail(layer,
                 std::string("a window along ") + axis_name(axis) + " lies wholly in the padding");
    }
    return out;
}

std::vector<int64_t> gemm_dims(const Layer& layer, const std::vector<int64_t>& in) {
    expect_rank(layer, in, 2);
    check_constant(layer, layer.weights, "weights");
    const auto& dims = layer.weights->dims;
    if (dims.size() != 2 || dims[1] != in[1]) {
        fail(layer, "weights are " + dims_text(dims) + ", expected OUTx" + std::to_string(in[1]));
    }
    check_bias(layer, dims[0]);
    return {in[0], dims[0]};
}

std::vector<int64_t> add_dims(const Layer& layer, const std::vector<std::vector<int64_t>>& in) {
    if (layer.weights == nullptr) {
        expect_inputs(layer, in.size(), 2);
        if (in[0] != in[1]) {
            fail(layer, "operands are " + dims_text(in[0]) + " and " + dims_text(in[1]) +
                            ", expected equal shapes");
        }
        return in[0];
    }
    expect_inputs(layer, in.size(), 1);
    check_constant(layer, layer.weights, "constant operand");
    const std::vector<int64_t> image(in[0].begin() + 1, in[0].end());
    const auto& dims = layer.weights->dims;
    const bool per_channel = in[0].size() > 1 && dims == std::vector<int64_t>{in[0][1]};
    if (dims != std::vector<int64_t>{1} && !per_channel && dims != image) {
        fail(layer, "constant operand is " + dims_text(dims) +
                        ", expected one value, one per channel or " + dims_text(image));
    }
    return in[0];
}

int64_t checked_axis(const Layer& layer, size_t rank, int64_t end) {
    if (layer.axis < 0 || layer.axis >= end) {
        fail(layer, "axis " + std::to_string(layer.axis) + " of an input with " +
                        std::to_string(rank) + " dimensions");
    }
    return layer.axis;
}

std::vector<int64_t> concat_dims(const Layer& layer, const std::vector<std::vector<int64_t>>& in) {
    if (in.empty()) expect_inputs(layer, 0, 1);
    std::vector<int64_t> out = in[0];
    const auto axis =
        static_cast<size_t>(checked_axis(layer, out.size(), static_cast<int64_t>(out.size())));
    for (size_t i = 1; i < in.size(); ++i) {
        std::vector<int64_t> other = in[i];
        if (other.size() == out.size()) other[axis] = in[0][axis];
        if (other != in[0]) {
            fail(layer, "inputs are " + dims_text(in[0]) + " and " + dims_text(in[i]) +
                            ", expected to differ only in axis " + std::to_string(layer.axis));
        }
        out[axis] = checked_add(out[axis], in[i][axis]);
    }
    return out;
}

std::vector<int64_t> depth_to_space_dims(const Layer& layer, const std::vector<int64_t>& in) {
    expect_rank(layer, in, 4);
    if (layer.block < 1 || layer.block > 4096 || in[1] % (layer.block * layer.block) != 0) {
        fail(layer, "block " + std::to_string(layer.block) + ": its square does not divide " +
                        std::to_string(in[1]) + " channels");
    }
    return {in[0], in[1] / (layer.block * layer.block), checked_multiply(in[2], layer.block),
            checked_multiply(in[3], layer.block)};
}

std::vector<int64_t> flatten_dims(const Layer& layer, const std::vector<int64_t>& in) {
    const int64_t axis = checked_axis(layer, in.size(), static_cast<int64_t>(in.size()) + 1);
    return {element_count({in.begin(), in.begin() + axis}),
            element_count({in.begin() + axis, in.end()})};
}

/// An activation belongs to the layers that finish a sum (their generators apply it when the sum is
/// complete); elsewhere it is a layer.
bool may_carry_activation(LayerKind kind) {
    return kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
           kind == LayerKind::gemm || kind == LayerKind::add || kind == LayerKind::activation;
}

void check_activation(const Layer& layer, const std::vector<int64_t>& out) {
    const Activation& a = layer.activation;
    if (layer.kind == LayerKind::activation && a.kind == ActivationKind::none)
        fail(layer, "does not say which activation");
    if (a.kind != ActivationKind::none && !may_carry_activation(layer.kind)) {
        fail(layer, std::string("carries ") + activation_text(a) +
                        "; expected a separate activation layer");
    }
    if (a.kind == ActivationKind::clip && !(a.low <= a.high)) {
        fail(layer, "clips to " + std::to_string(a.low) + " .. " + std::to_string(a.high) +
                        ", expected low <= high");
    }
    const bool is_unary = a.kind == ActivationKind::unary;
    if (is_unary && !is_activation(a.function, a.alpha, a.beta)) {
        fail(layer, std::string(to_string(a.function)) + " of " + std::to_string(a.alpha) +
                        " and " + std::to_string(a.beta) + " is no activation");
    }
    if (!is_unary && a.function != GeneralFunction::none)
        fail(layer,
             std::string(to_string(a.kind)) + " names the function " + to_string(a.function));
    if (a.kind == ActivationKind::prelu) {
        check_constant(layer, a.slope, "slopes");
        const auto count = static_cast<int64_t>(a.slope->values.size());
        if (count != 1 && (out.size() < 2 || count != out[1])) {
            fail(layer, std::to_string(count) + " slopes for " + dims_text(out) +
                            ", expected 1 or one per channel");
        }
    } else if (a.slope != nullptr) {
        fail(layer, std::string(to_string(a.kind)) + " has slopes; expected prelu");
    }
}

void check_extras(const Layer& layer) {
    if (layer.kind == LayerKind::general) return;  // general_output_dims() looks at them
    const bool weighted = layer.kind == LayerKind::conv ||
                          layer.kind == LayerKind::conv_transpose || layer.kind == LayerKind::gemm;
    if (layer.weights != nullptr && !weighted && layer.kind != LayerKind::add)
        fail(layer, "has weights, expected none");
    if (layer.bias != nullptr && !weighted) fail(layer, "has a bias, expected none");
    if (uses_window(layer.kind)) check_window(layer);
}

/// A mixing step is a bijection of the state for any given word, so two streams that differ in one
/// word never collide there.
class Hasher {
public:
    explicit Hasher(bool with_values) : with_values_(with_values) {}
    void word(uint64_t value) {
        state_ = (state_ ^ value) * 0x9e3779b97f4a7c15u;
        state_ ^= state_ >> 32;
    }
    void number(int64_t value) { word(static_cast<uint64_t>(value)); }
    void real(float value) { word(std::bit_cast<uint32_t>(value)); }
    template <class Range>
    void numbers(const Range& values) {
        number(static_cast<int64_t>(values.size()));
        for (const auto value : values) number(value);
    }
    void text(const std::string& value) {
        number(static_cast<int64_t>(value.size()));
        for (const char c : value) word(static_cast<unsigned char>(c));
    }
    void constant(const ConstantPtr& value) {
        number(value != nullptr);
        if (value == nullptr) return;
        numbers(value->dims);
        values(value);
    }
    /// For constants whose shape is implied by the number of values: biases, slopes.
    void values(const ConstantPtr& value) {
        number(value != nullptr);
        if (value == nullptr) return;
        number(static_cast<int64_t>(value->values.size()));
        if (!with_values_) return;
        const std::vector<float>& v = value->values;
        size_t i = 0;
        for (; i + 1 < v.size(); i += 2) {
            word(uint64_t{std::bit_cast<uint32_t>(v[i])} << 32 | std::bit_cast<uint32_t>(v[i + 1]));
        }
        if (i < v.size()) real(v[i]);
    }
    [[nodiscard]] uint64_t state() const { return state_; }

private:
    bool with_values_;
    uint64_t state_ = 0x6c616d696e617465u;  // "laminate"
};

void hash_general(Hasher& hash, const Layer& layer) {
    const GeneralOperator& op = layer.general;
    hash.number(static_cast<int64_t>(op.kind));
    hash.number(static_cast<int64_t>(op.function));
    hash.number(layer.groups);
    for_each_field(op, [&](const char*, const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, std::vector<int64_t>>) {
            hash.numbers(field);
        } else if constexpr (std::is_same_v<Field, std::vector<float>>) {
            hash.number(std::ssize(field));
            for (const float value : field) hash.real(value);
        } else if constexpr (std::is_same_v<Field, float>) {
            hash.real(field);
        } else {
            hash.number(field);
        }
    });
}

/// Hashes only the fields that the kind reads, so a meaningless field does not change the hash.
void hash_attributes(Hasher& hash, const Layer& layer) {
    if (uses_window(layer.kind)) {
        const Window& w = layer.window;
        for (const auto& pair :
             {w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end, w.output_padding})
            hash.numbers(pair);
    }
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
            hash.number(layer.groups);
            break;
        case LayerKind::average_pool:
            hash.number(layer.count_include_pad);
            break;
        case LayerKind::concat:
        case LayerKind::flatten:
        case LayerKind::softmax:
            hash.number(layer.axis);
            break;
        case LayerKind::depth_to_space:
            hash.number(layer.block);
            hash.number(layer.depth_to_space_crd);
            break;
        case LayerKind::general:
            hash_general(hash, layer);
            break;
        default:
            break;
    }
}

void hash_activation(Hasher& hash, const Activation& activation) {
    hash.number(static_cast<int64_t>(activation.kind));
    switch (activation.kind) {
        case ActivationKind::leaky_relu:
            hash.real(activation.alpha);
            break;
        case ActivationKind::prelu:
            hash.values(activation.slope);
            break;
        case ActivationKind::clip:
            hash.real(activation.low);
            hash.real(activation.high);
            break;
        case ActivationKind::unary:
            hash.number(static_cast<int64_t>(activation.function));
            hash.real(activation.alpha);
            hash.real(activation.beta);
            break;
        default:
            break;
    }
}

/// Legal shapes can ask for more work than 64 bits count: 2^40 outputs of 2^24 taps each.
void check_macs(const Network& network, const std::string& where) {
    try {
        int64_t total = 0;
        for (size_t i = 0; i < network.layers.size(); ++i) {
            total = checked_add(total, layer_macs(network, static_cast<LayerId>(i)));
        }
    } catch (const std::overflow_error&) {
        throw InputError(where + ": more than 2^63 multiply-accumulates");
    }
}

}  // namespace

bool is_identifier(const std::string& text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    for (const char c : text) {
        if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
            !(c >= 'A' && c <= 'Z'))
            return false;
    }
    return true;
}

const char* to_string(LayerKind kind) {
    switch (kind) {
        case LayerKind::conv:
            return "conv";
        case LayerKind::conv_transpose:
            return "conv_transpose";
        case LayerKind::gemm:
            return "gemm";
        case LayerKind::max_pool:
            return "max_pool";
        case LayerKind::average_pool:
            return "average_pool";
        case LayerKind::global_average_pool:
            return "global_average_pool";
        case LayerKind::add:
            return "add";
        case LayerKind::concat:
            return "concat";
        case LayerKind::depth_to_space:
            return "depth_to_space";
        case LayerKind::flatten:
            return "flatten";
        case LayerKind::softmax:
            return "softmax";
        case LayerKind::activation:
            return "activation";
        case LayerKind::general:
            return "general";
    }
    throw std::logic_error("layer kind out of range");
}

const char* to_string(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return "float32";
        case ElementType::uint8:
            return "uint8";
        case ElementType::int8:
            return "int8";
    }
    throw std::logic_error("element type out of range");
}

const char* operation_text(const Layer& layer) {
    if (layer.kind != LayerKind::general) return to_string(layer.kind);
    return layer.general.function == GeneralFunction::none ? to_string(layer.general.kind)
                                                           : to_string(layer.general.function);
}

const char* activation_text(const Activation& activation) {
    return activation.kind == ActivationKind::unary ? to_string(activation.function)
                                                    : to_string(activation.kind);
}

const char* to_string(ActivationKind kind) {
    switch (kind) {
        case ActivationKind::none:
            return "none";
        case ActivationKind::relu:
            return "relu";
        case ActivationKind::leaky_relu:
            return "leaky_relu";
        case ActivationKind::prelu:
            return "prelu";
        case ActivationKind::clip:
            return "clip";
        case ActivationKind::sigmoid:
            return "sigmoid";
        case ActivationKind::tanh:
            return "tanh";
        case ActivationKind::unary:
            return "unary";
    }
    throw std::logic_error("activation kind out of range");
}

LayerId Network::producer(TensorId id) const {
    for (size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].output == id) return static_cast<LayerId>(i);
    }
    return -1;
}

std::vector<LayerId> Network::consumers(TensorId id) const {
    std::vector<LayerId> readers;
    for (size_t i = 0; i < layers.size(); ++i) {
        for (const TensorId input : layers[i].inputs) {
            if (input != id) continue;
            readers.push_back(static_cast<LayerId>(i));
            break;
        }
    }
    return readers;
}

bool Network::is_output(TensorId id) const {
    for (const TensorId output : outputs) {
        if (output == id) return true;
    }
    return false;
}

LayerId Network::find_layer(const std::string& layer_name) const {
    for (size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].name == layer_name) return static_cast<LayerId>(i);
    }
    return -1;
}

int64_t element_count(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) {
        if (d < 1 || d > largest_extent) {
            throw InputError("tensor of " + dims_text(dims) + ": dimension " + std::to_string(d) +
                             ", expected 1 to " + std::to_string(largest_extent));
        }
        if (count > most_elements / d)
            throw InputError("tensor of " + dims_text(dims) + ": more than 2^40 elements");
        count *= d;
    }
    return count;
}

std::string dims_text(const std::vector<int64_t>& dims) {
    if (dims.empty()) return "scalar";
    std::string text;
    for (const int64_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
    return text;
}

std::string tensor_text(const Tensor& tensor) {
    const std::string text = tensor.name + " " + dims_text(tensor.dims);
    return tensor.type == ElementType::float32 ? text : text + " " + to_string(tensor.type);
}

int64_t layer_macs(const Network& network, LayerId id) {
    const Layer& layer = network.layer(id);
    const auto& out = network.tensor(layer.output).dims;
    const auto& weights = layer.weights;
    switch (layer.kind) {
        case LayerKind::gemm:
            return checked_multiply(out[0], element_count(weights->dims));
        case LayerKind::conv: {
            const auto& w = weights->dims;
            return checked_multiply(element_count(out), element_count({w[1], w[2], w[3]}));
        }
        case LayerKind::conv_transpose: {
            const int64_t channels_read = weights->dims[0] / layer.groups;
            const Window& w = layer.window;
            const auto axis_taps = [&](size_t axis) {
                return transposed_taps(w.kernel[axis], w.stride[axis], w.dilation[axis],
                                       w.pad_begin[axis], out[axis + 2]);
            };
            const int64_t taps = checked_multiply(axis_taps(0), axis_taps(1));
            return checked_multiply(checked_multiply(out[0], out[1]),
                                    checked_multiply(channels_read, taps));
        }
        case LayerKind::general: {
            std::vector<std::vector<int64_t>> in;
            for (const TensorId input : layer.inputs) in.push_back(network.tensor(input).dims);
            return general_macs(layer, in, out);
        }
        default:
            return 0;
    }
}

int64_t transposed_taps(int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                        int64_t out) {
    int64_t taps = 0;
    for (int64_t k = 0; k < kernel; ++k) {
        // Output coordinates o with o = k * dilation - pad (mod stride).
        const int64_t first = ((k * dilation - pad_begin) % stride + stride) % stride;
        if (first < out) taps = checked_add(taps, (out - first - 1) / stride + 1);
    }
    return taps;
}

std::vector<int64_t> infer_output_dims(const Layer& layer,
                                       const std::vector<std::vector<int64_t>>& input_dims) {
    if (layer.kind != LayerKind::add && layer.kind != LayerKind::concat &&
        layer.kind != LayerKind::general)
        expect_inputs(layer, input_dims.size(), 1);
    for (const auto& dims : input_dims) {
        if (dims.empty()) fail(layer, "input is a scalar");
    }
    check_extras(layer);
    std::vector<int64_t> out;
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
            out = convolution_dims(layer, input_dims[0]);
            break;
        case LayerKind::gemm:
            out = gemm_dims(layer, input_dims[0]);
            break;
        case LayerKind::max_pool:
        case LayerKind::average_pool:
            out = pooling_dims(layer, input_dims[0]);
            break;
        case LayerKind::global_average_pool:
            expect_rank(layer, input_dims[0], 4);
            out = {input_dims[0][0], input_dims[0][1], 1, 1};
            break;
        case LayerKind::add:
            out = add_dims(layer, input_dims);
            break;
        case LayerKind::concat:
            out = concat_dims(layer, input_dims);
            break;
        case LayerKind::depth_to_space:
            out = depth_to_space_dims(layer, input_dims[0]);
            break;
        case LayerKind::flatten:
            out = flatten_dims(layer, input_dims[0]);
            break;
        case LayerKind::softmax:
            checked_axis(layer, input_dims[0].size(), static_cast<int64_t>(input_dims[0].size()));
            out = input_dims[0];
            break;
        case LayerKind::activation:
            out = input_dims[0];
            break;
        case LayerKind::general:
            try {
                out = general_output_dims(layer, input_dims);
            } catch (const InputError& error) {
                fail(layer, error.what());
            } catch (const std::overflow_error&) {
                fail(layer, "its size overflows 64 bits");
            }
            break;
    }
    try {
        (void)element_count(out);
    } catch (const InputError& error) {
        fail(layer, std::string("output: ") + error.what());
    }
    check_activation(layer, out);
    return out;
}

namespace {

/// The name that messages about the whole network begin with.
std::string place(const Network& network) {
    return network.name.empty() ? "network" : network.name;
}

bool has_tensor(const Network& network, TensorId id) {
    return id >= 0 && static_cast<size_t>(id) < network.tensors.size();
}

/// What check() learns about each tensor, indexed by id.
struct TensorUses {
    explicit TensorUses(size_t tensors) : defined(tensors), used(tensors), written(tensors) {}
    std::vector<bool> defined;  ///< an input, or written by a layer
    std::vector<bool> used;     ///< read by a layer, or an output
    std::vector<bool> written;  ///< by a layer
};

void check_tensors(const Network& network) {
    const std::string where = place(network);
    std::unordered_set<std::string> names;
    for (const Tensor& tensor : network.tensors) {
        if (tensor.name.empty()) throw InputError(where + ": a tensor has no name");
        if (!names.insert(tensor.name).second)
            throw InputError(where + ": two tensors are named \"" + tensor.name + "\"");
        if (tensor.dims.empty())
            throw InputError(where + ": tensor \"" + tensor.name + "\" is a scalar");
        (void)element_count(tensor.dims);
    }
}

void check_inputs(const Network& network, TensorUses& uses) {
    const std::string where = place(network);
    if (network.inputs.empty()) throw InputError(where + ": has no inputs");
    for (const TensorId id : network.inputs) {
        if (!has_tensor(network, id))
            throw InputError(where + ": an input is tensor " + std::to_string(id) +
                             ", which does not exist");
        if (uses.defined[static_cast<size_t>(id)])
            throw InputError(where + ": input \"" + network.tensor(id).name + "\" is listed twice");
        uses.defined[static_cast<size_t>(id)] = true;
    }
}

/// Checks that each layer reads only tensors defined before it and writes a new tensor of the shape
/// that its inputs imply.
void check_layers(const Network& network, TensorUses& uses) {
    const std::string where = place(network);
    std::unordered_set<std::string> names;
    for (const Layer& layer : network.layers) {
        if (!is_identifier(layer.name))
            throw InputError(where + ": layer name \"" + layer.name + "\" is not an identifier");
        if (!names.insert(layer.name).second)
            throw InputError(where + ": two layers are named " + layer.name);
        std::vector<std::vector<int64_t>> dims;
        for (const TensorId id : layer.inputs) {
            if (!has_tensor(network, id) || !uses.defined[static_cast<size_t>(id)]) {
                fail(layer, "reads tensor " + std::to_string(id) + " before any layer writes it");
            }
            uses.used[static_cast<size_t>(id)] = true;
            dims.push_back(network.tensor(id).dims);
        }
        if (!has_tensor(network, layer.output))
            fail(layer, "writes tensor " + std::to_string(layer.output) + ", which does not exist");
        const auto output = static_cast<size_t>(layer.output);
        if (uses.defined[output]) {
            fail(layer,
                 "writes \"" + network.tensor(layer.output).name + "\", which is written already");
        }
        uses.defined[output] = true;
        uses.written[output] = true;
        const auto inferred = infer_output_dims(layer, dims);
        if (inferred != network.tensor(layer.output).dims) {
            fail(layer, "output is " + dims_text(network.tensor(layer.output).dims) +
                            ", expected " + dims_text(inferred));
        }
    }
}

std::unordered_set<TensorId> checked_outputs(const Network& network, TensorUses& uses) {
    const std::string where = place(network);
    if (network.outputs.empty()) throw InputError(where + ": has no outputs");
    std::unordered_set<TensorId> outputs;
    for (const TensorId id : network.outputs) {
        if (!has_tensor(network, id) || !uses.written[static_cast<size_t>(id)])
            throw InputError(where + ": an output is not written by any layer");
        if (!outputs.insert(id).second)
            throw InputError(where + ": output \"" + network.tensor(id).name +
                             "\" is listed twice");
        uses.used[static_cast<size_t>(id)] = true;
    }
    return outputs;
}

/// Refuses tensors that nothing writes or reads, and element types within the network.
void check_uses(const Network& network, const TensorUses& uses,
                const std::unordered_set<TensorId>& outputs) {
    const std::string where = place(network);
    for (size_t id = 0; id < network.tensors.size(); ++id) {
        const Tensor& tensor = network.tensors[id];
        const bool is_end = !uses.written[id] || outputs.contains(static_cast<TensorId>(id));
        if (tensor.type != ElementType::float32 && !is_end) {
            throw InputError(where + ": tensor \"" + tensor.name + "\" is " +
                             to_string(tensor.type) + ", which only inputs and outputs are");
        }
        if (!uses.defined[id])
            throw InputError(where + ": nothing writes tensor \"" + tensor.name + "\"");
        if (!uses.used[id] && uses.written[id]) {
            throw InputError(where + ": nothing reads tensor \"" + tensor.name +
                             "\", and it is no output");
        }
    }
}

}  // namespace

void check(const Network& network) {
    check_tensors(network);
    TensorUses uses(network.tensors.size());
    check_inputs(network, uses);
    check_layers(network, uses);
    check_macs(network, place(network));
    const std::unordered_set<TensorId> outputs = checked_outputs(network, uses);
    check_uses(network, uses, outputs);
}

namespace {

std::string hash_of(const Network& network, bool with_values) {
    // Number tensors by the order in which they are written, so that their ids and names do not
    // count.
    std::vector<int64_t> number(network.tensors.size(), -1);
    int64_t next = 0;
    for (const TensorId id : network.inputs) number.at(static_cast<size_t>(id)) = next++;
    for (const Layer& layer : network.layers) number.at(static_cast<size_t>(layer.output)) = next++;

    Hasher hash(with_values);
    hash.number(static_cast<int64_t>(network.inputs.size()));
    for (const TensorId id : network.inputs) hash.numbers(network.tensor(id).dims);
    hash.number(static_cast<int64_t>(network.layers.size()));
    for (const Layer& layer : network.layers) {
        hash.text(layer.name);
        hash.number(static_cast<int64_t>(layer.kind));
        hash.number(static_cast<int64_t>(layer.inputs.size()));
        for (const TensorId id : layer.inputs) hash.number(number.at(static_cast<size_t>(id)));
        hash.numbers(network.tensor(layer.output).dims);
        hash_attributes(hash, layer);
        hash.constant(layer.weights);
        hash.values(layer.bias);
        hash_activation(hash, layer.activation);
    }
    for (const TensorId id : network.outputs) hash.number(number.at(static_cast<size_t>(id)));
    // No schedule depends on element types. A network of floats keeps the hash found in files
    // written before types existed.
    const auto add_types = [&](const std::vector<TensorId>& ids, int64_t first) {
        for (size_t k = 0; k < ids.size(); ++k) {
            const ElementType type = network.tensor(ids[k]).type;
            if (!with_values || type == ElementType::float32) continue;
            hash.number(first + static_cast<int64_t>(k));
            hash.number(static_cast<int64_t>(type));
        }
    };
    add_types(network.inputs, 0);
    add_types(network.outputs, std::ssize(network.inputs));
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash.state()));
    return digits;
}

}  // namespace

std::string network_hash(const Network& network) { return hash_of(network, true); }

std::string structure_hash(const Network& network) { return hash_of(network, false); }

}  // namespace laminate
