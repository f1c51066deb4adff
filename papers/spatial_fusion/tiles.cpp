#include "papers/spatial_fusion/tiles.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace laminate::spatial_fusion {

bool can_be_stacked(const LayerProblem& layer) {
    return layer.inputs.size() == 1 && !layer.y().transposed && !layer.x().transposed;
}

std::vector<int64_t> tile_spans(const Stack& stack, size_t axis, int64_t tile) {
    std::vector<int64_t> spans(stack.size());
    for (size_t l = stack.size(); l-- > 0;) {
        const AxisWindow& window = stack[l].window[axis];
        tile = checked_add(checked_multiply(tile - 1, window.stride), window_extent(window));
        spans[l] = tile;
    }
    return spans;
}

std::vector<std::vector<Range>> new_inputs(const Stack& stack, size_t axis, int64_t tile) {
    const int64_t extent = stack.back().window[axis].out;
    std::vector<Range> wanted;
    for (int64_t begin = 0; begin < extent; begin += tile)
        wanted.push_back({begin, std::min(begin + tile, extent)});
    std::vector<std::vector<Range>> result(stack.size());
    for (size_t l = stack.size(); l-- > 0;) {
        int64_t frontier = 0;
        for (Range& range : wanted) {
            if (range.empty()) continue;
            range = window_of(stack[l].window[axis], range);
            range.begin = std::max(range.begin, frontier);
            frontier = std::max(frontier, range.end);
            if (range.empty()) range = {};
        }
        result[l] = wanted;
    }
    return result;
}

std::vector<TileClasses> tile_classes(const Stack& stack, size_t axis, int64_t tile) {
    const int64_t tiles = ceil_div(stack.back().window[axis].out, tile);
    int64_t needed = stack.back().window[axis].out;
    int64_t first = tile;
    int64_t step = tile;
    std::vector<TileClasses> classes(stack.size());
    for (size_t l = stack.size(); l-- > 0;) {
        const AxisWindow& w = stack[l].window[axis];
        const int64_t beyond_pad = window_extent(w) - w.pad_begin;
        needed = std::min(w.in, (needed - 1) * w.stride + beyond_pad);
        first = (first - 1) * w.stride + beyond_pad;
        step *= w.stride;
        if (tiles == 1) {
            classes[l] = {1, needed, 0, 0};
            continue;
        }
        const int64_t last = needed - first - step * (tiles - 2);
        if (last < 0) {
            throw InputError(
                stack[l].name + ": tiles of " + std::to_string(tile) +
                (axis == 0 ? " rows" : " columns") + " leave " + std::to_string(last) +
                " new ones for the last tile, expected 0 or more for three classes of tiles");
        }
        classes[l] = {tiles, first, tiles > 2 ? step : 0, last};
    }
    return classes;
}

namespace {

/// One tile of an axis, as a layer's input sees it.
struct Step {
    int64_t present_before = 0;  ///< coordinates below it are there before the tile
    int64_t present = 0;         ///< ... and with it
    int64_t read_from = 0;       ///< the first coordinate that this or a later tile reads
};

std::vector<Step> steps_of(const Stack& stack, size_t l, size_t axis,
                           const std::vector<std::vector<Range>>& inputs, int64_t tile) {
    const AxisWindow& w = stack[l].window[axis];
    std::vector<Step> steps;
    int64_t present = 0;
    for (size_t j = 0; j < inputs[l].size(); ++j) {
        const Range out = l + 1 < stack.size()
                              ? inputs[l + 1][j]
                              : Range{static_cast<int64_t>(j) * tile,
                                      std::min(static_cast<int64_t>(j + 1) * tile, w.out)};
        const Range& in = inputs[l][j];
        const int64_t before = in.empty() ? present : std::max(present, in.begin);
        present = std::max(present, in.end);
        steps.push_back({before, present, out.empty() ? -1 : window_of(w, out).begin});
    }
    // A tile that computes nothing reads nothing itself.
    int64_t next = present;
    for (size_t j = steps.size(); j-- > 0;) {
        if (steps[j].read_from < 0) steps[j].read_from = next;
        next = steps[j].read_from;
    }
    return steps;
}

/// Rows of the input during one row of tiles. `old` rows were there before it, `fresh` ones come
/// with it. It is the last to read those `done`; the next row of tiles reads those `kept`.
struct Rows {
    int64_t old_done, fresh_done, old_kept, fresh_kept;
};

Rows rows_of(const Step& y, int64_t next_from) {
    const auto count = [](int64_t begin, int64_t end) { return std::max<int64_t>(0, end - begin); };
    return {count(y.read_from, std::min(next_from, y.present_before)),
            count(std::max(y.read_from, y.present_before), std::min(next_from, y.present)),
            count(std::max(y.read_from, next_from), y.present_before),
            count(std::max(y.present_before, next_from), y.present)};
}

}  // namespace

std::vector<int64_t> kept_inputs(const Stack& stack, int64_t tile_y, int64_t tile_x) {
    const auto rows = new_inputs(stack, 0, tile_y);
    const auto columns = new_inputs(stack, 1, tile_x);
    std::vector<int64_t> kept(stack.size());
    for (size_t l = 0; l < stack.size(); ++l) {
        const std::vector<Step> ys = steps_of(stack, l, 0, rows, tile_y);
        const std::vector<Step> xs = steps_of(stack, l, 1, columns, tile_x);
        const int64_t width = xs.back().present;
        int64_t most = 0;
        for (size_t j = 0; j < ys.size(); ++j) {
            const Rows r = rows_of(ys[j], j + 1 < ys.size() ? ys[j + 1].read_from : ys[j].present);
            for (const Step& x : xs)
                most = std::max(most, r.old_done * (width - x.read_from) +
                                          r.fresh_done * (x.present - x.read_from) +
                                          r.old_kept * width + r.fresh_kept * x.present);
        }
        kept[l] = checked_multiply(most, stack[l].inputs.front().channels);
    }
    return kept;
}

}  // namespace laminate::spatial_fusion
