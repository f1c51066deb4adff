#include "nets/onnx/channels_first.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "nets/network/picture_views.h"
#include "nets/onnx/moves.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;
constexpr size_t map_rank = 4;

/// What makes of a map of these dims a tensor of `last`: one image after the other, of each the
/// pixels, of each the channels.
GeneralOperator channels_put_last(const Dims& map, const Dims& last) {
    GeneralOperator view{.kind = GeneralKind::view, .dims = last, .steps = row_major_steps(last)};
    for (int64_t& step : view.steps) step /= map[1];  // of pixels
    view.steps.front() = map[1] * map[2] * map[3];
    view.steps.back() = map[2] * map[3];
    return view;
}
/// What makes of such a tensor the map.
GeneralOperator channels_put_first(const Dims& map) {
    return {.kind = GeneralKind::view,
            .dims = {map[0], map[1], map[2] * map[3]},
            .steps = {map[1] * map[2] * map[3], 1, map[1]}};
}

class ChannelsFirst {
public:
    explicit ChannelsFirst(RawNetwork& raw) : raw_(raw) {}

    void run() {
        raw_.rewrite_each([&](RawLayer& layer) {
            for (TensorId& id : layer.layer.inputs) {
                if (const auto other = same_.find(id); other != same_.end()) id = other->second;
            }
            visit(std::move(layer));
        });
    }

private:
    /// The map that a tensor has with its channels last, or -1.
    [[nodiscard]] TensorId map_of(TensorId id) const { return found_in(maps_, id, -1); }
    /// The tensor of four dimensions whose elements, in their order, a tensor has.
    [[nodiscard]] TensorId reshaped_from(TensorId id) const { return found_in(reshaped_, id, id); }
    static TensorId found_in(const std::map<TensorId, TensorId>& ids, TensorId id,
                             TensorId otherwise) {
        const auto found = ids.find(id);
        return found == ids.end() ? otherwise : found->second;
    }
    static bool is(const Layer& layer, GeneralKind kind) {
        return layer.kind == LayerKind::general && layer.general.kind == kind;
    }
    /// Whether a tensor has the channels of a map behind its pixels.
    static bool has_channels_last(const Dims& last, const Dims& map) {
        return last.size() > 2 && last.front() == map[0] && last.back() == map[1];
    }

    void visit(RawLayer layer) {
        const TensorId output = layer.layer.output;
        if (is(layer.layer, GeneralKind::reshape)) return visit_reshape(std::move(layer));
        if (is(layer.layer, GeneralKind::view)) {
            const TensorId map = reshaped_from(layer.layer.inputs[0]);
            if (raw_.dims(map).size() == map_rank && has_channels_last(raw_.dims(output), raw_.dims(map)) &&
                list_the_same(layer.layer.general, channels_put_last(raw_.dims(map), raw_.dims(output)))) {
                maps_[output] = map;
                return raw_.layers.push_back(std::move(layer));
            }
        }
        const bool reads_maps =
            !layer.layer.inputs.empty() &&
            std::ranges::all_of(layer.layer.inputs, [&](TensorId id) { return map_of(id) >= 0; });
        if (!reads_maps) return raw_.layers.push_back(std::move(layer));
        const TensorId map = map_of(layer.layer.inputs[0]);
        if (is(layer.layer, GeneralKind::view) &&
            list_the_same(layer.layer.general, channels_put_first(raw_.dims(map)))) {
            return put_back(std::move(layer), map);
        }
        if (std::optional<RawLayer> moved = on_map(layer)) return move(layer, *std::move(moved));
        raw_.layers.push_back(std::move(layer));
    }

    /// Whether it does not matter where a map has its channels.
    static bool has_one_place(const Dims& map) { return map[1] == 1 || map[2] * map[3] == 1; }

    /// A Reshape may lead to tokens, from tokens to a map with its channels last, and back. It is
    /// the Transpose of a map with one channel, or with one pixel.
    void visit_reshape(RawLayer layer) {
        const TensorId x = layer.layer.inputs[0], output = layer.layer.output;
        TensorId map = map_of(x);
        const TensorId from = map >= 0 && has_one_place(raw_.dims(map)) ? map : reshaped_from(x);
        if (raw_.dims(from) == raw_.dims(output) && from != x && !is_output(output)) {
            same_[output] = from;
            raw_.folded.push_back(layer.op + " " + layer.label + " and what it undoes removed");
            return;
        }
        if (raw_.dims(from).size() == map_rank) {
            reshaped_[output] = from;
            if (map < 0 && has_one_place(raw_.dims(from))) map = from;
        }
        if (map >= 0 && has_channels_last(raw_.dims(output), raw_.dims(map))) maps_[output] = map;
        raw_.layers.push_back(std::move(layer));
    }

    /// A layer that makes of a tensor with its channels last the map again, in any shape.
    void put_back(RawLayer layer, TensorId map) {
        const TensorId output = layer.layer.output;
        if (raw_.dims(output) == raw_.dims(map) && !is_output(output)) {
            same_[output] = map;
            raw_.folded.push_back(layer.op + " " + layer.label + " and the one before it removed");
            return;
        }
        layer.layer.inputs = {map};
        layer.layer.general = {.kind = GeneralKind::reshape, .dims = raw_.dims(output)};
        reshaped_[output] = map;
        raw_.layers.push_back(std::move(layer));
    }

    /// Writes what `moved` makes of maps, and of that what `layer` writes.
    void move(const RawLayer& layer, RawLayer moved) {
        const TensorId output = layer.layer.output;
        std::vector<Dims> inputs;
        for (TensorId& id : moved.layer.inputs) inputs.push_back(raw_.dims(id = map_of(id)));
        const Dims first = moved.affine ? inputs[0] : infer_output_dims(moved.layer, inputs);
        moved.layer.output = static_cast<TensorId>(raw_.tensors.size());
        raw_.tensors.push_back(
            {unused_name(raw_.name_of(output)), first});
        RawLayer back;
        back.op = layer.op;
        back.label = layer.label;
        back.beside = true;
        back.layer.kind = LayerKind::general;
        back.layer.inputs = {moved.layer.output};
        back.layer.output = output;
        back.layer.general = has_one_place(first) ? GeneralOperator{.dims = raw_.dims(output)}
                                                  : channels_put_last(first, raw_.dims(output));
        maps_[output] = moved.layer.output;
        raw_.layers.push_back(std::move(moved));
        raw_.layers.push_back(std::move(back));
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

    /// Whether a layer makes an output of the network whose pixels have many channels, side by side: these are
    /// faster to normalise there, and the Transpose is needed anyway.
    [[nodiscard]] bool ends_in_rows(const RawLayer& layer) const {
        constexpr int64_t many_channels = 256;
        return is_output(layer.layer.output) && channels(layer) >= many_channels;
    }
    /// The layer that computes the same of maps, its inputs and output not yet replaced.
    [[nodiscard]] std::optional<RawLayer> on_map(const RawLayer& given) const {
        RawLayer layer = given;
        const int64_t last_axis = std::ssize(raw_.dims(layer.layer.inputs[0])) - 1;
        switch (layer.layer.kind) {
            case LayerKind::activation:
                return with_one_value(layer.layer.activation.slope) ? std::optional(layer)
                                                                    : std::nullopt;
            case LayerKind::softmax:
                if (layer.layer.axis != last_axis || ends_in_rows(layer)) return {};
                layer.layer.axis = 1;
                return layer;
            case LayerKind::conv:  // of these only scales and shifts of channels have such inputs
                if (!layer.affine || !has_one_value(layer.layer.weights) ||
                    !has_one_value(layer.layer.bias))
                    return {};
                return with_affine(layer, layer.layer.weights->values[0],
                                   layer.layer.bias->values[0]);
            case LayerKind::add:
                if (!with_one_value(layer.layer.weights)) return {};
                return are_broadcast(layer.layer) ? std::optional(layer) : std::nullopt;
            case LayerKind::concat:
                return joined(std::move(layer));
            case LayerKind::general:
                return general_on_map(std::move(layer));
            default:
                return {};
        }
    }

    [[nodiscard]] std::optional<RawLayer> general_on_map(RawLayer layer) const {
        GeneralOperator& op = layer.layer.general;
        const int64_t last_axis = std::ssize(raw_.dims(layer.layer.inputs[0])) - 1;
        switch (op.kind) {
            case GeneralKind::unary:
                return layer;
            case GeneralKind::normalise:
            case GeneralKind::reduce:
                if (op.axes == Dims{last_axis}) {
                    op.axes = {1};
                    return layer;
                }
                if (op.axes != Dims{1, 2} || !has_rows(layer.layer.inputs[0])) return {};
                if (op.kind == GeneralKind::normalise) {
                    op.axes = {2, 3};
                    return layer;
                }
                if (op.function != GeneralFunction::mean) return {};
                op = {};
                layer.layer.kind = LayerKind::global_average_pool;
                return layer;
            case GeneralKind::binary:
                return of_two(std::move(layer));
            case GeneralKind::matmul:
                return as_convolution(std::move(layer));
            case GeneralKind::view:
                return part(std::move(layer));
            case GeneralKind::resample:
                return resampled(std::move(layer));
            default:
                return {};
        }
    }

    /// Whether a tensor with its channels last has rows and columns, and not pixels.
    [[nodiscard]] bool has_rows(TensorId id) const {
        const Dims& last = raw_.dims(id);
        const Dims& map = raw_.dims(map_of(id));
        return last.size() == map_rank && last[1] == map[2] && last[2] == map[3];
    }
    /// The axis of a map that is axis d of a tensor with rows and columns.
    static size_t axis_of_map(size_t d) { return d == 0 ? 0 : d % (map_rank - 1) + 1; }

    [[nodiscard]] std::optional<RawLayer> joined(RawLayer layer) const {
        const auto axis = static_cast<size_t>(layer.layer.axis);
        const size_t rank = raw_.dims(layer.layer.output).size();
        const bool is_of_channels = axis + 1 == rank;
        const Dims& map = raw_.dims(map_of(layer.layer.inputs[0]));
        for (const TensorId id : layer.layer.inputs) {
            const Dims& other = raw_.dims(map_of(id));
            if (is_of_channels ? other[2] != map[2] || other[3] != map[3] : !has_rows(id)) return {};
        }
        if (axis == 0) return {};
        layer.layer.axis = is_of_channels ? 1 : static_cast<int64_t>(axis_of_map(axis));
        return layer;
    }

    /// A Slice or one of a Split's results: of tokens, of their channels alone.
    [[nodiscard]] std::optional<RawLayer> part(RawLayer layer) const {
        const TensorId x = layer.layer.inputs[0];
        const Dims &from = raw_.dims(x), &map = raw_.dims(map_of(x));
        GeneralOperator& op = layer.layer.general;
        if (op.dims.size() != from.size() || op.dims[0] != from[0]) return {};
        std::array<int64_t, 3> first{}, extent{op.dims.back(), map[2], map[3]};
        const Dims own = row_major_steps(from);
        int64_t rest = op.first;
        for (size_t d = 0; d < from.size(); ++d) {
            const int64_t begin = rest / own[d];
            rest %= own[d];
            if (begin + op.dims[d] > from[d] || (op.dims[d] > 1 && op.steps[d] != own[d])) return {};
            if (op.dims[d] == from[d]) continue;
            if (d + 1 < from.size() && !has_rows(x)) return {};
            first[axis_of_map(d + map_rank - from.size()) - 1] = begin;
            extent[axis_of_map(d + map_rank - from.size()) - 1] = op.dims[d];
        }
        op = part_of(map, first, extent);
        return layer;
    }

    /// Pad or Resize: the lists of the axes change their order.
    [[nodiscard]] std::optional<RawLayer> resampled(RawLayer layer) const {
        if (!has_rows(layer.layer.inputs[0])) return {};
        GeneralOperator& op = layer.layer.general;
        const GeneralOperator given = op;
        std::array<std::ptrdiff_t, map_rank + 1> begin{};
        for (size_t d = 0; d < map_rank; ++d)
            begin[d + 1] = begin[d] + given.dims[d] * given.tap_counts[d];
        op.dims = op.tap_counts = op.sources = {};
        op.factors = {};
        for (const size_t d : {size_t{0}, size_t{3}, size_t{1}, size_t{2}}) {
            op.dims.push_back(given.dims[d]);
            op.tap_counts.push_back(given.tap_counts[d]);
            op.sources.insert(op.sources.end(), given.sources.begin() + begin[d],
                              given.sources.begin() + begin[d + 1]);
            if (!given.factors.empty())
                op.factors.insert(op.factors.end(), given.factors.begin() + begin[d],
                                  given.factors.begin() + begin[d + 1]);
        }
        return layer;
    }

    static bool has_one_value(const ConstantPtr& constant) {
        return all_are(*constant, constant->values[0]);
    }
    /// Whether a constant, if any, has one value. It then gets one element, whatever its shape was.
    static bool with_one_value(ConstantPtr& constant) {
        if (!constant) return true;
        if (!has_one_value(constant)) return false;
        constant = per_channel({constant->values[0]});
        return true;
    }
    [[nodiscard]] int64_t channels(const RawLayer& layer) const {
        return raw_.dims(layer.layer.output).back();
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

    /// Whether the maps of all inputs broadcast as the inputs do.
    [[nodiscard]] bool are_broadcast(const Layer& layer) const {
        const Dims& out = raw_.dims(layer.output);
        Dims whole;
        for (const TensorId id : layer.inputs) {
            if (raw_.dims(id).size() != out.size()) return false;
            if (raw_.dims(id) == out) whole = raw_.dims(map_of(id));
        }
        return !whole.empty() && std::ranges::all_of(layer.inputs, [&](TensorId id) {
            const Dims& map = raw_.dims(map_of(id));
            const bool is_pixel = map[2] == 1 && map[3] == 1;
            return is_pixel || (map[2] == whole[2] && map[3] == whole[3]);
        });
    }

    /// Two maps, or a map and a constant with one value, or a value for each channel.
    [[nodiscard]] std::optional<RawLayer> of_two(RawLayer layer) const {
        const ConstantPtr constant = layer.layer.weights;
        if (!constant)
            return are_broadcast(layer.layer) ? std::optional(std::move(layer)) : std::nullopt;
        if (constant->values.size() == 1 && raw_.dims(layer.layer.inputs[0]) == raw_.dims(layer.layer.output))
            return layer;
        const int64_t count = channels(layer);
        if (std::ssize(constant->values) != count || constant->dims.empty() ||
            constant->dims.back() != count ||
            raw_.dims(layer.layer.inputs[0]) != raw_.dims(layer.layer.output))
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
            case GeneralFunction::prelu:
                layer.layer = {.onnx_name = layer.layer.onnx_name,
                               .kind = LayerKind::activation,
                               .inputs = layer.layer.inputs,
                               .activation = {.kind = ActivationKind::prelu,
                                              .slope = per_channel(std::move(values))}};
                return layer;
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
    std::map<TensorId, TensorId> reshaped_;  ///< of what Reshapes write: where the elements are from
    std::map<TensorId, TensorId> same_;  ///< of tensors that layers no longer write: their equals
};

}  // namespace

void put_channels_first(RawNetwork& raw) { ChannelsFirst(raw).run(); }

}  // namespace laminate::onnx
