#include "papers/spatial_fusion/fusion_search.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/papers/spatial_fusion/pixel_walker.h"
#include "tests/papers/spatial_fusion/published_networks.h"

namespace laminate::spatial_fusion {
namespace {

struct Found {
    int64_t volume = 0;
    int64_t footprint = 0;
    friend auto operator<=>(const Found&, const Found&) = default;
};

/// Tries every tile.
std::optional<Found> every_tile(const Stack& stack, const FusionOptions& options) {
    std::optional<Found> best;
    const LayerProblem& bottom = stack.back();
    for (int64_t y = 1; y <= bottom[Dim::y]; ++y) {
        for (int64_t x = 1; x <= bottom[Dim::x]; ++x) {
            for (int64_t z = is_channelwise(bottom) ? bottom[Dim::z] : 1; z <= bottom[Dim::z];
                 ++z) {
                const Tile tile{x, y, z, stack.front().inputs.front().channels};
                const Found found{stack_volume(stack, tile, options.reading),
                                  stack_footprint(stack, tile, options.reuse).total()};
                if (found.footprint <= options.capacity && (!best || found < *best)) best = found;
            }
        }
    }
    return best;
}

std::optional<Found> every_single_tile(const LayerProblem& layer, const FusionOptions& options) {
    std::optional<Found> best =
        options.reading == Reading::exact ? every_tile({layer}, options) : std::nullopt;
    for (int64_t y = 1; y <= layer[Dim::y]; ++y) {
        for (int64_t x = 1; x <= layer[Dim::x]; ++x) {
            for (int64_t z = 1; z <= layer[Dim::z]; ++z) {
                for (int64_t i = 1; i <= layer.inputs.front().channels; ++i) {
                    if (is_channelwise(layer) && i != z) continue;
                    const Tile tile{x, y, z, i};
                    const Found found{single_layer_volume(layer, tile, options.reading),
                                      single_layer_footprint(layer, tile)};
                    if (found.footprint <= options.capacity && (!best || found < *best))
                        best = found;
                }
            }
        }
    }
    return best;
}

Network random_fusable_chain(Rng& rng) {
    for (;;) {
        std::vector<NamedLayer> layers;
        const int64_t count = rng.between(2, 5);
        for (int64_t l = 0; l < count; ++l) {
            const std::string name = "layer" + std::to_string(l);
            if (rng.chance(1, 4)) {
                layers.push_back({name, pool(rng.between(2, 3), rng.between(0, 1))});
            } else {
                const int64_t stride = rng.between(1, 2);
                const int64_t kernel = rng.between(1, 3);  // below the stride too
                layers.push_back({name,
                                  {rng.between(1, 4),
                                   square_window(kernel, stride, rng.between(0, kernel / 2))}});
            }
        }
        try {
            Network network = named_chain(rng.between(1, 3), rng.between(7, 16), layers);
            const auto chains = stackable_chains(network);
            if (chains.size() == 1 && chains.front().size() == layers.size()) return network;
        } catch (const InputError&) {  // a map without extent: draw again
        }
    }
}

TEST(FusionSearch, BestTilesAreThoseOfEveryTile) {
    Rng rng(11);
    for (int n = 0; n < 60; ++n) {
        const Network network = random_fusable_chain(rng);
        FusionOptions options{.capacity = rng.between(20, 600),
                              .reading = rng.chance(1, 2) ? Reading::exact : Reading::paper};
        const std::vector<LayerId> chain = stackable_chains(network).front();
        const std::vector<LayerId> pair(chain.begin(), chain.begin() + 2);
        const auto stack = best_stack(network, pair, options);
        const auto expected = every_tile(layer_problems(network, pair), options);
        ASSERT_EQ(stack.has_value(), expected.has_value()) << n;
        if (stack) {
            EXPECT_EQ((Found{stack->volume, stack->footprint}), *expected) << n;
        }
        const auto single = best_single(network, chain.front(), options);
        const auto expected_single =
            every_single_tile(layer_problem(network, chain.front()), options);
        ASSERT_EQ(single.has_value(), expected_single.has_value()) << n;
        if (single) {
            EXPECT_EQ((Found{single->volume, single->footprint}), *expected_single) << n;
        }
    }
}

/// Tries every cut of the chain into contiguous stacks.
int64_t every_cut(const Network& network, const std::vector<LayerId>& chain,
                  const FusionOptions& options) {
    int64_t best = INT64_MAX;
    const std::function<void(size_t, int64_t)> cut = [&](size_t begin, int64_t volume) {
        if (begin == chain.size()) {
            best = std::min(best, volume);
            return;
        }
        for (size_t end = begin + 1; end <= chain.size(); ++end) {
            const std::vector<LayerId> part(chain.begin() + static_cast<std::ptrdiff_t>(begin),
                                            chain.begin() + static_cast<std::ptrdiff_t>(end));
            const auto found = part.size() == 1 ? best_single(network, part.front(), options)
                                                : best_stack(network, part, options);
            if (found) cut(end, volume + found->volume);
        }
    };
    cut(0, 0);
    return best;
}

TEST(FusionSearch, ThePlanIsTheBestOfAllCuts) {
    Rng rng(12);
    int fused = 0;
    for (int n = 0; n < 100; ++n) {
        const Network network = random_fusable_chain(rng);
        FusionOptions options{.capacity = rng.between(30, 500),
                              .reading = rng.chance(3, 4) ? Reading::exact : Reading::paper,
                              .full_rows = rng.chance(1, 4)};
        const auto found = plan_fusion(network, options);
        const std::vector<LayerId> chain = stackable_chains(network).front();
        const int64_t expected = every_cut(network, chain, options);
        if (const auto* plan = std::get_if<FusionPlan>(&found)) {
            EXPECT_EQ(plan->volume(), expected) << n;
            EXPECT_LE(plan->volume(), plan->single_volume());
            for (const PlannedStack& stack : plan->stacks) fused += stack.is_fused() ? 1 : 0;
            options.growth = Growth::paper;
            EXPECT_GE(std::get<FusionPlan>(plan_fusion(network, options)).volume(), expected);
        }
    }
    EXPECT_GT(fused, 20);
}

TEST(FusionSearch, GrowthMissesStacksThatBeginInsideAGrownOne) {
    // Three layers fit together, the fourth does not: growth starts again there and never sees
    // layers 2 to 4.
    Rng rng(13);
    int misses = 0;
    for (int n = 0; n < 100; ++n) {
        const Network network = random_fusable_chain(rng);
        FusionOptions options{.capacity = 150};
        const auto optimal = plan_fusion(network, options);
        if (!std::holds_alternative<FusionPlan>(optimal)) continue;
        options.growth = Growth::paper;
        misses += std::get<FusionPlan>(plan_fusion(network, options)).volume() >
                          std::get<FusionPlan>(optimal).volume()
                      ? 1
                      : 0;
    }
    EXPECT_GT(misses, 0);
}

TEST(FusionSearch, ForksAndJoinsEndStacks) {
    // a -> b -> add(b, a) -> c: a's output is read twice.
    Network network = empty_network(2, 8, 8);
    const TensorId a = append(network, "a", 0, {4, square_window(3, 1, 1)});
    const TensorId b = append(network, "b", a, {4, square_window(3, 1, 1)});
    const TensorId sum = append(network, "sum", {.kind = LayerKind::add, .inputs = {b, a}});
    (void)append(network, "c", sum, {4, square_window(3, 1, 1)});
    check(network);
    EXPECT_EQ(stackable_chains(network), (std::vector<std::vector<LayerId>>{{0}, {1}, {2}, {3}}));
    const FusionPlan plan = std::get<FusionPlan>(plan_fusion(network, {.capacity = 4096}));
    EXPECT_TRUE(plan.stacks[2].is_join);
    EXPECT_EQ(plan.stacks[2].volume, 3 * 4 * 8 * 8);
}

TEST(FusionSearch, WhatDoesNotFitSaysWhatWould) {
    const Network network =
        chain(2, 8, 8, {{4, square_window(3, 1, 1)}, {4, square_window(5, 1, 2)}});
    // One pixel of one channel: 25 inputs, 25 weights, an output. In full rows 5 rows of 7 + 5
    // columns, 25 weights, 8 outputs.
    for (const auto& [full_rows, needed] :
         {std::pair<bool, int64_t>{false, 25 + 25 + 1}, {true, 5 * 12 + 25 + 8}}) {
        const auto found = plan_fusion(network, {.capacity = 18, .full_rows = full_rows});
        ASSERT_TRUE(std::holds_alternative<Infeasible>(found));
        EXPECT_EQ(std::get<Infeasible>(found).demand, Elements(needed));
        EXPECT_TRUE(std::holds_alternative<Infeasible>(
            plan_fusion(network, {.capacity = needed - 1, .full_rows = full_rows})));
        EXPECT_TRUE(std::holds_alternative<FusionPlan>(
            plan_fusion(network, {.capacity = needed, .full_rows = full_rows})));
    }
}

TEST(FusionSearch, TransposedConvolutionsAreRefusedByName) {
    const Network network =
        chain(2, 8, 8, {{4, square_window(3, 2, 1), 1, LayerKind::conv_transpose}});
    try {
        (void)plan_fusion(network, {.capacity = 4096});
        FAIL() << "expected InputError";
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("conv1: a transposed convolution"),
                  std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace laminate::spatial_fusion
