#include "scheduler/schedule/kernels/layout/map_panels.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/pixel_tile.h"

namespace laminate {

int64_t MapPanelsLayout::multiplications() const {
    int64_t of_row = 0;
    for (const std::vector<VectorRun>& runs : tiles) of_row += lanes_of(runs);
    return rows * of_row * blocks * block * inputs * taps;
}

MapPanelsLayout map_panels_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapPanelsLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.taps = p.y().kernel * p.x().kernel;
    at.rows = p[Dim::y];
    const PixelTile tile = pixel_tile(p, p[Dim::x], unit);
    at.block = tile.channels;
    at.blocks = ceil_div(p[Dim::z], at.block);
    at.vectors = tile.vectors;
    const TileDivision division = divide_into_tiles(ceil_div(p[Dim::x], at.lanes), at.vectors);
    std::vector<int64_t> widths(static_cast<size_t>(division.whole), at.vectors);
    widths.insert(widths.end(), division.rest.begin(), division.rest.end());
    int64_t first = 0;
    for (const int64_t vectors : widths) {
        at.tiles.push_back(full_runs(first, vectors, p[Dim::x], at.lanes));
        first += vectors * at.lanes;
    }
    at.parts = std::min(at.rows, map_parts_wanted);
    return at;
}

}  // namespace laminate
