#include "scheduler/schedule/kernels/layout/winograd_map.h"

#include <algorithm>

#include "scheduler/schedule/kernels/register_tile.h"

namespace laminate {

namespace {

void choose_chunks(WinogradMapLayout& at, const LayerProblem& p) {
    at.row_tiles = ceil_div(p[Dim::x], WinogradMapLayout::columns_of_tile);
    at.slots = 1;
    while (at.slots < at.row_tiles) at.slots *= 2;
    at.slots = std::min(at.slots, at.lanes);
    at.pairs_of_vector = at.lanes / at.slots;
    at.pairs = ceil_div(p[Dim::y], WinogradMapLayout::rows_of_tile);
    // V beside U and M in a second-level cache of 1 MiB, unless weights, which every chunk
    // transforms anew, would suffer. Half of these sizes was no faster with a cache of 512 KiB
    // either (docs/performance.md).
    constexpr int64_t most_patch_elements = (int64_t{384} << 10) / 4;
    constexpr int64_t fewest_tiles = 28;
    const int64_t that_fit =
        std::max(most_patch_elements / (at.frequencies * p[Dim::i]), fewest_tiles) / at.row_tiles;
    at.chunks = ceil_div(at.pairs, std::clamp<int64_t>(that_fit, 1, at.pairs));
    at.chunk_pairs = ceil_div(at.pairs, at.chunks);
    if (at.chunks > 1 && at.chunk_pairs > at.pairs_of_vector)
        at.chunk_pairs = round_up(at.chunk_pairs, at.pairs_of_vector);
    at.chunks = ceil_div(at.pairs, at.chunk_pairs);
}

void choose_blocks(WinogradMapLayout& at, const LayerProblem& p, const VectorUnit& unit) {
    // A block's weights and one element at a time leave the other registers to sums.
    const int64_t all = at.chunk_pairs * at.row_tiles;
    double best = 0;
    for (int64_t v = 1; v <= 4; ++v) {
        const int64_t most = std::min(all, (unit.registers() - v - 1) / v);
        const int64_t t = ceil_div(all, ceil_div(all, most));
        const double score =
            product_efficiency(v, t) * used_part(all, t) * used_part(p[Dim::z], v * at.lanes);
        if (score <= best + 1e-9) continue;
        best = score;
        at.vectors = v;
        at.tile = t;
    }
    at.block = at.vectors * at.lanes;
    at.blocks = ceil_div(p[Dim::z], at.block);
    constexpr int64_t most_weight_elements = (int64_t{160} << 10) / 4;
    at.input_parts = ceil_div(
        p[Dim::i], std::max<int64_t>(1, most_weight_elements / (at.frequencies * at.block)));
    at.inputs = ceil_div(p[Dim::i], at.input_parts);
    at.input_parts = ceil_div(p[Dim::i], at.inputs);
    // Every part transforms the patches that it multiplies: few parts.
    constexpr int64_t parts_wanted = 4, fewest_blocks = 2;
    at.channel_parts =
        std::clamp<int64_t>(at.blocks / fewest_blocks, 1, ceil_div(parts_wanted, at.chunks));
}

void place(WinogradMapLayout& at) {
    const int64_t all = round_up(at.chunk_pairs * at.row_tiles, at.tile);
    at.tiles = std::max(all, (round_up(at.chunk_pairs, at.pairs_of_vector) - 1) * at.row_tiles +
                                 round_up(at.row_tiles, at.slots));
    // A vector more than needed: powers of two would make all frequencies meet in one cache set.
    at.patch_frequency = round_up(at.inputs * at.tiles, at.lanes) + at.lanes;
    at.weight_frequency = at.inputs * at.block + at.lanes;
    at.product_frequency = all * at.block + at.lanes;
    at.weights = at.input_parts * at.frequencies * at.patch_frequency;
    at.products = at.weights + at.frequencies * at.weight_frequency;
    at.elements = at.products + at.frequencies * at.product_frequency;
}

}  // namespace

int64_t WinogradMapLayout::multiplications() const {
    int64_t computed = 0;  // tiles
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const int64_t here = std::min(pairs - chunk * chunk_pairs, chunk_pairs);
        computed += round_up(here * row_tiles, tile);
    }
    return computed * frequencies * all_inputs * blocks * block;
}

WinogradMapLayout winograd_map_layout(const LayerProblem& p, const VectorUnit& unit) {
    WinogradMapLayout at;
    at.lanes = unit.lanes;
    at.all_inputs = p[Dim::i];
    choose_chunks(at, p);
    choose_blocks(at, p, unit);
    place(at);
    return at;
}

}  // namespace laminate
