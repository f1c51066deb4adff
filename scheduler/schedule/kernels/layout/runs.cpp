#include "scheduler/schedule/kernels/layout/runs.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

std::vector<VectorRun> runs_of(int64_t extent, const VectorUnit& unit) {
    std::vector<VectorRun> runs;
    for (int64_t first = 0; first < extent; first += unit.lanes) {
        const int64_t left = extent - first;
        const int64_t half = unit.lanes / 2;
        runs.push_back(
            {first, half >= 4 && left <= half ? half : unit.lanes, 0, std::min(left, unit.lanes)});
    }
    return runs;
}

std::vector<VectorRun> overlapping_runs(int64_t extent, const VectorUnit& unit) {
    std::vector<VectorRun> runs = runs_of(extent, unit);
    VectorRun& last = runs.back();
    const int64_t back = std::min(last.first, last.lanes - last.end);
    last = {last.first - back, last.lanes, 0, last.end + back};
    return runs;
}

std::vector<VectorRun> full_runs(int64_t first, int64_t vectors, int64_t end, int64_t lanes) {
    std::vector<VectorRun> runs;
    for (int64_t v = 0; v < vectors; ++v, first += lanes)
        runs.push_back({first, lanes, 0, std::min(lanes, end - first)});
    return runs;
}

VectorRun moved_inside(VectorRun run, int64_t extent) {
    const int64_t back = std::min(run.first, std::max<int64_t>(0, run.first + run.lanes - extent));
    return {run.first - back, run.lanes, run.begin + back, run.end + back};
}

int64_t lanes_of(const std::vector<VectorRun>& runs) {
    int64_t lanes = 0;
    for (const VectorRun& run : runs) lanes += run.lanes;
    return lanes;
}

TileDivision divide_into_tiles(int64_t all, int64_t vectors) {
    const int64_t rest = all % vectors;
    if (rest == 1 && all > vectors && vectors > 2)
        return {all / vectors - 1, {(vectors + 1) - (vectors + 1) / 2, (vectors + 1) / 2}};
    return {all / vectors, rest == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{rest}};
}

TileDivision divide_into_full_tiles(int64_t elements, int64_t lanes, int64_t vectors) {
    TileDivision division = divide_into_tiles(ceil_div(elements, lanes), vectors);
    if (division.rest.empty() && elements % lanes != 0) {
        --division.whole;
        division.rest = {vectors};
    }
    return division;
}

int64_t PixelTiles::lanes(int64_t step) const {
    int64_t all = whole * step;
    for (const std::vector<VectorRun>& runs : rest) all += lanes_of(runs);
    return all;
}

PixelTiles tiles_of_pixels(int64_t pixels, int64_t lanes, int64_t vectors) {
    const TileDivision division = divide_into_full_tiles(pixels, lanes, vectors);
    PixelTiles tiles{division.whole, {}};
    int64_t first = tiles.whole * vectors * lanes;
    for (const int64_t of_tile : division.rest) {
        std::vector<VectorRun>& runs =
            tiles.rest.emplace_back(full_runs(first, of_tile, pixels, lanes));
        for (VectorRun& run : runs) run = moved_inside(run, pixels);
        first += of_tile * lanes;
    }
    return tiles;
}

}  // namespace laminate
