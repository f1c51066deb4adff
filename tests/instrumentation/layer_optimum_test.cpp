// Orders that scheduler/models/layer_optimum finds, as ordinary schedules, counted by the generated code.
#include <gtest/gtest.h>

#include "instrumentation/measure.h"
#include "scheduler/models/layer_optimum/managed_schedule.h"
#include "scheduler/models/layer_optimum/optimum.h"
#include "tests/scheduler/chain.h"

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
    const auto [f, k, c, x, y, m, n] = p.extent;
    Network network = chain(c, y + n - 1, x + m - 1, {{k, square_window(m)}});
    EXPECT_EQ(to_text(convolution_problem(network, 0)), to_text(p));
    return {p, std::move(network)};
}

int64_t accesses(const GroupCounts& counts) { return counts.accesses().value(); }

TEST(LayerOptimumSchedule, AlexNetConv2MovesWhatIsPredicted) {
    // One image: the input of 48 x 31 x 31 = 46128 words stays in 23 banks, weights and outputs go by: everything crosses once.
    const Layer layer = layer_of("f1 k256 c48 x27 y27 m5 n5");
    const auto optimum = std::get<LayerOptimum>(layer_optimum(layer.problem, eyeriss, SpillEvaluator::belady));
    EXPECT_EQ(optimum.dram_words, 46128 + 256 * 48 * 25 + 256 * 27 * 27);
    const auto managed = managed_schedule(layer.network, 0, optimum.order, optimum.division.banks, eyeriss);
    ASSERT_TRUE(managed) << to_text(optimum.order);
    EXPECT_EQ(accesses(managed->counts), optimum.dram_words) << to_text(managed->group);
    EXPECT_EQ(difference(managed->counts, "closed form", measure(layer.network, managed->group), "generated code"), "");
}

TEST(LayerOptimumSchedule, Vgg16Conv3_1WithManagedBuffers) {
    const Layer layer = layer_of("f1 k256 c128 x56 y56 m3 n3");
    // Outputs of a block stay while the channels go by; windows of neighbouring blocks overlap.
    const BlockOrder order = parse_block_order(layer.problem, "k64 x28 y28 c1");
    const auto belady = divide_banks(layer.problem, order, eyeriss, SpillEvaluator::belady);
    ASSERT_TRUE(belady);
    const auto managed = managed_schedule(layer.network, 0, order, belady->banks, eyeriss);
    ASSERT_TRUE(managed);
    EXPECT_EQ(difference(managed->counts, "closed form", measure(layer.network, managed->group), "generated code"), "");
    // By hand: 4 blocks of output channels read 2 x 2 tiles of 30 x 30 x 128 inputs, every tile all weights of its 64 output channels;
    // outputs are written once.
    EXPECT_EQ(managed->counts.input_reads(), Elements(4 * 4 * 30 * 30 * 128));
    EXPECT_EQ(managed->counts.weight_reads(), Elements(4 * 256 * 128 * 9));
    EXPECT_EQ(managed->counts.output_writes, Elements(256 * 56 * 56));
    EXPECT_EQ(managed->counts.output_reads, Elements(0));
    // Replacement that looks ahead keeps a part of what comes again: never more words than managed buffers of the same size.
    EXPECT_LE(compulsory_words(layer.problem) + belady->extra_words(), accesses(managed->counts));
}

TEST(LayerOptimumSchedule, RefusesWhatSchedulesCannotSay) {
    const Layer layer = layer_of("f1 k8 c4 x6 y6 m3 n3");
    EXPECT_FALSE(managed_schedule(layer.network, 0, parse_block_order(layer.problem, "m1"), {9, 9, 9}, eyeriss));
    // Room for less than a block.
    EXPECT_FALSE(managed_schedule(layer.network, 0, {}, {1, 1, 1}, {3, 10}));
}

}  // namespace
}  // namespace laminate
