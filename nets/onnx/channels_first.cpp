#include "nets/onnx/channels_first.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;
constexpr size_t map_rank = 4, last_axis = 3;
constexpr std::array<size_t, map_rank> to_last{0, 2, 3, 1}, to_first{0, 3, 1, 2};

/// Dimension d of the result is dimension order[d] of a tensor of these dims.
GeneralOperator transposition(const Dims& from, const std::array<size_t, map_rank>& order) {
    GeneralOperator view{.kind = GeneralKind::view};
    const Dims steps = row_major_steps(from);
    for (const size_t d : order) {
        view.dims.push_back(from[d]);
        view.steps.push_back(steps[d]);
    }
    return view;
}

class ChannelsFirst {
public:
    explicit ChannelsFirst(RawNetwork& raw) : raw_(raw) {}

    void run() {
        std::vector<RawLayer> layers;
        std::swap(layers, raw_.layers);
        for (RawLayer& layer : layers) {
            for (TensorId& id : layer.layer.inputs) {
                if (const auto other = same_.find(id); other != same_.end()) id = other->second;
            }
            visit(std::move(layer));
        }
    }

private:
    [[nodiscard]] const Dims& dims(TensorId id) const {
        return raw_.tensors[static_cast<size_t>(id)].dims;
    }
    /// The map whose Transpose a tensor is, or -1.
    [[nodiscard]] TensorId map_of(TensorId id) const {
        const auto found = maps_.find(id);
        return found == maps_.end() ? -1 : found->second;
    }
    [[nodiscard]] bool is_transposition(const Layer& layer,
                                        const std::array<size_t, map_rank>& order) const {
        return layer.kind == LayerKind::general && layer.general.kind == GeneralKind::view &&
               dims(layer.inputs[0]).size() == map_rank &&
               layer.general == transposition(dims(layer.inputs[0]), order);
    }

    void visit(RawLayer layer) {
        const TensorId output = layer.layer.output;
        if (is_transposition_of_map(layer.layer)) {
            maps_[output] = layer.layer.inputs[0];
            raw_.layers.push_back(std::move(layer));
            return;
        }
        const bool reads_maps =
            !layer.layer.inputs.empty() &&
            std::ranges::all_of(layer.layer.inputs, [&](TensorId id) { return map_of(id) >= 0; });
        if (!reads_maps) return raw_.layers.push_back(std::move(layer));
        const TensorId map = map_of(layer.layer.inputs[0]);
        if (is_transposition(layer.layer, to_first) && !is_output(output)) {
            same_[output] = map;
            raw_.folded.push_back(layer.op + " " + layer.label + " and the one before it removed");
            return;
        }
        std::optional<RawLayer> moved = on_map(layer);
        if (!moved) return raw_.layers.push_back(std::move(layer));
        for (TensorId& id : moved->layer.inputs) id = map_of(id);
        const Dims& last = dims(output);
        const Dims first{last[0], last[3], last[1], last[2]};
        moved->layer.output = static_cast<TensorId>(raw_.tensors.size());
        raw_.tensors.push_back({unused_name(raw_.tensors[static_cast<size_t>(output)].name), first});
        RawLayer back;
        back.op = layer.op;
        back.label = layer.label;
        back.beside = true;
        back.layer.kind = LayerKind::general;
        back.layer.inputs = {moved->layer.output};
        back.layer.output = output;
        back.layer.general = transposition(first, to_last);
        maps_[output] = moved->layer.output;
        raw_.layers.push_back(*std::move(moved));
        raw_.layers.push_back(std::move(back));
    }

    [[nodiscard]] bool is_transposition_of_map(const Layer& layer) const {
        return !layer.inputs.empty() && is_transposition(layer, to_last);
    }
    [[nodiscard]] bool is_output(TensorId id) const {
        return std::ranges::find(raw_.outputs, id) != raw_.outputs.end();
    }
    [[nodiscard]] std::string unused_name(const std::string& like) const {
        std::string name = like + "_first";
        while (std::ranges::any_of(raw_.tensors,
                                   [&](const Tensor& tensor) { return tensor.name == name; }))
            name += "_";
        return name;
    }

    /// The layer that computes the same of maps, its inputs and output not yet replaced.
    [[nodiscard]] std::optional<RawLayer> on_map(const RawLayer& given) const {
        RawLayer layer = given;
        GeneralOperator& op = layer.layer.general;
        switch (layer.layer.kind) {
            case LayerKind::activation:
                if (layer.layer.activation.slope && !has_one_value(layer.layer.activation.slope))
                    return {};
                return layer;
            case LayerKind::softmax:
                if (layer.layer.axis != int64_t{last_axis}) return {};
                layer.layer.axis = 1;
                return layer;
            case LayerKind::conv:  // of these only scales and shifts of channels have such inputs
                if (!layer.affine || !has_one_value(layer.layer.weights) ||
                    !has_one_value(layer.layer.bias))
                    return {};
                return with_affine(layer, layer.layer.weights->values[0],
                                   layer.layer.bias->values[0]);
            case LayerKind::add:
                if (layer.layer.weights && !has_one_value(layer.layer.weights)) return {};
                return layer;
            case LayerKind::general:
                break;
            default:
                return {};
        }
        switch (op.kind) {
            case GeneralKind::unary:
                return layer;
            case GeneralKind::normalise:
                if (op.axes != Dims{last_axis}) return {};
                op.axes = {1};
                return layer;
            case GeneralKind::binary:
                return of_two(std::move(layer));
            case GeneralKind::matmul:
                return as_convolution(std::move(layer));
            default:
                return {};
        }
    }

    static bool has_one_value(const ConstantPtr& constant) {
        const ConstantValues& values = constant->values;
        return std::all_of(values.begin(), values.end(),
                           [&](float value) { return value == values[0]; });
    }
    [[nodiscard]] int64_t channels(const RawLayer& layer) const {
        return dims(layer.layer.output)[last_axis];
    }
    [[nodiscard]] static ConstantPtr per_channel(std::vector<float> values) {
        const auto count = static_cast<int64_t>(values.size());
        return std::make_shared<const Constant>(Constant{{count}, std::move(values)});
    }
    [[nodiscard]] RawLayer with_affine(RawLayer layer, float scale, float shift) const {
        const auto count = static_cast<size_t>(channels(layer));
        layer.layer.weights = per_channel(std::vector<float>(count, scale));
        layer.layer.bias = per_channel(std::vector<float>(count, shift));
        return layer;
    }

    /// Two maps, or a map and a constant with a value for each channel.
    [[nodiscard]] std::optional<RawLayer> of_two(RawLayer layer) const {
        const ConstantPtr constant = layer.layer.weights;
        if (!constant) {
            const bool same = dims(layer.layer.inputs[0]) == dims(layer.layer.output) &&
                              dims(layer.layer.inputs[1]) == dims(layer.layer.output);
            return same ? std::optional(std::move(layer)) : std::nullopt;
        }
        const int64_t count = channels(layer);
        if (std::ssize(constant->values) != count || constant->dims.empty() ||
            constant->dims.back() != count ||
            dims(layer.layer.inputs[0]) != dims(layer.layer.output))
            return {};
        std::vector<float> values(constant->values.begin(), constant->values.end());
        const GeneralFunction function = layer.layer.general.function;
        const bool commutes =
            function == GeneralFunction::add || function == GeneralFunction::multiply;
        if (layer.layer.general.constant_first && !commutes) return {};
        for (float& value : values) {
            if (function == GeneralFunction::subtract) value = -value;
            if (function == GeneralFunction::divide) value = 1 / value;
        }
        std::vector<float> zeros(values.size(), 0.0F), ones(values.size(), 1.0F);
        switch (function) {
            case GeneralFunction::add:
            case GeneralFunction::subtract:
                return affine(layer, std::move(ones), std::move(values));
            case GeneralFunction::multiply:
            case GeneralFunction::divide:
                return affine(layer, std::move(values), std::move(zeros));
            default:
                return {};
        }
    }
    [[nodiscard]] static RawLayer affine(const RawLayer& layer, std::vector<float> scale,
                                         std::vector<float> shift) {
        return {.layer = {.onnx_name = layer.layer.onnx_name,
                          .kind = LayerKind::conv,
                          .inputs = layer.layer.inputs,
                          .weights = per_channel(std::move(scale)),
                          .bias = per_channel(std::move(shift))},
                .op = layer.op,
                .label = layer.label,
                .affine = true};
    }

    /// The product with a matrix [C][K] is a 1x1 convolution with its transpose.
    [[nodiscard]] std::optional<RawLayer> as_convolution(RawLayer layer) const {
        const ConstantPtr matrix = layer.layer.weights;
        if (!matrix || matrix->dims.size() != 2 || layer.layer.general.constant_first) return {};
        const auto inputs = static_cast<size_t>(matrix->dims[0]),
                   outputs = static_cast<size_t>(matrix->dims[1]);
        raw_.charge(matrix->values.size());
        const std::vector<float>& from = matrix->values;
        std::vector<float> weights(from.size());
        for (size_t i = 0; i < inputs; ++i) {
            for (size_t z = 0; z < outputs; ++z) weights[z * inputs + i] = from[i * outputs + z];
        }
        layer.layer.kind = LayerKind::conv;
        layer.layer.general = {};
        layer.layer.weights = std::make_shared<const Constant>(
            Constant{{matrix->dims[1], matrix->dims[0], 1, 1}, std::move(weights)});
        return layer;
    }

    RawNetwork& raw_;
    std::map<TensorId, TensorId> maps_;  ///< of tensors with channels last: those with them first
    std::map<TensorId, TensorId> same_;  ///< of tensors that layers no longer write: their equals
};

}  // namespace

void put_channels_first(RawNetwork& raw) { ChannelsFirst(raw).run(); }

}  // namespace laminate::onnx
