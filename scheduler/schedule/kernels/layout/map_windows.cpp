#include "scheduler/schedule/kernels/layout/map_windows.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/pixel_tile.h"

namespace laminate {

PixelGrid::PixelGrid(const LayerProblem& p) {
    for (size_t axis = 0; axis < 2; ++axis) {
        const AxisWindow& w = p.window[axis];
        for (int64_t n = 0; n < w.kernel; ++n)
            phases[axis] = std::max(phases[axis], n * w.dilation % w.stride + 1);
    }
    rows = p[Dim::y] + (p.y().kernel - 1) * p.y().dilation / p.y().stride;
    columns = p[Dim::x] + (p.x().kernel - 1) * p.x().dilation / p.x().stride;
    pixels = (p[Dim::y] - 1) * columns + p[Dim::x];
}

int64_t MapWindowsLayout::multiplications() const {
    int64_t computed = whole_tiles * step();
    for (const Tile& tile : rest) computed += lanes_of(tile.runs);
    return computed * blocks * block * inputs * taps;
}

MapWindowsLayout map_windows_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapWindowsLayout at{.lanes = unit.lanes,
                        .inputs = p[Dim::i],
                        .taps = p.y().kernel * p.x().kernel,
                        .grid = PixelGrid(p)};
    at.grid_runs = runs_of(at.grid.columns, unit);
    at.row_runs = runs_of(p[Dim::x], unit);
    const PixelTile tile = pixel_tile(p, at.grid.pixels, unit);
    at.block = tile.channels;
    at.blocks = ceil_div(p[Dim::z], at.block);
    at.vectors = tile.vectors;
    // Sums of several taps go through scratch, where lanes behind the last pixel do no harm.
    const TileDivision division =
        at.has_one_tap()
            ? divide_into_full_tiles(at.grid.pixels, at.lanes, at.vectors)
            : divide_into_tiles(ceil_div(at.grid.pixels, at.lanes), at.vectors);
    at.whole_tiles = division.whole;
    int64_t first = at.whole_tiles * at.step();
    for (const int64_t vectors : division.rest) {
        at.rest.push_back({first, full_runs(0, vectors, at.grid.pixels - first, at.lanes)});
        first += vectors * at.lanes;
    }
    // Every part copies what it reads, so there are fewer parts than elsewhere.
    constexpr int64_t parts_wanted = map_parts_wanted / 2;
    at.chunks = std::min(at.tiles(), parts_wanted);
    at.channel_parts = std::min(std::max<int64_t>(1, at.blocks / fewest_reads_of_copy),
                                ceil_div(parts_wanted, at.chunks));
    const int64_t panel = at.inputs * p.x().kernel * at.step();
    const int64_t sums =
        at.has_one_tap() ? 0 : ceil_div(at.blocks, at.channel_parts) * at.block * at.step();
    at.sums_offset = panel;
    at.grid_offset = panel + sums;
    // Vectors run over the end of the copied rows and of the grid itself.
    at.elements =
        at.grid_offset + ceil_div(at.grid.channel() * at.inputs + 2 * at.lanes, int64_t{16}) * 16;
    return at;
}

}  // namespace laminate
