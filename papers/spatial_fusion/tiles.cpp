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
        tile = checked_add(checked_multiply(tile - 1, window.stride), window.span());
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
        const int64_t beyond_pad = w.span() - w.pad_begin;
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

std::vector<int64_t> kept_inputs(const Stack& stack, int64_t tile_y, int64_t tile_x) {
    // By tile of an axis: where the new coordinates begin and end, and what is read by it and by
    // all later ones.
    struct Step {
        int64_t present_before = 0;  ///< coordinates below are there before the tile
        int64_t present = 0;
        int64_t read_from = 0;
    };
    const auto steps_of = [&](size_t l, size_t axis, const std::vector<std::vector<Range>>& inputs,
                              int64_t tile) {
        const AxisWindow& w = stack[l].window[axis];
        std::vector<Step> steps;
        int64_t present = 0;
        for (size_t j = 0; j < inputs[l].size(); ++j) {
            Range out = l + 1 < stack.size()
                            ? inputs[l + 1][j]
                            : Range{static_cast<int64_t>(j) * tile,
                                    std::min(static_cast<int64_t>(j + 1) * tile, w.out)};
            const Range& in = inputs[l][j];
            const int64_t before = in.empty() ? present : std::max(present, in.begin);
            present = std::max(present, in.end);
            // A tile that computes nothing reads nothing; what it leaves is for the next one that
            // does.
            steps.push_back({before, present, out.empty() ? -1 : window_of(w, out).begin});
        }
        int64_t next = present;
        for (size_t j = steps.size(); j-- > 0;) {
            if (steps[j].read_from < 0) steps[j].read_from = next;
            next = steps[j].read_from;
        }
        return steps;
    };
    const auto rows = new_inputs(stack, 0, tile_y);
    const auto columns = new_inputs(stack, 1, tile_x);
    std::vector<int64_t> kept(stack.size());
    for (size_t l = 0; l < stack.size(); ++l) {
        const std::vector<Step> ys = steps_of(l, 0, rows, tile_y);
        const std::vector<Step> xs = steps_of(l, 1, columns, tile_x);
        const int64_t width = xs.back().present;
        int64_t most = 0;
        for (size_t j = 0; j < ys.size(); ++j) {
            const Step& y = ys[j];
            // Rows that this row of tiles is the last to read, and rows that the next one reads
            // too; of each those that were there before and new ones.
            const int64_t next_from = j + 1 < ys.size() ? ys[j + 1].read_from : y.present;
            const int64_t old_done =
                std::max<int64_t>(0, std::min(next_from, y.present_before) - y.read_from);
            const int64_t new_done = std::max<int64_t>(
                0, std::min(next_from, y.present) - std::max(y.read_from, y.present_before));
            const int64_t old_kept =
                std::max<int64_t>(0, y.present_before - std::max(y.read_from, next_from));
            const int64_t new_kept =
                std::max<int64_t>(0, y.present - std::max(y.present_before, next_from));
            for (const Step& x : xs) {
                const int64_t now = old_done * (width - x.read_from) +
                                    new_done * (x.present - x.read_from) + old_kept * width +
                                    new_kept * x.present;
                most = std::max(most, now);
            }
        }
        kept[l] = checked_multiply(most, stack[l].inputs.front().channels);
    }
    return kept;
}

}  // namespace laminate::spatial_fusion
