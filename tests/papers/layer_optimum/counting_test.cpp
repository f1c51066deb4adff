// Orders that papers/layer_optimum finds, as ordinary schedules, counted by the generated code.
#include <gtest/gtest.h>

#include "generators/instrumented.h"
#include "instrumentation/measure.h"
#include "instrumentation/trace_route.h"
#include "papers/layer_optimum/belady.h"
#include "papers/layer_optimum/managed_schedule.h"
#include "papers/layer_optimum/optimum.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

constexpr BankedBuffer eyeriss{27, 2048};

struct Layer {
    ConvolutionProblem problem;
    Network network;
};
/// One image of a layer whose padding is part of its input, as CNNFlow counts it.
Layer layer_of(const std::string& loops) {
    const ConvolutionProblem p = parse_convolution(loops);
    const auto [f, k, c, x, y, m, n] = p.extent.values;
    Network network = chain(c, y + n - 1, x + m - 1, {{k, square_window(m)}});
    EXPECT_EQ(to_text(convolution_problem(network, 0)), to_text(p));
    return {p, std::move(network)};
}

int64_t accesses(const GroupCounts& counts) { return counts.accesses().value(); }

TEST(LayerOptimumSchedule, AlexNetConv2MovesWhatIsPredicted) {
    // One image: the input of 48 x 31 x 31 = 46128 words stays in 23 banks, weights and outputs go
    // by: everything crosses once.
    const Layer layer = layer_of("f1 k256 c48 x27 y27 m5 n5");
    const auto optimum =
        std::get<LayerOptimum>(layer_optimum(layer.problem, eyeriss, SpillEvaluator::belady));
    EXPECT_EQ(optimum.dram_words, 46128 + 256 * 48 * 25 + 256 * 27 * 27);
    const auto managed = managed_schedule(layer.network, {0}, optimum.order, eyeriss);
    ASSERT_TRUE(managed) << to_text(optimum.order);
    EXPECT_EQ(accesses(managed->counts), optimum.dram_words) << to_text(managed->group);
    EXPECT_EQ(difference(managed->counts, "closed form", measure(layer.network, managed->group),
                         "generated code"),
              "");
}

TEST(LayerOptimumSchedule, Vgg16Conv3_1WithManagedBuffers) {
    const Layer layer = layer_of("f1 k256 c128 x56 y56 m3 n3");
    // Outputs of a block stay while the channels go by; windows of neighbouring blocks overlap.
    const BlockOrder order = parse_block_order(layer.problem, "k64 x28 y28 c1");
    const auto belady = divide_banks(layer.problem, order, eyeriss, SpillEvaluator::belady);
    ASSERT_TRUE(belady);
    const auto managed = managed_schedule(layer.network, {0}, order, eyeriss);
    ASSERT_TRUE(managed);
    EXPECT_EQ(difference(managed->counts, "closed form", measure(layer.network, managed->group),
                         "generated code"),
              "");
    // By hand: 4 blocks of output channels read 2 x 2 tiles of 30 x 30 x 128 inputs, every tile all
    // weights of its 64 output channels; outputs are written once.
    EXPECT_EQ(managed->counts.input_reads(), Elements(4 * 4 * 30 * 30 * 128));
    EXPECT_EQ(managed->counts.weight_reads(), Elements(4 * 256 * 128 * 9));
    EXPECT_EQ(managed->counts.output_writes, Elements(256 * 56 * 56));
    EXPECT_EQ(managed->counts.output_reads, Elements(0));
    // Replacement that looks ahead keeps a part of what comes again: never more words than managed
    // buffers of the same size.
    EXPECT_LE(compulsory_words(layer.problem) + belady->extra_words(), accesses(managed->counts));
}

/// The blocks that generated code asks for when each tensor has a buffer for one block alone: x and
/// w in the innermost loop over blocks, y outside of the channels, replayed under Belady's
/// replacement, against the model.
void expect_replay_is_the_model(const Layer& layer, const std::string& order_text,
                                const std::vector<int64_t>& memories) {
    const BlockOrder order = parse_block_order(layer.problem, order_text);
    auto managed = managed_schedule(layer.network, {0}, order, {81, 1 << 20});
    ASSERT_TRUE(managed);
    const Placement innermost{{0, 3}, {0, 3}};
    managed->group.nests.front().x = {{0, innermost}};
    managed->group.nests.front().w = innermost;
    check_group(layer.network, managed->group);
    const GroupCode code = instrumented_code(layer.network, managed->group);
    const std::vector<std::vector<float>> inputs{
        std::vector<float>(static_cast<size_t>(tensor_words(layer.problem, Operand::input)))};
    std::vector<float> output(static_cast<size_t>(tensor_words(layer.problem, Operand::output)));
    for (const auto& [operand, array] : {std::pair{Operand::input, ArrayRole::external_input},
                                         std::pair{Operand::weight, ArrayRole::external_weights}}) {
        const BlockStream stream = traced_blocks(code, array, inputs, output);
        int64_t spilled = 0;
        for (const int64_t memory : memories) {
            const int64_t spills = BeladyStream(layer.problem, operand, order, memory).spills();
            EXPECT_EQ(replayed_spills(stream, memory, Replacement::belady), spills)
                << to_string(operand) << ", memory " << memory;
            EXPECT_GE(replayed_spills(stream, memory, Replacement::least_recently_used), spills);
            spilled += spills;
        }
        EXPECT_GT(spilled, 0) << to_string(operand);
    }
}

TEST(LayerOptimumReplay, SmallLayer) {
    expect_replay_is_the_model(layer_of("f1 k12 c6 x10 y9 m3 n3"), "k5 x4 y3 c2",
                               {110, 150, 200, 300, 500, 650});
}

TEST(LayerOptimumReplayLong, Vgg16Conv3_1) {
    expect_replay_is_the_model(layer_of("f1 k256 c128 x56 y56 m3 n3"), "k64 x28 y28 c1",
                               {2048, 3 * 2048, 25 * 2048});
}

TEST(LayerOptimumReplayLong, AlexNetConv2) {
    expect_replay_is_the_model(layer_of("f1 k256 c48 x27 y27 m5 n5"), "k64 x14 y14 c4",
                               {4 * 2048, 8 * 2048, 20 * 2048});
}

TEST(ReplacementMemory, SweepsOverFourWords) {
    // Three rounds of four words in three: of 8 uses again 2 are spills (belady_test.cpp), all 8
    // when the least recently used goes.
    const BlockStream stream{{0}, {1}, {2}, {3}, {0}, {1}, {2}, {3}, {0}, {1}, {2}, {3}};
    EXPECT_EQ(replayed_spills(stream, 4, Replacement::belady), 0);
    EXPECT_EQ(replayed_spills(stream, 3, Replacement::belady), 2);
    EXPECT_EQ(replayed_spills(stream, 3, Replacement::least_recently_used), 8);
    EXPECT_THROW((void)replayed_spills({{0, 1}}, 1, Replacement::belady), std::logic_error);
}

TEST(LayerOptimumSchedule, RefusesWhatSchedulesCannotSay) {
    const Layer layer = layer_of("f1 k8 c4 x6 y6 m3 n3");
    EXPECT_FALSE(
        managed_schedule(layer.network, {0}, parse_block_order(layer.problem, "m1"), eyeriss));
    // Room for less than a window: 9 words of the input, 9 weights and an output.
    EXPECT_FALSE(managed_schedule(layer.network, {0}, {}, {3, 8}));
}

}  // namespace
}  // namespace laminate
