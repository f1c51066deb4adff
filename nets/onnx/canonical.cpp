#include "nets/onnx/canonical.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "nets/network/picture_views.h"
#include "nets/onnx/channel_order.h"
#include "nets/onnx/channels_first.h"
#include "nets/onnx/constant_maps.h"
#include "nets/onnx/functions_of_one.h"
#include "nets/onnx/image_normalisations.h"
#include "nets/onnx/joined_rows.h"
#include "nets/onnx/layers_in_nodes.h"
#include "nets/onnx/map_parts.h"
#include "nets/onnx/model.h"
#include "nets/onnx/moves.h"
#include "nets/onnx/repeated_operands.h"
#include "nets/onnx/space_to_depth.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

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
                            ? raw.dims(layer.inputs.back())
                            : layer.weights->dims;
    return right.size() >= 2 && summand->dims == std::vector{right.back()} ? summand : nullptr;
}

/// The bounds between which an activation clips; nullopt for other functions.
std::optional<std::pair<float, float>> bounds_of(const Activation& activation) {
    if (activation.kind == ActivationKind::clip) return std::pair{activation.low, activation.high};
    if (activation.kind == ActivationKind::relu)
        return std::pair{0.0F, std::numeric_limits<float>::infinity()};
    return {};
}

/// Makes of a Max and a Min one activation that clips.
bool fold_clip(Activation& first, const Activation& second) {
    const auto inner = bounds_of(first), outer = bounds_of(second);
    if (!inner || !outer || !(std::isinf(inner->first) || std::isinf(outer->first))) return false;
    const auto& [low, high] = *outer;
    first = {.kind = ActivationKind::clip,
             .low = std::clamp(inner->first, low, high),
             .high = std::clamp(inner->second, low, high)};
    if (first.low == 0 && std::isinf(first.high)) first = {.kind = ActivationKind::relu};
    return true;
}

/// Folds `next` into `layer`, whose output nobody else reads. False when that is not possible.
bool fold(Layer& layer, const RawLayer& next, RawNetwork& raw) {
    if (layer.activation.kind != ActivationKind::none)
        return next.layer.kind == LayerKind::activation &&
               fold_clip(layer.activation, next.layer.activation);
    if (next.affine) {
        if (!has_weights_per_channel(layer.kind)) return false;
        const std::vector<float>& scale = next.layer.weights->values;
        if (static_cast<int64_t>(scale.size()) != output_channels(layer)) return false;
        if (std::ranges::any_of(scale, [](float value) { return value != 1; })) {
            raw.charge(layer.weights->values.size());
            layer.weights = scaled_weights(layer, scale);
        }
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

/// Lets one layer stand for several general ones or activations that compute the same of the same tensors,
/// as two means do that an exporter writes for a mean and a variance, and the rectifiers before the
/// separable convolutions of a cell of NASNet.
void share_equal_layers(RawNetwork& raw) {
    std::map<TensorId, TensorId> same;
    std::map<std::vector<TensorId>, std::vector<const RawLayer*>> seen;
    for (RawLayer& raw_layer : raw.layers) {
        Layer& layer = raw_layer.layer;
        for (TensorId& id : layer.inputs) {
            if (const auto other = same.find(id); other != same.end()) id = other->second;
        }
        const bool is_output = std::ranges::find(raw.outputs, layer.output) != raw.outputs.end();
        const bool may_be_shared =
            layer.kind == LayerKind::general || layer.kind == LayerKind::activation;
        if (!may_be_shared || layer.inputs.empty() || layer.bias || is_output) continue;
        std::vector<const RawLayer*>& others = seen[layer.inputs];
        const auto equal = std::ranges::find_if(others, [&](const RawLayer* other) {
            const ConstantPtr &a = layer.weights, &b = other->layer.weights;
            const bool has_equal_weights =
                a == b || (a && b && a->dims == b->dims && a->values.size() == 1 &&
                           std::bit_cast<uint32_t>(a->values[0]) ==
                               std::bit_cast<uint32_t>(b->values[0]));
            return has_equal_weights && layer.kind == other->layer.kind &&
                   layer.activation == other->layer.activation &&
                   layer.general == other->layer.general;
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

/// Whether a layer adds a map to itself.
bool is_doubled(const Layer& layer) {
    const GeneralOperator& op = layer.general;
    const bool adds = layer.kind == LayerKind::add ||
                      (layer.kind == LayerKind::general && op.kind == GeneralKind::binary &&
                       op.function == GeneralFunction::add);
    return adds && layer.inputs.size() == 2 && layer.inputs[0] == layer.inputs[1];
}

/// A constant per channel that is added to a map becomes an affine layer, and so does a map that
/// is added to itself. So they go where batch normalisations go, and are else convolutions, which
/// groups hold.
void write_sums_as_affine(RawNetwork& raw) {
    for (RawLayer& sum : raw.layers) {
        Layer& layer = sum.layer;
        const Dims& dims = raw.dims(layer.output);
        const bool has_constants =
            layer.kind == LayerKind::add && layer.weights && dims.size() == 4 &&
            (layer.weights->dims == Dims{1} || layer.weights->dims == Dims{dims[1]});
        const bool doubles = dims.size() == 4 && is_doubled(layer);
        if (!has_constants && !doubles) continue;
        const auto channels = static_cast<size_t>(dims[1]);
        raw.charge(2 * channels);
        std::vector<float> shift{0};
        if (has_constants) shift = layer.weights->values;
        shift.resize(channels, shift.front());
        layer.kind = LayerKind::conv;
        layer.general = {};
        layer.inputs.resize(1);
        layer.bias =
            std::make_shared<const Constant>(Constant{{dims[1]}, std::move(shift)});
        layer.weights = std::make_shared<const Constant>(
            Constant{{dims[1]}, std::vector<float>(channels, doubles ? 2.0F : 1.0F)});
        sum.affine = true;
    }
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

/// What a mean, sum or norm over channels adds up of each element.
std::optional<Activation> summand_of(GeneralFunction reduction) {
    using enum GeneralFunction;
    switch (reduction) {
        case mean:
        case sum:
            return Activation{};
        case norm_1:
            return Activation{.kind = ActivationKind::unary, .function = absolute};
        case norm_2:
        case sum_of_squares:
            return Activation{.kind = ActivationKind::unary, .function = power, .alpha = 2};
        default:
            return {};
    }
}

/// Means, sums and norms over the channels of each pixel, as attention to places takes them, are 1x1
/// convolutions with equal weights, some of them of magnitudes or squares.
void write_means_as_convolutions(RawNetwork& raw) {
    raw.change_each([&](RawLayer& raw_layer) {
        Layer& layer = raw_layer.layer;
        const GeneralFunction function = layer.general.function;
        const auto summand = summand_of(function);
        const bool is_sum = layer.kind == LayerKind::general &&
                            layer.general.kind == GeneralKind::reduce && summand &&
                            layer.general.axes == Dims{1} && raw.dims(layer.inputs[0]).size() == 4;
        if (!is_sum) return;
        const Dims dims = raw.dims(layer.inputs[0]);
        const auto channels = static_cast<size_t>(dims[1]);
        raw.charge(channels);
        if (summand->kind != ActivationKind::none) {
            layer.inputs[0] = raw.append_part({.kind = LayerKind::activation,
                                               .inputs = layer.inputs,
                                               .activation = *summand},
                                              raw_layer, dims, raw.name_of(layer.output) + "_part");
        }
        const float weight =
            function == GeneralFunction::mean ? 1 / static_cast<float>(dims[1]) : 1.0F;
        layer.weights = std::make_shared<const Constant>(
            Constant{{1, dims[1], 1, 1}, std::vector<float>(channels, weight)});
        layer.kind = LayerKind::conv;
        layer.general = {};
        if (function == GeneralFunction::norm_2)
            layer.activation = {.kind = ActivationKind::unary,
                                .function = GeneralFunction::square_root};
    });
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
                raw.dims(layer.output).size() == 4;
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
            pad.layer.general, raw.dims(pad.layer.inputs[0]));
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
    const auto dims = raw.dims(layer.layer.inputs[0]);
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
        const std::string& name = raw.name_of(layer.layer.output);
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
    raw.rewrite_each([&](RawLayer& layer) {
        const size_t rank =
            layer.affine ? raw.dims(layer.layer.inputs[0]).size() : 0;
        if (!layer.affine || rank == 4) {
            raw.layers.push_back(std::move(layer));
        } else {
            write_affine_as_product_and_sum(raw, std::move(layer), raw.layers);
        }
    });
    for (RawLayer& layer : raw.layers) {
        if (!layer.affine) continue;
        const auto& dims = raw.dims(layer.layer.inputs[0]);
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

TensorId RawNetwork::append_part(Layer layer, const RawLayer& node, std::vector<int64_t> output_dims,
                                 const std::string& tensor_name) {
    layer.output = static_cast<TensorId>(tensors.size());
    tensors.push_back({tensor_name + std::to_string(layer.output), std::move(output_dims)});
    layers.push_back({.layer = std::move(layer), .op = node.op, .label = node.label, .beside = true});
    return layers.back().layer.output;
}

TensorId RawNetwork::append_constant(ConstantPtr constant, const RawLayer& node,
                                     const std::string& tensor_name) {
    std::vector<int64_t> dims = constant->dims;
    return append_part({.kind = LayerKind::general,
                        .weights = std::move(constant),
                        .general = {.kind = GeneralKind::constant}},
                       node, std::move(dims), tensor_name);
}

void RawNetwork::charge(size_t values) {
    values_allowed -= static_cast<int64_t>(values);
    if (values_allowed < 0)
        throw InputError(
            "folding constants makes many times more values than the file holds; expected weights "
            "shared by fewer "
            "nodes");
}

std::vector<int> reader_counts(const RawNetwork& raw) {
    std::vector<int> readers(raw.tensors.size(), 0);
    for (const TensorId id : raw.outputs) ++readers[static_cast<size_t>(id)];
    for (const RawLayer& layer : raw.layers) {
        for (const TensorId id : layer.layer.inputs) ++readers[static_cast<size_t>(id)];
    }
    return readers;
}

std::vector<std::vector<size_t>> readers_of(const RawNetwork& raw) {
    std::vector<std::vector<size_t>> readers(raw.tensors.size());
    for (size_t k = 0; k < raw.layers.size(); ++k) {
        for (const TensorId id : raw.layers[k].layer.inputs)
            readers[static_cast<size_t>(id)].push_back(k);
    }
    return readers;
}

std::vector<int> writers_of(const RawNetwork& raw) {
    std::vector<int> writers(raw.tensors.size(), -1);
    for (size_t k = 0; k < raw.layers.size(); ++k)
        writers[static_cast<size_t>(raw.layers[k].layer.output)] = static_cast<int>(k);
    return writers;
}

bool all_are(const Constant& constant, float value) {
    return std::all_of(constant.values.begin(), constant.values.end(),
                       [=](float element) { return element == value; });
}

Network canonicalise(RawNetwork raw) {
    share_equal_layers(raw);
    recognise_moves(raw);
    recognise_layers_in_nodes(raw);
    put_channels_first(raw);
    write_image_normalisations(raw);
    write_functions_as_activations(raw);
    write_joined_rows_as_sums(raw);
    write_means_as_convolutions(raw);
    fold_blocks_into_convolutions(raw);
    recognise_blocks(raw);
    write_parts_as_layers(raw);
    remove_dead_layers(raw);
    write_sums_as_affine(raw);
    fold_into_producers(raw);
    fold_affine_into_readers(raw);
    take_shuffled_channels(raw);
    remove_dead_layers(raw);
    write_affine_as_convolution(raw);
    write_constants_as_maps(raw);
    copy_repeated_operands(raw);
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
