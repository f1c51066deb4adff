#include "papers/spatial_fusion/volume.h"

#include <algorithm>
#include <array>

#include "base/units.h"

namespace laminate::spatial_fusion {

namespace {

int64_t product(std::initializer_list<int64_t> factors) {
    int64_t result = 1;
    for (const int64_t f : factors) result = checked_multiply(result, f);
    return result;
}

int64_t sum(std::initializer_list<int64_t> terms) {
    int64_t result = 0;
    for (const int64_t t : terms) result = checked_add(result, t);
    return result;
}

int64_t input_channels(const LayerProblem& layer) { return layer.inputs.front().channels; }

/// The weights of these numbers of output and input channels.
int64_t weights_of(const LayerProblem& layer, int64_t out_channels, int64_t in_channels) {
    if (!layer.has_weights()) return 0;
    return product({layer.y().kernel, layer.x().kernel, out_channels, in_channels});
}

/// Eq. 8's Nix: the map with its padding, and without what hangs over.
int64_t padded(const AxisWindow& window) { return window.in + 2 * window.pad_begin; }

int64_t total(const std::vector<Range>& ranges) {
    int64_t size = 0;
    for (const Range& range : ranges) size += range.size();
    return size;
}

}  // namespace

const char* to_string(Reading reading) { return reading == Reading::exact ? "exact" : "paper"; }
const char* to_string(ReuseModel model) { return model == ReuseModel::own ? "own" : "alwani"; }

bool is_channelwise(const LayerProblem& layer) {
    return layer[Dim::i] == 1 && layer.groups == layer[Dim::z] && layer.inputs.size() == 1;
}

int64_t operations(const LayerProblem& layer) {
    return product(
        {layer.y().kernel, layer.x().kernel, layer[Dim::i], layer.output_elements().value()});
}

int64_t each_tensor_once(const LayerProblem& layer) {
    return sum({layer.input_elements().value(), layer.weight_elements().value(),
                layer.output_elements().value()});
}

int64_t single_layer_footprint(const LayerProblem& layer, const Tile& tile) {
    const int64_t rows = (tile.y - 1) * layer.y().stride + window_extent(layer.y());
    const int64_t columns = (tile.x - 1) * layer.x().stride + window_extent(layer.x());
    const int64_t kernel_channels = layer.groups == 1 ? tile.in_channels : layer[Dim::i];
    return sum({product({rows, columns, tile.in_channels}),
                product({tile.y, tile.x, tile.out_channels}),
                weights_of(layer, tile.out_channels, kernel_channels)});
}

AxisCut single_layer_cut(const LayerProblem& layer, size_t axis, int64_t tile, Reading reading) {
    const AxisWindow& w = layer.window[axis];
    AxisCut cut{tile, ceil_div(w.out, tile), 0};
    if (reading == Reading::paper) {
        cut.input = product({cut.tiles, (tile - 1) * w.stride + window_extent(w)});
        return cut;
    }
    for (int64_t begin = 0; begin < w.out; begin += tile)
        cut.input += window_of(w, {begin, std::min(begin + tile, w.out)}).size();
    return cut;
}

int64_t single_layer_volume(const LayerProblem& layer, const AxisCut& y, const AxisCut& x,
                            const Tile& tile, Reading reading) {
    const bool all_inputs = is_channelwise(layer) || tile.in_channels == input_channels(layer);
    const int64_t input_visits = all_inputs ? 1 : ceil_div(layer[Dim::z], tile.out_channels);
    const bool resident =
        reading == Reading::exact && all_inputs && tile.out_channels == layer[Dim::z];
    const int64_t weight_visits = resident ? 1 : product({y.tiles, x.tiles});
    return sum({product({y.input, x.input, input_channels(layer), input_visits}),
                product({weight_visits, layer.weight_elements().value()}),
                layer.output_elements().value()});
}

int64_t single_layer_volume(const LayerProblem& layer, const Tile& tile, Reading reading) {
    return single_layer_volume(layer, single_layer_cut(layer, 0, tile.y, reading),
                               single_layer_cut(layer, 1, tile.x, reading), tile, reading);
}

StackFootprint stack_footprint(const Stack& stack, const Tile& tile, ReuseModel model) {
    const std::vector<int64_t> rows = tile_spans(stack, 0, tile.y);
    const std::vector<int64_t> columns = tile_spans(stack, 1, tile.x);
    StackFootprint result;
    for (size_t l = 0; l < stack.size(); ++l) {
        const LayerProblem& layer = stack[l];
        const int64_t channels = input_channels(layer);
        const auto overlap = [&](const AxisWindow& w) {
            return std::max<int64_t>(0, window_extent(w) - w.stride);
        };
        result.inputs = sum({result.inputs, product({rows[l], columns[l], channels})});
        int64_t kept =
            product({std::max<int64_t>(0, padded(layer.x()) - columns[l]), overlap(layer.y())});
        if (model == ReuseModel::alwani)
            kept = sum({kept, product({std::max<int64_t>(0, rows[l] - overlap(layer.y())),
                                       overlap(layer.x())})});
        result.reuse = sum({result.reuse, product({kept, channels})});
        const bool bottom = l + 1 == stack.size();
        result.weights =
            sum({result.weights,
                 weights_of(layer, bottom ? tile.out_channels : layer[Dim::z], layer[Dim::i])});
    }
    result.output = product({tile.y, tile.x, tile.out_channels});
    return result;
}

StackFootprint exact_stack_footprint(const Stack& stack, const Tile& tile) {
    StackFootprint result = stack_footprint(stack, tile, ReuseModel::own);
    result.inputs = 0;
    result.reuse = 0;
    for (const int64_t kept : kept_inputs(stack, tile.y, tile.x))
        result.inputs = sum({result.inputs, kept});
    return result;
}

AxisCut stack_cut(const Stack& stack, size_t axis, int64_t tile, Reading reading) {
    AxisCut cut{tile, ceil_div(stack.back().window[axis].out, tile), 0};
    if (reading == Reading::paper) {
        cut.input = product({cut.tiles, tile_spans(stack, axis, tile).front()});
    } else {
        cut.input = total(new_inputs(stack, axis, tile).front());
    }
    return cut;
}

int64_t stack_volume(const Stack& stack, const AxisCut& y, const AxisCut& x, const Tile& tile,
                     Reading reading) {
    const LayerProblem& bottom = stack.back();
    int64_t volume = sum({product({y.input, x.input, input_channels(stack.front())}),
                          bottom.output_elements().value()});
    for (size_t l = 0; l < stack.size(); ++l) {
        const bool again = reading == Reading::exact && l + 1 == stack.size() &&
                           tile.out_channels < bottom[Dim::z];
        volume = sum({volume, product({stack[l].weight_elements().value(),
                                       again ? product({y.tiles, x.tiles}) : 1})});
    }
    return volume;
}

int64_t stack_volume(const Stack& stack, const Tile& tile, Reading reading) {
    return stack_volume(stack, stack_cut(stack, 0, tile.y, reading),
                        stack_cut(stack, 1, tile.x, reading), tile, reading);
}

int64_t stack_operations(const Stack& stack, const Tile& tile) {
    const std::array<std::vector<std::vector<Range>>, 2> inputs{new_inputs(stack, 0, tile.y),
                                                                new_inputs(stack, 1, tile.x)};
    int64_t result = 0;
    for (size_t l = 0; l < stack.size(); ++l) {
        int64_t layer =
            product({stack[l].y().kernel, stack[l].x().kernel, stack[l][Dim::i], stack[l][Dim::z]});
        for (size_t axis = 0; axis < 2; ++axis)
            layer = product({layer, l + 1 < stack.size() ? total(inputs[axis][l + 1])
                                                         : stack[l].window[axis].out});
        result = sum({result, layer});
    }
    return result;
}

}  // namespace laminate::spatial_fusion
