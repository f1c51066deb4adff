#include "scheduler/counts/like_boxes.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace laminate {

namespace {

/// Rows from the end of a tensor on that padding may reach.
int64_t border_of(const AxisWindow& w) {
    const int64_t pad_end = (w.out - 1) * w.stride + w.span() - w.in - w.pad_begin;
    return std::max({w.span(), w.pad_begin, w.transposed ? 0 : pad_end}) + w.stride;
}

}  // namespace

BoxRanges like_boxes(const BoxRanges& boxes, const LayerProblem& p) {
    BoxRanges merged;
    for (const AxisRanges& axis : boxes) {
        AxisRanges& like = merged.emplace_back(AxisRanges{axis.dim, {}});
        std::map<std::array<int64_t, 3>, Range> known;
        for (const auto& [range, times] : axis.times) {
            std::array<int64_t, 3> key{range.size(), 0, 0};
            if (axis.dim == Dim::x && p.x().transposed) key[1] = range.begin % p.x().stride;
            if (axis.dim == Dim::y) {
                const int64_t border = border_of(p.y());
                const bool is_inside = range.begin >= border && range.end + border <= p[Dim::y];
                const int64_t period = p.y().transposed ? std::lcm(p.y().stride, int64_t{2}) : 2;
                key = {range.size(), range.begin % period, is_inside ? -1 : range.begin};
            }
            like.times[known.try_emplace(key, range).first->second] += times;
        }
    }
    return merged;
}

int64_t sum_over_boxes(const BoxRanges& boxes, const std::function<int64_t(Dim, Range)>& factor) {
    int64_t product = 1;
    for (const AxisRanges& axis : boxes) {
        int64_t sum = 0;
        for (const auto& [range, times] : axis.times)
            sum += times * (axis.dim ? factor(*axis.dim, range) : 1);
        product *= sum;
    }
    return product;
}

}  // namespace laminate
