#include "scheduler/schedule/kernels/layout/map_addition.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

MapAdditionLayout map_addition_layout(const LayerProblem& p, const VectorUnit& unit,
                                      bool has_slopes) {
    MapAdditionLayout at;
    at.lanes = unit.lanes;
    at.axes = has_slopes ? p[Dim::z] : 1;
    at.elements = p[Dim::y] * p[Dim::x] * (has_slopes ? 1 : p[Dim::z]);
    at.whole_tiles = at.elements / at.step();
    const int64_t first = at.whole_tiles * at.step();
    at.rest = full_runs(first, ceil_div(at.elements - first, at.lanes), at.elements, at.lanes);
    at.parts = std::clamp<int64_t>(at.whole_tiles, 1, map_parts_wanted);
    return at;
}

}  // namespace laminate
