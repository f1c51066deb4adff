#include "scheduler/schedule/kernels/layout/winograd_rows.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

namespace {

using Steps = std::set<std::pair<int64_t, int64_t>>;

constexpr int64_t line_elements = 16;  // of a cache line

/// Sets what the steps ask for and returns the most bands of one.
int64_t note_steps(WinogradTile& tile, const LayerProblem& p, const Steps& steps) {
    int64_t most_bands = 1;
    for (const auto& [begin, end] : steps) {
        // A band may reach over the end of the picture: below it there is nothing but zeros.
        const bool may_be_partial = tile.rows >= 4 || end == p[Dim::y];
        const int64_t rows = may_be_partial ? round_up(end - begin, tile.rows) : end - begin;
        if (rows != end - begin) tile.has_partial = true;
        if (rows >= tile.rows) tile.has_bands = true;
        if (rows % tile.rows != 0) tile.has_singles = true;
        most_bands = std::max(most_bands, rows / tile.rows);
    }
    return most_bands;
}

/// The tile for bands of that many rows, and how much of a core's peak its products reach.
std::pair<WinogradTile, double> tile_of_rows(const LayerProblem& p, const Steps& steps,
                                             int64_t columns, const VectorUnit& unit,
                                             WinogradAxes axes, int64_t rows_of_band) {
    WinogradTile tile;
    tile.rows = rows_of_band;
    const int64_t most_bands = note_steps(tile, p, steps);
    const int64_t row_tiles = ceil_div(columns, WinogradTile::columns);
    double best = 0;
    const auto try_tiles_of = [&](int64_t vectors) {
        const int64_t most = std::min(unit.sums_per_vector(vectors), p[Dim::z]);
        for (int64_t channels = 1; channels <= most; ++channels) {
            const double score = product_efficiency(vectors, channels) *
                                 used_part(row_tiles, vectors * unit.lanes) *
                                 used_part(p[Dim::z], channels);
            if (score <= best + 1e-9) continue;
            best = score;
            tile.axis = VectorAxis::x;
            tile.channels = channels;
            tile.tiles = vectors * unit.lanes;
        }
    };
    for (int64_t vectors = 1; vectors <= 4; ++vectors) {
        if (vectors <= 2) try_tiles_of(vectors);
        // Patches of as many bands together as leave V in the caches.
        constexpr int64_t most_patch_elements = (int64_t{2} << 20) / 4;
        const int64_t that_fit = std::max<int64_t>(
            1, most_patch_elements / (WinogradTile::frequencies(tile.rows) * p[Dim::i] * row_tiles));
        const int64_t bands = ceil_div(most_bands, ceil_div(most_bands, that_fit));
        const bool by_channels = axes == WinogradAxes::any;
        for (int64_t tiles = 1; by_channels && tiles <= unit.sums_per_vector(vectors); ++tiles) {
            // Every weight comes from the caches once for all tiles: few tiles wait for it. Results
            // are scattered over planes.
            const auto together = static_cast<double>(bands * row_tiles);
            const double waits = 1 + 4 / together;
            const double score = 0.9 / waits * product_efficiency(vectors, tiles) *
                                 used_part(bands * row_tiles, tiles) *
                                 used_part(p[Dim::z], vectors * unit.lanes);
            if (score <= best + 1e-9) continue;
            best = score;
            tile.axis = VectorAxis::z;
            tile.channels = vectors * unit.lanes;
            tile.tiles = tiles;
            tile.bands = bands;
        }
    }
    if (tile.axis == VectorAxis::x) {
        // Three vectors were measured neither against lanes of channels nor with vectors of 64 bytes.
        if (unit.lanes < line_elements) try_tiles_of(3);
        tile.bands = 1;
    }
    return {tile, best};
}

}  // namespace

bool tiles_of_four_pay(const LayerProblem& p) {
    const KernelRow& row = kernel_row(KernelKind::winograd_rows);
    if (!row.accepts(p)) return false;
    if (row.pays(p)) return true;
    // Cycles for a vector of tiles on zen4, where transforms wait for stores: 36 products per pair
    // of channels in place of 144.
    const auto in = static_cast<double>(p[Dim::i]);
    const auto out = static_cast<double>(p.group_outputs());
    return 36 * in * out + 257 * in + 280 * out < 0.85 * 144 * in * out;
}

std::optional<WinogradTile> winograd_tile(const LayerProblem& p, const Steps& steps,
                                          int64_t columns, const VectorUnit& unit,
                                          WinogradAxes axes, int64_t most_rows) {
    const bool by_pairs = kernel_pays(p, KernelKind::winograd_rows);
    const bool by_fours = most_rows >= 4 && tiles_of_four_pay(p);
    if (steps.empty() || (!by_pairs && !by_fours)) return std::nullopt;
    auto [best, efficiency] = tile_of_rows(p, steps, columns, unit, axes, 2);
    // A third of the products plus the transforms must still be less than the direct way.
    constexpr double least_efficiency = 0.45;
    if (efficiency * used_part(columns, WinogradTile::columns) < least_efficiency)
        return std::nullopt;
    const auto products = [&](const WinogradTile& tile) {
        int64_t all = 0;
        for (const auto& [begin, end] : steps)
            all += winograd_multiplications(p, tile, {begin, end}, columns);
        return all;
    };
    if (by_pairs) {
        for (const int64_t rows : {4, 6}) {
            if (rows > most_rows) break;
            const WinogradTile higher = tile_of_rows(p, steps, columns, unit, axes, rows).first;
            if (products(higher) < products(best)) best = higher;
        }
        return best;
    }
    // Steps of other heights compute rows for nothing.
    constexpr double most_computed = 1.05;
    const WinogradTile fours = tile_of_rows(p, steps, columns, unit, axes, 4).first;
    int64_t asked = 0, computed = 0;
    for (const auto& [begin, end] : steps) {
        asked += end - begin;
        computed += round_up(end - begin, fours.rows);
    }
    const bool are_whole =
        static_cast<double>(computed) <= most_computed * static_cast<double>(asked);
    return are_whole ? std::optional(fours) : std::nullopt;
}

bool transforms_weights(const LayerProblem& p, const WinogradTile& tile, int64_t lanes) {
    return tile.axis == VectorAxis::x && tile.rows >= 4 && p[Dim::i] * tile.channels % lanes == 0;
}

bool transforms_all_weights(const LayerProblem& p, const WinogradTile& tile) {
    return tile.weights > 0 && tile.weights == ceil_div(p[Dim::z], tile.channels);
}

int64_t parts_in_cache(const LayerProblem& p, const WinogradTile& tile) {
    constexpr Bytes most_patches{768 << 10};
    const Elements of_part(WinogradTile::frequencies(tile.rows) * p[Dim::i] * tile.tiles);
    return most_patches.value() / to_bytes(of_part).value();
}

WinogradTile with_parts(const LayerProblem& p, WinogradTile tile, int64_t columns) {
    if (tile.weights == 0 || transforms_all_weights(p, tile)) return tile;
    const int64_t parts = ceil_div(columns, tile.tiles * WinogradTile::columns);
    const int64_t that_fit = std::max<int64_t>(1, parts_in_cache(p, tile));
    tile.parts = ceil_div(parts, ceil_div(parts, that_fit));
    tile.blocks = tile.weights;
    return tile;
}

Kernel kernel_of(const WinogradTile& tile, int64_t lanes) {
    Kernel kernel;
    const bool by_tiles = tile.axis == VectorAxis::x;
    kernel.kind = by_tiles ? KernelKind::winograd_rows : KernelKind::winograd_channels;
    kernel.size[KernelSize::channels] = by_tiles ? tile.channels : tile.channels / lanes;
    kernel.size[KernelSize::columns] = by_tiles ? tile.tiles / lanes : tile.tiles;
    kernel.size[KernelSize::pairs] = by_tiles ? 0 : tile.bands;
    kernel.size[KernelSize::form] = form_of_tile(tile.rows);
    kernel.size[KernelSize::weights] = tile.weights;
    kernel.size[KernelSize::lanes] = lanes;
    return kernel;
}

WinogradTile winograd_tile_of(const Kernel& kernel) {
    const int64_t lanes = kernel[KernelSize::lanes];
    WinogradTile tile;
    const bool by_tiles = kernel.kind == KernelKind::winograd_rows;
    tile.axis = by_tiles ? VectorAxis::x : VectorAxis::z;
    tile.channels = kernel[KernelSize::channels] * (by_tiles ? 1 : lanes);
    tile.tiles = kernel[KernelSize::columns] * (by_tiles ? lanes : 1);
    tile.rows = rows_of_tile(kernel);
    tile.bands = by_tiles ? 1 : kernel[KernelSize::pairs];
    tile.weights = kernel[KernelSize::weights];
    tile.has_bands = tile.has_partial = true;
    tile.has_singles = tile.rows == 2;
    return tile;
}

WinogradTile winograd_tile_of(const LayerProblem& p, const Kernel& kernel, const Steps& steps) {
    WinogradTile tile = winograd_tile_of(kernel);
    tile.has_bands = tile.has_singles = tile.has_partial = false;
    note_steps(tile, p, steps);
    return tile;
}

WinogradRowsLayout::WinogradRowsLayout(const LayerProblem& p, const WinogradTile& tile,
                                       const VectorUnit& unit, int64_t rows)
    : lanes(unit.lanes),
      row_tiles(tile.axis == VectorAxis::x ? tile.tiles
                                           : ceil_div(p[Dim::x], WinogradTile::columns)),
      // Whole vectors are stored, and whole blocks of tiles read, behind the last tile too.
      tiles(tile.axis == VectorAxis::x ? tile.tiles
                                       : ceil_div(row_tiles * (rows == 1 ? 1 : tile.bands) +
                                                      std::max(unit.lanes, tile.tiles),
                                                  unit.lanes) *
                                             unit.lanes),
      frequencies(WinogradTile::frequencies(rows)),
      // One vector more than needed: powers of two would make all frequencies of a channel meet in
      // one cache set.
      frequency(p[Dim::i] * tiles + unit.lanes),
      part(frequencies * frequency),
      products(tile.parts * part),
      // A line more than needed, for the same reason: with one block, M is in the first-level cache anyway.
      product(tile.blocks * tile.channels * tiles + (tile.blocks > 1 ? line_elements : 0)) {}

int64_t winograd_scratch_elements(const LayerProblem& problem, const WinogradTile& tile,
                                  const VectorUnit& unit) {
    return WinogradRowsLayout(problem, tile, unit, tile.has_bands ? tile.rows : 1).elements();
}

int64_t weights_of_frequency(const LayerProblem& p, const WinogradTile& tile) {
    return p[Dim::i] * tile.channels + (tile.weights > 0 ? line_elements : 0);
}

int64_t transformed_block_elements(const LayerProblem& p, const WinogradTile& tile) {
    return WinogradTile::frequencies(tile.rows) * weights_of_frequency(p, tile);
}

int64_t weights_together_elements(const LayerProblem& p, const WinogradTile& tile) {
    return tile.weights * transformed_block_elements(p, tile);
}

int64_t transformed_weight_elements(const LayerProblem& p, const WinogradTile& tile) {
    return ceil_div(p[Dim::z], tile.channels) * transformed_block_elements(p, tile);
}

WinogradRows winograd_rows_of(const LayerProblem& p, const WinogradTile& tile, int64_t begin,
                              int64_t end) {
    const int64_t count = end - begin;
    const bool is_last = end >= p[Dim::y];
    const bool may_be_partial = tile.has_partial && (is_last || !tile.has_singles);
    return {.bands = tile.has_bands ? (count + (may_be_partial ? tile.rows - 1 : 0)) / tile.rows : 0,
            .singles = tile.has_singles && count % 2 == 1 && !is_last ? 1 : 0};
}

int64_t winograd_multiplications(const LayerProblem& p, const WinogradTile& tile,
                                 const Range& box_rows, int64_t columns) {
    const WinogradRows rows = winograd_rows_of(p, tile, box_rows.begin, box_rows.end);
    const int64_t row_tiles = ceil_div(columns, WinogradTile::columns);
    const auto whole = [&](int64_t tiles) { return ceil_div(tiles, tile.tiles) * tile.tiles; };
    const int64_t in_batch = whole(tile.bands * row_tiles), rest = rows.bands % tile.bands;
    const int64_t of_bands = rows.bands / tile.bands * in_batch + whole(rest * row_tiles);
    const int64_t of_singles = rows.singles * whole(row_tiles);
    return (of_bands * WinogradTile::frequencies(tile.rows) +
            of_singles * WinogradTile::frequencies(1)) *
           p[Dim::i] * ceil_div(p[Dim::z], tile.channels) * tile.channels;
}

}  // namespace laminate
