#include "scheduler/counts/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

std::vector<LayerProblem> problems(const Network& network) {
    std::vector<LayerProblem> all;
    for (const LayerId id : all_layers(network)) all.push_back(layer_problem(network, id));
    return all;
}

TEST(Reuse, TapsOverStrideRoundedUp) {
    const auto reuse = [](int64_t kernel, int64_t stride, int64_t dilation = 1) {
        return reuse_per_input(
            layer_problem(chain(1, 31, 31, {{1, square_window(kernel, stride, 0, dilation)}}), 0));
    };
    EXPECT_EQ(reuse(3, 1), 3 * 3);
    EXPECT_EQ(reuse(3, 2), 2 * 2);  // even rows are top or bottom of a window, odd ones the middle
    EXPECT_EQ(reuse(3, 3), 1);
    EXPECT_EQ(reuse(1, 2), 1);
    EXPECT_EQ(reuse(3, 2, 2), 3 * 3);  // taps 0, 2, 4 all fall on even rows: more than ceil(3 / 2)
}

TEST(Reuse, ARowServesNoMoreOutputsThanThereAre) {
    // 3 rows in, 3x3, no padding: one output row, so every input row serves one tap.
    EXPECT_EQ(reuse_per_input(layer_problem(chain(1, 3, 3, {{1, square_window(3)}}), 0)), 1);
}

TEST(Compulsory, L2NetLayerByLayerAndFused) {
    const std::vector<LayerProblem> all = problems(l2net());
    // conv1: X 3 * 20 * 20, W 3 * 3 * 3 * 4, Y 4 * 18 * 18; conv2: 4 * 18 * 18, 144, 4 * 16 * 16.
    // ConvFusion's minima 5 068 and 2 476.
    EXPECT_EQ(compulsory_accesses({all[0]}), Elements(1200 + 108 + 1296));
    EXPECT_EQ(compulsory_accesses({all[1]}), Elements(1296 + 144 + 1024));
    EXPECT_EQ(compulsory_accesses(all), Elements(1200 + 108 + 144 + 1024));
}

TEST(Compulsory, RowsBetweenStridesNeedNotMove) {
    // 1x1 of stride 2 on 5 x 5 reads rows and columns 0, 2, 4.
    EXPECT_EQ(compulsory_accesses(problems(chain(2, 5, 5, {{3, square_window(1, 2)}}))),
              Elements(2 * 9 + 6 + 3 * 9));
    // 3x3 of stride 1 before it: outputs 0, 2, 4 of conv1 need rows 0-2, 2-4, 4-6 of its 7, all of
    // them.
    EXPECT_EQ(compulsory_accesses(
                  problems(chain(2, 7, 7, {{2, square_window(3)}, {3, square_window(1, 2)}}))),
              Elements(2 * 49 + 36 + 6 + 3 * 9));
    // The other way round outputs 0, 1, 2 of the strided layer are all needed: rows 0, 2, 4 of 6.
    EXPECT_EQ(compulsory_accesses(
                  problems(chain(2, 6, 6, {{2, square_window(1, 2)}, {3, square_window(3)}}))),
              Elements(2 * 9 + 4 + 54 + 3));
}

TEST(Compulsory, PaddingIsNeverMoved) {
    EXPECT_EQ(compulsory_accesses(problems(chain(2, 4, 4, {{3, square_window(3, 1, 1)}}))),
              Elements(2 * 16 + 54 + 3 * 16));
}

/// conv1 3 -> 4 (1x1), conv2 4 -> 4 (3x3, padding 1), add = conv1 + conv2, pool = 2x2 of stride 2,
/// conv3 4 -> 2 (1x1), on 8 x 8.
Network residual() {
    Network network = chain(3, 8, 8, {{4, square_window(1)}, {4, square_window(3, 1, 1)}});
    append(network, "add", {.kind = LayerKind::add, .inputs = {1, 2}});
    append(network, "pool",
           {.kind = LayerKind::max_pool, .inputs = {3}, .window = square_window(2, 2)});
    const auto weights =
        std::make_shared<const Constant>(Constant{{2, 4, 1, 1}, std::vector<float>(8, 0.0f)});
    append(network, "conv3", {.kind = LayerKind::conv, .inputs = {4}, .weights = weights});
    check(network);
    return network;
}

TEST(Compulsory, ForksAndJoins) {
    const std::vector<LayerProblem> all = problems(residual());
    // A tensor that is read twice crosses once: X 4 * 64, W 144, Y 4 * 64.
    EXPECT_EQ(compulsory_accesses({all[1], all[2]}), Elements(256 + 144 + 256));
    // conv1's output is no longer an input.
    EXPECT_EQ(compulsory_accesses({all[0], all[1], all[2]}), Elements(192 + 12 + 144 + 256));
    EXPECT_EQ(compulsory_accesses(all), Elements(192 + 12 + 144 + 8 + 2 * 16));
    EXPECT_EQ(compulsory_accesses(residual()), Elements(192 + 12 + 144 + 8 + 2 * 16));
    // Chains must let conv1's and conv2's outputs out and read conv1's again.
    EXPECT_EQ(NetworkBound(residual(), GroupShape::dag).accesses(Elements(10'000)), Elements(388));
    EXPECT_EQ(NetworkBound(residual(), GroupShape::chain).accesses(Elements(10'000)),
              Elements((192 + 12 + 256) + (256 + 144 + 256) + (64 + 8 + 32)));
}

TEST(Compulsory, WhatALayerWithoutWeightsMayHideIsLeftOut) {
    // The network ends with the pool, which may be outside all groups. If it is inside a group,
    // conv1's output stays inside.
    Network network = chain(1, 4, 4, {{1, square_window(1)}});
    append(network, "pool",
           {.kind = LayerKind::max_pool, .inputs = {1}, .window = square_window(2, 2)});
    check(network);
    EXPECT_EQ(compulsory_accesses(network), Elements(16 + 1));
    EXPECT_EQ(compulsory_accesses(problems(network)), Elements(16 + 1 + 4));
}

TEST(Phases, TwoMacsOverRootMinusTwiceTheMemory) {
    // 1x1, 16 -> 16 channels, 8 x 8: 16 384 MACs, R = 1. S = 48: 2 * 16 384 / sqrt(48) - 96 = 4
    // 633.6; compulsory is 1 024 + 256 + 1 024.
    const std::vector<LayerProblem> layer = problems(chain(16, 8, 8, {{16, square_window(1)}}));
    EXPECT_GT(group_bound(layer, Elements(48)), Elements(4633));
    // The first phase begins with an empty memory and does (1 / 1.5)^1.5 of the MACs of a later
    // one. The gain is at most this.
    EXPECT_LE(group_bound(layer, Elements(48)), Elements(4634 + 96));
    EXPECT_EQ(group_bound(layer, Elements(4096)), Elements(2304));
}

TEST(Phases, TapsOnPaddingDoNotCount) {
    // 3x3 of dilation 2 and padding 2 on 4 x 4: rows -2, 0, 2 or -1, 1, 3 or ..., two of three taps
    // per axis are real, and a row serves two. S = 27: 2 * 64 * 64 * 16 * 4 / sqrt(4 * 27) - 54 =
    // 50 396; compulsory 64 * 16 * 2 + 36 864 = 38 912; with all 9 taps 113 459.
    const std::vector<LayerProblem> padded =
        problems(chain(64, 4, 4, {{64, square_window(3, 1, 2, 2)}}));
    EXPECT_EQ(reuse_per_input(padded[0]), 4);
    EXPECT_GE(group_bound(padded, Elements(27)), Elements(50'396));
    EXPECT_LT(group_bound(padded, Elements(27)), Elements(50'396 + 54));
}

TEST(Phases, FusionInLittleMemoryCostsTrafficToo) {
    // Two 3x3 layers of 64 maps at 32 x 32 in 256 elements: compulsory traffic is 65 536 * 2 + 73
    // 728 = 204 800; the phases demand more.
    const std::vector<LayerProblem> pair =
        problems(chain(64, 32, 32, {{64, square_window(3, 1, 1)}, {64, square_window(3, 1, 1)}}));
    EXPECT_EQ(compulsory_accesses(pair), Elements(204'800));
    EXPECT_GT(group_bound(pair, Elements(256)), Elements(1'000'000));
    // Less than the two layers need alone, because the bound allows for what fusion could save at
    // best.
    EXPECT_LT(group_bound(pair, Elements(256)),
              group_bound({pair[0]}, Elements(256)) + group_bound({pair[1]}, Elements(256)));
    // With room for all weights and intermediates nothing but compulsory traffic remains.
    EXPECT_EQ(group_bound(pair, Elements(150'000)), Elements(204'800));
}

TEST(NetworkBound, IsTheLeastOverGroupings) {
    const Network network = l3net();
    const std::vector<LayerProblem> all = problems(network);
    const auto cut = [&](size_t from, size_t to) {
        return group_bound(
            {all.begin() + static_cast<long>(from), all.begin() + static_cast<long>(to)},
            Elements(40));
    };
    const Elements alone = cut(0, 1) + cut(1, 2) + cut(2, 3);
    EXPECT_EQ(NetworkBound(network, GroupShape::chain, 1).accesses(Elements(40)), alone);
    EXPECT_EQ(NetworkBound(network, GroupShape::chain, 2).accesses(Elements(40)),
              std::min({alone, cut(0, 2) + cut(2, 3), cut(0, 1) + cut(1, 3)}));
    EXPECT_EQ(NetworkBound(network).accesses(Elements(40)),
              std::min({alone, cut(0, 2) + cut(2, 3), cut(0, 1) + cut(1, 3), cut(0, 3)}));
    // Layer by layer 8 664, all fused 1 452 + 108 + 144 + 144 + 1 024: ConvFusion's minima.
    EXPECT_EQ(NetworkBound(network, GroupShape::chain, 1).accesses(Elements(5000)), Elements(8664));
    EXPECT_EQ(NetworkBound(network).accesses(Elements(5000)), Elements(2872));
}

TEST(NetworkBound, IsReachedWhereEverythingFits) {
    for (const Network& network :
         {l2net(), l3net(),
          chain(3, 12, 12, {{4, square_window(3, 1, 1)}, {2, square_window(5, 1, 2)}})}) {
        const Front front = explore(network);
        const Certificate best = certificate(network, front.points.front().counts);
        EXPECT_EQ(best.bound, front.points.front().counts.accesses) << network.name;
        EXPECT_EQ(best.achieved_over_bound, 1);
        for (const FrontPoint& point : front.points)
            EXPECT_GE(certificate(network, point.counts).achieved_over_bound, 1);
    }
}

/// One to three convolutions with more channels than random_chain() has, so that small memories
/// need many accesses.
Network wide_network(uint64_t seed) {
    Rng rng(seed);
    std::vector<LayerSpec> layers;
    for (int64_t n = rng.between(1, 3); n > 0; --n) {
        const int64_t kernel = rng.chance(1, 3) ? 1 : 3;
        // Draw one after the other: the compiler may evaluate arguments of a call in any order, and
        // Fronts needs these networks.
        const int64_t channels = rng.between(4, 24);
        const int64_t pad = rng.between(0, kernel / 2);
        const int64_t stride = rng.between(1, 2);
        layers.push_back({channels, square_window(kernel, stride, pad)});
    }
    const int64_t extent = rng.between(16, 20);
    return chain(rng.between(4, 24), extent, extent, layers);
}

struct Comparisons {
    int64_t made = 0;
    int64_t reached = 0;                  ///< achieved == bound
    int64_t by_phases = 0;                ///< bound above compulsory traffic
    double closest_to_phases = HUGE_VAL;  ///< least achieved / bound among those
};

/// Groups and whole schedules.
void compare(const Network& network, uint64_t seed, uint64_t schedules, Comparisons& comparisons) {
    const NetworkBound chains(network), dags(network, GroupShape::dag);
    for (uint64_t n = 0; n < schedules; ++n) {
        const Schedule schedule = random_schedule(network, seed * 1000 + n);
        const NetworkBound& bound =
            group_shape(network, schedule) == GroupShape::chain ? chains : dags;
        std::vector<GroupCounts> counts;
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> layers = group_problems(network, group);
            counts.push_back(two_level_counts(layers, group));
            const Elements least = group_bound(layers, counts.back().live_total);
            EXPECT_GE(counts.back().accesses(), least)
                << "network seed " << seed << ", schedule seed " << seed * 1000 + n << ": "
                << to_text(group);
            ++comparisons.made;
            comparisons.reached += counts.back().accesses() == least;
            if (least == compulsory_accesses(layers)) continue;
            ++comparisons.by_phases;
            comparisons.closest_to_phases =
                std::min(comparisons.closest_to_phases,
                         static_cast<double>(counts.back().accesses().value()) /
                             static_cast<double>(least.value()));
        }
        const NetworkCounts sums = total(counts);
        EXPECT_GE(sums.accesses, bound.accesses(sums.live_total))
            << "network seed " << seed << ", schedule seed " << seed * 1000 + n << ": "
            << to_text(schedule);
        ++comparisons.made;
    }
}

/// A bound far below everything would pass, so it must be reached, and phases must decide, often
/// enough.
void check(const Comparisons& comparisons) {
    EXPECT_GT(comparisons.reached, comparisons.made / 100);
    EXPECT_GT(comparisons.by_phases, comparisons.made / 50);
    EXPECT_LT(comparisons.closest_to_phases, 4);
}

/// The best schedules that the search finds are the hardest test of a bound.
TEST(NoScheduleBeatsItsBound, Fronts) {
    double closest = HUGE_VAL;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = wide_network(seed);
        const NetworkBound bound(network);
        const Front front = explore(network);
        for (const FrontPoint& point : front.points) {
            const Certificate certificate = bound.certificate(point.counts);
            EXPECT_GE(certificate.achieved_over_bound, 1)
                << "seed " << seed << ": " << to_text(schedule_of(network, front, point));
            if (certificate.bound > bound.accesses(Elements(INT64_MAX)))
                closest = std::min(closest, certificate.achieved_over_bound);
        }
    }
    // If phases decide, some schedule comes within a third of them.
    EXPECT_LT(closest, 1.33);
}

TEST(NoScheduleBeatsItsBound, RandomSample) {
    Comparisons comparisons;
    for (uint64_t seed = 1; seed <= 300; ++seed) compare(random_chain(seed), seed, 4, comparisons);
    for (uint64_t seed = 1; seed <= 200; ++seed)
        compare(random_network(seed), seed, 3, comparisons);
    for (uint64_t seed = 1; seed <= 150; ++seed)
        compare(random_picture_network(seed), seed, 3, comparisons);
    for (uint64_t seed = 1; seed <= 150; ++seed) compare(wide_network(seed), seed, 8, comparisons);
    check(comparisons);
}

TEST(NoScheduleBeatsItsBoundLong, HundredThousandRandomCases) {
    Comparisons comparisons;
    for (uint64_t seed = 10'000; seed < 13'000; ++seed)
        compare(random_chain(seed), seed, 10, comparisons);
    for (uint64_t seed = 10'000; seed < 13'000; ++seed)
        compare(random_network(seed), seed, 5, comparisons);
    for (uint64_t seed = 10'000; seed < 11'000; ++seed)
        compare(random_picture_network(seed), seed, 5, comparisons);
    for (uint64_t seed = 10'000; seed < 12'000; ++seed)
        compare(wide_network(seed), seed, 20, comparisons);
    EXPECT_GT(comparisons.made, 100'000);
    check(comparisons);
}

}  // namespace
}  // namespace laminate
