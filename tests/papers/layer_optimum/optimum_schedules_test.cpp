#include "papers/layer_optimum/optimum_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "papers/layer_optimum/managed_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

bool has_layers(const Network& network) {
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id)
        if (is_schedulable(network, id)) return true;
    return false;
}

/// Every group of the schedule moves and holds what the plain walker counts, within the buffer
/// unless it says otherwise.
void expect_written(const Network& network, const std::vector<OptimumGroup>& groups,
                    const BankedBuffer& buffer, std::map<WrittenAs, int64_t>& how) {
    const OptimumSchedule made = optimum_schedule(network, groups, buffer);
    ASSERT_EQ(made.groups.size(), made.schedule.groups().size());
    std::vector<LayerId> covered;
    for (size_t n = 0; n < made.groups.size(); ++n) {
        const WrittenGroup& group = made.groups[n];
        const GroupSchedule& schedule = made.schedule.groups()[n];
        EXPECT_EQ(difference(group.counts, "closed form", walk(network, schedule), "walker"), "")
            << to_text(schedule);
        EXPECT_LE(group.banks, banks_of(group.counts, buffer));
        EXPECT_EQ(group.banks <= buffer.banks, group.means != WrittenAs::too_large)
            << to_string(group.means) << " " << to_text(schedule);
        covered.insert(covered.end(), group.layers.begin(), group.layers.end());
        ++how[group.means];
    }
    std::sort(covered.begin(), covered.end());
    std::vector<LayerId> wanted;
    for (const OptimumGroup& group : groups)
        wanted.insert(wanted.end(), group.layers.begin(), group.layers.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(covered, wanted);
}

TEST(OptimumSchedule, EveryGroupIsWrittenAndCountedByTheWalker) {
    std::map<WrittenAs, int64_t> how;
    Rng rng(11);
    for (uint64_t seed = 1; seed <= 16; ++seed) {
        const Network network = seed % 3 == 0 ? random_chain(seed) : random_network(seed);
        if (!has_layers(network)) continue;
        SCOPED_TRACE("seed " + std::to_string(seed));
        const BankedBuffer buffer{rng.between(4, 12), rng.between(4, 60)};
        FusionOptions options;
        options.max_layers = 3;
        expect_written(network, layers_alone(network, buffer, options), buffer, how);
        expect_written(network, fused_optimum(network, buffer, options).groups, buffer, how);
    }
    EXPECT_GT(how[WrittenAs::found], 20);
    EXPECT_GT(how[WrittenAs::other], 3);
}

/// The optimum in managed buffers moves no less than with replacement that looks ahead, for one
/// image with padding as part of the input.
TEST(OptimumSchedule, ManagedBuffersMoveNoLessThanBelady) {
    Rng rng(4);
    int64_t equal = 0;
    int64_t compared = 0;
    for (int n = 0; n < 40; ++n) {
        const Network network = chain(rng.between(1, 6), rng.between(4, 10), rng.between(4, 10),
                                      {{rng.between(1, 8), square_window(rng.between(1, 3))}});
        const BankedBuffer buffer{rng.between(3, 10), rng.between(8, 60)};
        const auto found =
            layer_optimum(convolution_problem(network, 0), buffer, SpillEvaluator::belady);
        const auto* optimum = std::get_if<LayerOptimum>(&found);
        if (optimum == nullptr) continue;
        const auto managed = managed_schedule(network, {0}, optimum->order, buffer);
        if (!managed) continue;
        EXPECT_GE(managed->counts.accesses().value(), optimum->dram_words)
            << to_text(managed->group);
        EXPECT_LE(managed->banks, buffer.banks);
        equal += managed->counts.accesses().value() == optimum->dram_words ? 1 : 0;
        ++compared;
    }
    EXPECT_GT(compared, 25);
    EXPECT_GT(equal, 10);
}

/// Blocks of single words fit where no schedule does, because its kernels are whole: the smallest
/// schedule is written and says so.
TEST(OptimumSchedule, LessThanAWindowOfRoom) {
    std::map<WrittenAs, int64_t> how;
    const Network network = chain(2, 6, 6, {{4, square_window(3)}});
    expect_written(network, layers_alone(network, {3, 8}, {}), {3, 8}, how);
    EXPECT_EQ(how[WrittenAs::too_large], 1);
}

/// The groups of depthwise and grouped layers turn outermost. By hand: every group reads its own 3
/// of 6 input channels of 8 x 8 and its 2 x 3 x 9 weights once.
TEST(OptimumSchedule, GroupsTurnOutermost) {
    const Network network = chain(6, 8, 8, {{4, square_window(3), 2}});
    ASSERT_EQ(convolution_problem(network, 0).groups, 2);
    const auto managed = managed_schedule(
        network, {0}, parse_block_order(convolution_problem(network, 0), "x3"), {20, 30});
    ASSERT_TRUE(managed);
    EXPECT_EQ(managed->group.nests.front().tile, (PerDim<int64_t>{2, 6, 3, 3}));
    EXPECT_EQ(managed->counts.accesses(), Elements(6 * 64 + 4 * 3 * 9 + 4 * 36));
    EXPECT_EQ(difference(managed->counts, "closed form", walk(network, managed->group), "walker"),
              "");
    // Blocks of one group's input channels, and of its output channels inside another loop, cannot
    // be expressed.
    EXPECT_FALSE(managed_schedule(
        network, {0}, parse_block_order(convolution_problem(network, 0), "c1"), {20, 30}));
    EXPECT_FALSE(managed_schedule(
        network, {0}, parse_block_order(convolution_problem(network, 0), "x3 k1"), {20, 30}));
    EXPECT_TRUE(managed_schedule(
        network, {0}, parse_block_order(convolution_problem(network, 0), "k1 x3"), {20, 30}));
}

/// The images of a batch pass one after the other, so the loop over them is left out.
TEST(OptimumSchedule, BatchesRunImageByImage) {
    Network network = chain(2, 10, 10, {{4, square_window(3)}});
    for (Tensor& tensor : network.tensors) tensor.dims[0] = 3;
    const ConvolutionProblem problem = convolution_problem(network, 0);
    const auto batch =
        managed_schedule(network, {0}, parse_block_order(problem, "f1 x4 k2"), {20, 30});
    ASSERT_TRUE(batch);
    const auto one = managed_schedule(network, {0}, parse_block_order(problem, "x4 k2"), {20, 30});
    EXPECT_EQ(batch->group, one->group);
}

/// conv1 and its pool: outputs are pooled before they leave, block by block, with channels one
/// after the other.
TEST(OptimumSchedule, FinishedBlocksArePooledOnChip) {
    Network network = chain(4, 10, 10, {{8, square_window(3)}});
    Layer pool{.kind = LayerKind::max_pool,
               .inputs = {network.outputs.front()},
               .window = square_window(2, 2)};
    (void)append(network, "pool1", pool);
    const BankedBuffer buffer{12, 60};
    const auto group = optimum_group(network, {0, 1}, buffer);
    ASSERT_TRUE(group && group->means == GroupMeans::finished_blocks);
    const OptimumSchedule made = optimum_schedule(network, {*group}, buffer);
    ASSERT_EQ(made.groups.size(), 1u);
    EXPECT_EQ(made.groups.front().means, WrittenAs::found);
    EXPECT_GE(made.groups.front().counts.accesses().value(), group->dram_words);
    EXPECT_EQ(made.groups.front().counts.output_writes, Elements(8 * 16));
    EXPECT_EQ(made.groups.front().counts.output_reads, Elements(0));
    EXPECT_EQ(difference(made.groups.front().counts, "closed form",
                         walk(network, made.schedule.groups().front()), "walker"),
              "");
}

/// Loops inside that of the channels turn within the convolution: its outputs of all columns stay
/// while the channels pass.
TEST(OptimumSchedule, FinishedBlocksWithLoopsInsideTheChannels) {
    Network network = chain(6, 10, 10, {{8, square_window(3)}});
    Layer pool{.kind = LayerKind::max_pool,
               .inputs = {network.outputs.front()},
               .window = square_window(2, 2)};
    (void)append(network, "pool1", pool);
    const auto managed = managed_schedule(
        network, {0, 1}, parse_block_order(convolution_problem(network, 0), "k4 c1 x2"), {12, 40});
    ASSERT_TRUE(managed);
    // Two blocks of output channels read the input twice; everything else crosses once.
    EXPECT_EQ(managed->counts.accesses(), Elements(2 * 6 * 100 + 8 * 6 * 9 + 8 * 16))
        << to_text(managed->group);
    EXPECT_EQ(difference(managed->counts, "closed form", walk(network, managed->group), "walker"),
              "");
}

}  // namespace
}  // namespace laminate
