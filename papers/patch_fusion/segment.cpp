#include "papers/patch_fusion/segment.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::patch_fusion {

namespace {

constexpr size_t rows_axis = 0;
constexpr size_t columns_axis = 1;

/// The input coordinates that a layer of a segment needs for these outputs; of a layer that sums
/// up, `out` is already in its input.
Range needed(const PatchLayer& layer, size_t axis, Range out) {
    return layer.intake == Intake::sums ? out : window_of(layer.window[axis], out);
}

int64_t extent(const PatchGraph& graph, int layer, int last, size_t axis) {
    const bool is_summed = layer == last && graph.layer(last).intake == Intake::sums;
    const PatchMap& map = graph.map(is_summed ? graph.layer(last).inputs.front() : layer);
    return axis == rows_axis ? map.height : map.width;
}

/// Columns from the first to the last of a map that are held for its only reader.
int64_t widest_window(const PatchLayer& reader, int64_t outputs) {
    int64_t widest = 0;
    for (int64_t column = 0; column < outputs; ++column)
        widest = std::max(widest, needed(reader, columns_axis, {column, column + 1}).size());
    return widest;
}

}  // namespace

bool is_segment(const PatchGraph& graph, int first, int last) {
    if (first == last) return true;
    for (int n = first; n <= last; ++n) {
        const Intake intake = graph.layer(n).intake;
        if (intake == Intake::whole || (intake == Intake::sums && n != last)) return false;
        const PatchMap& map = graph.map(n);
        if (n != last && (map.is_output || map.readers.empty() || map.last_reader() > last))
            return false;
    }
    return true;
}

int64_t strip_extent(const PatchGraph& graph, int last) {
    return graph.layer(last).intake == Intake::whole ? 1 : extent(graph, last, last, rows_axis);
}

std::vector<Columns> segment_columns(const PatchGraph& graph, int first, int last) {
    const auto count = static_cast<size_t>(last - first);
    std::vector<Columns> columns_of(count + 1);
    const auto at = [&](int layer) { return static_cast<size_t>(layer - first); };
    // These columns of each map are made before and after a column of the output.
    std::vector<int64_t> before(count + 1);
    std::vector<int64_t> after(count + 1);
    for (int64_t column = 0; column < extent(graph, last, last, columns_axis); ++column) {
        after[count] = column + 1;
        for (int n = last - 1; n >= first; --n) {
            int64_t made = before[at(n)];
            int64_t still_needed = made;
            for (const int reader : graph.map(n).readers) {
                const auto columns = [&](int64_t begin, int64_t end) {
                    return needed(graph.layer(reader), columns_axis, {begin, end});
                };
                made = std::max(made, columns(0, after[at(reader)]).end);
                if (before[at(reader)] < extent(graph, reader, last, columns_axis))
                    still_needed = std::min(
                        still_needed, columns(before[at(reader)], before[at(reader)] + 1).begin);
            }
            after[at(n)] = made;
            columns_of[at(n)].held = std::max(columns_of[at(n)].held, made - still_needed);
        }
        before = after;
    }
    for (int n = first; n < last; ++n) {
        const std::vector<int>& readers = graph.map(n).readers;
        if (readers.size() == 1)
            columns_of[at(n)].held =
                widest_window(graph.layer(readers.front()),
                              extent(graph, readers.front(), last, columns_axis));
    }
    for (size_t n = 0; n <= count; ++n) columns_of[n].made = after[n];
    return columns_of;
}

SegmentCost segment_cost(const PatchGraph& graph, const Segment& segment,
                         const std::vector<Columns>& columns) {
    const auto [first, last, rows] = segment;
    SegmentCost cost;
    const auto count = static_cast<size_t>(last - first + 1);
    const int64_t height = strip_extent(graph, last);
    const bool is_whole = graph.layer(last).intake == Intake::whole;
    std::vector<int64_t> most_rows(count);
    std::vector<Range> need(count);
    for (int64_t begin = 0; begin < height; begin += rows) {
        std::fill(need.begin(), need.end(), Range{0, 0});
        need[count - 1] = {begin, std::min(begin + rows, height)};
        Range before{0, 0};
        for (size_t n = count; n-- > 0;) {
            const PatchLayer& layer = graph.layer(first + static_cast<int>(n));
            most_rows[n] = std::max(most_rows[n], need[n].size());
            if (need[n].empty()) continue;
            if (layer.intake == Intake::windows)
                cost.macs += layer.macs_of(need[n], {0, columns[n].made});
            for (const int input : layer.inputs) {
                if (is_whole) {
                    if (input == first - 1) before = {0, graph.map(input).height};
                    continue;
                }
                const Range wanted = needed(layer, rows_axis, need[n]);
                if (input >= first && input < last) {
                    need[static_cast<size_t>(input - first)].extend(wanted);
                } else if (input == first - 1) {
                    before.extend(wanted);
                }
            }
        }
        cost.rows_before.push_back(before);
    }
    if (graph.layer(last).intake != Intake::windows) cost.macs += graph.layer(last).macs;
    for (size_t n = 0; n + 1 < count; ++n)
        cost.window_bytes += most_rows[n] * columns[n].held *
                             graph.map(first + static_cast<int>(n)).column_bytes();
    return cost;
}

}  // namespace laminate::patch_fusion
