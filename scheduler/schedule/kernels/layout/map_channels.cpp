#include "scheduler/schedule/kernels/layout/map_channels.h"

#include <algorithm>
#include <limits>

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
/// registers to sums. Taps of a wider window share elements that are read in place, which need registers
/// too: a tile is then a row of the map or a few short ones.
int64_t most_pixels(int64_t vectors, bool has_panel, const LayerProblem& p, const VectorUnit& unit) {
    const int64_t most = std::max<int64_t>(1, (unit.registers() - vectors - 1) / vectors);
    const int64_t row = p[Dim::x];
    if (has_panel || p.x().kernel == 1 || row > most) return most;
    return std::max<int64_t>(1, most / 2 / row) * row;
}

/// Whether its taps are too many to be written out.
bool needs_panel(const LayerProblem& p) {
    return p[Dim::y] * p[Dim::x] * p.y().kernel * p.x().kernel > most_taps_written_out;
}

/// Blocks of channels that must read a panel to make up for filling it.
constexpr int64_t fewest_blocks_of_panel = 2 * fewest_reads_of_copy;

/// Sets the register tile and its predicted cycles. The fewer vectors a tile has, the more pixels,
/// and the less often weights come from the second-level cache; a single vector loads more than it
/// multiplies. Short rows divide into tiles of so few pixels that more vectors may take fewer cycles.
void choose_tile(MapChannelsLayout& at, const LayerProblem& p, const VectorUnit& unit) {
    const int64_t all = ceil_div(p[Dim::z], unit.lanes);
    int64_t least = std::numeric_limits<int64_t>::max();
    at.cycles = least;
    at.runs = at.has_panel && !is_pointwise(p) ? p[Dim::y] : 1;
    for (int64_t vectors = std::min<int64_t>(2, all); vectors <= std::min<int64_t>(4, all);
         ++vectors) {
        const int64_t computed = ceil_div(all, vectors) * vectors;
        if (at.runs == 1 && computed >= least) continue;
        if (at.has_panel && least < std::numeric_limits<int64_t>::max() &&
            ceil_div(all, vectors) < fewest_blocks_of_panel)
            continue;
        least = computed;
        MapChannelsLayout other = at;
        other.vectors = vectors;
        other.tiles =
            other.runs * ceil_div(other.run(), most_pixels(vectors, other.has_panel, p, unit));
        // Sums become rows of pixels before they are stored, which takes as long as some products.
        int64_t of_block = other.tiles * vectors * 8 * unit.lanes;
        for (int64_t n = 0; n < other.tiles; ++n)
            of_block += cycles_of_tile(vectors, other.tile_pixels(n), unit) * other.inputs *
                        (other.has_panel ? other.window_rows * other.window_columns : 1);
        other.cycles = ceil_div(all, vectors) * of_block;
        if (other.runs == 1 || other.cycles < at.cycles) at = other;
    }
}

/// Tiles of AVX-512 have twice as many pixels, so they use most of each line that they read in place, but for
/// windows that move over larger maps of many channels.
bool may_have_panel(const MapChannelsLayout& at) {
    constexpr int64_t lanes_of_long_tiles = 16, larger_map = 100, many_inputs = 256;
    if (at.lanes < lanes_of_long_tiles) return at.pixels >= 2 * at.lanes;
    return at.window_rows * at.window_columns > 1 && at.pixels > larger_map && at.inputs >= many_inputs;
}

/// Chunks whose panels stay in the second-level cache, `fewest` at least. The finished sums of a chunk
/// are stored a vector of pixels at a time, so the smallest chunk has that many.
int64_t chunks_of_panel(const MapChannelsLayout& at, int64_t fewest) {
    const Bytes panel =
        to_bytes(Elements(at.window_rows * at.window_columns * at.inputs * at.pixels));
    const int64_t units = at.runs > 1 ? at.runs : at.tiles;
    int64_t chunks =
        std::min(units, std::max(fewest, ceil_div(panel.value(), panel_of_chunk.value())));
    while (chunks > 1 && units / chunks * (at.pixels / units) < at.lanes) --chunks;
    return chunks;
}

}  // namespace

MapChannelsLayout map_channels_layout(const LayerProblem& p, const VectorUnit& unit) {
    MapChannelsLayout at;
    at.lanes = unit.lanes;
    at.inputs = p[Dim::i];
    at.pixels = p[Dim::y] * p[Dim::x];
    at.taps = row_taps(p.y(), 0, p[Dim::y]) * row_taps(p.x(), 0, p[Dim::x]);
    at.window_rows = p.y().kernel;
    at.window_columns = p.x().kernel;
    if (at.pixels == 1) {
        at.vectors = dense_vectors(p[Dim::z], unit);
    } else {
        at.has_panel = needs_panel(p) || may_have_panel(at);
        choose_tile(at, p, unit);
        if (ceil_div(p[Dim::z], at.block()) < fewest_blocks_of_panel && !needs_panel(p)) {
            at.has_panel = false;
            choose_tile(at, p, unit);
        }
    }
    at.blocks = ceil_div(p[Dim::z], at.block());
    if (at.has_panel) at.taps = at.pixels * at.window_rows * at.window_columns;
    if (at.pixels > 1) {
        const Bytes of_input = to_bytes(Elements(p.x().kernel * at.block()));
        const Bytes of_pass = at.has_panel ? weights_before_panel : weights_of_pass;
        at.input_parts = ceil_div(of_input.value() * at.inputs, of_pass.value());
    }
    // With few blocks of channels, threads divide the pixels of a small map too.
    at.channel_parts =
        threads_divide_pixels(at.pixels) ? 1 : std::min(at.blocks, map_parts_wanted);
    at.chunks = std::min(at.tiles, ceil_div(map_parts_wanted, at.channel_parts));
    if (at.has_panel) {
        at.chunks = chunks_of_panel(at, at.chunks);
    } else if (is_pointwise(p) && at.chunks == 1 && at.blocks % 2 == 1 && at.tiles > 1) {
        at.channel_parts = at.blocks;
        at.block_parts = 2;
    }
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
