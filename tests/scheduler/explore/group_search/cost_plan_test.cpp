#include "scheduler/explore/group_search/cost_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.h"
#include "scheduler/explore/group_search/group_search.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate::search {
namespace {

TEST(CostPlan, MemoryIsANestedSumAndMaximum) {
    // Two layers. Terms: 0 input, 1-2 weights, 3 visits, 4-5 macs, 6-7 buffers, 8-9 weight buffers,
    // 10 output buffer.
    const Terms terms(2);
    const CostPlan plan(terms, {{terms.buffer(0), 1},
                                {terms.weight_buffer(1), 1},
                                {terms.buffer(1), 2},
                                {terms.weight_buffer(2), 2, true},
                                {terms.output_buffer(), 0}});
    const std::vector<double> product{1, 2, 3, 4, 100, 200, 10, 20, 30, 1000, 5, 0};
    const Cost cost = plan.cost(product.data());
    EXPECT_EQ(cost.accesses, 1 + 2 + 3 + 4);
    EXPECT_EQ(cost.macs, 100 + 200);
    // In nest 1: 10 + 30. Around it 20, beside it the weights of layer 2, 1000. Always 5.
    EXPECT_EQ(cost.memory, 5 + 20 + std::max(1000, 10 + 30));
}

TEST(CostPlan, ARowIsItsSchedulesOneByOne) {
    Rng rng(1);
    for (int round = 0; round < 200; ++round) {
        const Terms terms(static_cast<int>(rng.between(1, 4)));
        std::vector<BufferPlace> places;
        for (size_t t = terms.buffer(0); t < terms.count(); ++t)
            places.push_back({t, static_cast<int>(rng.between(0, terms.n)), rng.chance(1, 3)});
        for (BufferPlace& place : places) place.is_below = place.is_below && place.nest > 0;
        const CostPlan plan(terms, places);
        std::vector<char> varies(terms.count());
        for (char& v : varies) v = rng.chance(1, 2) ? 1 : 0;
        std::vector<size_t> all(terms.count());
        std::iota(all.begin(), all.end(), size_t{0});
        Options options(all, 0);
        for (int64_t n = rng.between(1, 100); n > 0; --n) {
            Option o;
            for (size_t t = 0; t < terms.count(); ++t)
                o.factors.push_back(varies[t] != 0 ? static_cast<double>(rng.between(1, 50)) : 3);
            options.add(o);
        }
        const AxisTree axis(options, terms.count());
        std::vector<double> others;
        for (size_t t = 0; t < padded_terms(terms.count()); ++t)
            others.push_back(t < terms.count() ? static_cast<double>(rng.between(1, 50)) : 0);
        std::vector<double> row_product = others;
        axis.multiply_fixed(row_product.data());
        const CostPlan::Row row(plan, axis);
        for (uint32_t first = 0; first < options.size(); first += CostRow::most) {
            const size_t size = std::min<size_t>(CostRow::most, options.size() - first);
            CostRow costs;
            row.costs(row_product.data(), first, size, true, costs);
            for (size_t j = 0; j < size; ++j) {
                const uint32_t leaf = axis.leaf_at(first + static_cast<uint32_t>(j));
                std::vector<double> product = others;
                axis.multiply(leaf, product.data());
                EXPECT_EQ((Cost{costs.accesses[j], costs.memory[j], costs.macs[j]}),
                          plan.cost(product.data()))
                    << "round " << round << " place " << first + j;
            }
        }
    }
}

/// Evaluating many combinations at once, or bounding every set of them, finds the same front.
TEST(CostPlan, GridsDoNotChangeTheFront) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(12); ++seed) {
        const Network network = tiny_chain(seed, 1 + static_cast<int64_t>(seed % 2));
        const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
        if (problems.size() > 1 && !std::all_of(problems.begin(), problems.end(),
                                                [](const LayerProblem& p) { return may_fuse(p); }))
            continue;
        for (const bool macs_is_axis : {false, true}) {
            std::vector<std::vector<Cost>> fronts;
            for (const int64_t most_in_a_grid : {int64_t{1}, int64_t{7}, int64_t{256}, INT64_MAX}) {
                GroupSearchOptions options;
                options.tiles = Tiles::all;
                options.macs_is_axis = macs_is_axis;
                options.most_in_a_grid = most_in_a_grid;
                GroupSearch search(problems, options);
                search.run();
                fronts.emplace_back();
                for (const GroupSearch::Point& point : search.front())
                    fronts.back().push_back(point.cost);
            }
            for (size_t n = 1; n < fronts.size(); ++n)
                EXPECT_EQ(fronts[n], fronts[0]) << "seed " << seed << " grids " << n;
        }
    }
}

TEST(KnownAccesses, LeaveOutOnlyWhatIsBeatenAndAlmostAllOfIt) {
    Rng rng(2);
    int64_t beaten = 0, left_in = 0;
    for (int round = 0; round < 100; ++round) {
        KnownAccesses known;
        Archive<char> archive(false);
        const auto number = [&] {
            return std::floor(std::exp2(0.1 * static_cast<double>(rng.between(0, 400))));
        };
        for (int n = 0; n < 30; ++n) {
            const Cost cost{number(), number() - (rng.chance(1, 10) ? 1 : 0), 0};
            known.add(cost);
            archive.offer(cost, 0);
        }
        const double most = rng.chance(1, 3) ? number() : std::numeric_limits<double>::infinity();
        const size_t size = static_cast<size_t>(rng.between(1, CostRow::most));
        CostRow row;
        for (size_t j = 0; j < size; ++j) {
            row.accesses[j] = number();
            row.memory[j] = number();
        }
        KnownAccesses::Flags may_matter;
        known.compare(row, size, most, may_matter);
        for (size_t j = 0; j < size; ++j) {
            // Equal accesses may be better by their MACs.
            const bool is_beaten =
                row.accesses[j] > archive.most_accesses(row.memory[j], 0) || row.accesses[j] > most;
            if (!is_beaten) {
                EXPECT_EQ(may_matter[j], 1) << row.accesses[j] << " in " << row.memory[j];
            }
            if (row.accesses[j] > archive.most_accesses(row.memory[j] * 15 / 16, 0) ||
                row.accesses[j] > most) {
                EXPECT_EQ(may_matter[j], 0) << row.accesses[j] << " in " << row.memory[j];
            }
            beaten += is_beaten ? 1 : 0;
            left_in += is_beaten && may_matter[j] == 1 ? 1 : 0;
        }
        EXPECT_EQ(least(row.memory.data(), size),
                  *std::min_element(row.memory.data(), row.memory.data() + size));
    }
    EXPECT_GT(beaten, 1000);
    EXPECT_LT(left_in, beaten / 20);
    EXPECT_EQ(least(nullptr, 0), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace laminate::search
