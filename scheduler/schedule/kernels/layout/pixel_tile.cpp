#include "scheduler/schedule/kernels/layout/pixel_tile.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/runs.h"

namespace laminate {

int64_t cycles_of_tile(int64_t a, int64_t b, const VectorUnit& unit) {
    return std::max({a * b, a + b, unit.latency()});
}

PixelTile pixel_tile(const LayerProblem& p, int64_t pixels, const VectorUnit& unit) {
    PixelTile best;
    for (const int64_t vectors : {3, 4, 2}) {
        const int64_t channels = std::min(unit.sums_per_vector(vectors), p[Dim::z]);
        if (pixels < unit.lanes || (pixels <= (vectors - 1) * unit.lanes && vectors > 2)) continue;
        const TileDivision tiles = divide_into_tiles(ceil_div(pixels, unit.lanes), vectors);
        int64_t of_block = tiles.whole * cycles_of_tile(vectors, channels, unit);
        for (const int64_t rest : tiles.rest) of_block += cycles_of_tile(rest, channels, unit);
        const int64_t cycles = ceil_div(p[Dim::z], channels) * of_block * p[Dim::i];
        if (cycles < best.cycles) best = {channels, vectors, cycles};
    }
    return best;
}

}  // namespace laminate
