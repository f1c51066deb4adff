#include "scheduler/schedule/kernels/layout/map_pooling.h"

#include <algorithm>

namespace laminate {

MapPoolingLayout map_pooling_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapPoolingLayout at;
    at.runs = runs_of(p[Dim::x], unit);
    const AxisWindow& w = p.y();
    const auto is_inner = [&](int64_t y) {
        const int64_t first = y * w.stride - w.pad_begin;
        return first >= 0 && first + w.span() - 1 < w.in;
    };
    while (at.inner_begin < p[Dim::y] && !is_inner(at.inner_begin)) ++at.inner_begin;
    at.inner_end = at.inner_begin;
    while (at.inner_end < p[Dim::y] && is_inner(at.inner_end)) ++at.inner_end;
    at.divides_rows = threads_divide_pixels(w.in * p.x().in) && p[Dim::y] >= map_parts_wanted;
    at.parts = std::min(p[at.divides_rows ? Dim::y : Dim::z], map_parts_wanted);
    return at;
}

}  // namespace laminate
