#include "papers/layer_optimum/belady.h"
#include "papers/layer_optimum/belady_bound.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/papers/layer_optimum/element_stream.h"
#include "tests/papers/layer_optimum/random_problem.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

TEST(Belady, SweepsOverFourWordsKeepTwoOfThem) {
    // O[k] over three rounds of c, one word a block: k0 k1 k2 k3 | k0 ... | k0 ...; memory 3: the
    // block at work and two that wait. Kept from round to round: two words for three steps, then
    // the kept pair moves on. 8 words are used again; of each 3 in a row 4 - 3 = 1 is a spill and 2
    // are hits, the last 8 mod 3 = 2 uses are hits.
    const ConvolutionProblem p = parse_convolution("k4 c3");
    const BlockOrder order = parse_block_order(p, "c1 k1");
    EXPECT_EQ(BeladyStream(p, Operand::output, order, 3).spills(), 2);
    EXPECT_EQ(BeladyStream(p, Operand::output, order, 4).spills(), 0);
    // Only the block at work: all are spills. Least recently used keeps nothing that helps even in
    // three words.
    EXPECT_EQ(BeladyStream(p, Operand::output, order, 1).spills(), 8);
    EXPECT_EQ(simulated_spills(element_stream(p, Operand::output, order), 3,
                               Replacement::least_recently_used),
              8);
}

TEST(Belady, NeighbouringWindowsShareTwoColumnsOfThree) {
    // Blocks of one column of output, 4 rows of windows of 3, swept x then y: between (x, y) and (x
    // + 1, y) lie 4 steps.
    const ConvolutionProblem p = parse_convolution("x3 y2 m3 n3");
    const BlockOrder order = parse_block_order(p, "x1 y1");
    const ElementStream stream = element_stream(p, Operand::input, order);
    for (int64_t memory = 9; memory <= 20; ++memory)
        EXPECT_EQ(BeladyStream(p, Operand::input, order, memory).spills(),
                  simulated_spills(stream, memory, Replacement::belady))
            << memory;
    EXPECT_GT(BeladyStream(p, Operand::input, order, 9).spills(), 0);
    EXPECT_EQ(BeladyStream(p, Operand::input, order, 20).spills(), 0);  // 5 x 4 words in all
}

TEST(Belady, EqualsElementSimulationOfRandomStreams) {
    Rng rng(20261121);
    int64_t with_spills = 0;
    int64_t lru_worse = 0;
    for (int n = 0; n < test::samples(1500); ++n) {
        const ConvolutionProblem p = random_convolution(rng, 4);
        const BlockOrder order = random_order(rng, p, false);
        const Operand operand = all_operands[static_cast<size_t>(rng.below(3))];
        const int64_t block = touched_words(p, operand, block_extents(p, order));
        const int64_t memory =
            rng.between(block, std::max(block, touched_words(p, operand, p.extent)));
        const ElementStream stream = element_stream(p, operand, order);
        const int64_t expected = simulated_spills(stream, memory, Replacement::belady);
        const std::string what = to_text(p) + "; " + to_text(order) + "; tensor " +
                                 std::to_string(static_cast<int>(operand)) + ", memory " +
                                 std::to_string(memory);
        ASSERT_EQ(BeladyStream(p, operand, order, memory).spills(), expected) << what;
        const BlockOrder needed = needed_order(p, operand, order, memory);
        ASSERT_EQ(BeladyStream(p, operand, needed, memory).spills(), expected)
            << what << "; needed " << to_text(needed);
        ASSERT_LE(BeladyBound(p, operand, order).spills(memory), expected) << what;
        const int64_t lru = simulated_spills(stream, memory, Replacement::least_recently_used);
        ASSERT_GE(lru, expected) << what;
        with_spills += expected > 0 ? 1 : 0;
        lru_worse += lru > expected ? 1 : 0;
    }
    EXPECT_GT(with_spills, test::samples(200));
    EXPECT_GT(lru_worse, test::samples(100));
}

TEST(BeladyBound, IsNeverAboveTheSpillsOfWindows) {
    Rng rng(99);
    int64_t bounds = 0;
    int64_t spills = 0;
    for (int n = 0; n < test::samples(20000); ++n) {
        ConvolutionProblem p = random_convolution(rng, 9);
        if (rng.chance(2, 3)) {
            p.steps = {};
            p.extent[ConvolutionLoop::m] = p.extent[ConvolutionLoop::n] = 3;
        }
        const Operand windows = p.transposed ? Operand::output : Operand::input;
        const BlockOrder order = random_order(rng, p, false);
        const int64_t block = touched_words(p, windows, block_extents(p, order));
        const int64_t memory = block + rng.below(1 + (touched_words(p, windows, p.extent) - block) /
                                                         rng.between(1, 6));
        if (BeladyStream::uses(p, windows, order, memory) > 20000) continue;
        const int64_t exact = BeladyStream(p, windows, order, memory).spills();
        const int64_t bound = BeladyBound(p, windows, order).spills(memory);
        ASSERT_LE(bound, exact) << to_text(p) << "; " << to_text(order) << "; memory " << memory;
        bounds += bound;
        spills += exact;
    }
    EXPECT_GT(2 * bounds, spills) << "and not far below";
}

TEST(BeladyBound, CountsWhatWindowsHoldInTheMidstOfARound) {
    // VGG16 conv2_1, input, one picture, k in two rounds, windows of one column, then of one row: T
    // = 114 * 114 * 64 words. Between two columns 2 * 114 * 64 wait, between two rows 2 * 3 * 64 of
    // which 2 * 2 * 64 wait anyway: 14720. Two rounds of M = 16384: T + 2 (14720 - 16384).
    const ConvolutionProblem p = parse_convolution("k128 c64 x112 y112 m3 n3");
    EXPECT_EQ(BeladyBound(p, Operand::input, parse_block_order(p, "k64 x1 y1 c1")).spills(16384),
              114 * 114 * 64 - 2 * (16384 - 14720));
}

TEST(BeladyBound, IsNeverAboveTheSpillsOfAnyTensor) {
    Rng rng(4242);
    int64_t bounds = 0;
    int64_t spills = 0;
    int64_t prefixes = 0;
    for (int n = 0; n < test::samples(4000); ++n) {
        const ConvolutionProblem p = random_convolution(rng, 4 + n % 9);
        const BlockOrder order = random_order(rng, p, false);
        for (const Operand operand : all_operands) {
            const int64_t block = touched_words(p, operand, block_extents(p, order));
            const int64_t memory =
                block +
                rng.below(1 + (touched_words(p, operand, p.extent) - block) / rng.between(1, 6));
            if (BeladyStream::uses(p, operand, order, memory) > 3000) continue;
            const int64_t exact = BeladyStream(p, operand, order, memory).spills();
            const int64_t bound = BeladyBound(p, operand, order).spills(memory);
            ASSERT_LE(bound, exact)
                << to_text(p) << "; " << to_text(order) << "; memory " << memory;
            bounds += bound;
            spills += exact;
            for (size_t length = 0; length <= order.size(); ++length) {
                const BlockOrder prefix(order.begin(),
                                        order.begin() + static_cast<std::ptrdiff_t>(length));
                const int64_t of_prefix = BeladyBound(p, operand, prefix, true).spills(memory);
                ASSERT_LE(of_prefix, exact) << to_text(p) << "; " << to_text(prefix) << " of "
                                            << to_text(order) << "; memory " << memory;
                prefixes += of_prefix > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(5 * bounds, 4 * spills) << "and not far below";
    EXPECT_GT(prefixes, test::samples(1000));
}

/// In the last of three blocks of channels there is room to spare, of which the others have
/// nothing.
TEST(BeladyBound, CountsFullBlocksAndTheRestApart) {
    // VGG16 conv2_2, weights: blocks of 43, 43 and 42 of 128 channels, 1152 words each; 49536,
    // 49536 and 48384 words a round. M = 49152: 384 too many in two of three. 912 rounds of 128
    // steps, every step but one a round: 911 * 128 / 127 = 918 steps.
    const ConvolutionProblem p = parse_convolution("f3 k128 c128 x112 y112 m3 n3");
    const BlockOrder order = parse_block_order(p, "k43 f1 x14 y3 c1");
    EXPECT_EQ(BeladyBound(p, Operand::weight, order).spills(49152), 2 * 384 * 918);
    EXPECT_EQ(BeladyStream(p, Operand::weight, order, 49152).spills(), 2 * 384 * 918);
}

TEST(BeladyBound, IsExactForASweepOfEqualBlocks) {
    // 4 words a round, 3 rounds, memory 3: steps 3 and 6 (every step but one a round) cross all 4
    // words: 2 * (4 - 3).
    const ConvolutionProblem p = parse_convolution("k4 c3");
    EXPECT_EQ(BeladyBound(p, Operand::output, parse_block_order(p, "c1 k1")).spills(3), 2);
}

}  // namespace
}  // namespace laminate
