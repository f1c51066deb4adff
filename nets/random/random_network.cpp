#include "nets/random/random_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"

namespace laminate {

namespace {

/// Values -2 to 2, more than half of them zero.
ConstantPtr sparse_integers(std::vector<int64_t> dims, Rng& rng) {
    std::vector<float> values(static_cast<size_t>(element_count(dims)));
    for (float& value : values)
        value = rng.chance(1, 2) ? 0.0f : static_cast<float>(rng.between(-2, 2));
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

Activation clip() { return {.kind = ActivationKind::clip, .low = -3, .high = 6}; }

Activation random_activation(int64_t channels, Rng& rng) {
    Activation activation;
    switch (rng.below(4)) {
        case 0:
            activation.kind = ActivationKind::relu;
            break;
        case 1:
            activation.kind = ActivationKind::prelu;
            activation.slope = sparse_integers({rng.chance(1, 2) ? 1 : channels}, rng);
            break;
        case 2:
            activation = clip();
            break;
        default:
            break;
    }
    return activation;
}

Window random_window(bool transposed, const std::vector<int64_t>& in, Rng& rng) {
    Window w;
    for (size_t axis = 0; axis < 2; ++axis) {
        w.kernel[axis] = rng.between(1, 4);
        w.stride[axis] = rng.chance(1, 2) ? 1 : rng.between(1, 3);
        w.dilation[axis] = rng.chance(3, 4) ? 1 : rng.between(2, 3);
        if (transposed) {  // what is_schedulable accepts
            w.stride[axis] = std::min(w.stride[axis], w.kernel[axis]);
            if (w.stride[axis] > 1) w.dilation[axis] = 1;
        }
        const int64_t span = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
        w.pad_begin[axis] = rng.chance(1, 3) ? 0 : rng.between(0, span - 1);
        w.pad_end[axis] = rng.chance(1, 3) ? 0 : rng.between(0, span - 1);
        const int64_t extent = in[2 + axis];
        if (transposed) {
            w.output_padding[axis] = rng.below(std::max(w.stride[axis], w.dilation[axis]));
            while ((extent - 1) * w.stride[axis] + span + w.output_padding[axis] -
                       w.pad_begin[axis] - w.pad_end[axis] <
                   1) {
                w.pad_begin[axis] /= 2;
                w.pad_end[axis] /= 2;
            }
        } else {
            while (extent + w.pad_begin[axis] + w.pad_end[axis] <
                   (w.kernel[axis] - 1) * w.dilation[axis] + 1) {
                if (w.dilation[axis] > 1)
                    --w.dilation[axis];
                else
                    --w.kernel[axis];
            }
        }
    }
    return w;
}

/// The schedulable windows (is_schedulable): no output that depends on padding alone.
bool every_output_reads_input(const Window& w, bool transposed, const std::vector<int64_t>& in) {
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t span = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
        const int64_t pads = w.pad_begin[axis] + w.pad_end[axis];
        const int64_t extent = in[2 + axis];
        const int64_t out =
            transposed ? (extent - 1) * w.stride[axis] + span + w.output_padding[axis] - pads
                       : (extent + pads - span) / w.stride[axis] + 1;
        for (int64_t o = 0; o < out; ++o) {
            bool reads = false;
            for (int64_t k = 0; k < w.kernel[axis]; ++k) {
                const int64_t scaled =
                    transposed ? o + w.pad_begin[axis] - k * w.dilation[axis]
                               : (o * w.stride[axis] + k * w.dilation[axis] - w.pad_begin[axis]) *
                                     w.stride[axis];
                reads = reads || (scaled >= 0 && scaled % w.stride[axis] == 0 &&
                                  scaled / w.stride[axis] < extent);
            }
            if (!reads) return false;
        }
    }
    return true;
}

/// Bound on the values of a tensor, which keeps sums exact: every value is a multiple of
/// 2^-fraction and at most `units` of these multiples large.
struct Magnitude {
    int64_t units = 0;
    int fraction = 0;

    [[nodiscard]] int64_t at(int finer_fraction) const {
        return units << (finer_fraction - fraction);
    }
};

/// Bounds of every tensor. Sums over 12 channels, 16 taps and weights up to 2, over 256 features,
/// or of two tensors then stay below 2^22, so 32-bit floats hold all partial sums exactly.
constexpr int64_t most_units = 1 << 13;
constexpr int most_fraction = 8;
constexpr int64_t most_channels = 12;
constexpr int64_t most_features = 256;
constexpr int64_t input_bound = 8;

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

int log2_of(int64_t power_of_two) {
    int log = 0;
    while ((int64_t{1} << log) < power_of_two) ++log;
    return log;
}

/// Whether every window of an average that leaves out padding holds a power of two of elements. A
/// window is a product of two axes.
bool averages_powers_of_two(const Window& w, const std::vector<int64_t>& in) {
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t padded = in[2 + axis] + w.pad_begin[axis] + w.pad_end[axis];
        for (int64_t begin = 0; begin + w.kernel[axis] <= padded; begin += w.stride[axis]) {
            const int64_t first = std::max<int64_t>(begin, w.pad_begin[axis]);
            const int64_t last = std::min(begin + w.kernel[axis], w.pad_begin[axis] + in[2 + axis]);
            if (!is_power_of_two(last - first)) return false;
        }
    }
    return true;
}

class GraphWriter {
public:
    GraphWriter(const char* name, uint64_t seed) : rng_(seed ^ 0x6772617068u) {
        network_.name = name + std::to_string(seed);
    }
    virtual ~GraphWriter() = default;

    Network write() {
        const int64_t channels = rng_.between(1, 6);
        const bool dense = rng_.chance(1, 16);
        network_.tensors.push_back(
            {"input",
             dense ? std::vector<int64_t>{1, channels}
                   : std::vector<int64_t>{1, channels, rng_.between(3, 10), rng_.between(3, 10)}});
        network_.inputs = {0};
        magnitudes_.push_back({input_bound, 0});
        is_rounded_.push_back(false);
        left_ = rng_.between(1, 8);
        TensorId newest = 0;
        while (left_ > 0) {
            // A step from an older tensor makes a fork. Tensors that remain unread become outputs.
            const bool goes_back = network_.layers.size() > 1 && rng_.chance(1, 6);
            newest = step(goes_back ? static_cast<TensorId>(rng_.below(newest + 1)) : newest);
        }
        for (TensorId id = 1; id < static_cast<TensorId>(network_.tensors.size()); ++id) {
            const bool is_read = !network_.consumers(id).empty();
            if (!is_read || rng_.chance(1, 20)) network_.outputs.push_back(id);
        }
        check(network_);
        return std::move(network_);
    }

protected:
    [[nodiscard]] const std::vector<int64_t>& dims(TensorId id) const {
        return network_.tensor(id).dims;
    }
    [[nodiscard]] const Magnitude& magnitude(TensorId id) const {
        return magnitudes_[static_cast<size_t>(id)];
    }
    [[nodiscard]] bool is_map(TensorId id) const { return dims(id).size() == 4; }
    /// Whether a tensor has values that are rounded, so that their last digits depend on the code.
    [[nodiscard]] bool is_rounded(TensorId id) const {
        return is_rounded_[static_cast<size_t>(id)];
    }

    virtual TensorId step(TensorId x) {
        if (!is_map(x))
            return rng_.chance(1, 4) && left_ > 2 ? residual(x) : gemm(x, random_channels());
        const auto features = element_count(dims(x));
        switch (rng_.below(20)) {
            case 0:
            case 1:
                if (dims(x)[2] <= 12 && dims(x)[3] <= 12) return conv_transpose(x);
                break;
            case 2:
            case 3:
                return max_pool(x, pooling_window(x, false));
            case 4:
            case 5:
                return average_pool(x, false);
            case 6:
            case 7:
            case 8:
                if (left_ > 1) return residual(x);
                break;
            case 9:
            case 10:
            case 11:
                if (left_ > 2) return branches(x);
                break;
            case 12:
                return simple_step(x);
            case 13:
                if (left_ > 1 && features <= most_features)
                    return gemm(flatten(x), random_channels());
                break;
            case 14:
                if (is_power_of_two(dims(x)[2] * dims(x)[3])) return global_average(x);
                break;
            default:
                break;
        }
        // Draw in separate statements: C++ leaves the order in which arguments are evaluated open.
        const int64_t channels = random_channels();
        return conv(x, any_window(x, false), channels);
    }

    /// Layers without windows.
    TensorId simple_step(TensorId x) {
        if (dims(x)[1] % 4 == 0 && dims(x)[2] <= 12 && dims(x)[3] <= 12) {
            Layer layer = named(LayerKind::depth_to_space, "shuffle", {x});
            layer.block = 2;
            layer.depth_to_space_crd = rng_.chance(1, 2);
            return append(std::move(layer), magnitude(x));
        }
        // An activation that an importer would fold into its producer is not canonical.
        const LayerId before = network_.producer(x);
        const LayerKind kind = before < 0 ? LayerKind::concat : network_.layer(before).kind;
        const bool would_fold = kind == LayerKind::conv || kind == LayerKind::conv_transpose ||
                                kind == LayerKind::gemm || kind == LayerKind::add;
        if (would_fold && network_.layer(before).activation.kind == ActivationKind::none)
            return max_pool(x, pooling_window(x, false));
        // Nor is a sum with a constant per channel, which would be a convolution.
        const bool is_pixel = dims(x)[2] == 1 && dims(x)[3] == 1;
        return is_pixel || rng_.chance(1, 2) ? activation(x) : add_constant(x);
    }

    // ---- layers

    Layer named(LayerKind kind, const char* stem, std::vector<TensorId> inputs) const {
        Layer layer;
        layer.name = stem + std::to_string(network_.layers.size() + 1);
        layer.onnx_name = layer.name;
        layer.kind = kind;
        layer.inputs = std::move(inputs);
        return layer;
    }

    TensorId append(Layer layer, Magnitude magnitude) {
        std::vector<std::vector<int64_t>> input_dims;
        for (const TensorId id : layer.inputs) input_dims.push_back(dims(id));
        layer.output = static_cast<TensorId>(network_.tensors.size());
        network_.tensors.push_back(
            {"t" + std::to_string(layer.output), infer_output_dims(layer, input_dims)});
        is_rounded_.push_back(std::ranges::any_of(
            layer.inputs, [this](TensorId id) { return is_rounded(id); }));
        network_.layers.push_back(std::move(layer));
        magnitudes_.push_back(magnitude);
        --left_;
        return network_.layers.back().output;
    }

    /// Appends the layer with a random activation; `m` bounds the values before it.
    TensorId append_activated(Layer layer, int64_t channels, Magnitude m) {
        layer.activation = random_activation(channels, rng_);
        if (layer.activation.kind == ActivationKind::none && rng_.chance(1, 4) &&
            m.fraction + 2 <= most_fraction) {
            layer.activation = {.kind = ActivationKind::leaky_relu, .alpha = 0.25f};
        }
        keep_exact(layer, m);
        return append(std::move(layer), m);
    }

    /// Bound on the values after the activation, which is replaced if they would be too large.
    static void keep_exact(Layer& layer, Magnitude& m) {
        if (layer.activation.kind == ActivationKind::leaky_relu) m = {m.units * 4, m.fraction + 2};
        if (layer.activation.kind == ActivationKind::prelu) m.units *= 2;
        if (m.units > most_units) layer.activation = clip();
        if (layer.activation.kind == ActivationKind::clip)
            m.units = std::min(m.units, int64_t{6} << m.fraction);
    }

    /// For a layer with weights: the largest sum over one output channel of the magnitudes of its
    /// weights and bias.
    Magnitude weighted(const Layer& layer, int64_t out_channels) const {
        const Magnitude in = magnitude(layer.inputs[0]);
        const std::vector<float>& weights = layer.weights->values;
        const size_t channels = static_cast<size_t>(out_channels);
        // Transposed weights are not ordered by output channel; the sum over all of them is an
        // upper bound.
        const size_t per_channel =
            layer.kind == LayerKind::conv_transpose ? weights.size() : weights.size() / channels;
        int64_t most = 0;
        for (size_t begin = 0; begin < weights.size(); begin += per_channel) {
            int64_t sum = 0;
            for (size_t n = 0; n < per_channel; ++n)
                sum += std::abs(static_cast<int64_t>(weights[begin + n]));
            most = std::max(most, sum);
        }
        return {most * in.units + (int64_t{2} << in.fraction), in.fraction};
    }

    TensorId conv(TensorId x, const Window& window, int64_t out_channels) {
        Layer layer = named(LayerKind::conv, "conv", {x});
        layer.window = window;
        const int64_t in = dims(x)[1];
        if (out_channels % in == 0 && rng_.chance(1, 3)) {
            layer.groups = in;  // depthwise
        } else {
            for (int64_t g = 2; g < in; ++g) {
                if (in % g == 0 && out_channels % g == 0 && rng_.chance(1, 2)) layer.groups = g;
            }
        }
        layer.weights = sparse_integers(
            {out_channels, in / layer.groups, window.kernel[0], window.kernel[1]}, rng_);
        if (rng_.chance(1, 2)) layer.bias = sparse_integers({out_channels}, rng_);
        const Magnitude m = weighted(layer, out_channels);
        return append_activated(std::move(layer), out_channels, m);
    }

    TensorId conv_transpose(TensorId x) {
        Layer layer = named(LayerKind::conv_transpose, "deconv", {x});
        layer.window = any_window(x, true);
        const int64_t in = dims(x)[1];
        if (rng_.chance(1, 3)) layer.groups = in;
        const int64_t per_group = layer.groups > 1 ? 1 : random_channels();
        layer.weights =
            sparse_integers({in, per_group, layer.window.kernel[0], layer.window.kernel[1]}, rng_);
        if (rng_.chance(1, 2)) layer.bias = sparse_integers({per_group * layer.groups}, rng_);
        const Magnitude m = weighted(layer, per_group * layer.groups);
        return append_activated(std::move(layer), per_group * layer.groups, m);
    }

    TensorId gemm(TensorId x, int64_t out) {
        Layer layer = named(LayerKind::gemm, "dense", {x});
        layer.weights = sparse_integers({out, dims(x)[1]}, rng_);
        if (rng_.chance(1, 2)) layer.bias = sparse_integers({out}, rng_);
        const Magnitude m = weighted(layer, out);
        return append_activated(std::move(layer), out, m);
    }

    TensorId max_pool(TensorId x, const Window& window) {
        Layer layer = named(LayerKind::max_pool, "pool", {x});
        layer.window = window;
        return append(std::move(layer), magnitude(x));
    }

    /// `same_size` asks for stride 1 and the input's extents. Takes a maximum where an average
    /// would need too many bits.
    TensorId average_pool(TensorId x, bool same_size) {
        Layer layer = named(LayerKind::average_pool, "average", {x});
        do {
            layer.window = same_size ? same(x, 1) : pooling_window(x, true);
            layer.window.dilation = {1, 1};
            if (same_size) shrink_to_input_size(layer.window);
            // Without padding the attribute has no effect, and an importer drops it.
            const Window& w = layer.window;
            const bool padded =
                w.pad_begin != w.pad_end || w.pad_begin != std::array<int64_t, 2>{0, 0};
            layer.count_include_pad = padded && rng_.chance(1, 2);
        } while (!is_power_of_two(layer.window.kernel[0]) ||
                 !is_power_of_two(layer.window.kernel[1]) ||
                 (!layer.count_include_pad && !averages_powers_of_two(layer.window, dims(x))));
        const int bits = log2_of(layer.window.kernel[0] * layer.window.kernel[1]);
        const Magnitude m{magnitude(x).units << bits, magnitude(x).fraction + bits};
        if (!is_exact(m)) return max_pool(x, layer.window);
        return append(std::move(layer), m);
    }

    TensorId global_average(TensorId x) {
        const int bits = log2_of(dims(x)[2] * dims(x)[3]);
        const Magnitude m{magnitude(x).units << bits, magnitude(x).fraction + bits};
        if (!is_exact(m)) return max_pool(x, pooling_window(x, false));
        return append(named(LayerKind::global_average_pool, "mean", {x}), m);
    }

    TensorId flatten(TensorId x) {
        return append(named(LayerKind::flatten, "flatten", {x}), magnitude(x));
    }

    TensorId activation(TensorId x) {
        Layer layer = named(LayerKind::activation, "act", {x});
        do layer.activation = random_activation(dims(x)[1], rng_);
        while (layer.activation.kind == ActivationKind::none);
        Magnitude m = magnitude(x);
        keep_exact(layer, m);
        return append(std::move(layer), m);
    }

    TensorId add_constant(TensorId x) {
        Layer layer = named(LayerKind::add, "shift", {x});
        const std::vector<int64_t>& d = dims(x);
        layer.weights = sparse_integers({d[1], d[2], d[3]}, rng_);
        const Magnitude m = magnitude(x);
        return append_activated(std::move(layer), d[1],
                                {m.units + (int64_t{2} << m.fraction), m.fraction});
    }

    /// x + f(x), where f is one or two layers and the shortcut is x itself or a 1x1 convolution
    /// with the same stride.
    TensorId residual(TensorId x) {
        TensorId a = x;
        TensorId b = x;
        if (!is_map(x)) {
            b = gemm(x, random_channels());
            a = dims(b) == dims(x) ? x : gemm(x, dims(b)[1]);
        } else if (left_ > 2 && rng_.chance(1, 2)) {
            const int64_t stride = rng_.between(1, 3);
            const int64_t channels = random_channels();
            b = conv(b, same(b, stride), channels);
            if (left_ > 2 && rng_.chance(1, 2)) b = conv(b, same(b, 1), channels);
            Window window;
            window.stride = {stride, stride};
            a = conv(x, window, channels);
        } else {
            if (left_ > 2 && rng_.chance(1, 3)) b = activation(b);
            if (left_ > 2 && rng_.chance(1, 2)) {
                const int64_t channels = random_channels();
                b = conv(b, same(b, 1), channels);
            }
            b = conv(b, same(b, 1), dims(x)[1]);
        }
        const int fraction = std::max(magnitude(a).fraction, magnitude(b).fraction);
        const Magnitude m{magnitude(a).at(fraction) + magnitude(b).at(fraction), fraction};
        return append_activated(named(LayerKind::add, "add", {a, b}), dims(a)[1], m);
    }

    /// Concatenates two or three branches along the channels; each is one layer or the tensor
    /// itself. If that would be inexact, the branches stay apart and become outputs or are read
    /// later.
    TensorId branches(TensorId x) {
        const int64_t count = left_ > 3 ? rng_.between(2, 3) : 2;
        std::vector<TensorId> parts;
        for (int64_t n = 0; n < count; ++n) {
            const bool narrow = dims(x)[1] * count <= most_channels;
            const int64_t kind = narrow ? rng_.below(6) : 0;
            if (kind == 1 && n == 0) {
                parts.push_back(x);
            } else if (kind == 2) {
                Window window = same(x, 1);
                shrink_to_input_size(window);
                parts.push_back(max_pool(x, window));
            } else if (kind == 3) {
                parts.push_back(average_pool(x, true));
            } else {
                const int64_t channels = rng_.between(1, most_channels / count);
                parts.push_back(conv(x, same(x, 1), channels));
            }
        }
        Magnitude m;
        for (const TensorId id : parts) m.fraction = std::max(m.fraction, magnitude(id).fraction);
        for (const TensorId id : parts) m.units = std::max(m.units, magnitude(id).at(m.fraction));
        if (!is_exact(m)) return parts.back();
        return append(named(LayerKind::concat, "concat", std::move(parts)), m);
    }

    // ---- windows

    static bool is_exact(const Magnitude& m) {
        return m.units <= most_units && m.fraction <= most_fraction;
    }

    int64_t random_channels() { return rng_.between(1, 6); }

    /// Output padding below the stride, as onnxruntime requires.
    Window any_window(TensorId x, bool transposed) {
        Window w;
        do w = random_window(transposed, dims(x), rng_);
        while (!every_output_reads_input(w, transposed, dims(x)) ||
               w.output_padding[0] >= w.stride[0] || w.output_padding[1] >= w.stride[1]);
        return w;
    }

    /// Padding below the kernel, as onnxruntime requires; no dilation for averages.
    Window pooling_window(TensorId x, bool average) {
        Window w;
        bool fits = false;
        while (!fits) {
            w = any_window(x, false);
            if (average) w.dilation = {1, 1};
            fits = every_output_reads_input(w, false, dims(x));
            for (size_t axis = 0; axis < 2; ++axis) {
                fits =
                    fits && w.pad_begin[axis] < w.kernel[axis] && w.pad_end[axis] < w.kernel[axis];
                fits = fits && (w.dilation[axis] <= dims(x)[2 + axis] ||
                                w.pad_begin[axis] + w.pad_end[axis] == 0);
            }
        }
        return w;
    }

    /// Output extents ceil(in / stride), with the padding split at random between the two ends.
    Window same(TensorId x, int64_t stride) {
        Window w;
        do {
            for (size_t axis = 0; axis < 2; ++axis) {
                w.kernel[axis] = rng_.between(1, 4);
                w.stride[axis] = stride;
                w.dilation[axis] = rng_.chance(3, 4) ? 1 : 2;
                const int64_t reach = (w.kernel[axis] - 1) * w.dilation[axis];
                w.pad_begin[axis] = rng_.between(0, reach);
                w.pad_end[axis] = reach - w.pad_begin[axis];
            }
        } while (!every_output_reads_input(w, false, dims(x)));
        return w;
    }

    /// Padding for an undilated window of stride 1 that leaves the extents as they are.
    static void shrink_to_input_size(Window& w) {
        for (size_t axis = 0; axis < 2; ++axis) {
            w.dilation[axis] = 1;
            w.pad_begin[axis] = std::min(w.pad_begin[axis], w.kernel[axis] - 1);
            w.pad_end[axis] = w.kernel[axis] - 1 - w.pad_begin[axis];
        }
    }

    Rng rng_;
    Network network_;
    std::vector<Magnitude> magnitudes_;
    std::vector<bool> is_rounded_;
    int64_t left_ =
        0;  ///< layers that may still come; a residual or a concatenation may go one beyond
};

/// Draws functions of one value as well.
class FunctionWriter : public GraphWriter {
protected:
    using GraphWriter::GraphWriter;

    static Activation unary(GeneralFunction function, float alpha = 0, float beta = 0) {
        return {
            .kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta};
    }

    /// Applies it to x: in the convolution that makes x, where an importer would fold it, or apart.
    TensorId applied(const Activation& activation, TensorId x, Magnitude m) {
        Layer& before = network_.layers.back();
        if (before.output == x && before.kind == LayerKind::conv &&
            before.activation.kind == ActivationKind::none) {
            before.activation = activation;
            magnitudes_.back() = m;
            return x;
        }
        Layer layer = named(LayerKind::activation, "function", {x});
        layer.activation = activation;
        return append(std::move(layer), m);
    }

    /// A convolution of x clipped to whole numbers.
    TensorId clipped(TensorId x, int64_t channels, float low, float high) {
        x = conv(x, same(x, 1), channels);
        network_.layers.back().activation = {
            .kind = ActivationKind::clip, .low = low, .high = high};
        magnitudes_.back() = {static_cast<int64_t>(std::max(std::abs(low), std::abs(high))), 0};
        return x;
    }

    /// A function whose values are exact, if its arguments are.
    TensorId exact_function(TensorId x) {
        using enum GeneralFunction;
        if (is_rounded(x)) return conv(x, same(x, 1), random_channels());
        x = conv(x, same(x, 1), dims(x)[1]);
        const Magnitude m = magnitude(x), cube{m.units * m.units * m.units, 3 * m.fraction},
                        slope{int64_t{4} << m.fraction, m.fraction + 2};
        const Magnitude whole{(m.units >> m.fraction) + 1, 0};
        switch (rng_.below(9)) {
            case 0:
                return applied(unary(rng_.chance(1, 2) ? absolute : negative), x, m);
            case 1:
                return applied(unary(rng_.chance(1, 2) ? GeneralFunction::floor : round_to_even), x,
                               whole);
            case 2:
                return applied(unary(rng_.chance(1, 2) ? GeneralFunction::ceil : sign), x, whole);
            case 3:
                return applied(unary(thresholded_relu, 1), x, m);
            case 4:
                return applied(unary(shrink, 1, 1), x, m);
            case 5:
                if (is_exact(slope)) return applied(unary(hard_sigmoid, 0.25F, 0.5F), x, slope);
                break;
            case 6:
                if (is_exact(cube)) return applied(unary(power, 3), x, cube);
                break;
            case 7:
                if (m.fraction == 0) {
                    const bool squares = rng_.chance(1, 2);
                    x = clipped(x, dims(x)[1], 1, 2);
                    return applied(squares ? unary(power, -2) : unary(reciprocal), x, {4, 2});
                }
                break;
            default:
                break;
        }
        const Magnitude square{m.units * m.units, 2 * m.fraction};
        if (!is_exact(square)) return applied(unary(absolute), x, m);
        x = applied(unary(power, 2), x, square);
        return rng_.chance(1, 2) ? x : applied(unary(square_root), x, m);
    }

    /// A function with rounded values, of few whole numbers.
    TensorId rounding_function(TensorId x) {
        using enum GeneralFunction;
        if (magnitude(x).fraction > 0 || is_rounded(x)) return conv(x, same(x, 1), random_channels());
        static const std::vector<Activation> of_all{
            {.kind = ActivationKind::sigmoid}, {.kind = ActivationKind::tanh},
            unary(exponential), unary(error_function), unary(softplus), unary(softsign), unary(mish),
            unary(swish, 1), unary(gelu), unary(gelu_tanh), unary(elu, 1), unary(celu, 1),
            unary(selu, 1.6732632F, 1.050701F), unary(hard_swish)};
        static const std::vector<Activation> of_positive{
            unary(logarithm), unary(square_root), unary(power, 2.2F), unary(power, -0.5F)};
        const bool is_positive = rng_.chance(1, 3);
        const std::vector<Activation>& all = is_positive ? of_positive : of_all;
        const Activation& f = all[static_cast<size_t>(rng_.below(std::ssize(all)))];
        const int low = is_positive ? 1 : -2;
        x = clipped(x, dims(x)[1], static_cast<float>(low), 2);
        x = applied(f, x, {8, 0});
        is_rounded_.back() = true;
        std::vector<float> values;
        for (int argument = low; argument <= 2; ++argument)
            values.push_back(apply_activation(f, static_cast<float>(argument), 0));
        return made_whole(x, values);
    }

    /// x itself, or some times x rounded to whole numbers: so many times that none of its values, which
    /// are few, is near the middle between two.
    TensorId made_whole(TensorId x, const std::vector<float>& values) {
        constexpr float least_distance = 1.0F / 128;
        for (int64_t times = 12; times > 1 && rng_.chance(9, 10); --times) {
            const auto is_apart = [&](float value) {
                const float scaled = value * static_cast<float>(times);
                return std::abs(scaled - std::floor(scaled) - 0.5F) > least_distance;
            };
            if (!std::ranges::all_of(values, is_apart)) continue;
            x = scaled(x, static_cast<float>(times));
            network_.layers.back().activation = unary(GeneralFunction::round_to_even);
            is_rounded_.back() = false;
            return x;
        }
        return x;
    }

    /// x times a number.
    TensorId scaled(TensorId x, float factor) {
        Layer layer = named(LayerKind::conv, "scaled", {x});
        layer.groups = dims(x)[1];
        layer.weights = std::make_shared<const Constant>(
            Constant{{layer.groups, 1, 1, 1},
                     std::vector<float>(static_cast<size_t>(layer.groups), factor)});
        const Magnitude m = magnitude(x);
        return append(std::move(layer), {m.units * static_cast<int64_t>(factor), m.fraction});
    }
};

class PictureWriter final : public FunctionWriter {
public:
    explicit PictureWriter(uint64_t seed) : FunctionWriter("picture", seed) {}

protected:
    TensorId step(TensorId x) override {
        return is_map(x) && left_ > 1 && rng_.chance(1, 2) ? picture_step(x) : GraphWriter::step(x);
    }

private:
    /// What networks for pictures have between and behind convolutions.
    TensorId picture_step(TensorId x) {
        switch (rng_.below(20)) {
            case 19:
                return look(x);
            case 13:
                return exact_function(x);
            case 14:
            case 15:
                return rounding_function(x);
            case 16:
                return of_two(rng_.chance(1, 2) ? GeneralFunction::minimum
                                                : GeneralFunction::maximum,
                              x);
            case 17:
                return repeat_channels(x);
            case 18:
                return stack(x);
            case 0:
                return shuffle(x);
            case 11:
                return blocks(x);
            case 12:
                return rng_.chance(1, 3) ? raise(x) : divide(x);
            case 9:
                return normalise(x);
            case 1:
                return of_two(rng_.chance(1, 4) ? GeneralFunction::prelu : GeneralFunction::multiply,
                              x);
            case 2:
                return of_two(GeneralFunction::subtract, x);
            case 3:
                return part(x);
            case 4:
                return gate(x);
            case 5:
                return pad(x);
            case 6:
                return interpolate(x);
            case 7:
                return excite(x);
            case 8:
                return attend(x);
            default:
                return enlarge(x);
        }
    }

    TensorId append_general(const char* stem, std::vector<TensorId> inputs, GeneralOperator op,
                            Magnitude m) {
        Layer layer = named(LayerKind::general, stem, std::move(inputs));
        layer.general = std::move(op);
        return append(std::move(layer), m);
    }

    /// Some of the channels, and more seldom of the rows and columns.
    TensorId part(TensorId x) {
        std::array<int64_t, 3> first{}, extent{};
        for (size_t d = 0; d < first.size(); ++d) {
            const int64_t all = dims(x)[1 + d];
            const bool is_whole = d > 0 && rng_.chance(2, 3);
            first[d] = is_whole ? 0 : rng_.below(all);
            extent[d] = is_whole ? all : rng_.between(1, all - first[d]);
        }
        if (std::equal(extent.begin(), extent.end(), dims(x).begin() + 1)) return shuffle(x);
        return append_general("part", {x}, part_of(dims(x), first, extent), magnitude(x));
    }

    /// The product of the two halves of a convolution's output.
    TensorId gate(TensorId x) {
        const int64_t half = rng_.between(1, most_channels / 2);
        x = conv(x, same(x, 1), 2 * half);
        const std::array<int64_t, 3> extent{half, dims(x)[2], dims(x)[3]};
        std::array<TensorId, 2> halves{};
        for (const int64_t n : {0, 1})
            halves[static_cast<size_t>(n)] = append_general(
                "half", {x}, part_of(dims(x), {n * half, 0, 0}, extent), magnitude(x));
        return product_or(GeneralFunction::multiply, halves[0], halves[1]);
    }

    TensorId pad(TensorId x) {
        if (dims(x)[2] > 16 || dims(x)[3] > 16) return max_pool(x, pooling_window(x, false));
        Padding padding;
        constexpr std::array modes{Padding::Mode::constant, Padding::Mode::edge,
                                   Padding::Mode::reflect};
        padding.mode = modes[static_cast<size_t>(rng_.below(std::ssize(modes)))];
        if (padding.mode == Padding::Mode::constant)
            padding.value = rng_.chance(1, 2) ? 1.0F : -2.0F;  // zeros may fold into a convolution
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t most = padding.mode == Padding::Mode::reflect
                                     ? std::min<int64_t>(3, dims(x)[2 + axis] - 1)
                                     : 3;
            padding.begin[axis] = rng_.between(0, most);
            padding.end[axis] = rng_.between(0, most);
        }
        if (padding.begin == padding.end && padding.begin == std::array<int64_t, 2>{})
            return shuffle(x);
        const Magnitude& m = magnitude(x);
        return append_general("pad", {x}, padded(dims(x), padding),
                              {std::max(m.units, int64_t{2} << m.fraction), m.fraction});
    }

    /// Between the elements of x, or half as many.
    TensorId interpolate(TensorId x) {
        std::array<int64_t, 2> extent{};
        Magnitude m = magnitude(x);
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t in = dims(x)[2 + axis];
            const int64_t kind = rng_.below(4);
            const bool halves = kind == 3 && in % 2 == 0;
            extent[axis] = halves ? in / 2 : kind == 2 ? 4 * in : kind == 1 ? 2 * in : in;
            // The factors are halves, quarters or eighths.
            const int bits = extent[axis] == in ? 0 : halves ? 1 : kind == 2 ? 3 : 2;
            m = {m.units << bits, m.fraction + bits};
        }
        const bool stays = extent[0] == dims(x)[2] && extent[1] == dims(x)[3];
        if (stays || !is_exact(m) || extent[0] > 32 || extent[1] > 32) return shuffle(x);
        return append_general("resize", {x}, interpolated(dims(x), extent), m);
    }

    /// x with a factor or summand per channel that the network computes: squeeze and excitation.
    TensorId excite(TensorId x) {
        Window whole;
        whole.kernel = {dims(x)[2], dims(x)[3]};
        TensorId factor = max_pool(x, whole);
        factor = conv(factor, Window{}, rng_.chance(1, 8) ? 1 : dims(x)[1]);
        return product_or(function_of_two(), x, factor);
    }

    /// x with a factor or summand per position.
    TensorId attend(TensorId x) {
        const TensorId factor = conv(x, same(x, 1), 1);
        return product_or(function_of_two(), rng_.chance(1, 2) ? x : conv(x, same(x, 1), dims(x)[1]),
                          factor);
    }

    /// The largest or smallest channel of each pixel, alone or as attention to places has it: beside
    /// the sum of all, whose convolution is a factor.
    TensorId look(TensorId x) {
        Layer layer = named(LayerKind::general, "extreme", {x});
        layer.general = {.kind = GeneralKind::reduce,
                         .function = rng_.chance(2, 3) ? GeneralFunction::largest
                                                       : GeneralFunction::smallest,
                         .axes = {1}};
        const TensorId extreme = append(std::move(layer), magnitude(x));
        if (rng_.chance(1, 2)) return extreme;
        const TensorId sum = conv(x, same(x, 1), 1);
        const Magnitude &a = magnitude(sum), &b = magnitude(extreme);
        const int finer = std::max(a.fraction, b.fraction);
        const Magnitude m{std::max(a.at(finer), b.at(finer)), finer};
        if (!is_exact(m)) return extreme;
        const TensorId both = append(named(LayerKind::concat, "looked", {sum, extreme}), m);
        const GeneralFunction function = function_of_two();
        const TensorId factor = conv(both, same(both, 1), 1);
        return product_or(function, x, factor);
    }

    /// SpaceToDepth or a channel shuffle.
    TensorId blocks(TensorId x) {
        const int64_t block = rng_.between(1, 2), area = block * block;
        if (dims(x)[2] % block != 0 || dims(x)[3] % block != 0) return shuffle(x);
        const int64_t channels = rng_.between(block == 1 ? 2 : 1, most_channels / area);
        if (channels != dims(x)[1]) x = conv(x, same(x, 1), channels);
        int64_t by = block == 1 ? rng_.between(1, channels) : rng_.chance(1, 2) ? channels : 1;
        while (channels % by != 0) --by;
        // A shuffle by one or by all leaves every channel where it is.
        if (block == 1 && (by == 1 || by == channels)) return x;
        return shuffled(x, block, by);
    }
    TensorId shuffled(TensorId x, int64_t block, int64_t by) {
        x = append_general("blocks", {x}, blocks_of(block, by), magnitude(x));
        // An importer that reads the network would make them part of a convolution.
        Layer apart = named(LayerKind::activation, "apart", {x});
        apart.activation.kind = ActivationKind::relu;
        return append(std::move(apart), magnitude(x));
    }

    /// x divided by ones and twos, which leaves it exact.
    TensorId divide(TensorId x) {
        const Magnitude m{2 * magnitude(x).units, magnitude(x).fraction + 1};
        if (magnitude(x).fraction > 0 || !is_exact(m)) return shuffle(x);
        const TensorId divisor = clipped(x, rng_.chance(1, 4) ? 1 : dims(x)[1], 1, 2);
        return append_general(
            "quotient", {x, divisor},
            {.kind = GeneralKind::binary, .function = GeneralFunction::divide}, m);
    }

    /// Raises whole numbers from 1 to 3 to powers from -1 to 2.
    TensorId raise(TensorId x) {
        if (magnitude(x).fraction > 0 || is_rounded(x)) return shuffle(x);
        const bool is_plane = rng_.chance(1, 4), is_pixel = rng_.chance(1, 4);
        const TensorId base = clipped(x, dims(x)[1], 1, 3);
        TensorId exponent = clipped(x, is_plane ? 1 : dims(x)[1], -1, 2);
        if (is_pixel) {
            Window whole;
            whole.kernel = {dims(exponent)[2], dims(exponent)[3]};
            exponent = max_pool(exponent, whole);
        }
        const TensorId y = append_general(
            "power", {base, exponent},
            {.kind = GeneralKind::binary, .function = GeneralFunction::power}, {9, 0});
        is_rounded_.back() = true;
        return made_whole(y, {1.0F / 3, 0.5F, 1, 2, 3, 4, 9});
    }

    GeneralFunction function_of_two() {
        using enum GeneralFunction;
        constexpr std::array all{multiply, prelu, subtract, add, minimum, maximum};
        return all[static_cast<size_t>(rng_.below(std::ssize(all)))];
    }

    /// All channels two or three times, one after the other: what a Concat of one map or a Tile becomes.
    TensorId repeat_channels(TensorId x) {
        const int64_t channels = dims(x)[1], most = most_channels / channels;
        if (channels == 1 || most < 2) return shuffle(x);
        Layer copies = named(LayerKind::conv, "copies", {x});
        copies.groups = channels;
        const int64_t outputs = channels * rng_.between(2, std::min<int64_t>(most, 3));
        copies.weights = std::make_shared<const Constant>(
            Constant{{outputs, 1, 1, 1}, std::vector<float>(static_cast<size_t>(outputs), 1.0F)});
        return shuffled(append(std::move(copies), magnitude(x)), 1, channels);
    }

    /// Two maps, one below or beside the other: what a Concat of rows or columns becomes.
    TensorId stack(TensorId x) {
        const size_t axis = rng_.chance(1, 2) ? 0 : 1;
        if (dims(x)[2 + axis] > 8) return shuffle(x);
        std::array<TensorId, 2> parts{};
        for (TensorId& part : parts) part = conv(x, same(x, 1), dims(x)[1]);
        for (const size_t k : {size_t{0}, size_t{1}}) {
            Padding padding;
            (k == 0 ? padding.end : padding.begin)[axis] = dims(x)[2 + axis];
            parts[k] = append_general("place", {parts[k]}, padded(dims(parts[k]), padding),
                                      magnitude(parts[k]));
        }
        const Magnitude &a = magnitude(parts[0]), &b = magnitude(parts[1]);
        const int finer = std::max(a.fraction, b.fraction);
        const Magnitude m{std::max(a.at(finer), b.at(finer)), finer};
        if (!is_exact(m)) return parts[0];
        return append(named(LayerKind::add, "stacked", {parts[0], parts[1]}), m);
    }

    /// Softmax, its logarithm or a standardisation over the channels of few whole numbers.
    TensorId normalise(TensorId x) {
        if (magnitude(x).fraction > 0 || is_rounded(x)) return shuffle(x);
        const bool is_softmax = rng_.chance(1, 3), is_clipped = rng_.chance(1, 3);
        const bool is_log = is_softmax && rng_.chance(1, 2);
        const int64_t channels = is_softmax && is_clipped ? random_channels()
                                 : is_softmax             ? rng_.between(2, 3)
                                                          : int64_t{2} << rng_.below(2);
        x = clipped(x, channels, -2, 2);
        // Numbers that differ do so by 8 at least, and e^-8 is below 2^-6.
        if (is_softmax && is_clipped) x = scaled(x, 8);
        Layer layer = named(is_softmax && !is_log ? LayerKind::softmax : LayerKind::general,
                            is_softmax ? "softmax" : "norm", {x});
        if (layer.kind == LayerKind::general) {
            layer.general = {.kind = GeneralKind::normalise,
                             .function = is_log              ? GeneralFunction::log_softmax
                                         : rng_.chance(1, 3) ? GeneralFunction::root_mean_square
                                                             : GeneralFunction::standardise,
                             .axes = {1},
                             .alpha = is_log ? 0 : 1.0F / 1024};
        }
        const std::vector<float> values =
            is_clipped ? std::vector<float>{} : values_of(layer, channels);
        x = append(std::move(layer), {2, 0});
        is_rounded_.back() = true;
        if (!is_clipped) return made_whole(x, values);
        // So that two or three values are left, which are exact. A mean of up to 4 numbers is a
        // multiple of 1/4, which a deviation of 2 at most divides. Of up to 6 channels that are
        // equal each has 1/6 at least. Logarithms are no less than log(1/6) of the largest
        // channels, and below -8 of the others.
        Layer few = named(LayerKind::activation, "few", {x});
        few.activation = {.kind = ActivationKind::clip,
                          .low = is_log       ? -6
                                 : is_softmax ? 1.0F / 64
                                              : -1.0F / 16,
                          .high = is_log ? -4 : 1.0F / 16};
        x = append(std::move(few), is_log ? Magnitude{6, 0} : Magnitude{4, 6});
        is_rounded_.back() = false;
        return x;
    }
    /// All that a normalisation makes of so many numbers between -2 and 2.
    static std::vector<float> values_of(const Layer& layer, int64_t channels) {
        int64_t pixels = 1;
        for (int64_t c = 0; c < channels; ++c) pixels *= 5;
        const std::vector<int64_t> all{1, channels, 1, pixels};
        std::vector<float> arguments, values(static_cast<size_t>(channels * pixels));
        for (int64_t c = 0, step = 1; c < channels; ++c, step *= 5) {
            for (int64_t pixel = 0; pixel < pixels; ++pixel)
                arguments.push_back(static_cast<float>(pixel / step % 5 - 2));
        }
        run_reference_layer(layer, {all}, {arguments.data()}, all, values.data(), 1);
        return values;
    }
    /// Every row and column repeated.
    TensorId enlarge(TensorId x) {
        if (dims(x)[2] > 12 || dims(x)[3] > 12) return max_pool(x, pooling_window(x, false));
        const int64_t rows = rng_.between(1, 3), columns = rng_.between(rows == 1 ? 2 : 1, 3);
        return append_general("enlarge", {x}, repeated(dims(x), {rows, columns}), magnitude(x));
    }

    /// DepthToSpace, behind a convolution that makes as many channels as it needs.
    TensorId shuffle(TensorId x) {
        if (dims(x)[2] > 12 || dims(x)[3] > 12) return max_pool(x, pooling_window(x, false));
        const int64_t block = rng_.between(1, 3), area = block * block;
        if (dims(x)[1] % area != 0 || rng_.chance(1, 2)) {
            const int64_t channels = area * rng_.between(1, most_channels / area);
            x = conv(x, same(x, 1), std::min(channels, most_channels));
        }
        Layer layer = named(LayerKind::depth_to_space, "shuffle", {x});
        layer.block = block;
        layer.depth_to_space_crd = rng_.chance(1, 2);
        return append(std::move(layer), magnitude(x));
    }

    /// A product or difference of x or a convolution of it and another one.
    TensorId of_two(GeneralFunction function, TensorId x) {
        const int64_t channels = dims(x)[1];
        const TensorId a = rng_.chance(1, 2) ? x : conv(x, same(x, 1), channels);
        return product_or(function, a, conv(x, same(x, 1), channels));
    }

    /// Of two maps, in either order; the second one alone where the result would be inexact.
    TensorId product_or(GeneralFunction function, TensorId a, TensorId b) {
        const Magnitude &of_a = magnitude(a), &of_b = magnitude(b);
        const int finer = std::max(of_a.fraction, of_b.fraction);
        const bool is_one = function == GeneralFunction::minimum ||
                            function == GeneralFunction::maximum;
        const int both = of_a.fraction + of_b.fraction;
        const Magnitude m =
            function == GeneralFunction::multiply ? Magnitude{of_a.units * of_b.units, both}
            : function == GeneralFunction::prelu  // in either order
                ? Magnitude{std::max({of_a.units * of_b.units, of_a.at(both), of_b.at(both)}), both}
            : is_one ? Magnitude{std::max(of_a.at(finer), of_b.at(finer)), finer}
                     : Magnitude{of_a.at(finer) + of_b.at(finer), finer};
        if (!is_exact(m)) return b;
        // ONNX has no slopes that are larger than the map.
        const bool is_fixed = function == GeneralFunction::prelu && dims(a) != dims(b);
        if (!is_fixed && rng_.chance(1, 2)) std::swap(a, b);
        if (function == GeneralFunction::add && dims(a) == dims(b))
            return append(named(LayerKind::add, "sum", {a, b}), m);
        return append_general("both", {a, b}, {.kind = GeneralKind::binary, .function = function},
                              m);
    }
};

}  // namespace

Network random_network(uint64_t seed) { return GraphWriter("random", seed).write(); }

Network random_picture_network(uint64_t seed) { return PictureWriter(seed).write(); }

Network random_chain(uint64_t seed) {
    Rng rng(seed ^ 0x6e6574776f726bu);
    Network network;
    network.name = "random" + std::to_string(seed);
    const bool dense = rng.chance(1, 12);
    const int64_t channels = rng.between(1, 6);
    network.tensors.push_back(
        {"input", dense ? std::vector<int64_t>{1, channels}
                        : std::vector<int64_t>{1, channels, rng.between(2, 9), rng.between(2, 9)}});
    network.inputs = {0};
    const int64_t count = rng.chance(1, 4) ? 1 : rng.between(2, 4);
    for (int64_t n = 0; n < count; ++n) {
        const std::vector<int64_t> in = network.tensors.back().dims;
        Layer layer;
        layer.name = "conv" + std::to_string(n + 1);
        layer.inputs = {static_cast<TensorId>(network.tensors.size()) - 1};
        layer.output = static_cast<TensorId>(network.tensors.size());
        int64_t out_channels = rng.between(1, 6);
        if (dense) {
            layer.name = "dense" + std::to_string(n + 1);
            layer.kind = LayerKind::gemm;
            layer.weights = sparse_integers({out_channels, in[1]}, rng);
        } else {
            const bool large = in[2] > 14 || in[3] > 14;
            layer.kind = !large && rng.chance(1, 4) ? LayerKind::conv_transpose : LayerKind::conv;
            const bool transposed = layer.kind == LayerKind::conv_transpose;
            do layer.window = random_window(transposed, in, rng);
            while (!every_output_reads_input(layer.window, transposed, in));
            if (rng.chance(1, 4)) {
                layer.groups = in[1];  // depthwise
            } else if (rng.chance(1, 3)) {
                for (int64_t g = 2; g < in[1]; ++g) {
                    if (in[1] % g == 0) layer.groups = g;
                }
            }
            out_channels = layer.groups * (layer.groups > 1 ? rng.between(1, 2) : out_channels);
            const int64_t in_group = in[1] / layer.groups;
            const auto [kernel_y, kernel_x] = layer.window.kernel;
            layer.weights =
                transposed
                    ? sparse_integers({in[1], out_channels / layer.groups, kernel_y, kernel_x}, rng)
                    : sparse_integers({out_channels, in_group, kernel_y, kernel_x}, rng);
        }
        layer.onnx_name = layer.name;
        if (rng.chance(1, 2)) layer.bias = sparse_integers({out_channels}, rng);
        layer.activation = random_activation(out_channels, rng);
        network.tensors.push_back({"t" + std::to_string(n + 1), infer_output_dims(layer, {in})});
        network.layers.push_back(std::move(layer));
    }
    network.outputs = {network.layers.back().output};
    check(network);
    return network;
}

}  // namespace laminate
