#include "papers/depth_first/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <string>

#include "base/error.h"
#include "nets/zoo/zoo.h"
#include "papers/depth_first/overlap_search.h"

namespace laminate::depth_first {
namespace {

const SweepPoint& point(const Sweep& sweep, Overlap overlap, int64_t x, int64_t y) {
    return *std::ranges::find_if(sweep.points, [&](const SweepPoint& p) {
        return p.strategy.overlap == overlap && p.strategy.tile == TileSize{x, y};
    });
}

// DeFiNES, section V-A, with LPF limit 8 as in all figures of the paper.
TEST(Sweep, CaseStudyOneIsThatOfThePaper) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("fsrcnn-defines"),
                           Fidelity::as_published(8));
    SweepOptions options;
    options.overlaps = {Overlap::fully_cached};
    options.columns = {4, 960};
    options.rows = {72, 540};
    options.threads = 2;
    const Sweep found = sweep(model, options);
    ASSERT_EQ(found.points.size(), 4u);
    // 4 x 72 is the best of these four, as of the whole case study.
    EXPECT_EQ(found.points[found.best.value()].strategy.tile, (TileSize{4, 72}));
    // Layer by layer: 19.1 mJ, 29 million cycles.
    ASSERT_TRUE(found.layer_by_layer.has_value());
    EXPECT_NEAR(found.layer_by_layer->energy_pj / 1e9, 19.1, 0.05);
    EXPECT_NEAR(static_cast<double>(found.layer_by_layer->latency_cycles) / 1e6, 29, 0.5);
}

TEST(Sweep, CostsOfManyAreThoseOfEach) {
    // Strided layers, padding and shortcuts, with tiles that do not fit the memories tried first.
    const Machine machine = open_machine("tesla_npu_df");
    const Network network = zoo_network("resnet18-defines");
    std::vector<Strategy> strategies;
    for (const Overlap overlap : {Overlap::recompute, Overlap::fully_cached}) {
        for (const int64_t x : {20, 153})
            strategies.push_back({.tile = {x, 16}, .overlap = overlap});
    }
    const DepthFirst one_by_one(machine, network, {});
    for (const int threads : {1, 3}) {
        const DepthFirst together(machine, network, {});
        const auto costs = together.costs(strategies, {.threads = threads});
        ASSERT_EQ(costs.size(), strategies.size());
        for (size_t n = 0; n < strategies.size(); ++n) {
            ASSERT_TRUE(costs[n].is_done && costs[n].cost);
            const DepthFirstCost expected = one_by_one.cost(strategies[n], false);
            EXPECT_EQ(costs[n].cost->energy_pj, expected.energy_pj);
            EXPECT_EQ(costs[n].cost->latency_cycles, expected.latency_cycles);
            EXPECT_EQ(costs[n].cost->macs, expected.macs);
        }
    }
}

TEST(Sweep, StoppedHandsOverWhatIsDone) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("fsrcnn-defines"), {});
    std::atomic<bool> stop = false;
    SweepOptions options;
    options.stop = &stop;
    options.progress = [&](size_t done, size_t) { stop = done > 0; };
    const Sweep found = sweep(model, options);
    EXPECT_FALSE(found.complete);
    EXPECT_GT(found.points.size(), 0u);
    EXPECT_LT(found.points.size(), 108u);
    EXPECT_TRUE(found.best);
}

TEST(Sweep, OfOneStackCombinesToItsBestPoint) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("fsrcnn-defines"), {});
    SweepOptions options;
    options.columns = {4, 60, 5000};
    options.rows = {72};
    options.threads = 2;
    const Sweep found = sweep(model, options);
    ASSERT_EQ(found.points.size(), 9u);  // 5000 columns are the map's 960
    EXPECT_EQ(found.points.back().strategy.tile.x, 960);
    ASSERT_TRUE(found.best && found.combination);
    EXPECT_EQ(found.combination->points, (std::vector<size_t>{*found.best}));
    EXPECT_EQ(found.combination->latency_cycles, found.points[*found.best].latency_cycles);
    EXPECT_LE(point(found, Overlap::fully_cached, 4, 72).energy_pj,
              point(found, Overlap::recompute, 4, 72).energy_pj);
    // The front begins with the least energy. Every point is on it, or a point of the front is no
    // worse in anything.
    EXPECT_EQ(found.front.front(), *found.best);
    for (size_t n = 0; n < found.points.size(); ++n) {
        const SweepPoint& p = found.points[n];
        EXPECT_TRUE(std::ranges::any_of(found.front, [&](size_t other) {
            const SweepPoint& q = found.points[other];
            return other == n ||
                   (q.energy_pj <= p.energy_pj && q.latency_cycles <= p.latency_cycles &&
                    q.on_chip_bits <= p.on_chip_bits);
        })) << n;
    }
}

TEST(Sweep, BestCutIsTheBestOfAllCuts) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("l3net"), {});
    SweepOptions options;
    options.columns = {2, 8, 100};
    options.rows = {2, 100};
    options.threads = 2;
    const std::vector<std::vector<size_t>> units = model.units();
    ASSERT_EQ(units.size(), 3u);
    for (const Objective objective :
         {Objective::energy, Objective::latency, Objective::energy_delay}) {
        options.objective = objective;
        const std::optional<Cut> found = best_cut(model, options);
        ASSERT_TRUE(found);
        // Bit n is a cut behind unit n. Each stack is costed with each tile and overlap, and all
        // combinations compete.
        double least = std::numeric_limits<double>::infinity();
        for (int cuts = 0; cuts < 4; ++cuts) {
            std::vector<std::pair<double, int64_t>> sums{{0, 0}};
            std::vector<size_t> layers;
            for (size_t n = 0; n < units.size(); ++n) {
                layers.insert(layers.end(), units[n].begin(), units[n].end());
                if (n + 1 < units.size() && (cuts >> n & 1) == 0) continue;
                std::vector<std::pair<double, int64_t>> longer;
                for (const Overlap overlap : options.overlaps) {
                    for (const int64_t x : options.columns) {
                        for (const int64_t y : options.rows) {
                            const StackCost cost = model.stack_cost(
                                layers,
                                {.tile = {x, y}, .overlap = overlap, .mappings = objective});
                            for (const auto& [energy, latency] : sums)
                                longer.emplace_back(energy + cost.energy_pj,
                                                    latency + cost.latency_cycles);
                        }
                    }
                }
                sums = std::move(longer);
                layers.clear();
            }
            for (const auto& [energy, latency] : sums)
                least = std::min(least, value(objective, energy, latency));
        }
        EXPECT_NEAR(value(objective, found->energy_pj, found->latency_cycles), least, 1e-9 * least)
            << to_string(objective);
        double energy = 0;
        for (const ChosenStack& stack : found->stacks) energy += stack.cost.energy_pj;
        EXPECT_NEAR(energy, found->energy_pj, 1e-9 * energy);
    }
}

// Three maps have 3^3 choices row by row and as many column by column. The descent, which compares
// fewer, finds nothing better, and its bound lies below.
TEST(OverlapSearch, IsTheBestOfAllChoices) {
    const DepthFirst model(open_machine("edge_tpu_df"), zoo_network("l3net"), {});
    const Strategy given{.tile = {7, 5}, .stacks = Stacks::all};
    for (const Objective objective : {Objective::energy, Objective::latency}) {
        const OverlapSearch found = search_overlaps(model, given, objective);
        EXPECT_TRUE(found.is_complete);
        ASSERT_EQ(found.strategy.of_maps.size(), 3u);
        double least = std::numeric_limits<double>::infinity();
        for (const Overlap along : {Overlap::h_cached, Overlap::v_cached}) {
            const std::array modes{Overlap::recompute, along, Overlap::fully_cached};
            for (size_t choice = 0; choice < 27; ++choice) {
                Strategy strategy = given;
                size_t rest = choice;
                for (auto map = found.strategy.of_maps.begin(); map != found.strategy.of_maps.end();
                     ++map, rest /= 3)
                    strategy.of_maps[map->first] = modes[rest % 3];
                const DepthFirstCost cost = model.cost(strategy, false);
                least = std::min(least, value(objective, cost.energy_pj, cost.latency_cycles));
            }
        }
        const DepthFirstCost cost = model.cost(found.strategy, false);
        EXPECT_NEAR(value(objective, cost.energy_pj, cost.latency_cycles), least, 1e-9 * least);
        const OverlapSearch descent = search_overlaps(model, given, objective, 10);
        EXPECT_FALSE(descent.is_complete);
        EXPECT_GE(descent.value, found.value * (1 - 1e-12));
        EXPECT_GT(found.value, found.bound);
    }
}

TEST(DepthFirst, AStackGoesOneWay) {
    const DepthFirst model(open_machine("edge_tpu_df"), zoo_network("l3net"), {});
    const std::vector<WorkloadLayer>& layers = model.workload().layers;
    Strategy strategy{.tile = {7, 5}, .overlap = Overlap::fully_cached, .stacks = Stacks::all};
    strategy.of_maps[layers[0].name] = Overlap::h_cached;
    strategy.of_maps[layers[1].name] = Overlap::v_cached;
    try {
        (void)model.cost(strategy);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()), "overlap: found h-cached for " + layers[0].name +
                                                 " and v-cached for " + layers[1].name +
                                                 " in one stack, expected one of the two: its "
                                                 "tiles go row by row or column by column");
    }
    // Nothing is kept of the output.
    strategy.of_maps.clear();
    strategy.of_maps[layers.back().name] = Overlap::v_cached;
    EXPECT_GT(model.cost(strategy).energy_pj, 0);
    EXPECT_THROW((void)DepthFirst(open_machine("tpu"), zoo_network("fsrcnn-defines"),
                                  Fidelity::as_published(1))
                     .cost(strategy),
                 InputError);
}

TEST(Sweep, MappingsForEachObjectiveAreBestInIt) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("l3net"), {});
    SweepOptions options;
    options.columns = {8};
    options.rows = {8};
    options.overlaps = {Overlap::fully_cached};
    options.mappings = {Objective::energy, Objective::latency, Objective::energy_delay};
    const Sweep found = sweep(model, options);
    ASSERT_EQ(found.points.size(), 3u);
    EXPECT_LE(found.points[0].energy_pj, found.points[1].energy_pj);
    EXPECT_LE(found.points[1].latency_cycles, found.points[0].latency_cycles);
    EXPECT_LT(found.points[1].latency_cycles,
              found.points[0].latency_cycles);  // otherwise no layer was mapped for latency
    EXPECT_GE(found.points[2].energy_pj, found.points[0].energy_pj);
    EXPECT_GE(found.front.size(), 2u);
    for (const SweepPoint& p : found.points) EXPECT_EQ(p.mapping_gap, 0);
}

TEST(Sweep, EachStackHasItsOwnBestPoint) {
    const DepthFirst model(open_machine("meta_proto_df"), zoo_network("mobilenetv1-defines"), {});
    SweepOptions options;
    options.columns = {4, 28};
    options.rows = {4, 28};
    const Sweep found = sweep(model, options);
    ASSERT_TRUE(found.best && found.combination);
    EXPECT_EQ(found.combination->points.size(), 5u);
    for (const SweepPoint& p : found.points)
        EXPECT_LE(found.combination->energy_pj, p.energy_pj * (1 + 1e-12));
}

TEST(Sweep, ThreadsDoNotChangeTheAnswer) {
    std::vector<double> energies;
    for (const int threads : {1, 3}) {
        const DepthFirst model(open_machine("tesla_npu_df"), zoo_network("fsrcnn-defines"), {});
        SweepOptions options;
        options.columns = {16, 60};
        options.rows = {18};
        options.threads = threads;
        for (const SweepPoint& p : sweep(model, options).points) energies.push_back(p.energy_pj);
    }
    EXPECT_TRUE(std::equal(energies.begin(),
                           energies.begin() + static_cast<ptrdiff_t>(energies.size() / 2),
                           energies.begin() + static_cast<ptrdiff_t>(energies.size() / 2)));
    EXPECT_THROW((void)parse_objective("power"), InputError);
}

}  // namespace
}  // namespace laminate::depth_first
