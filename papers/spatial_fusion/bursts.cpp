#include "papers/spatial_fusion/bursts.h"

#include <algorithm>
#include <map>

#include "base/units.h"

namespace laminate::spatial_fusion {

namespace {

/// How tiles divide one axis of a map.
struct AxisParts {
    std::map<int64_t, int64_t> tiles;  ///< number of tiles by their number of coordinates
    int64_t extent = 1;                ///< of the map

    void add(int64_t coordinates, int64_t times = 1) {
        if (coordinates > 0) tiles[coordinates] += times;
    }
};

/// The tiles of an output.
AxisParts output_parts(const AxisWindow& w, int64_t tile) {
    AxisParts parts{{}, w.out};
    parts.add(tile, w.out / tile);
    parts.add(w.out % tile);
    return parts;
}

/// What the tiles fetch of the input of the layer, or of the stack's first layer.
AxisParts input_parts(const Stack& problems, const PlannedStack& stack, size_t axis,
                      Reading reading) {
    const AxisWindow& top = problems.front().window[axis];
    const AxisWindow& bottom = problems.back().window[axis];
    const int64_t tile = axis == 0 ? stack.tile.y : stack.tile.x;
    AxisParts parts{{}, top.in};
    if (reading == Reading::paper) {
        const AxisCut cut = stack.keeps_halos
                                ? stack_cut(problems, axis, tile, reading)
                                : single_layer_cut(problems.front(), axis, tile, reading);
        parts.add(cut.input / cut.tiles, cut.tiles);
    } else if (stack.keeps_halos) {
        const std::vector<Range> first = new_inputs(problems, axis, tile).front();
        for (const Range& range : first) parts.add(range.size());
    } else {
        for (int64_t begin = 0; begin < bottom.out; begin += tile)
            parts.add(window_of(top, {begin, std::min(begin + tile, bottom.out)}).size());
    }
    return parts;
}

class Bursts {
public:
    explicit Bursts(int64_t elements) : elements_(elements) {}

    [[nodiscard]] int64_t run(int64_t length) const {
        return checked_multiply(ceil_div(length, elements_), elements_);
    }

    /// Elements of a map, moved `together` channels at a time.
    [[nodiscard]] int64_t map(const AxisParts& rows, const AxisParts& columns, int64_t channels,
                              int64_t together) const {
        int64_t sum = 0;
        for (const auto& [r, row_tiles] : rows.tiles) {
            for (const auto& [c, column_tiles] : columns.tiles) {
                const bool whole_rows = c >= columns.extent;
                const bool whole_map = whole_rows && r >= rows.extent;
                const auto of = [&, r = r, c = c](int64_t count) {
                    if (whole_map) return run(checked_multiply(count, r * c));
                    return checked_multiply(count,
                                            whole_rows ? run(r * c) : checked_multiply(r, run(c)));
                };
                const int64_t tile =
                    checked_add(checked_multiply(channels / together, of(together)),
                                channels % together > 0 ? of(channels % together) : 0);
                sum = checked_add(sum, checked_multiply(tile, row_tiles * column_tiles));
            }
        }
        return sum;
    }

    /// Weights of a layer, by tiles of output and input channels.
    [[nodiscard]] int64_t weights(const LayerProblem& layer, int64_t out_tile,
                                  int64_t in_tile) const {
        if (!layer.has_weights()) return 0;
        const int64_t kernel = layer.y().kernel * layer.x().kernel;
        int64_t sum = 0;
        const auto each = [](int64_t extent, int64_t tile, const auto& visit) {
            if (extent / tile > 0) visit(extent / tile, tile);
            if (extent % tile > 0) visit(int64_t{1}, extent % tile);
        };
        each(layer[Dim::z], out_tile, [&](int64_t out_tiles, int64_t out) {
            each(layer[Dim::i], in_tile, [&](int64_t in_tiles, int64_t in) {
                sum = checked_add(sum, checked_multiply(out_tiles * in_tiles,
                                                        run(checked_multiply(kernel, out * in))));
            });
        });
        return sum;
    }

private:
    int64_t elements_;
};

}  // namespace

int64_t volume_in_bursts(const Stack& problems, const PlannedStack& stack, Reading reading,
                         int64_t burst_elements) {
    const Bursts bursts(burst_elements);
    const LayerProblem& top = problems.front();
    const LayerProblem& bottom = problems.back();
    if (stack.is_join) {
        int64_t sum = bursts.run(bottom.output_elements().value());
        for (const LayerInput& input : bottom.inputs)
            sum = checked_add(
                sum, bursts.run(checked_multiply(input.channels, bottom.y().in * bottom.x().in)));
        return sum;
    }
    const Tile& tile = stack.tile;
    const int64_t channels = top.inputs.front().channels;
    const bool all_inputs =
        stack.keeps_halos || is_channelwise(top) || tile.in_channels == channels;
    const int64_t input_visits = all_inputs ? 1 : ceil_div(bottom[Dim::z], tile.out_channels);
    const int64_t together = stack.keeps_halos ? channels : std::min(channels, tile.in_channels);
    const int64_t tiles = ceil_div(bottom[Dim::y], tile.y) * ceil_div(bottom[Dim::x], tile.x);
    int64_t sum = checked_multiply(
        input_visits, bursts.map(input_parts(problems, stack, 0, reading),
                                 input_parts(problems, stack, 1, reading), channels, together));
    sum = checked_add(sum,
                      bursts.map(output_parts(bottom.y(), tile.y), output_parts(bottom.x(), tile.x),
                                 bottom[Dim::z], tile.out_channels));
    for (const LayerProblem& layer : problems) {
        const bool is_bottom = &layer == &bottom;
        const int64_t out_tile = is_bottom ? tile.out_channels : layer[Dim::z];
        const int64_t in_tile = stack.keeps_halos || layer.groups > 1
                                    ? layer[Dim::i]
                                    : std::min(tile.in_channels, layer[Dim::i]);
        // The same cases as in stack_volume() and single_layer_volume().
        const bool cut = is_bottom && (tile.out_channels < bottom[Dim::z] ||
                                       (!stack.keeps_halos && !all_inputs));
        const bool again =
            stack.keeps_halos ? reading == Reading::exact && cut : reading == Reading::paper || cut;
        sum = checked_add(
            sum, checked_multiply(bursts.weights(layer, out_tile, in_tile), again ? tiles : 1));
    }
    return sum;
}

}  // namespace laminate::spatial_fusion
