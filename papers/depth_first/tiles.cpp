#include "papers/depth_first/tiles.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/units.h"

namespace laminate::depth_first {

namespace {

int64_t floor_half(int64_t value) { return floor_div(value, 2); }

struct WindowAlong {
    int64_t stride;
    int64_t kernel;
    int64_t pad;
    int64_t dilation;
    bool transposed;
};

WindowAlong window(const WorkloadLayer& layer, Axis axis) {
    if (axis == Axis::x)
        return {layer.shape.stride.x, layer.shape.sizes[Dim::fx], layer.pad_left,
                layer.shape.dilation.x, layer.transposed};
    return {layer.shape.stride.y, layer.shape.sizes[Dim::fy], layer.pad_top, layer.shape.dilation.y,
            layer.transposed};
}

int64_t full_size(const WorkloadLayer& layer, Axis axis) {
    return layer.shape.sizes[axis == Axis::x ? Dim::ox : Dim::oy];
}

int64_t spanned(int64_t outputs, const WindowAlong& window) {
    return static_cast<int64_t>(
        span(static_cast<double>(outputs), window.stride, static_cast<double>(window.kernel)));
}

AxisTile empty_tile(const Stack& stack) {
    const size_t members = stack.members.size();
    std::vector<std::vector<int64_t>> per_source;
    for (const Stack::Member& member : stack.members)
        per_source.emplace_back(member.layer.sources.size(), 0);
    return {std::vector<int64_t>(members, 0), std::vector<int64_t>(members, 0), per_source,
            per_source, std::vector<int64_t>(members, 0)};
}

struct Range {
    int64_t begin = 0, end = 0;
    [[nodiscard]] bool empty() const { return begin >= end; }
};

/// The inputs that these outputs read, first to last, including those in the padding.
Range inputs_under(const Range& outputs, const WindowAlong& window) {
    const int64_t reach = (window.kernel - 1) * window.dilation;
    if (!window.transposed)
        return {outputs.begin * window.stride - window.pad,
                (outputs.end - 1) * window.stride - window.pad + reach + 1};
    return {floor_div(outputs.begin + window.pad - reach + window.stride - 1, window.stride),
            floor_div(outputs.end - 1 + window.pad, window.stride) + 1};
}

}  // namespace

AxisTile endless_tile(const Stack& stack, Axis axis, int64_t tile, bool use) {
    AxisTile result = empty_tile(stack);
    // Branches run ahead of each other; a member's lag is how far its last column lies behind the
    // output's. As in the artifact, the walk goes from the output along every path, and a reader
    // wants what its last visit said, with the lag known when that visit was queued.
    struct Wanted {
        int64_t overlap;
        int64_t lag;
    };
    struct Visit {
        size_t member;
        int64_t lag;
    };
    std::vector<std::map<size_t, Wanted>> wanted(stack.members.size());  // [source][reader]
    std::vector<Visit> to_visit{{stack.members.size() - 1, 0}};
    result.computed.back() = tile;
    while (!to_visit.empty()) {
        const auto [n, lag] = to_visit.back();
        to_visit.pop_back();
        const WorkloadLayer& layer = stack.members[n].layer;
        const WindowAlong w = window(layer, axis);
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
            const int64_t present = spanned(result.computed[n], w);
            const int64_t beyond = present - result.computed[n] * w.stride;
            const int64_t overlap = std::max<int64_t>(0, beyond);
            result.present[n][operand] = present;
            result.overlap[n][operand] = overlap;
            const size_t source = layer.sources[operand];
            result.computed[source] =
                std::max(result.computed[source], present - (use ? overlap : 0));
            wanted[source][n] = {overlap,
                                 w.stride * lag - floor_half(beyond + w.stride - 1) + overlap};
            int64_t furthest = wanted[source][n].lag;
            for (const auto& [reader, entry] : wanted[source])
                furthest = std::max(furthest, entry.lag);
            to_visit.push_back({source, furthest});
        }
    }
    for (size_t n = 0; n < stack.members.size(); ++n) {
        if (wanted[n].empty()) continue;
        int64_t furthest = wanted[n].begin()->second.lag, leftmost = furthest;
        for (const auto& [reader, entry] : wanted[n]) {
            furthest = std::max(furthest, entry.lag);
            leftmost = std::min(leftmost, entry.lag - entry.overlap);
        }
        result.cached[n] = furthest - leftmost;
    }
    return result;
}

std::vector<AxisTile> clipped_tiles(const Stack& stack, Axis axis,
                                    const std::vector<int64_t>& tiles,
                                    const std::vector<bool>& kept) {
    const size_t members = stack.members.size();
    std::vector<int64_t> frontier(members, 0);  // the end of what earlier tiles needed
    std::vector<AxisTile> result;
    int64_t begin = 0;
    for (const int64_t tile : tiles) {
        AxisTile here = empty_tile(stack);
        std::vector<Range> ranges(members);  // what the tile needs of each output
        std::vector<std::vector<Range>> reads(members);
        ranges.back() = {begin, begin + tile};
        begin += tile;
        for (size_t n = members; n-- > 0;) {
            const WorkloadLayer& layer = stack.members[n].layer;
            reads[n].resize(layer.sources.size());
            Range compute = ranges[n];
            if (kept[n]) compute.begin = std::max(compute.begin, frontier[n]);
            if (compute.empty()) continue;
            here.computed[n] = compute.end - compute.begin;
            const WindowAlong w = window(layer, axis);
            if (w.transposed) here.phase[n] = (compute.begin + w.pad) % w.stride;
            for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
                const size_t source = layer.sources[operand];
                const int64_t size = full_size(stack.members[source].layer, axis);
                Range in = inputs_under(compute, w);
                in = {std::clamp<int64_t>(in.begin, 0, size), std::clamp<int64_t>(in.end, 0, size)};
                if (in.empty()) continue;
                reads[n][operand] = in;
                here.present[n][operand] = in.end - in.begin;
                ranges[source] = ranges[source].empty()
                                     ? in
                                     : Range{std::min(ranges[source].begin, in.begin),
                                             std::max(ranges[source].end, in.end)};
            }
        }
        for (size_t n = 0; n < members; ++n) {
            const WorkloadLayer& layer = stack.members[n].layer;
            for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
                if (!kept[layer.sources[operand]]) continue;
                const Range in = reads[n][operand];
                here.overlap[n][operand] = std::max<int64_t>(
                    0, std::min(in.end, frontier[layer.sources[operand]]) - in.begin);
            }
        }
        for (size_t n = 0; n < members; ++n) frontier[n] = std::max(frontier[n], ranges[n].end);
        // The tile before had to keep what this tile reads again.
        if (!result.empty()) {
            for (size_t n = 0; n < members; ++n) {
                for (size_t operand = 0; operand < stack.members[n].layer.sources.size();
                     ++operand) {
                    int64_t& cached = result.back().cached[stack.members[n].layer.sources[operand]];
                    cached = std::max(cached, here.overlap[n][operand]);
                }
            }
        }
        result.push_back(std::move(here));
    }
    return result;
}

}  // namespace laminate::depth_first
