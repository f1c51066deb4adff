#include "scheduler/explore/planner/tiled_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "scheduler/explore/pareto.h"

namespace laminate {

namespace {

// Below these sizes kernels wait for sums, or load and store them more often than they add: eight
// sums hide the four cycles of two multiply-adds per cycle.
constexpr int64_t channels_at_a_time = 8;
constexpr int64_t columns_at_a_time = 16;
constexpr int64_t products_at_a_time = 16;

/// The extent and ever smaller parts of it in whole steps, down to one step.
std::vector<int64_t> halves(int64_t extent, int64_t step) {
    std::vector<int64_t> sizes{extent};
    while (sizes.back() > step) {
        const int64_t half = round_up(ceil_div(sizes.back(), 2), step);
        if (half >= sizes.back()) break;
        sizes.push_back(half);
    }
    return sizes;
}

std::vector<int64_t> rows_of(const LayerProblem& p) {
    const int64_t up = p.y().transposed ? p.y().stride : 1;
    std::vector<int64_t> rows;
    for (const int64_t r : {p[Dim::y], 16 * up, 4 * up, 2 * up, up}) {
        const int64_t clamped = std::min(r, p[Dim::y]);
        if (rows.empty() || clamped < rows.back()) rows.push_back(clamped);
    }
    return rows;
}

using Order = std::vector<Dim>;

/// Loops in this order outside, z y x i inside, and nothing placed yet.
Nest nest_of(const LayerProblem& p, const Order& order, const PerDim<int64_t>& tile) {
    Nest nest;
    nest.layer = p.name;
    nest.tile = tile;
    for (const Dim d : order) nest.loops.push_back({d, Band::outer});
    for (const Dim d : all_dims) nest.loops.push_back({d, Band::inner});
    return nest;
}

struct Places {
    Loop x_store, x_compute, weights, output;
};

GroupSchedule group_of(const LayerProblem& p, Nest nest, const Places& places) {
    const auto level = [&](Loop loop) { return Level{0, nest.find(loop)}; };
    for (size_t operand = 0; operand < p.inputs.size(); ++operand)
        nest.x.push_back(
            {static_cast<int>(operand), {level(places.x_store), level(places.x_compute)}});
    if (p.has_weights()) nest.w = Placement{level(places.weights), level(places.weights)};
    nest.y = {level(places.output), level(places.output)};
    return {{std::move(nest)}};
}

std::vector<GroupPoint> best_points(const search::Archive<GroupSchedule>& best) {
    std::vector<GroupPoint> points;
    for (size_t n = 0; n < best.size(); ++n) {
        const search::Cost& cost = best.costs()[n];
        points.push_back({best.items()[n], Elements(static_cast<int64_t>(cost.accesses)),
                          Elements(static_cast<int64_t>(cost.memory)),
                          Macs(static_cast<int64_t>(cost.macs))});
    }
    std::ranges::sort(points, {}, [](const GroupPoint& point) { return point.accesses; });
    return points;
}

/// The form with its rows in a strip for each thread; none if a tile has as many rows.
std::optional<GroupSchedule> in_strips(const LayerProblem& p, GroupSchedule form, int threads) {
    Nest& nest = form.nests.front();
    const int64_t tile = nest.tile[Dim::y];
    const int64_t rows = round_up(ceil_div(p[Dim::y], threads), tile);
    if (rows >= p[Dim::y]) return std::nullopt;
    nest.loops.insert(nest.loops.begin(), {Dim::y, Band::strip});
    nest.strip[0] = rows;
    const auto move = [](Placement& placed) {
        ++placed.store.loop;
        ++placed.compute.loop;
    };
    for (InputPlacement& x : nest.x) move(x.placement);
    if (nest.w) move(*nest.w);
    move(nest.y);
    return form;
}

constexpr Loop zo{Dim::z, Band::outer}, yo{Dim::y, Band::outer}, xo{Dim::x, Band::outer},
    io{Dim::i, Band::outer}, xi{Dim::x, Band::inner};

}  // namespace

std::vector<GroupSchedule> tiled_layer_forms(const LayerProblem& p, int threads) {
    std::vector<GroupSchedule> forms;
    const auto add = [&](GroupSchedule form) {
        if (threads == 1 || p[Dim::y] == 1)
            forms.push_back(std::move(form));
        else if (auto shared = in_strips(p, std::move(form), threads))
            forms.push_back(std::move(*shared));
    };
    // A kernel's block of channels reads one group of channels.
    const bool is_dense = p.groups == 1 && p.has_weights();
    const std::vector<int64_t> channels = halves(p[Dim::z], is_dense ? channels_at_a_time : 1);
    const std::vector<int64_t> columns = halves(p[Dim::x], columns_at_a_time);
    for (const int64_t z : channels) {
        for (const int64_t y : rows_of(p)) {
            for (const int64_t x : columns) {
                const PerDim<int64_t> tile{z, y, x, p[Dim::i]};
                const bool whole_rows = x == p[Dim::x];
                const Nest by_channels = nest_of(p, {Dim::z, Dim::y, Dim::x, Dim::i}, tile);
                add(group_of(p, by_channels, {whole_rows ? zo : xo, whole_rows ? yo : xo, zo, xi}));
                const Nest by_pixels = nest_of(p, {Dim::y, Dim::x, Dim::z, Dim::i}, tile);
                if (is_dense) add(group_of(p, by_pixels, {xo, xo, zo, xi}));
            }
        }
    }
    if (!is_dense || p[Dim::i] == 1) return forms;
    const int64_t inputs_at_a_time = ceil_div(products_at_a_time, p.y().kernel * p.x().kernel);
    for (const int64_t z : channels) {
        for (const int64_t i : halves(p[Dim::i], inputs_at_a_time)) {
            for (const int64_t x : columns) {
                for (const int64_t y : {int64_t{4}, int64_t{1}}) {
                    const PerDim<int64_t> tile{z, std::min(y, p[Dim::y]), x, i};
                    add(group_of(p, nest_of(p, {Dim::z, Dim::y, Dim::x, Dim::i}, tile),
                                 {io, io, io, xo}));
                }
            }
        }
    }
    return forms;
}

std::vector<GroupPoint> tiled_layer_points(const std::vector<LayerProblem>& problems, int threads,
                                           TwoLevelCache& cache) {
    search::Archive<GroupSchedule> best(false);
    for (GroupSchedule& form : tiled_layer_forms(problems.front(), threads)) {
        const GroupCounts counts = two_level_counts(problems, form, &cache);
        best.offer({static_cast<double>(counts.accesses().value()),
                    static_cast<double>(counts.live_total.value()),
                    static_cast<double>(counts.macs().value())},
                   std::move(form));
    }
    return best_points(best);
}

const std::vector<GroupPoint>& TiledLayers::points(const std::vector<LayerProblem>& problems,
                                                   int threads) {
    std::unique_lock<std::mutex> lock(mutex_);
    Front& front = fronts_[{shape_key(problems), threads}];
    lock.unlock();
    std::call_once(front.is_found, [&] {
        TwoLevelCache cache;
        front.points = tiled_layer_points(problems, threads, cache);
    });
    return front.points;
}

}  // namespace laminate
