#include "scheduler/explore/fewest_accesses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scheduler/counts/bounds.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// The point of the two-axis front with the fewest accesses and, among those, the fewest MACs.
const FrontPoint& first_of(const Front& front) {
    const FrontPoint* best = &front.points.front();
    for (const FrontPoint& point : front.points) {
        if (point.counts.accesses == best->counts.accesses && point.counts.macs < best->counts.macs)
            best = &point;
    }
    return *best;
}

/// If the bound is reached at once, the accesses are those of the bound, perhaps of a schedule
/// outside the space. Otherwise they are those of the front.
TEST(FewestAccesses, AreThoseOfTheFrontOrOfTheBoundInEveryMemory) {
    int at_once = 0, searched = 0;
    for (uint64_t seed = 0; seed < 16; ++seed) {
        const Network network = tiny_chain(seed, 2);
        ExploreOptions options;
        options.space = seed % 4 == 3   ? Space::dag
                        : seed % 4 == 2 ? Space::fusion
                                        : Space::fusion_recompute;
        options.tiles = seed % 3 == 0 ? TileSizes::powers_of_two : TileSizes::divisors;
        options.footprint = seed % 5 == 0 ? Footprint::sum : Footprint::live;
        options.recompute = seed % 6 != 1;
        options.macs_is_axis = false;
        const Front whole = explore(network, options);
        std::vector<std::optional<Elements>> budgets{std::nullopt};
        for (size_t n = 0; n < whole.points.size(); n += 1 + whole.points.size() / 3)
            budgets.emplace_back(memory_of(whole.points[n].counts, options.footprint));
        for (const std::optional<Elements>& budget : budgets) {
            options.memory = budget;
            bool is_searched = false;
            options.progress = [&](const ExploreProgress&) { is_searched = true; };
            const Front found = search::fewest_accesses(network, options);
            options.progress = {};
            ASSERT_EQ(found.points.size(), 1U) << seed;
            const NetworkCounts& counts = found.points.front().counts;
            EXPECT_NO_THROW((void)schedule_of(network, found, found.points.front()));
            EXPECT_TRUE(!budget || memory_of(counts, options.footprint) <= *budget) << seed;
            EXPECT_TRUE(found.is_complete && found.bounds.empty() && found.gap == 0) << seed;
            const Front front = explore(network, options);
            const NetworkCounts& expected = first_of(front).counts;
            EXPECT_LE(counts.accesses, expected.accesses) << seed;
            if (is_searched) {
                ++searched;
                EXPECT_EQ(counts.accesses, expected.accesses) << seed;
                EXPECT_EQ(counts.macs, expected.macs) << seed;
            } else {
                ++at_once;
                EXPECT_EQ(counts.accesses,
                          NetworkBound(network).accesses(budget.value_or(Elements(INT64_MAX))))
                    << seed;
            }
        }
    }
    EXPECT_GT(at_once, 10);
    EXPECT_GT(searched, 10);
}

TEST(FewestAccesses, NothingFits) {
    ExploreOptions options;
    options.memory = Elements(18);
    EXPECT_TRUE(search::fewest_accesses(l3net(), options).points.empty());
}

TEST(FewestAccesses, WhatALimitLeavesOutIsBounded) {
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.memory = Elements(150);  // fused whole it does not fit
    const Front whole = search::fewest_accesses(l3net(), options);
    ASSERT_TRUE(whole.is_complete);
    options.max_steps = 300;
    const Front part = search::fewest_accesses(l3net(), options);
    ASSERT_EQ(part.points.size(), 1U);
    ASSERT_FALSE(part.is_complete);
    EXPECT_GT(part.gap, 0);
    EXPECT_TRUE(std::isfinite(part.gap));
    const auto accesses = [](const Front& front) {
        return static_cast<double>(front.points.front().counts.accesses.value());
    };
    EXPECT_GE(accesses(whole) * (1 + part.gap) * (1 + 1e-12), accesses(part));
    ASSERT_FALSE(part.bounds.empty());
    for (const FrontBound& step : part.bounds) EXPECT_LE(step.memory, *options.memory);
}

/// Fewest elements that AccelForge 1.0.467's fused mapper moves on convolutions without padding,
/// with elements of 8 bits, as bench/race_accelforge.py printed them (docs/convfusion.md,
/// AccelForge). Its sums are 32-bit floats.
struct Raced {
    const char* chain;
    int64_t kib;
    int64_t accelforge;
    int64_t ours;
};

class AgainstAccelForge : public testing::TestWithParam<Raced> {
protected:
    static Network raced(const std::string& name) {
        const auto layer = [](int64_t channels, int64_t kernel) {
            return LayerSpec{channels, square_window(kernel)};
        };
        if (name == "l3net") return l3net();
        if (name == "l3net-4k")
            return chain(3, 2160, 3840, {layer(4, 3), layer(4, 3), layer(4, 3)});
        if (name == "vgg-pair") return chain(64, 116, 116, {layer(128, 3), layer(128, 3)});
        if (name == "fsrcnn-head")
            return chain(1, 544, 964, {layer(56, 5), layer(12, 1), layer(12, 3)});
        return chain(1, 568, 988,
                     {layer(56, 5), layer(12, 1), layer(12, 3), layer(12, 3), layer(12, 3),
                      layer(12, 3), layer(56, 1), layer(1, 9)});
    }
};

TEST_P(AgainstAccelForge, WeMoveNoMore) {
    ExploreOptions options;
    options.memory = Elements(1024 * GetParam().kib);
    const Front front = search::fewest_accesses(raced(GetParam().chain), options);
    ASSERT_EQ(front.points.size(), 1U);
    const NetworkCounts& counts = front.points.front().counts;
    EXPECT_LE(counts.live_total, *options.memory);
    EXPECT_LE(counts.accesses, Elements(GetParam().accelforge));
    EXPECT_EQ(counts.accesses, Elements(GetParam().ours));
    EXPECT_TRUE(front.is_complete);
}

INSTANTIATE_TEST_SUITE_P(Chains, AgainstAccelForge,
                         testing::Values(Raced{"l3net", 256, 2'872, 2'872},
                                         Raced{"l3net", 512, 2'872, 2'872},
                                         Raced{"l3net", 1024, 2'872, 2'872},
                                         Raced{"fsrcnn-head", 256, 19'154'232, 6'712'632},
                                         Raced{"fsrcnn-head", 512, 19'154'232, 6'712'632},
                                         Raced{"fsrcnn-head", 1024, 19'154'232, 6'712'632},
                                         Raced{"vgg-pair", 256, 6'014'976, 2'688'000},
                                         Raced{"vgg-pair", 512, 6'014'976, 2'688'000},
                                         Raced{"vgg-pair", 1024, 6'014'976, 2'688'000},
                                         Raced{"l3net-4k", 256, 190'339'904, 57'917'340},
                                         Raced{"l3net-4k", 512, 190'339'904, 57'917'340},
                                         Raced{"l3net-4k", 1024, 190'339'904, 57'917'340},
                                         Raced{"fsrcnn", 256, 114'963'888, 1'104'112},
                                         Raced{"fsrcnn", 512, 114'714'800, 1'104'112},
                                         Raced{"fsrcnn", 1024, 114'714'800, 1'104'112}));

}  // namespace
}  // namespace laminate
