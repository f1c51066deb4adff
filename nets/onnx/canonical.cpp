#include "nets/onnx/canonical.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "nets/onnx/channels_first.h"
#include "nets/onnx/model.h"
#include "nets/onnx/moves.h"
#include "nets/onnx/space_to_depth.h"

namespace laminate::onnx {

namespace {

bool has_weights_per_channel(LayerKind kind) {
    return kind == LayerKind::conv || kind == LayerKind::conv_transpose || kind == LayerKind::gemm;
}

bool takes_activation(LayerKind kind) {
    return has_weights_per_channel(kind) || kind == LayerKind::add;
}

int64_t output_channels(const Layer& layer) {
    const auto& dims = layer.weights->dims;
    return layer.kind == LayerKind::conv_transpose ? dims[1] * layer.groups : dims[0];
}

/// Multiplies the weights that make output channel c by scale[c].
ConstantPtr scaled_weights(const Layer& layer, const std::vector<float>& scale) {
    const std::vector<int64_t>& dims = layer.weights->dims;
    std::vector<float> result = layer.weights->values;
    const size_t channels = scale.size();
    const size_t first = static_cast<size_t>(dims[0]);
    if (layer.kind ==
        LayerKind::conv_transpose) {  // [input channel][output channel within its group][n][m]
        const size_t per_group = static_cast<size_t>(dims[1]);
        const size_t inputs_per_group = first / static_cast<size_t>(layer.groups);
        const size_t taps = result.size() / first / per_group;
        for (size_t i = 0; i < result.size(); ++i) {
            const size_t channel =
                i / (taps * per_group) / inputs_per_group * per_group + i / taps % per_group;
            result[i] = static_cast<float>(double{result[i]} * scale[channel]);
        }
    } else {
        const size_t per_channel = result.size() / channels;
        for (size_t i = 0; i < result.size(); ++i) {
            result[i] = static_cast<float>(double{result[i]} * scale[i / per_channel]);
        }
    }
    return std::make_shared<const Constant>(Constant{dims, std::move(result)});
}

/// bias * scale + shift; `scale` may be empty (all ones), `shift` may hold one value for all
/// channels.
ConstantPtr moved_bias(const Layer& layer, const std::vector<float>& scale,
                       const std::vector<float>& shift) {
    const auto channels = static_cast<size_t>(output_channels(layer));
    std::vector<float> result(channels);
    for (size_t c = 0; c < channels; ++c) {
        const double old = layer.bias == nullptr ? 0.0 : double{layer.bias->values[c]};
        result[c] = static_cast<float>(old * (scale.empty() ? 1.0 : double{scale[c]}) +
                                       shift[shift.size() == 1 ? 0 : c]);
    }
    return std::make_shared<const Constant>(
        Constant{{static_cast<int64_t>(channels)}, std::move(result)});
}

/// The values that `next` adds to each column of the product that `layer` computes, or null.
ConstantPtr bias_of_product(const Layer& layer, const RawLayer& next, const RawNetwork& raw) {
    const auto is_general = [](const Layer& one, GeneralKind kind) {
        return one.kind == LayerKind::general && one.general.kind == kind;
    };
    if (!is_general(layer, GeneralKind::matmul) || layer.bias != nullptr ||
        !is_general(next.layer, GeneralKind::binary) ||
        next.layer.general.function != GeneralFunction::add || next.layer.weights == nullptr)
        return nullptr;
    const ConstantPtr& summand = next.layer.weights;
    const auto& right = layer.weights == nullptr || layer.general.constant_first
                            ? raw.tensors[static_cast<size_t>(layer.inputs.back())].dims
                            : layer.weights->dims;
    return right.size() >= 2 && summand->dims == std::vector{right.back()} ? summand : nullptr;
}

/// Folds `next` into `layer`, whose output nobody else reads. False when that is not possible.
bool fold(Layer& layer, const RawLayer& next, RawNetwork& raw) {
    if (layer.activation.kind != ActivationKind::none) return false;
    if (next.affine) {
        if (!has_weights_per_channel(layer.kind)) return false;
        const std::vector<float>& scale = next.layer.weights->values;
        if (static_cast<int64_t>(scale.size()) != output_channels(layer)) return false;
        raw.charge(layer.weights->values.size());
        layer.weights = scaled_weights(layer, scale);
        layer.bias = moved_bias(layer, scale, next.layer.bias->values);
        return true;
    }
    if (next.layer.kind == LayerKind::add && next.layer.weights != nullptr &&
        next.layer.activation.kind == ActivationKind::none) {
        const std::vector<float>& shift = next.layer.weights->values;
        const bool per_channel = next.layer.weights->dims == std::vector<int64_t>{1} ||
                                 (has_weights_per_channel(layer.kind) &&
                                  next.layer.weights->dims == std::vector{output_channels(layer)});
        if (!has_weights_per_channel(layer.kind) || !per_channel) return false;
        layer.bias = moved_bias(layer, {}, shift);
        return true;
    }
    if (const ConstantPtr bias = bias_of_product(layer, next, raw)) {
        layer.bias = bias;
        return true;
    }
    if (next.layer.kind == LayerKind::activation && takes_activation(layer.kind)) {
        layer.activation = next.layer.activation;
        return true;
    }
    return false;
}

// ---- layers in several nodes

/// Recognises activations and normalisations that exporters spell with several nodes because their
/// opset lacks the operator, and makes each one layer again.
class LayersInNodes {
public:
    explicit LayersInNodes(RawNetwork& raw)
        : raw_(raw), readers_(raw.tensors.size(), 0), producer_(raw.tensors.size(), -1) {
        for (const TensorId id : raw.outputs) ++readers_[static_cast<size_t>(id)];
        for (size_t k = 0; k < raw.layers.size(); ++k) {
            for (const TensorId id : raw.layers[k].layer.inputs)
                ++readers_[static_cast<size_t>(id)];
            producer_[static_cast<size_t>(raw.layers[k].layer.output)] = static_cast<int>(k);
        }
    }

    void recognise() {
        for (RawLayer& layer : raw_.layers) {
            if (layer.affine && scale_of(layer) == 1.0f / 6) {
                recognise_sixth(layer);
            } else if (is_half(&layer)) {
                recognise_half(layer);
            } else if (is_binary(&layer, GeneralFunction::multiply)) {
                recognise_product(layer);
            } else if (is_binary(&layer, GeneralFunction::divide)) {
                recognise_quotient(layer);
            }
        }
        std::erase_if(raw_.layers, [](const RawLayer& layer) { return layer.layer.output < 0; });
    }

private:
    /// The layer that writes `id` if `id` has exactly one reader, or null.
    [[nodiscard]] RawLayer* before(TensorId id) const {
        const auto t = static_cast<size_t>(id);
        return producer_[t] >= 0 && readers_[t] == 1
                   ? &raw_.layers[static_cast<size_t>(producer_[t])]
                   : nullptr;
    }
    [[nodiscard]] RawLayer* before(const RawLayer& layer) const {
        return layer.layer.inputs.empty() ? nullptr : before(layer.layer.inputs[0]);
    }

    static bool is(const RawLayer* layer, GeneralKind kind, GeneralFunction function) {
        return layer != nullptr && layer->layer.kind == LayerKind::general &&
               layer->layer.general.kind == kind && layer->layer.general.function == function;
    }
    /// Whether both operands are tensors.
    static bool is_binary(const RawLayer* layer, GeneralFunction function) {
        return is(layer, GeneralKind::binary, function) && layer->layer.inputs.size() == 2;
    }
    static bool is(const RawLayer* layer, ActivationKind kind) {
        return layer != nullptr && layer->layer.kind == LayerKind::activation &&
               layer->layer.activation.kind == kind;
    }
    static bool is(const RawLayer* layer, GeneralFunction function) {
        return is(layer, ActivationKind::unary) && layer->layer.activation.function == function;
    }
    static bool all_are(const std::vector<float>& values, float wanted) {
        return std::all_of(values.begin(), values.end(), [&](float v) { return v == wanted; });
    }
    /// The factor s if the layer is y = s * x with one s for all channels, or 0.
    static float scale_of(const RawLayer& layer) {
        const std::vector<float>& scales = layer.layer.weights->values;
        const float scale = scales.front();
        return all_are(scales, scale) && all_are(layer.layer.bias->values, 0) ? scale : 0;
    }
    /// The tensor x if `clip` ends min(max(x + 3, 0), 6) and nothing else reads either layer, or
    /// -1.
    [[nodiscard]] TensorId shifted_and_clipped(const RawLayer* clip) const {
        if (!is(clip, ActivationKind::clip) || clip->layer.activation.low != 0 ||
            clip->layer.activation.high != 6)
            return -1;
        const RawLayer* sum = before(*clip);
        const bool adds_3 = sum != nullptr && sum->layer.kind == LayerKind::add &&
                            sum->layer.weights != nullptr && all_are(sum->layer.weights->values, 3);
        return adds_3 ? sum->layer.inputs[0] : -1;
    }

    /// Recognises min(max(x + 3, 0), 6) / 6 and x * min(max(x + 3, 0), 6) / 6.
    void recognise_sixth(RawLayer& sixth) {
        RawLayer* last = before(sixth);
        if (const TensorId x = shifted_and_clipped(last); x >= 0) {
            return become(sixth, x, {last, before(*last)},
                          {.kind = ActivationKind::unary,
                           .function = GeneralFunction::hard_sigmoid,
                           .alpha = 1.0f / 6,
                           .beta = 0.5f});
        }
        if (!is_binary(last, GeneralFunction::multiply)) return;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = last->layer.inputs[1 - k];
            RawLayer* clip = before(last->layer.inputs[k]);
            if (shifted_and_clipped(clip) != x) continue;
            return become(sixth, x, {last, clip, before(*clip)},
                          {.kind = ActivationKind::unary, .function = GeneralFunction::hard_swish});
        }
    }

    static bool is_half(const RawLayer* layer) {
        return layer != nullptr && layer->affine && scale_of(*layer) == 0.5f;
    }
    /// The layers of 1 + erf(x / sqrt(2)) from the last to the first, if nothing else reads them.
    [[nodiscard]] std::vector<RawLayer*> normal_distribution(RawLayer* sum, TensorId x) const {
        const bool adds_1 = sum != nullptr && sum->layer.kind == LayerKind::add &&
                            sum->layer.weights != nullptr && all_are(sum->layer.weights->values, 1);
        RawLayer* erf = adds_1 ? before(*sum) : nullptr;
        if (!is(erf, GeneralKind::unary, GeneralFunction::error_function)) return {};
        RawLayer* scaled = before(*erf);
        constexpr float rounding = 1e-6f;  // files have sqrt(2) or its reciprocal, to few digits
        if (scaled == nullptr || !scaled->affine || scaled->layer.inputs[0] != x ||
            std::abs(scale_of(*scaled) - 1 / std::numbers::sqrt2_v<float>) > rounding)
            return {};
        return {sum, erf, scaled};
    }

    /// Recognises (x * (1 + erf(x / sqrt(2)))) / 2.
    void recognise_half(RawLayer& half) {
        RawLayer* product = before(half);
        if (!is_binary(product, GeneralFunction::multiply)) return;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = product->layer.inputs[1 - k];
            std::vector<RawLayer*> layers =
                normal_distribution(before(product->layer.inputs[k]), x);
            if (layers.empty()) continue;
            layers.insert(layers.begin(), product);
            return become(half, x, layers, gelu);
        }
    }

    /// Recognises (x / 2) * (1 + erf(x / sqrt(2))) and x * ((1 + erf(x / sqrt(2))) / 2), of which
    /// `last` writes one factor and `other` is the other one.
    bool recognise_gelu(RawLayer& product, RawLayer& last, TensorId other) {
        if (RawLayer* half = before(other); is_half(half)) {
            const TensorId x = half->layer.inputs[0];
            std::vector<RawLayer*> layers = normal_distribution(&last, x);
            if (!layers.empty()) {
                layers.push_back(half);
                become(product, x, layers, gelu);
                return true;
            }
        }
        if (!is_half(&last)) return false;
        std::vector<RawLayer*> layers = normal_distribution(before(last), other);
        if (layers.empty()) return false;
        layers.insert(layers.begin(), &last);
        become(product, other, layers, gelu);
        return true;
    }

    /// Recognises x * f(x): swish, hard_swish, mish and gelu.
    void recognise_product(RawLayer& product) {
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = product.layer.inputs[1 - k];
            RawLayer* last = before(product.layer.inputs[k]);
            if (last == nullptr) continue;
            if (recognise_gelu(product, *last, x)) return;
            RawLayer* inner = before(*last);
            const auto reads_x = [&](const RawLayer* layer) { return layer->layer.inputs[0] == x; };
            Activation whole{.kind = ActivationKind::unary};
            if (is(last, ActivationKind::sigmoid)) {
                whole.function = GeneralFunction::swish;
                whole.alpha = 1;
                if (reads_x(last)) return become(product, x, {last}, whole);
                whole.alpha = inner != nullptr && inner->affine ? scale_of(*inner) : 0;
                if (whole.alpha != 0 && reads_x(inner))
                    return become(product, x, {last, inner}, whole);
            } else if (is(last, GeneralFunction::hard_sigmoid) && reads_x(last) &&
                       last->layer.activation.alpha == 1.0f / 6 &&
                       last->layer.activation.beta == 0.5f) {
                whole.function = GeneralFunction::hard_swish;
                return become(product, x, {last}, whole);
            } else if (is(last, ActivationKind::tanh) && is(inner, GeneralFunction::softplus) &&
                       reads_x(inner)) {
                whole.function = GeneralFunction::mish;
                return become(product, x, {last, inner}, whole);
            }
        }
    }

    /// The tensor whose square `layer` computes, and how often it reads it; -1 for other layers.
    static std::pair<TensorId, int> squared(const RawLayer* layer) {
        if (is_binary(layer, GeneralFunction::multiply) &&
            layer->layer.inputs[0] == layer->layer.inputs[1])
            return {layer->layer.inputs[0], 2};
        if (is(layer, GeneralKind::binary, GeneralFunction::power) && layer->layer.weights &&
            !layer->layer.general.constant_first && layer->layer.weights->values.size() == 1 &&
            layer->layer.weights->values[0] == 2)
            return {layer->layer.inputs[0], 1};
        return {-1, 0};
    }

    /// Recognises c / sqrt(mean(c^2) + epsilon), with c = x - mean(x) or any other tensor.
    void recognise_quotient(RawLayer& quotient) {
        const TensorId centred = quotient.layer.inputs[0];
        RawLayer* root = before(quotient.layer.inputs[1]);
        if (!is(root, GeneralKind::unary, GeneralFunction::square_root)) return;
        RawLayer* sum = before(*root);
        if (sum == nullptr || sum->layer.kind != LayerKind::add || sum->layer.weights == nullptr ||
            sum->layer.weights->values.size() != 1 || sum->layer.weights->values[0] <= 0)
            return;
        RawLayer* variance = before(*sum);
        if (!is(variance, GeneralKind::reduce, GeneralFunction::mean)) return;
        RawLayer* square = before(*variance);
        const auto [of, reads] = squared(square);
        if (of != centred) return;
        GeneralOperator op{.kind = GeneralKind::normalise,
                           .function = GeneralFunction::root_mean_square,
                           .axes = variance->layer.general.axes,
                           .alpha = sum->layer.weights->values[0]};
        std::vector<RawLayer*> between{root, sum, variance, square};
        TensorId x = centred;
        const auto c = static_cast<size_t>(centred);
        RawLayer* difference =
            producer_[c] < 0 ? nullptr : &raw_.layers[static_cast<size_t>(producer_[c])];
        if (is_binary(difference, GeneralFunction::subtract) && readers_[c] == reads + 1) {
            RawLayer* mean = before(difference->layer.inputs[1]);
            if (is(mean, GeneralKind::reduce, GeneralFunction::mean) &&
                mean->layer.general.axes == op.axes &&
                mean->layer.inputs[0] == difference->layer.inputs[0]) {
                x = mean->layer.inputs[0];
                op.function = GeneralFunction::standardise;
                between.insert(between.end(), {difference, mean});
            }
        }
        become(quotient, x, between, {.kind = LayerKind::general, .general = std::move(op)});
    }

    void become(RawLayer& end, TensorId x, const std::vector<RawLayer*>& between,
                const Activation& activation) {
        become(end, x, between, {.kind = LayerKind::activation, .activation = activation});
    }
    /// Turns `end` into a layer that reads `x` and removes the layers between them.
    void become(RawLayer& end, TensorId x, const std::vector<RawLayer*>& between, Layer layer) {
        for (RawLayer* part : between) {
            raw_.folded.push_back(part->op + " " + part->label + " into " + end.op + " " +
                                  end.label);
            for (const TensorId id : part->layer.inputs) --readers_[static_cast<size_t>(id)];
            part->layer.output = -1;
        }
        for (const TensorId id : end.layer.inputs) --readers_[static_cast<size_t>(id)];
        ++readers_[static_cast<size_t>(x)];
        layer.onnx_name = end.layer.onnx_name;
        layer.inputs = {x};
        layer.output = end.layer.output;
        end.layer = std::move(layer);
        end.affine = false;
    }

    static inline const Activation gelu{.kind = ActivationKind::unary,
                                        .function = GeneralFunction::gelu};
    RawNetwork& raw_;
    std::vector<int> readers_;
    std::vector<int> producer_;
};

void remove_dead_layers(RawNetwork& raw) {
    std::vector<bool> needed(raw.tensors.size(), false);
    for (const TensorId id : raw.outputs) needed[static_cast<size_t>(id)] = true;
    std::vector<RawLayer> kept;
    for (auto layer = raw.layers.rbegin(); layer != raw.layers.rend(); ++layer) {
        if (!needed[static_cast<size_t>(layer->layer.output)]) {
            if (!layer->beside)
                raw.folded.push_back(layer->op + " " + layer->label +
                                     " removed: no output needs it");
            continue;
        }
        for (const TensorId id : layer->layer.inputs) needed[static_cast<size_t>(id)] = true;
        kept.push_back(std::move(*layer));
    }
    std::reverse(kept.begin(), kept.end());
    raw.layers = std::move(kept);
}

/// By tensor, how often layers and the outputs of the network read it.
std::vector<int> reader_counts(const RawNetwork& raw) {
    std::vector<int> readers(raw.tensors.size(), 0);
    for (const TensorId id : raw.outputs) ++readers[static_cast<size_t>(id)];
    for (const RawLayer& layer : raw.layers) {
        for (const TensorId id : layer.layer.inputs) ++readers[static_cast<size_t>(id)];
    }
    return readers;
}

/// Lets one layer stand for several general ones that compute the same of the same tensors, as two
/// means do that an exporter writes for a mean and a variance.
void share_equal_layers(RawNetwork& raw) {
    std::map<TensorId, TensorId> same;
    std::map<std::vector<TensorId>, std::vector<const RawLayer*>> seen;
    for (RawLayer& raw_layer : raw.layers) {
        Layer& layer = raw_layer.layer;
        for (TensorId& id : layer.inputs) {
            if (const auto other = same.find(id); other != same.end()) id = other->second;
        }
        const bool is_output = std::ranges::find(raw.outputs, layer.output) != raw.outputs.end();
        if (layer.kind != LayerKind::general || layer.inputs.empty() || layer.bias || is_output)
            continue;
        std::vector<const RawLayer*>& others = seen[layer.inputs];
        const auto equal = std::ranges::find_if(others, [&](const RawLayer* other) {
            const ConstantPtr &a = layer.weights, &b = other->layer.weights;
            const bool has_equal_weights =
                a == b || (a && b && a->dims == b->dims && a->values.size() == 1 &&
                           a->values[0] == b->values[0]);
            return has_equal_weights && layer.general == other->layer.general;
        });
        if (equal == others.end()) {
            others.push_back(&raw_layer);
            continue;
        }
        same[layer.output] = (*equal)->layer.output;
        raw.folded.push_back(raw_layer.op + " " + raw_layer.label + " is " + (*equal)->op + " " +
                             (*equal)->label);
        raw_layer.beside = true;
    }
    remove_dead_layers(raw);
}

/// One sweep suffices: when a layer is visited, all layers before it have their final form.
void fold_into_producers(RawNetwork& raw) {
    std::vector<int> readers = reader_counts(raw);
    std::vector<RawLayer> kept;
    std::vector<int> producer(raw.tensors.size(), -1);  // index into kept
    for (RawLayer& next : raw.layers) {
        const auto input = static_cast<size_t>(next.layer.inputs.empty() ? next.layer.output
                                                                         : next.layer.inputs[0]);
        const int before = producer[input];
        if (next.layer.inputs.size() == 1 && before >= 0 && readers[input] == 1 &&
            fold(kept[static_cast<size_t>(before)].layer, next, raw)) {
            RawLayer& target = kept[static_cast<size_t>(before)];
            raw.folded.push_back(next.op + " " + next.label + " into " + target.op + " " +
                                 target.label);
            target.layer.output = next.layer.output;
            producer[static_cast<size_t>(next.layer.output)] = before;
            continue;
        }
        producer[static_cast<size_t>(next.layer.output)] = static_cast<int>(kept.size());
        kept.push_back(std::move(next));
    }
    raw.layers = std::move(kept);
}

/// Means and sums over the channels of each pixel, as attention to places takes them, are 1x1
/// convolutions with equal weights.
void write_means_as_convolutions(RawNetwork& raw) {
    for (RawLayer& raw_layer : raw.layers) {
        Layer& layer = raw_layer.layer;
        const GeneralOperator& op = layer.general;
        if (layer.kind != LayerKind::general || op.kind != GeneralKind::reduce ||
            op.axes != std::vector<int64_t>{1} ||
            (op.function != GeneralFunction::mean && op.function != GeneralFunction::sum))
            continue;
        const auto& dims = raw.tensors[static_cast<size_t>(layer.inputs[0])].dims;
        if (dims.size() != 4) continue;
        raw.charge(static_cast<size_t>(dims[1]));
        const float weight =
            op.function == GeneralFunction::mean ? 1 / static_cast<float>(dims[1]) : 1.0F;
        layer.weights = std::make_shared<const Constant>(
            Constant{{1, dims[1], 1, 1}, std::vector<float>(static_cast<size_t>(dims[1]), weight)});
        layer.kind = LayerKind::conv;
        layer.general = {};
    }
}

/// The convolution that makes of x what `layer` makes of scale[c] x + shift[c]. Its windows must lie
/// inside the map, unless nothing is shifted.
void take_affine(Layer& layer, const std::vector<float>& scale, const std::vector<float>& shift) {
    const auto outputs = static_cast<size_t>(layer.weights->dims[0]),
               inputs = static_cast<size_t>(layer.weights->dims[1]),
               taps = layer.weights->values.size() / outputs / inputs,
               outputs_of_group = outputs / static_cast<size_t>(layer.groups);
    std::vector<float> weights(layer.weights->values.begin(), layer.weights->values.end());
    std::vector<float> shifts(outputs);
    for (size_t z = 0; z < outputs; ++z) {
        double sum = 0;
        for (size_t i = 0; i < inputs; ++i) {
            const size_t c = z / outputs_of_group * inputs + i;
            for (size_t tap = 0; tap < taps; ++tap) {
                float& weight = weights[(z * inputs + i) * taps + tap];
                sum += double{weight} * shift[c];
                weight = static_cast<float>(double{weight} * scale[c]);
            }
        }
        shifts[z] = static_cast<float>(sum);
    }
    layer.bias = moved_bias(layer, {}, shifts);
    layer.weights =
        std::make_shared<const Constant>(Constant{layer.weights->dims, std::move(weights)});
}

/// Scales and shifts of channels that no producer took go into the convolution that alone reads
/// them, as the one behind a normalisation does.
void fold_affine_into_readers(RawNetwork& raw) {
    const std::vector<int> readers = reader_counts(raw);
    std::map<TensorId, RawLayer*> affine;
    for (RawLayer& reader : raw.layers) {
        Layer& layer = reader.layer;
        if (reader.affine) {
            const bool is_map =
                raw.tensors[static_cast<size_t>(layer.output)].dims.size() == 4;
            if (is_map && layer.activation.kind == ActivationKind::none &&
                readers[static_cast<size_t>(layer.output)] == 1)
                affine[layer.output] = &reader;
            continue;
        }
        if (layer.kind != LayerKind::conv || !affine.contains(layer.inputs[0])) continue;
        RawLayer& from = *affine.at(layer.inputs[0]);
        const std::vector<float>& shift = from.layer.bias->values;
        const bool has_padding = layer.window.pad_begin != std::array<int64_t, 2>{} ||
                                 layer.window.pad_end != std::array<int64_t, 2>{};
        if (has_padding && std::ranges::any_of(shift, [](float value) { return value != 0; }))
            continue;
        raw.charge(layer.weights->values.size());
        take_affine(layer, from.layer.weights->values, shift);
        layer.inputs[0] = from.layer.inputs[0];
        raw.folded.push_back(from.op + " " + from.label + " into " + reader.op + " " +
                             reader.label);
        from.layer.output = -1;
    }
    std::erase_if(raw.layers, [](const RawLayer& layer) { return layer.layer.output < 0; });
}

/// Makes a Pad of zeros the padding of a convolution that alone reads it, where every window still
/// reaches the picture.
void fold_padding_into_readers(RawNetwork& raw) {
    std::vector<int> readers = reader_counts(raw);
    std::map<TensorId, const RawLayer*> pads;
    for (RawLayer& reader : raw.layers) {
        Layer& layer = reader.layer;
        if (layer.kind == LayerKind::general && layer.inputs.size() == 1 &&
            readers[static_cast<size_t>(layer.output)] == 1) {
            pads[layer.output] = &reader;
            continue;
        }
        if (layer.kind != LayerKind::conv || !pads.contains(layer.inputs[0])) continue;
        const RawLayer& pad = *pads.at(layer.inputs[0]);
        const auto padding = padding_of(
            pad.layer.general, raw.tensors[static_cast<size_t>(pad.layer.inputs[0])].dims);
        if (!padding || padding->mode != Padding::Mode::constant || padding->value != 0) continue;
        Window window = layer.window;
        bool reaches = true;
        for (size_t axis = 0; axis < 2; ++axis) {
            window.pad_begin[axis] += padding->begin[axis];
            window.pad_end[axis] += padding->end[axis];
            const int64_t span = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
            reaches = reaches && window.pad_begin[axis] < span && window.pad_end[axis] < span;
        }
        if (!reaches) continue;
        layer.window = window;
        layer.inputs[0] = pad.layer.inputs[0];
        raw.folded.push_back(pad.op + " " + pad.label + " into " + reader.op + " " + reader.label);
        readers[static_cast<size_t>(pad.layer.output)] = 0;
    }
    std::erase_if(raw.layers, [&](const RawLayer& layer) {
        return pads.contains(layer.layer.output) &&
               readers[static_cast<size_t>(layer.layer.output)] == 0;
    });
}

/// Writes y = scale[c] * x + shift[c] of a tensor that is not a picture as a product and a sum.
void write_affine_as_product_and_sum(RawNetwork& raw, RawLayer layer, std::vector<RawLayer>& kept) {
    const auto dims = raw.tensors[static_cast<size_t>(layer.layer.inputs[0])].dims;
    RawLayer product{.layer = {.onnx_name = layer.layer.onnx_name,
                               .kind = LayerKind::general,
                               .inputs = layer.layer.inputs},
                     .op = layer.op,
                     .label = layer.label};
    std::vector<int64_t> per_channel(dims.size() - 1, 1);
    per_channel[0] = dims[1];
    product.layer.general = {.kind = GeneralKind::binary, .function = GeneralFunction::multiply};
    product.layer.weights =
        std::make_shared<const Constant>(Constant{per_channel, layer.layer.weights->values});
    const auto& shift = layer.layer.bias->values;
    // A sum may carry an activation, a product may not.
    const bool only_scales =
        layer.layer.activation.kind == ActivationKind::none &&
        std::all_of(shift.begin(), shift.end(), [](float value) { return value == 0; });
    product.layer.output = layer.layer.output;
    if (!only_scales) {
        const std::string& name = raw.tensors[static_cast<size_t>(layer.layer.output)].name;
        raw.tensors.push_back({name + "_scaled", dims});
        product.layer.output = static_cast<TensorId>(raw.tensors.size() - 1);
        layer.layer = {.kind = LayerKind::add,
                       .inputs = {product.layer.output},
                       .output = layer.layer.output,
                       .weights = layer.layer.bias,
                       .activation = layer.layer.activation};
        layer.affine = false;
    }
    kept.push_back(std::move(product));
    if (!only_scales) kept.push_back(std::move(layer));
}

void write_affine_as_convolution(RawNetwork& raw) {
    std::vector<RawLayer> layers;
    std::swap(layers, raw.layers);
    for (RawLayer& layer : layers) {
        const size_t rank =
            layer.affine ? raw.tensors[static_cast<size_t>(layer.layer.inputs[0])].dims.size() : 0;
        if (!layer.affine || rank == 4) {
            raw.layers.push_back(std::move(layer));
        } else {
            write_affine_as_product_and_sum(raw, std::move(layer), raw.layers);
        }
    }
    for (RawLayer& layer : raw.layers) {
        if (!layer.affine) continue;
        const auto& dims = raw.tensors[static_cast<size_t>(layer.layer.inputs[0])].dims;
        layer.layer.kind = LayerKind::conv;
        layer.layer.groups = dims[1];
        layer.layer.weights = std::make_shared<const Constant>(
            Constant{{dims[1], 1, 1, 1}, layer.layer.weights->values});
        layer.affine = false;
    }
}

/// "/features/0/Conv" becomes "features_0_Conv". An identifier stays as it is. Returns "" when no
/// character can be kept.
std::string to_identifier(const std::string& name) {
    if (is_identifier(name)) return name;
    std::string text;
    for (const char c : name) {
        const bool fits =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (fits) {
            text += c;
        } else if (!text.empty() && text.back() != '_') {
            text += '_';
        }
    }
    while (!text.empty() && text.back() == '_') text.pop_back();
    if (!text.empty() && text[0] >= '0' && text[0] <= '9') text.insert(0, "n");
    return text;
}

const char* name_stem(const Layer& layer) {
    return layer.kind == LayerKind::conv_transpose ? "deconv" : operation_text(layer);
}

/// Takes names from the nodes. Layers of unnamed nodes are numbered by kind: conv1, conv2, deconv1.
void name_layers(std::vector<Layer>& layers) {
    std::unordered_set<std::string> used;
    std::unordered_map<std::string, int> next;
    const auto unique = [&](const std::string& stem, const char* separator) {
        std::string name;
        do name = stem + separator + std::to_string(++next[stem]);
        while (!used.insert(name).second);
        return name;
    };
    for (Layer& layer : layers) {
        layer.name = to_identifier(layer.onnx_name);
        if (!layer.name.empty() && !used.insert(layer.name).second) {
            next.try_emplace(layer.name, 1);
            layer.name = unique(layer.name, "_");
        }
    }
    for (Layer& layer : layers) {
        if (layer.name.empty()) layer.name = unique(name_stem(layer), "");
    }
}

}  // namespace

void RawNetwork::charge(size_t values) {
    values_allowed -= static_cast<int64_t>(values);
    if (values_allowed < 0)
        throw InputError(
            "folding constants makes many times more values than the file holds; expected weights "
            "shared by fewer "
            "nodes");
}

Network canonicalise(RawNetwork raw) {
    share_equal_layers(raw);
    recognise_moves(raw);
    LayersInNodes(raw).recognise();
    put_channels_first(raw);
    write_means_as_convolutions(raw);
    fold_blocks_into_convolutions(raw);
    remove_dead_layers(raw);
    fold_into_producers(raw);
    fold_affine_into_readers(raw);
    write_affine_as_convolution(raw);
    fold_padding_into_readers(raw);

    Network network;
    network.name = to_identifier(raw.name);
    network.folded = std::move(raw.folded);
    std::vector<TensorId> number(raw.tensors.size(), -1);
    const auto keep = [&](TensorId id) {
        number[static_cast<size_t>(id)] = static_cast<TensorId>(network.tensors.size());
        network.tensors.push_back(std::move(raw.tensors[static_cast<size_t>(id)]));
        return number[static_cast<size_t>(id)];
    };
    for (const TensorId id : raw.inputs) network.inputs.push_back(keep(id));
    for (RawLayer& layer : raw.layers) {
        for (TensorId& id : layer.layer.inputs) id = number[static_cast<size_t>(id)];
        layer.layer.output = keep(layer.layer.output);
        network.layers.push_back(std::move(layer.layer));
    }
    for (const TensorId id : raw.outputs)
        network.outputs.push_back(number[static_cast<size_t>(id)]);
    name_layers(network.layers);
    check(network);
    return network;
}

}  // namespace laminate::onnx
