#include "papers/depth_first/sweep.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace laminate::depth_first {

namespace {

SweepPoint point_of(const Strategy& strategy, std::optional<DepthFirstCost> cost) {
    SweepPoint point{.strategy = strategy, .stacks = {}};
    if (!cost) return point;
    point.fits = true;
    point.energy_pj = cost->energy_pj;
    point.latency_cycles = cost->latency_cycles;
    point.on_chip_bits = cost->on_chip_bits;
    point.macs = cost->macs;
    point.mapping_gap = cost->mapping_gap;
    point.stacks = std::move(cost->stack_costs);
    return point;
}

ManyOptions many_options(const SweepOptions& options) {
    return {options.threads, options.stop, options.progress};
}

std::vector<int64_t> within(std::vector<int64_t> sizes, int64_t map) {
    std::set<int64_t> result;
    for (const int64_t size : sizes) result.insert(std::min(size, map));
    return {result.begin(), result.end()};
}

std::vector<Objective> mappings_of(const SweepOptions& options) {
    return options.mappings.empty() ? std::vector{options.objective} : options.mappings;
}

/// By objective of the mappings, then by overlap, then row by row.
std::vector<Strategy> all_strategies(const SweepOptions& options, int64_t width, int64_t height) {
    std::vector<Strategy> strategies;
    for (const Objective mappings : mappings_of(options)) {
        for (const Overlap overlap : options.overlaps) {
            for (const int64_t y : within(options.rows, height)) {
                for (const int64_t x : within(options.columns, width))
                    strategies.push_back({.tile = {x, y},
                                          .overlap = overlap,
                                          .stacks = options.stacks,
                                          .mappings = mappings});
            }
        }
    }
    return strategies;
}

/// The smallest tile that is all of every stack's output.
TileSize whole_maps(const DepthFirst& model, const std::vector<std::vector<size_t>>& stacks) {
    TileSize size;
    for (const std::vector<size_t>& stack : stacks) {
        const Sizes& sizes = model.workload().layers[stack.back()].shape.sizes;
        size.x = std::max(size.x, sizes[Dim::ox]);
        size.y = std::max(size.y, sizes[Dim::oy]);
    }
    return size;
}

/// The points that are done, in the order of `strategies`; nullopt for the others.
std::vector<std::optional<SweepPoint>> points_of(const DepthFirst& model,
                                                 const std::vector<Strategy>& strategies,
                                                 const SweepOptions& options) {
    std::vector<OneOfMany<DepthFirstCost>> costs = model.costs(strategies, many_options(options));
    std::vector<std::optional<SweepPoint>> points(strategies.size());
    for (size_t n = 0; n < strategies.size(); ++n) {
        if (costs[n].is_done) points[n] = point_of(strategies[n], std::move(costs[n].cost));
    }
    return points;
}

/// The first of the points with the least value that fit.
std::optional<size_t> best_of(const std::vector<SweepPoint>& points, Objective objective) {
    const auto worth = [&](size_t n) {
        return value(objective, points[n].energy_pj, points[n].latency_cycles);
    };
    std::optional<size_t> best;
    for (size_t n = 0; n < points.size(); ++n) {
        if (points[n].fits && (!best || worth(n) < worth(*best))) best = n;
    }
    return best;
}

/// The points that fit, by energy, then latency, then memory.
std::vector<size_t> by_energy(const std::vector<SweepPoint>& points) {
    std::vector<size_t> order;
    for (size_t n = 0; n < points.size(); ++n) {
        if (points[n].fits) order.push_back(n);
    }
    std::ranges::stable_sort(order, {}, [&](size_t n) {
        return std::tuple(points[n].energy_pj, points[n].latency_cycles, points[n].on_chip_bits);
    });
    return order;
}

/// The points of `order` (by_energy()) that no earlier one dominates.
std::vector<size_t> front_of(const std::vector<SweepPoint>& points,
                             const std::vector<size_t>& order) {
    std::vector<size_t> front;
    for (const size_t n : order) {
        const bool is_dominated = std::ranges::any_of(front, [&](size_t other) {
            return points[other].latency_cycles <= points[n].latency_cycles &&
                   points[other].on_chip_bits <= points[n].on_chip_bits;
        });
        if (!is_dominated) front.push_back(n);
    }
    return front;
}

/// The best point of each stack; of equal ones `best`, then the first of `order`.
Sweep::Combination best_per_stack(const std::vector<SweepPoint>& points, size_t best,
                                  const std::vector<size_t>& order, Objective objective) {
    Sweep::Combination combination;
    for (size_t stack = 0; stack < points[best].stacks.size(); ++stack) {
        const auto worth = [&](size_t n) {
            const StackCost& cost = points[n].stacks[stack];
            return value(objective, cost.energy_pj, cost.latency_cycles);
        };
        size_t chosen = best;
        for (const size_t n : order) {
            if (worth(n) < worth(chosen)) chosen = n;
        }
        combination.points.push_back(chosen);
        combination.energy_pj += points[chosen].stacks[stack].energy_pj;
        combination.latency_cycles += points[chosen].stacks[stack].latency_cycles;
    }
    return combination;
}

/// The cut of a network into stacks of least objective, by dynamic programming over its units.
class CutSearch {
public:
    CutSearch(const DepthFirst& model, const SweepOptions& options);
    /// False if stopped.
    [[nodiscard]] bool cost_stacks();
    [[nodiscard]] std::optional<Cut> best();

private:
    /// A run of units, [begin, end).
    struct Run {
        size_t begin, end;
    };
    /// A cut of the first units that may be part of a best one.
    struct Part {
        double energy_pj = 0;
        int64_t latency_cycles = 0;
        size_t choice = 0;        ///< the last stack
        size_t before_units = 0;  ///< units before the last stack
        size_t before = 0;        ///< the part of these units
    };
    [[nodiscard]] std::vector<Part> parts_ending_at(size_t end) const;
    [[nodiscard]] std::vector<Part> worth_keeping(std::vector<Part> parts) const;
    [[nodiscard]] Cut cut_of(const Part& last) const;
    [[nodiscard]] const Part& least(const std::vector<Part>& parts) const {
        return *std::ranges::min_element(parts, {}, [&](const Part& part) {
            return value(options_.objective, part.energy_pj, part.latency_cycles);
        });
    }

    const DepthFirst& model_;
    const SweepOptions& options_;
    size_t units_ = 0;
    std::vector<StackChoice> choices_;  ///< of every run of units, tile and overlap
    std::vector<Run> runs_;             ///< parallel to choices_
    std::vector<OneOfMany<StackCost>> costs_;
    std::vector<std::vector<Part>> parts_;  ///< by number of units
};

CutSearch::CutSearch(const DepthFirst& model, const SweepOptions& options)
    : model_(model), options_(options) {
    const std::vector<std::vector<size_t>> units = model.units();
    units_ = units.size();
    for (size_t begin = 0; begin < units_; ++begin) {
        std::vector<size_t> layers;
        for (size_t end = begin + 1; end <= units_; ++end) {
            layers.insert(layers.end(), units[end - 1].begin(), units[end - 1].end());
            const Sizes& sizes = model.workload().layers[layers.back()].shape.sizes;
            for (Strategy& strategy : all_strategies(options, sizes[Dim::ox], sizes[Dim::oy])) {
                runs_.push_back({begin, end});
                choices_.push_back({layers, std::move(strategy)});
            }
        }
    }
}

bool CutSearch::cost_stacks() {
    costs_ = model_.stack_costs(choices_, many_options(options_));
    return std::ranges::all_of(costs_, &OneOfMany<StackCost>::is_done);
}

std::vector<CutSearch::Part> CutSearch::parts_ending_at(size_t end) const {
    std::vector<Part> parts;
    for (size_t n = 0; n < choices_.size(); ++n) {
        const std::optional<StackCost>& cost = costs_[n].cost;
        if (runs_[n].end != end || !cost) continue;
        const std::vector<Part>& before = parts_[runs_[n].begin];
        for (size_t p = 0; p < before.size(); ++p) {
            parts.push_back({before[p].energy_pj + cost->energy_pj,
                             before[p].latency_cycles + cost->latency_cycles, n, runs_[n].begin,
                             p});
        }
    }
    return parts;
}

/// The least part, or the front of energy and latency if their product counts.
std::vector<CutSearch::Part> CutSearch::worth_keeping(std::vector<Part> parts) const {
    if (parts.empty()) return parts;
    if (options_.objective != Objective::energy_delay) return {least(parts)};
    std::ranges::stable_sort(
        parts, {}, [](const Part& part) { return std::pair(part.energy_pj, part.latency_cycles); });
    std::vector<Part> front;
    for (const Part& part : parts) {
        if (front.empty() || part.latency_cycles < front.back().latency_cycles)
            front.push_back(part);
    }
    return front;
}

Cut CutSearch::cut_of(const Part& last) const {
    Cut cut{.stacks = {}, .energy_pj = last.energy_pj, .latency_cycles = last.latency_cycles};
    const Part* part = &last;
    for (size_t at = units_; at > 0;) {
        const StackChoice& choice = choices_[part->choice];
        const StackCost& cost = *costs_[part->choice].cost;
        cut.stacks.push_back({choice.layers, choice.strategy, cost});
        cut.on_chip_bits = std::max(cut.on_chip_bits, cost.on_chip_bits);
        at = part->before_units;
        part = &parts_[at][part->before];
    }
    std::ranges::reverse(cut.stacks);
    return cut;
}

std::optional<Cut> CutSearch::best() {
    parts_.assign(1, {Part{}});  // no units
    for (size_t end = 1; end <= units_; ++end)
        parts_.push_back(worth_keeping(parts_ending_at(end)));
    if (parts_.back().empty()) return std::nullopt;
    return cut_of(least(parts_.back()));
}

}  // namespace

Sweep sweep(const DepthFirst& model, const SweepOptions& options) {
    const TileSize map = whole_maps(model, model.stacks(options.stacks));
    const Objective mappings = mappings_of(options).front();
    std::vector<Strategy> strategies = all_strategies(options, map.x, map.y);
    const size_t grid = strategies.size();
    strategies.push_back({.tile = map, .stacks = options.stacks, .mappings = mappings});
    strategies.push_back({.tile = whole_maps(model, model.stacks(Stacks::single_layer)),
                          .stacks = Stacks::single_layer,
                          .mappings = mappings});
    std::vector<std::optional<SweepPoint>> made = points_of(model, strategies, options);

    Sweep result;
    for (size_t n = 0; n < grid; ++n) {
        result.complete = result.complete && made[n];
        if (made[n]) result.points.push_back(std::move(*made[n]));
    }
    if (made[grid] && made[grid]->fits) result.layer_by_layer = std::move(made[grid]);
    if (made[grid + 1] && made[grid + 1]->fits) result.single_layer = std::move(made[grid + 1]);
    result.best = best_of(result.points, options.objective);
    const std::vector<size_t> order = by_energy(result.points);
    result.front = front_of(result.points, order);
    if (result.best)
        result.combination = best_per_stack(result.points, *result.best, order, options.objective);
    return result;
}

std::optional<Cut> best_cut(const DepthFirst& model, const SweepOptions& options) {
    CutSearch search(model, options);
    if (!search.cost_stacks()) return std::nullopt;
    return search.best();
}

}  // namespace laminate::depth_first
