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

namespace {

/// Chooses how many rows share a panel: as many as divide the map's evenly.
void choose_panel(MapPanelsLayout& at, const LayerProblem& p) {
    const AxisWindow& w = p.y();
    at.rows_of_panel = 1;
    // The windows of neighbouring rows are runs of the same rows only without gaps.
    if (w.dilation == 1 && w.stride < w.kernel) {
        for (const int64_t rows : {2, 3, 4}) {
            if (at.rows % rows == 0) at.rows_of_panel = rows;
        }
    }
    at.panel_rows = (at.rows_of_panel - 1) * w.stride + w.kernel;
    at.panel_row = p[Dim::i] * p.x().kernel;
}

}  // namespace

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
    choose_panel(at, p);
    at.parts = std::min(at.panels(), map_parts_wanted);
    return at;
}

}  // namespace laminate
