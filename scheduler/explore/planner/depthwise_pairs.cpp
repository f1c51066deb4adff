#include "scheduler/explore/planner/depthwise_pairs.h"

#include <algorithm>

#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layout/pixel_tile.h"

namespace laminate {

namespace {

/// Threads divide channels of small maps.
bool blocks_pay(const LayerProblem& pointwise, const LayerProblem& depthwise,
                const PairOptions& options) {
    const int64_t pixels = pointwise[Dim::y] * pointwise[Dim::x];
    return kernel_pays(pointwise, KernelKind::map_channels) &&
           kernel_pays(depthwise, KernelKind::map_depthwise) &&
           prefers_map_channels(pointwise, options.unit) && !threads_divide_pixels(pixels) &&
           map_channels_layout(pointwise, options.unit).blocks >= 2 * options.threads;
}

/// Threads divide rows of large ones.
bool bands_pay(const LayerProblem& depthwise, const LayerProblem& pointwise) {
    return kernel_pays(depthwise, KernelKind::map_depthwise) &&
           kernel_pays(pointwise, KernelKind::map_pixels) &&
           threads_divide_pixels(depthwise[Dim::y] * depthwise[Dim::x]);
}

/// Predicted time of a band in products of a vector, as of PixelTile.
int64_t cycles_of_band(const MapBandsLayout& at, const PixelTiles& tiles, int64_t rows,
                       const VectorUnit& unit) {
    int64_t of_block = tiles.whole * cycles_of_tile(at.vectors, at.block, unit);
    for (const std::vector<VectorRun>& runs : tiles.rest)
        of_block += cycles_of_tile(std::ssize(runs), at.block, unit);
    // Each tile of depthwise rows loads the rows around it too, as often as its kernel has columns. What
    // it takes to begin a tile, and a channel of a band, was measured.
    constexpr int64_t tile_begun = 12, channel_begun = 40;
    const AxisWindow &y = at.depthwise.y, &x = at.depthwise.x;
    const int64_t own = at.depthwise.tile_rows;
    const int64_t taps = y.kernel * x.kernel, products = taps * own;
    const int64_t loads = ((own - 1) * y.stride + y.span()) * x.kernel;
    // A sum waits for each product before the next. While those of few taps wait, the core begins another tile.
    const int64_t waits =
        at.depthwise.keeps_weights() ? 0 : taps * unit.latency() / at.depthwise.runs_together;
    const int64_t of_channel = channel_begun + ceil_div(rows, own) * std::ssize(at.depthwise.runs) *
                                                   (tile_begun + std::max({products, loads, waits}));
    return at.inputs * (at.blocks * of_block + of_channel);
}

/// The same of the thread that has most, if each takes the next band when it has none.
int64_t share_of_busiest(const MapBandsLayout& at, int64_t rows, int64_t all_rows,
                         const PairOptions& options) {
    std::vector<int64_t> shares(static_cast<size_t>(options.threads), 0);
    const auto take = [&](const PixelTiles& tiles, int64_t of_band) {
        *std::ranges::min_element(shares) += cycles_of_band(at, tiles, of_band, options.unit);
    };
    for (int64_t n = 0; n + 1 < at.bands; ++n) take(at.whole_band, rows);
    take(at.last_band, all_rows - (at.bands - 1) * rows);
    const int64_t longest = *std::ranges::max_element(shares);
    // Two bands a thread even out disturbances by other work.
    constexpr int64_t percent = 100, price_of_few = 102;
    const bool are_few = options.threads > 1 && at.bands < 2 * options.threads;
    return are_few ? longest * price_of_few / percent : longest;
}

/// Rows of a band; none where no band fits.
std::optional<int64_t> rows_of_band(const LayerProblem& depthwise, const LayerProblem& pointwise,
                                    const PairOptions& options) {
    const int64_t all_rows = depthwise[Dim::y], columns = depthwise[Dim::x];
    std::optional<int64_t> best;
    int64_t least = 0;
    for (int64_t rows = 1; rows <= all_rows; ++rows) {
        const int64_t of_last = (all_rows - 1) % rows + 1;
        if (of_last * columns < options.unit.lanes) continue;
        const MapBandsLayout at =
            map_bands_layout(depthwise, options.unit, pointwise, options.unit, rows);
        // A quarter of the cache is left to weights and to lines of the output, which pass through it.
        const int64_t scratch = to_bytes(Elements(at.scratch_elements())).value(),
                      cache = options.second_level_cache.value();
        if (4 * scratch > 3 * cache) break;
        const int64_t share = share_of_busiest(at, rows, all_rows, options);
        // Among bands that take as long, smaller ones lie in nearer caches. A band of more than half the
        // cache must be far faster (docs/performance.md, "Bands that fill vectors").
        constexpr int64_t percent = 100, clearly_less = 99, far_less = 95;
        if (best && share * percent > least * (2 * scratch > cache ? far_less : clearly_less)) continue;
        best = rows;
        least = share;
    }
    return best;
}

}  // namespace

std::optional<GroupSchedule> depthwise_pair_group(const Network& network,
                                                  const std::vector<LayerId>& layers,
                                                  const PairOptions& options) {
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    if (is_pointwise_pair(problems) && blocks_pay(problems[0], problems[1], options)) {
        GroupSchedule group = line_buffer_group(network, layers, {problems[1][Dim::y], 0, 0});
        group.nests[0].kernel = kernel_for(KernelKind::map_channels, options.unit);
        group.nests[1].kernel = kernel_for(KernelKind::map_depthwise, options.unit);
        return group;
    }
    if (!is_depthwise_pair(problems) || !bands_pay(problems[0], problems[1])) return std::nullopt;
    const auto rows = rows_of_band(problems[0], problems[1], options);
    if (!rows) return std::nullopt;
    GroupSchedule group = line_buffer_group(network, layers, {*rows, 0, 0});
    group.nests[0].kernel = kernel_for(KernelKind::map_depthwise, options.unit);
    group.nests[1].kernel = kernel_for(KernelKind::map_pixels, options.unit);
    if (problems.size() > 2) group.nests[2].kernel = kernel_for(KernelKind::map_sum, options.unit);
    return group;
}

}  // namespace laminate
