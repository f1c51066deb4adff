#include "papers/depth_first/sweep.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "base/error.h"

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

/// Objective of the mappings by objective, overlap by overlap, row by row.
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

}  // namespace

Sweep sweep(const DepthFirst& model, const SweepOptions& options) {
    // The largest output of a stack; tiles beyond it are the map.
    int64_t width = 1, height = 1;
    for (const std::vector<size_t>& stack : model.stacks(options.stacks)) {
        const Sizes& sizes = model.workload().layers[stack.back()].shape.sizes;
        width = std::max(width, sizes[Dim::ox]);
        height = std::max(height, sizes[Dim::oy]);
    }
    std::vector<Strategy> strategies = all_strategies(options, width, height);
    const size_t grid = strategies.size();
    const Objective mappings = mappings_of(options).front();
    strategies.push_back({.tile = {width, height}, .stacks = options.stacks, .mappings = mappings});
    const std::vector<std::vector<size_t>> all = model.stacks(Stacks::single_layer);
    int64_t widest = 1, highest = 1;
    for (const std::vector<size_t>& layer : all) {
        widest = std::max(widest, model.workload().layers[layer.back()].shape.sizes[Dim::ox]);
        highest = std::max(highest, model.workload().layers[layer.back()].shape.sizes[Dim::oy]);
    }
    strategies.push_back(
        {.tile = {widest, highest}, .stacks = Stacks::single_layer, .mappings = mappings});

    std::vector<OneOfMany<DepthFirstCost>> costs = model.costs(strategies, many_options(options));
    std::vector<std::optional<SweepPoint>> made(strategies.size());
    for (size_t n = 0; n < strategies.size(); ++n) {
        if (costs[n].is_done) made[n] = point_of(strategies[n], std::move(costs[n].cost));
    }

    Sweep result;
    for (size_t n = 0; n < grid; ++n) {
        if (made[n]) {
            result.points.push_back(std::move(*made[n]));
        } else {
            result.complete = false;
        }
    }
    if (made[grid] && made[grid]->fits) result.layer_by_layer = std::move(made[grid]);
    if (made[grid + 1] && made[grid + 1]->fits) result.single_layer = std::move(made[grid + 1]);

    const auto worth = [&](double energy, int64_t latency) {
        return value(options.objective, energy, latency);
    };
    std::vector<size_t> order;
    for (size_t n = 0; n < result.points.size(); ++n) {
        const SweepPoint& point = result.points[n];
        if (!point.fits) continue;
        order.push_back(n);
        if (!result.best || worth(point.energy_pj, point.latency_cycles) <
                                worth(result.points[*result.best].energy_pj,
                                      result.points[*result.best].latency_cycles))
            result.best = n;
    }
    std::ranges::stable_sort(order, {}, [&](size_t n) {
        return std::tuple(result.points[n].energy_pj, result.points[n].latency_cycles,
                          result.points[n].on_chip_bits);
    });
    for (const size_t n : order) {
        const SweepPoint& point = result.points[n];
        const bool dominated = std::ranges::any_of(result.front, [&](size_t other) {
            return result.points[other].latency_cycles <= point.latency_cycles &&
                   result.points[other].on_chip_bits <= point.on_chip_bits;
        });
        if (!dominated) result.front.push_back(n);
    }
    if (result.best) {
        Sweep::Combination combination;
        for (size_t stack = 0; stack < result.points[*result.best].stacks.size(); ++stack) {
            size_t best = *result.best;
            const auto at = [&](size_t n) { return result.points[n].stacks[stack]; };
            for (const size_t n : order) {
                if (worth(at(n).energy_pj, at(n).latency_cycles) <
                    worth(at(best).energy_pj, at(best).latency_cycles))
                    best = n;
            }
            combination.points.push_back(best);
            combination.energy_pj += at(best).energy_pj;
            combination.latency_cycles += at(best).latency_cycles;
        }
        result.combination = std::move(combination);
    }
    return result;
}

std::optional<Cut> best_cut(const DepthFirst& model, const SweepOptions& options) {
    const std::vector<std::vector<size_t>> units = model.units();
    struct Run {
        size_t begin, end;  ///< units
    };
    std::vector<Run> runs;  ///< of each choice
    std::vector<StackChoice> choices;
    for (size_t begin = 0; begin < units.size(); ++begin) {
        std::vector<size_t> layers;
        for (size_t end = begin + 1; end <= units.size(); ++end) {
            layers.insert(layers.end(), units[end - 1].begin(), units[end - 1].end());
            const Sizes& sizes = model.workload().layers[layers.back()].shape.sizes;
            for (Strategy& strategy : all_strategies(options, sizes[Dim::ox], sizes[Dim::oy])) {
                runs.push_back({begin, end});
                choices.push_back({layers, std::move(strategy)});
            }
        }
    }
    const std::vector<OneOfMany<StackCost>> costs =
        model.stack_costs(choices, many_options(options));
    if (!std::ranges::all_of(costs, &OneOfMany<StackCost>::is_done)) return std::nullopt;

    // Cuts of the first units that can be part of a best one.
    struct Part {
        double energy_pj = 0;
        int64_t latency_cycles = 0;
        size_t choice = 0;        ///< the last stack
        size_t before_units = 0;  ///< where it begins
        size_t before = 0;        ///< part of the units before it
    };
    const auto worth = [&](const Part& part) {
        return value(options.objective, part.energy_pj, part.latency_cycles);
    };
    std::vector<std::vector<Part>> best(units.size() + 1);
    best[0] = {{}};
    for (size_t end = 1; end <= units.size(); ++end) {
        std::vector<Part> parts;
        for (size_t n = 0; n < choices.size(); ++n) {
            const std::optional<StackCost>& cost = costs[n].cost;
            if (runs[n].end != end || !cost) continue;
            for (size_t before = 0; before < best[runs[n].begin].size(); ++before) {
                const Part& part = best[runs[n].begin][before];
                parts.push_back({part.energy_pj + cost->energy_pj,
                                 part.latency_cycles + cost->latency_cycles, n, runs[n].begin,
                                 before});
            }
        }
        if (options.objective == Objective::energy_delay) {
            std::ranges::stable_sort(parts, {}, [](const Part& part) {
                return std::pair(part.energy_pj, part.latency_cycles);
            });
            for (const Part& part : parts) {
                if (best[end].empty() || part.latency_cycles < best[end].back().latency_cycles)
                    best[end].push_back(part);
            }
        } else if (!parts.empty()) {
            best[end] = {*std::ranges::min_element(parts, {}, worth)};
        }
    }
    if (best.back().empty()) return std::nullopt;
    const Part* part = &*std::ranges::min_element(best.back(), {}, worth);
    Cut cut{.stacks = {}, .energy_pj = part->energy_pj, .latency_cycles = part->latency_cycles};
    for (size_t at = units.size(); at > 0;) {
        const StackChoice& choice = choices[part->choice];
        cut.stacks.push_back({choice.layers, choice.strategy, *costs[part->choice].cost});
        cut.on_chip_bits = std::max(cut.on_chip_bits, costs[part->choice].cost->on_chip_bits);
        at = part->before_units;
        part = &best[at][part->before];
    }
    std::ranges::reverse(cut.stacks);
    return cut;
}

}  // namespace laminate::depth_first
