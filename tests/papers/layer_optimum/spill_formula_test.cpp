#include "papers/layer_optimum/spill_formula.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "papers/layer_optimum/belady.h"
#include "tests/papers/layer_optimum/element_stream.h"
#include "tests/papers/layer_optimum/random_problem.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

int64_t spills(const std::string& problem, Operand operand, const std::string& order,
               int64_t memory) {
    const ConvolutionProblem p = parse_convolution(problem);
    return formula_spills(reuse_groups(p, operand, parse_block_order(p, order)), memory);
}

TEST(SpillFormula, GroupsOfAlexNetConv3) {
    // k64 c8 f2 outermost first: the output, c reuse with R = 32, f related with 2 subgroups; T = 4
    // * 64 * 13 * 13.
    const ConvolutionProblem p = parse_convolution("f4 k384 c256 x13 y13 m3 n3");
    const TensorGroups output = reuse_groups(p, Operand::output, parse_block_order(p, "k64 c8 f2"));
    ASSERT_EQ(output.groups.size(), 1U);
    EXPECT_EQ(output.groups[0].instances, 6);
    EXPECT_EQ(output.groups[0].rounds, 32);
    EXPECT_EQ(output.groups[0].reused, 4 * 64 * 13 * 13);
    EXPECT_EQ(output.groups[0].resident, 2 * 64 * 13 * 13);
    EXPECT_EQ(output.groups[0].spill_free, 4 * 64 * 13 * 13);
    EXPECT_EQ(output.block, 2 * 64 * 13 * 13);
    // 22 banks of 2048 words hold the 43264 words of all four pictures.
    EXPECT_EQ(formula_spills(output, 22 * 2048), 0);
    // The input: k reuse with R = 6; T = 4 * 256 * 15 * 15 = 230400, D = 2 * 8 * 15 * 15 = 3600, M
    // = 2 * 2048 = 4096. cycles of 230400 - 3600 = 226800 in 5 * 230400 = 1152000: 5, and 18000
    // left: 5 (230400 - 4096) + 18000 - (4096 - 3600).
    const TensorGroups input = reuse_groups(p, Operand::input, parse_block_order(p, "k64 c8 f2"));
    EXPECT_EQ(formula_spills(input, 2 * 2048), 5 * (230400 - 4096) + 18000 - 496);
}

TEST(SpillFormula, AdjacentReuseLoopsAreOneGroup) {
    // Weights under f2 x2: 4 rounds of two words, one word a block. As one group: 6 uses again,
    // memory 1: all 6.
    EXPECT_EQ(spills("f2 k2 x2", Operand::weight, "f1 x1 k1", 1), 6);
    EXPECT_EQ(spills("f2 k2 x2", Operand::weight, "f1 x1 k1", 2), 0);
    // k3: T = 3, D = 1, M = 2: cycles of 2 in 3 * 3 = 9: 4 (3 - 2) and one left: 1 - (2 - 1) = 0.
    // As two groups the outer one would add 3.
    EXPECT_EQ(spills("f2 k3 x2", Operand::weight, "f1 x1 k1", 2), 4);
}

TEST(SpillFormula, KernelBlocksBelowTheStrideCountWordsNotBoxes) {
    // x3, stride 4, kernel 8 cut in 2: a block touches 3 * 2 of the 10 words of its box.
    const ConvolutionProblem p = parse_convolution("x3 m8 stride 4");
    EXPECT_EQ(reuse_groups(p, Operand::input, parse_block_order(p, "m2")).block, 6);
}

TEST(SpillFormula, IsBeladyForWeightsAndOutputsWithBlocksThatDivide) {
    Rng rng(7);
    int with_spills = 0;
    for (int n = 0; n < test::samples(20000); ++n) {
        ConvolutionProblem p = random_convolution(rng, 6);
        p.transposed = false;
        const BlockOrder order = random_order(rng, p, true);
        const Operand operand = rng.chance(1, 2) ? Operand::weight : Operand::output;
        const TensorGroups groups = reuse_groups(p, operand, order);
        const int64_t memory =
            rng.between(groups.block, std::max(groups.block, touched_words(p, operand, p.extent)));
        const int64_t expected = BeladyStream(p, operand, order, memory).spills();
        ASSERT_EQ(formula_spills(groups, memory), expected)
            << to_text(p) << "; " << to_text(order) << "; tensor " << static_cast<int>(operand)
            << ", memory " << memory;
        with_spills += expected > 0 ? 1 : 0;
    }
    EXPECT_GT(with_spills, test::samples(2000));
}

/// Whether the words of a block have no gaps between them.
bool blocks_are_boxes(const ConvolutionProblem& p, const BlockOrder& order) {
    const LoopExtents b = block_extents(p, order);
    return std::all_of(map_axes.begin(), map_axes.end(), [&](MapAxis axis) {
        return p.touched(axis, b) ==
               p.steps[axis].span(b[outputs_along(axis)], b[taps_along(axis)]);
    });
}

TEST(SpillFormula, MissesReuseBetweenBlocksThatAreNoNeighboursWhereTheyHaveGaps) {
    // Taps one by one, stride 2: taps 0 and 2 share columns, neighbours do not, and the formula
    // looks at neighbours alone.
    const ConvolutionProblem p = parse_convolution("k2 x3 m3 n3 stride 2x1");
    const BlockOrder order = parse_block_order(p, "m1 k1 n1");
    EXPECT_EQ(formula_spills(reuse_groups(p, Operand::input, order), 13), 0);
    EXPECT_EQ(simulated_spills(element_stream(p, Operand::input, order), 13, Replacement::belady),
              2);
}

TEST(SpillFormula, IsNeverBelowBeladyForInputs) {
    Rng rng(8);
    int above = 0;
    for (int n = 0; n < test::samples(5000); ++n) {
        ConvolutionProblem p = random_convolution(rng, 5);
        p.transposed = false;
        for (WindowSteps& steps : p.steps) steps.dilation = 1;
        const BlockOrder order = random_order(rng, p, false);
        if (!blocks_are_boxes(p, order)) continue;
        const TensorGroups groups = reuse_groups(p, Operand::input, order);
        const int64_t memory = rng.between(
            groups.block, std::max(groups.block, touched_words(p, Operand::input, p.extent)));
        const int64_t belady = BeladyStream(p, Operand::input, order, memory).spills();
        const int64_t formula = formula_spills(groups, memory);
        ASSERT_GE(formula, belady) << to_text(p) << "; " << to_text(order) << "; memory " << memory;
        above += formula > belady ? 1 : 0;
    }
    EXPECT_GT(above, test::samples(100));
}

TEST(SpillFormula, APrefixSpillsNoMoreThanAnyOrderThatBeginsWithIt) {
    Rng rng(29);
    int64_t positive = 0;
    int64_t closer = 0;  // than without what inner windows hold
    for (int n = 0; n < test::samples(6000); ++n) {
        const ConvolutionProblem p = random_convolution(rng, 9);
        const BlockOrder order = random_order(rng, p, false);
        for (const Operand operand : all_operands) {
            const TensorGroups whole = reuse_groups(p, operand, order);
            const int64_t memory =
                rng.between(whole.block, std::max(whole.block, tensor_words(p, operand)));
            const int64_t spills = formula_spills(whole, memory);
            int64_t before = 0;
            for (size_t length = 0; length <= order.size(); ++length) {
                const BlockOrder prefix(order.begin(),
                                        order.begin() + static_cast<std::ptrdiff_t>(length));
                const TensorGroups groups = groups_of_prefix(p, operand, prefix);
                const int64_t least = formula_spills(groups, memory);
                ASSERT_LE(least, spills)
                    << to_text(p) << "; prefix " << to_text(prefix) << " of " << to_text(order)
                    << "; " << to_string(operand) << " in " << memory;
                // Longer prefixes know more.
                ASSERT_LE(before, least)
                    << to_text(p) << "; " << to_text(prefix) << "; " << to_string(operand);
                before = least;
                positive += least > 0 ? 1 : 0;
                for (const ReuseGroup& g : groups.groups)
                    closer += memory > g.beside && memory < g.spill_free && g.beside > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(positive, test::samples(2000));
    EXPECT_GT(closer, test::samples(50));
}

}  // namespace
}  // namespace laminate
