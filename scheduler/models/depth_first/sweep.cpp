#include "scheduler/models/depth_first/sweep.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>

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
        point.macs = cost.macs;
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

}  // namespace

const char* to_string(Objective objective) {
    switch (objective) {
        case Objective::energy: return "energy";
        case Objective::latency: return "latency";
        case Objective::energy_delay: return "edp";
    }
    throw std::logic_error("to_string(Objective)");
}

Objective parse_objective(const std::string& text) {
    for (const Objective objective : {Objective::energy, Objective::latency, Objective::energy_delay}) {
        if (text == to_string(objective)) return objective;
    }
    throw InputError("objective: found \"" + text + "\", expected one of energy, latency, edp");
}

double value(Objective objective, double energy_pj, int64_t latency_cycles) {
    switch (objective) {
        case Objective::energy: return energy_pj;
        case Objective::latency: return static_cast<double>(latency_cycles);
        case Objective::energy_delay: return energy_pj * static_cast<double>(latency_cycles);
    }
    throw std::logic_error("value(Objective)");
}

Sweep sweep(const DepthFirst& model, const SweepOptions& options) {
    // The largest output of a stack; tiles beyond it are the map.
    int64_t width = 1, height = 1;
    for (const std::vector<size_t>& stack : model.stacks(options.stacks)) {
        const Sizes& sizes = model.workload().layers[stack.back()].shape.sizes;
        width = std::max(width, sizes[Dim::ox]);
        height = std::max(height, sizes[Dim::oy]);
    }
    std::vector<Strategy> strategies;
    for (const Overlap overlap : options.overlaps) {
        for (const int64_t y : within(options.rows, height)) {
            for (const int64_t x : within(options.columns, width)) strategies.push_back({{x, y}, overlap, options.stacks});
        }
    }
    const size_t grid = strategies.size();
    strategies.push_back({{width, height}, Overlap::fully_cached, options.stacks});
    const std::vector<std::vector<size_t>> all = model.stacks(Stacks::single_layer);
    int64_t widest = 1, highest = 1;
    for (const std::vector<size_t>& layer : all) {
        widest = std::max(widest, model.workload().layers[layer.back()].shape.sizes[Dim::ox]);
        highest = std::max(highest, model.workload().layers[layer.back()].shape.sizes[Dim::oy]);
    }
    strategies.push_back({{widest, highest}, Overlap::fully_cached, Stacks::single_layer});

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
        if (!result.best || worth(point.energy_pj, point.latency_cycles) <
                                worth(result.points[*result.best].energy_pj, result.points[*result.best].latency_cycles))
            result.best = n;
    }
    std::ranges::stable_sort(order, {}, [&](size_t n) { return std::pair(result.points[n].energy_pj, result.points[n].latency_cycles); });
    for (const size_t n : order) {
        if (result.front.empty() || result.points[n].latency_cycles < result.points[result.front.back()].latency_cycles)
            result.front.push_back(n);
    }
    if (result.best) {
        Sweep::Combination combination;
        for (size_t stack = 0; stack < result.points[*result.best].stacks.size(); ++stack) {
            size_t best = *result.best;
            const auto at = [&](size_t n) { return result.points[n].stacks[stack]; };
            for (const size_t n : order) {
                if (worth(at(n).energy_pj, at(n).latency_cycles) < worth(at(best).energy_pj, at(best).latency_cycles)) best = n;
            }
            combination.points.push_back(best);
            combination.energy_pj += at(best).energy_pj;
            combination.latency_cycles += at(best).latency_cycles;
        }
        result.combination = std::move(combination);
    }
    return result;
}

}  // namespace laminate::depth_first
