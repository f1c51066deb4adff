#include "scheduler/models/depth_first/sweep.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <tuple>

#include "base/error.h"
#include "base/parallel.h"

namespace laminate::depth_first {

namespace {

SweepPoint evaluate(const DepthFirst& model, const Strategy& strategy) {
    SweepPoint point{.strategy = strategy, .stacks = {}};
    try {
        DepthFirstCost cost = model.cost(strategy, false);
        point.fits = true;
        point.energy_pj = cost.energy_pj;
        point.latency_cycles = cost.latency_cycles;
        point.on_chip_bits = cost.on_chip_bits;
        point.macs = cost.macs;
        point.mapping_gap = cost.mapping_gap;
        point.stacks = std::move(cost.stack_costs);
    } catch (const InfeasibleMapping&) {
    }
    return point;
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
                    strategies.push_back(
                        {.tile = {x, y}, .overlap = overlap, .stacks = options.stacks, .mappings = mappings});
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
    strategies.push_back({.tile = {widest, highest}, .stacks = Stacks::single_layer, .mappings = mappings});

    std::vector<std::optional<SweepPoint>> made(strategies.size());
    std::mutex mutex;
    size_t done = 0;
    in_parallel(strategies.size(), options.threads, [&](size_t n) {
        if (options.stop != nullptr && options.stop->load()) return;
        made[n] = evaluate(model, strategies[n]);
        const std::scoped_lock lock(mutex);
        ++done;
        if (options.progress) options.progress(done, strategies.size());
    });

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

    const auto worth = [&](double energy, int64_t latency) { return value(options.objective, energy, latency); };
    std::vector<size_t> order;
    for (size_t n = 0; n < result.points.size(); ++n) {
        const SweepPoint& point = result.points[n];
        if (!point.fits) continue;
        order.push_back(n);
        if (!result.best ||
            worth(point.energy_pj, point.latency_cycles) <
                worth(result.points[*result.best].energy_pj, result.points[*result.best].latency_cycles))
            result.best = n;
    }
    std::ranges::stable_sort(order, {}, [&](size_t n) {
        return std::tuple(result.points[n].energy_pj, result.points[n].latency_cycles, result.points[n].on_chip_bits);
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
                if (worth(at(n).energy_pj, at(n).latency_cycles) < worth(at(best).energy_pj, at(best).latency_cycles))
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
        std::vector<size_t> layers;
        std::vector<Strategy> strategies;
    };
    std::vector<Run> runs;
    struct Job {
        size_t run, strategy;
    };
    std::vector<Job> jobs;
    for (size_t begin = 0; begin < units.size(); ++begin) {
        std::vector<size_t> layers;
        for (size_t end = begin + 1; end <= units.size(); ++end) {
            layers.insert(layers.end(), units[end - 1].begin(), units[end - 1].end());
            const Sizes& sizes = model.workload().layers[layers.back()].shape.sizes;
            runs.push_back({begin, end, layers, all_strategies(options, sizes[Dim::ox], sizes[Dim::oy])});
            for (size_t strategy = 0; strategy < runs.back().strategies.size(); ++strategy)
                jobs.push_back({runs.size() - 1, strategy});
        }
    }
    std::vector<std::optional<StackCost>> costs(jobs.size());
    std::mutex mutex;
    size_t done = 0;
    bool stopped = false;
    in_parallel(jobs.size(), options.threads, [&](size_t n) {
        const bool stop = options.stop != nullptr && options.stop->load();
        if (!stop) {
            try {
                const Run& run = runs[jobs[n].run];
                costs[n] = model.stack_cost(run.layers, run.strategies[jobs[n].strategy]);
            } catch (const InfeasibleMapping&) {
            }
        }
        const std::scoped_lock lock(mutex);
        stopped = stopped || stop;
        ++done;
        if (options.progress) options.progress(done, jobs.size());
    });
    if (stopped) return std::nullopt;

    // Cuts of the first units that can be part of a best one.
    struct Part {
        double energy_pj = 0;
        int64_t latency_cycles = 0;
        size_t job = 0;           ///< the last stack
        size_t before_units = 0;  ///< where it begins
        size_t before = 0;        ///< part of the units before it
    };
    const auto worth = [&](const Part& part) { return value(options.objective, part.energy_pj, part.latency_cycles); };
    std::vector<std::vector<Part>> best(units.size() + 1);
    best[0] = {{}};
    for (size_t end = 1; end <= units.size(); ++end) {
        std::vector<Part> parts;
        for (size_t n = 0; n < jobs.size(); ++n) {
            const Run& run = runs[jobs[n].run];
            if (run.end != end || !costs[n]) continue;
            for (size_t before = 0; before < best[run.begin].size(); ++before) {
                const Part& part = best[run.begin][before];
                parts.push_back({part.energy_pj + costs[n]->energy_pj, part.latency_cycles + costs[n]->latency_cycles,
                                 n, run.begin, before});
            }
        }
        if (options.objective == Objective::energy_delay) {
            std::ranges::stable_sort(parts, {},
                                     [](const Part& part) { return std::pair(part.energy_pj, part.latency_cycles); });
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
        const Run& run = runs[jobs[part->job].run];
        cut.stacks.push_back({run.layers, run.strategies[jobs[part->job].strategy], *costs[part->job]});
        cut.on_chip_bits = std::max(cut.on_chip_bits, costs[part->job]->on_chip_bits);
        at = part->before_units;
        part = &best[at][part->before];
    }
    std::ranges::reverse(cut.stacks);
    return cut;
}

}  // namespace laminate::depth_first
