#include "papers/layer_optimum/fused_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/rng.h"
#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "tests/scheduler/explore/every_schedule.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

int64_t total_banks(const BankedBuffer& buffer, const GroupCounts& counts) {
    int64_t banks = 0;
    const auto hold = [&](Elements e) {
        banks += (e.value() + buffer.bank_words - 1) / buffer.bank_words;
    };
    for (const InputCounts& input : counts.inputs) hold(input.buffer);
    for (const LayerCounts& layer : counts.layers) {
        hold(layer.weight_buffer);
        hold(layer.output_buffer);
    }
    return banks;
}

/// The least words of all covers: tries every group with the first layer that is not covered.
int64_t least_cover(const Network& network,
                    const std::vector<std::pair<std::set<LayerId>, int64_t>>& groups,
                    std::set<LayerId> open) {
    if (open.empty()) return 0;
    int64_t best = infinite_words;
    for (const auto& [layers, words] : groups) {
        if (!layers.contains(*open.begin()) ||
            !std::includes(open.begin(), open.end(), layers.begin(), layers.end()))
            continue;
        std::set<LayerId> rest = open;
        for (const LayerId layer : layers) rest.erase(layer);
        best = std::min(best, words + least_cover(network, groups, std::move(rest)));
    }
    return best;
}

void expect_best_cover(const Network& network, const BankedBuffer& buffer, int64_t& fused_groups) {
    FusionOptions options;
    options.max_layers = 3;
    const FusedOptimum fused = fused_optimum(network, buffer, options);
    std::vector<std::pair<std::set<LayerId>, int64_t>> groups;
    std::set<LayerId> open;
    int64_t alone = 0;
    for (const std::vector<LayerId>& layers : one_sink_groups(network, options.max_layers).layers) {
        const std::optional<OptimumGroup> group = optimum_group(network, layers, buffer, options);
        if (layers.size() == 1) {
            ASSERT_TRUE(group);
            open.insert(layers.front());
            alone += group->dram_words;
        }
        if (!group) continue;
        EXPECT_LE(group->lower_bound_words, group->dram_words) << network.layer(layers.back()).name;
        EXPECT_LE(group->banks, buffer.banks);
        groups.emplace_back(std::set<LayerId>(layers.begin(), layers.end()), group->dram_words);
    }
    EXPECT_EQ(fused.dram_words, least_cover(network, groups, open));
    EXPECT_EQ(fused.layer_by_layer_words, alone);
    EXPECT_LE(fused.dram_words, alone);
    EXPECT_LE(fused.lower_bound_words, fused.dram_words);
    EXPECT_TRUE(fused.is_complete);
    int64_t sum = 0;
    size_t layers = 0;
    for (const OptimumGroup& group : fused.groups) {
        sum += group.dram_words;
        layers += group.layers.size();
        fused_groups += group.layers.size() > 1 ? 1 : 0;
    }
    EXPECT_EQ(sum, fused.dram_words);
    EXPECT_EQ(layers, open.size());
}

TEST(FusedOptimum, IsTheBestOfAllCovers) {
    int64_t fused_groups = 0;
    Rng rng(5);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = seed % 2 == 0 ? random_chain(seed) : random_network(seed);
        SCOPED_TRACE("seed " + std::to_string(seed));
        if (std::none_of(network.layers.begin(), network.layers.end(), [&](const Layer& l) {
                return is_schedulable(network, network.find_layer(l.name));
            }))
            continue;
        expect_best_cover(network, {rng.between(3, 9), rng.between(8, 64)}, fused_groups);
    }
    EXPECT_GT(fused_groups, 5);
}

/// A schedule's words equal the plain walker's own count. First layers do not pad, so that padding
/// is data in both.
TEST(FusedOptimum, SchedulesMoveAndHoldWhatTheWalkerCounts) {
    int64_t walked = 0;
    Rng rng(7);
    for (int n = 0; n < test::samples(30); ++n) {
        std::vector<LayerSpec> specs{{rng.between(2, 5), square_window(3)},
                                     {rng.between(2, 5), square_window(3, 1, rng.between(0, 1))}};
        if (rng.chance(1, 2))
            specs.push_back({rng.between(1, 4), square_window(rng.between(1, 2))});
        const Network network =
            chain(rng.between(1, 3), rng.between(8, 14), rng.between(8, 14), specs);
        const BankedBuffer buffer{rng.between(8, 40), rng.between(8, 30)};
        const std::optional<OptimumGroup> group =
            optimum_group(network, all_layers(network), buffer);
        if (!group) continue;
        ASSERT_EQ(group->means, GroupMeans::schedule);
        const GroupCounts counts = walk(network, *group->schedule);
        EXPECT_EQ(group->dram_words, counts.accesses().value()) << to_text(*group->schedule);
        EXPECT_EQ(group->banks, total_banks(buffer, counts)) << to_text(*group->schedule);
        EXPECT_LE(group->banks, buffer.banks);
        EXPECT_EQ(group->lower_bound_words, compulsory_words(network, group->layers));
        ++walked;
    }
    EXPECT_GE(walked, test::samples(16));
}

TEST(FusedOptimum, PaddingIsData) {
    // The same layers on an input that holds the padding of the first one.
    const std::vector<LayerSpec> padded{{3, square_window(3, 1, 1)}, {4, square_window(3, 1, 1)}};
    const std::vector<LayerSpec> inside{{3, square_window(3)}, {4, square_window(3, 1, 1)}};
    const BankedBuffer buffer{10, 40};
    const auto a = optimum_group(chain(2, 10, 12, padded), {0, 1}, buffer);
    const auto b = optimum_group(chain(2, 12, 14, inside), {0, 1}, buffer);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->dram_words, b->dram_words);
    EXPECT_EQ(a->lower_bound_words, 2 * 12 * 14 + 3 * 2 * 9 + 4 * 3 * 9 + 4 * 10 * 12);
}

TEST(FusedOptimum, WeightsThatStayComeOnceForTheWholeBatch) {
    Network network = chain(2, 10, 10, {{4, square_window(3)}, {4, square_window(3)}});
    // With room for all weights and a few rows, only maps move again for the second image.
    const BankedBuffer buffer{40, 16};
    const auto one = optimum_group(network, {0, 1}, buffer);
    for (Tensor& tensor : network.tensors) tensor.dims[0] = 3;
    const auto three = optimum_group(network, {0, 1}, buffer);
    ASSERT_TRUE(one && three);
    const int64_t weights = 4 * 2 * 9 + 4 * 4 * 9;
    EXPECT_EQ(one->dram_words, 2 * 100 + weights + 4 * 36);
    EXPECT_EQ(three->dram_words, 3 * (2 * 100 + 4 * 36) + weights);
}

/// Banks of one word and one image: only the sum of all buffers counts, and the search of pairs is
/// complete in tiles that divide.
TEST(FusedOptimum, PairsAreBetweenTheBestOfAllTilesAndTheBestThatDivide) {
    Rng rng(3);
    int64_t pairs = 0;
    int64_t best = 0;
    for (int n = 0; n < test::samples(12); ++n) {
        const auto window = [&] { return square_window(rng.between(1, 2)); };
        const Network network =
            chain(rng.between(1, 2), rng.between(3, 4), rng.between(3, 4),
                  {{rng.between(1, 2), window()}, {rng.between(1, 2), window()}});
        const int64_t words = rng.between(6, 24);
        const auto least = [&](TileSizes tiles) {
            EverySchedule every(layer_problems(network, {0, 1}), {tiles, Footprint::sum});
            int64_t accesses = infinite_words;
            for (const ThreeCosts& cost : every.unbeaten_by({}))
                if (cost[1] <= words) accesses = std::min(accesses, cost[0]);
            return accesses;
        };
        const int64_t of_all = least(TileSizes::all);
        const auto group = optimum_group(network, {0, 1}, {words, 1});
        EXPECT_EQ(group.has_value(), of_all < infinite_words);
        if (!group) continue;
        EXPECT_GE(group->dram_words, of_all);
        EXPECT_LE(group->dram_words, least(TileSizes::divisors));
        ++pairs;
        best += group->dram_words == of_all ? 1 : 0;
    }
    EXPECT_GE(pairs, test::samples(8));
    EXPECT_GE(best, pairs - 2);
}

TEST(FusedOptimum, PoolsFollowBlockByBlock) {
    // conv1 and its pool of 2 x 2: input, weights and the pooled output cross once where the blocks
    // allow it. A convolution alone writes four times as many outputs.
    Network network = chain(4, 10, 10, {{8, square_window(3)}});
    Layer pool{.kind = LayerKind::max_pool,
               .inputs = {network.outputs.front()},
               .window = square_window(2, 2)};
    (void)append(network, "pool1", pool);
    const BankedBuffer buffer{12, 60};
    const auto group = optimum_group(network, {0, 1}, buffer);
    ASSERT_TRUE(group);
    EXPECT_EQ(group->means, GroupMeans::finished_blocks);
    EXPECT_EQ(group->optimum->division.spills[2], 0);
    EXPECT_EQ(group->dram_words,
              4 * 100 + 8 * 4 * 9 + 8 * 16 + group->optimum->division.extra_words());
    for (const BlockLoop& l : group->optimum->order) {
        const bool is_window = l.loop == ConvolutionLoop::x || l.loop == ConvolutionLoop::y;
        EXPECT_EQ(is_window ? l.block % 2 : 0, 0) << to_text(group->optimum->order);
    }
    const auto conv = optimum_group(network, {0}, buffer);
    const FusedOptimum fused = fused_optimum(network, buffer);
    EXPECT_EQ(fused.layer_by_layer_words, conv->dram_words + 8 * 64 + 8 * 16);
    EXPECT_EQ(fused.dram_words, group->dram_words);
    // Windows that reach into their neighbours' cannot follow so.
    network.layers.back().window = square_window(3, 2);
    network.tensors.back().dims = {1, 8, 3, 3};
    const auto overlapping = optimum_group(network, {0, 1}, buffer);
    EXPECT_TRUE(!overlapping || overlapping->means == GroupMeans::schedule);
}

}  // namespace
}  // namespace laminate
