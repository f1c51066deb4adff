#include "scheduler/schedule/kernels/layout/map_elementwise.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

MapElementwiseLayout map_elementwise_layout(const LayerProblem& p, const VectorUnit& unit,
                                            bool has_slopes) {
    MapElementwiseLayout at;
    at.lanes = unit.lanes;
    const bool is_map_by_map =
        has_slopes || std::ranges::any_of(p.inputs, [](const LayerInput& operand) {
            return operand.is_pixel || operand.is_plane;
        });
    at.axes = is_map_by_map ? p[Dim::z] : 1;
    at.elements = p[Dim::z] / at.axes * p[Dim::y] * p[Dim::x];
    at.whole_tiles = at.elements / at.step();
    const int64_t first = at.whole_tiles * at.step();
    at.rest = full_runs(first, ceil_div(at.elements - first, at.lanes), at.elements, at.lanes);
    at.parts = std::clamp<int64_t>(at.axes > 1 ? at.axes : at.whole_tiles, 1, map_parts_wanted);
    return at;
}

}  // namespace laminate
