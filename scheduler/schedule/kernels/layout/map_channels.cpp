#include "scheduler/schedule/kernels/layout/map_channels.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layout/pixel_tile.h"
#include "scheduler/schedule/kernels/layout/runs.h"

namespace laminate {

namespace {

/// Vectors of a dense layer. It reads its weights once, so a long stream of them counts, without
/// zeros at the end and with something for every thread; and enough sums that none waits for its
/// predecessor.
int64_t dense_vectors(int64_t outputs, const VectorUnit& unit) {
    const int64_t all = ceil_div(outputs, unit.lanes);
    constexpr int64_t fewest = 4, most = 12;
    int64_t best = std::min(fewest, all);
    for (int64_t vectors = best + 1; vectors <= std::min({most, all, unit.accumulators});
         ++vectors) {
        const bool wastes_no_more = ceil_div(all, vectors) * vectors <= ceil_div(all, best) * best;
        if (wastes_no_more &&
            ceil_div(all, vectors) >= std::min(map_parts_wanted, ceil_div(all, fewest)))
            best = vectors;
    }
    return best;
}

/// Sets the register tile and its predicted cycles.
void choose_tile(MapChannelsLayout& at, int64_t outputs, const VectorUnit& unit) {
    // The code stores a column of outputs one by one.
    constexpr int64_t lane_store = 2;
    // Single elements come from as many streams as there are input channels.
    if (at.pixels > 4 * at.lanes) return;
    for (int64_t vectors = 1; vectors <= 4; ++vectors) {
        // Weights and one element at a time leave the other registers to sums.
        const int64_t most = (unit.registers() - vectors - 1) / vectors;
        const int64_t tile_pixels = ceil_div(at.pixels, ceil_div(at.pixels, most));
        const int64_t rest = at.pixels % tile_pixels;
        const int64_t of_tile = cycles_of_tile(vectors, tile_pixels, unit);
        // Weights come from memory once, for the first pixels, a byte while one product is computed
        // (measured on an Intel Xeon).
        const int64_t arrival = vectors * at.lanes * bytes_per_element;
        const int64_t of_block = std::max(of_tile, arrival) +
                                 (at.pixels / tile_pixels - 1) * of_tile +
                                 (rest == 0 ? 0 : cycles_of_tile(vectors, rest, unit));
        const int64_t stores = vectors * at.pixels * at.lanes * lane_store;
        const int64_t cycles =
            ceil_div(outputs, vectors * at.lanes) * (of_block * at.inputs + stores);
        if (cycles >= at.cycles) continue;
        at.vectors = vectors;
        at.tile_pixels = tile_pixels;
        at.cycles = cycles;
    }
}

}  // namespace

MapChannelsLayout map_channels_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapChannelsLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.pixels = p[Dim::y] * p[Dim::x];
    choose_tile(at, p[Dim::z], unit);
    if (at.pixels == 1) {
        at.vectors = dense_vectors(p[Dim::z], unit);
        at.tile_pixels = 1;
    }
    at.blocks = ceil_div(p[Dim::z], at.block());
    // With few blocks of channels, threads divide the pixels too.
    at.channel_parts = std::min(at.blocks, map_parts_wanted);
    at.chunks =
        std::clamp<int64_t>(at.whole_tiles(), 1, ceil_div(map_parts_wanted, at.channel_parts));
    return at;
}

bool prefers_map_channels(const LayerProblem& p, const VectorUnit& unit) {
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    return pixels == 1 || map_channels_layout(p, unit).cycles < pixel_tile(p, pixels, unit).cycles;
}

}  // namespace laminate
