#include "scheduler/schedule/kernels/layout/map_channels.h"

#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/pixel_tile.h"
#include "scheduler/schedule/kernels/layout/runs.h"

namespace laminate {

namespace {

/// Weights of a pass: with the next ones and the inputs that they meet, less than a second-level
/// cache.
constexpr Bytes weights_of_pass(64 << 10);
/// With a panel: half of a first-level cache, which the panel of a tile passes through.
constexpr Bytes weights_before_panel(16 << 10);
/// Panel of a chunk: with weights and sums, less than a second-level cache.
constexpr Bytes panel_of_chunk(256 << 10);

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

/// The most pixels of a tile of so many vectors. Weights and one element at a time leave the other
/// registers to sums. Taps of a wider window share elements, which need registers too: a tile is
/// then a row of the map or a few short ones.
int64_t most_pixels(int64_t vectors, const LayerProblem& p, const VectorUnit& unit) {
    const int64_t most = std::max<int64_t>(1, (unit.registers() - vectors - 1) / vectors);
    const int64_t row = p[Dim::x];
    if (p.x().kernel == 1 || row > most) return most;
    return std::max<int64_t>(1, most / 2 / row) * row;
}

/// Sets the register tile and its predicted cycles. The fewer vectors a tile has, the more pixels,
/// and the less often weights come from the second-level cache; a single vector loads more than it
/// multiplies.
void choose_tile(MapChannelsLayout& at, const LayerProblem& p, const VectorUnit& unit) {
    const int64_t all = ceil_div(p[Dim::z], unit.lanes);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t vectors = std::min<int64_t>(2, all); vectors <= std::min<int64_t>(4, all);
         ++vectors) {
        const int64_t computed = ceil_div(all, vectors) * vectors;
        if (computed >= least) continue;
        least = computed;
        at.vectors = vectors;
        at.tiles = ceil_div(at.pixels, most_pixels(vectors, p, unit));
        // Sums become rows of pixels before they are stored, which takes as long as some products.
        int64_t of_block = at.tiles * vectors * 8 * unit.lanes;
        for (int64_t n = 0; n < at.tiles; ++n)
            of_block += cycles_of_tile(vectors, at.tile_pixels(n), unit) * at.inputs;
        at.cycles = ceil_div(all, vectors) * of_block;
    }
}

/// Layers of one tap that enough blocks of channels read. Tiles of AVX-512 have twice as many pixels, so
/// they use most of each line that they read in place.
bool wants_panel(const MapChannelsLayout& at, const LayerProblem& p) {
    constexpr int64_t lanes_of_long_tiles = 16;
    return at.lanes < lanes_of_long_tiles && p.y().kernel * p.x().kernel == 1 &&
           at.taps == at.pixels && at.pixels >= 2 * at.lanes &&
           at.blocks >= 2 * fewest_reads_of_copy;
}

/// Chunks whose panels stay in the second-level cache, `fewest` at least. The finished sums of a chunk
/// are stored a vector of pixels at a time, so the smallest chunk has that many.
int64_t chunks_of_panel(const MapChannelsLayout& at, int64_t fewest) {
    const Bytes panel = to_bytes(Elements(at.inputs * at.pixels));
    int64_t chunks =
        std::min(at.tiles, std::max(fewest, ceil_div(panel.value(), panel_of_chunk.value())));
    while (chunks > 1 && at.tiles / chunks * (at.pixels / at.tiles) < at.lanes) --chunks;
    return chunks;
}

}  // namespace

MapChannelsLayout map_channels_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapChannelsLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.pixels = p[Dim::y] * p[Dim::x];
    at.taps = row_taps(p.y(), 0, p[Dim::y]) * row_taps(p.x(), 0, p[Dim::x]);
    if (at.pixels == 1) {
        at.vectors = dense_vectors(p[Dim::z], unit);
    } else {
        choose_tile(at, p, unit);
    }
    at.blocks = ceil_div(p[Dim::z], at.block());
    at.window_rows = p.y().kernel;
    at.has_panel = wants_panel(at, p);
    if (at.pixels > 1) {
        const Bytes of_input = to_bytes(Elements(p.x().kernel * at.block()));
        const Bytes of_pass = at.has_panel ? weights_before_panel : weights_of_pass;
        at.input_parts = ceil_div(of_input.value() * at.inputs, of_pass.value());
    }
    // With few blocks of channels, threads divide the pixels of a small map too.
    at.channel_parts =
        threads_divide_pixels(at.pixels) ? 1 : std::min(at.blocks, map_parts_wanted);
    at.chunks = std::min(at.tiles, ceil_div(map_parts_wanted, at.channel_parts));
    if (at.has_panel) at.chunks = chunks_of_panel(at, at.chunks);
    return at;
}

bool prefers_map_channels(const LayerProblem& p, const VectorUnit& unit) {
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    if (pixels == 1) return true;
    // map_pixels waits for its weights, which come one by one, each for about two products.
    const int64_t arrival = 2 * p.weight_elements().value();
    const PixelTile tile = pixel_tile(p, pixels, unit);
    return pixels < unit.lanes || map_channels_layout(p, unit).cycles <= tile.cycles + arrival;
}

}  // namespace laminate
