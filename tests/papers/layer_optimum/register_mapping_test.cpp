#include "papers/layer_optimum/register_mapping.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/rng.h"
#include "base/units.h"
#include "tests/papers/layer_optimum/all_orders.h"
#include "tests/papers/layer_optimum/element_stream.h"
#include "tests/papers/layer_optimum/random_problem.h"

namespace laminate {
namespace {

const RegisterArray eyeriss_registers{{12, 14}, 260};

/// The same words as those of the lane at the beginning, further on along every loop.
Word moved(const ConvolutionProblem& p, Operand operand, const Word& word, const LoopExtents& by) {
    const auto [f, k, c, x, y, m, n] = by.values;
    const auto [a, b, d, e] = word;
    if (operand == Operand::weight) return {a + k, b + c, d + m, e + n};
    const bool has_windows = (operand == Operand::output) == p.transposed;
    const auto [along_x, along_y] = p.steps.values;
    const int64_t column = has_windows ? along_x.stride * x + along_x.dilation * m : x;
    const int64_t row = has_windows ? along_y.stride * y + along_y.dilation * n : y;
    return {a + f, b + (operand == Operand::input ? c : k), d + column, e + row};
}

void for_each_lane(const LoopExtents& lanes, const std::function<void(const LoopExtents&)>& visit) {
    LoopExtents lane{};
    const auto each = [&](auto&& self, size_t l) -> void {
        if (l == convolution_loops.size()) return visit(lane);
        const ConvolutionLoop loop = convolution_loops.values.at(l);
        for (lane[loop] = 0; lane[loop] < lanes[loop]; ++lane[loop]) self(self, l + 1);
    };
    each(each, 0);
}

/// Words read from the buffer for one tensor of one block computation, PE by PE and word by word:
/// Belady's replacement in every PE, words that several PEs fetch in the same step once. Loops from
/// one on whose words all fit are one step where that costs no spill: a PE may fetch them together.
int64_t walked_fetches(const ConvolutionProblem& p, Operand operand, const LoopExtents& share,
                       const LoopExtents& lanes, const BlockOrder& order, int64_t memory) {
    ConvolutionProblem of_share = p;
    of_share.extent = share;
    BlockOrder steps;
    LoopExtents inside = share;
    const TensorAccess access = tensor_access(of_share, operand);
    bool is_used_again = false;
    for (const BlockLoop& l : order) {
        if ((access[l.loop] == LoopRole::reuse || !is_used_again) &&
            touched_words(p, operand, inside) <= memory)
            break;
        is_used_again |= access[l.loop] != LoopRole::related;
        steps.push_back(l);
        inside[l.loop] = l.block;
    }
    const ElementStream stream = element_stream(of_share, operand, steps);
    const ElementStream fetches = simulated_fetches(stream, memory, Replacement::belady);
    const auto of_all_lanes = [&](const std::set<Word>& words) {
        std::set<Word> all;
        for_each_lane(lanes, [&](const LoopExtents& lane) {
            LoopExtents by;
            for (const ConvolutionLoop l : convolution_loops) by[l] = lane[l] * share[l];
            for (const Word& w : words) all.insert(moved(p, operand, w, by));
        });
        return static_cast<int64_t>(all.size());
    };
    const bool has_windows =
        operand != Operand::weight && (operand == Operand::output) == p.transposed;
    int64_t words = 0;
    int64_t shared = 0;  // times the words of a block
    const auto block = static_cast<int64_t>(stream[0].size());
    for (size_t s = 0; s < stream.size(); ++s) {
        EXPECT_EQ(static_cast<int64_t>(stream[s].size()), block);
        // Where windows of lanes overlap and a part of a block comes again, the choice of the part
        // is free: words of L whose places are L / j apart are j in every window, so that all lanes
        // can keep the same ones, and what comes is the same part of the words of all lanes.
        if (has_windows && fetches[s].size() < stream[s].size()) {
            shared += static_cast<int64_t>(fetches[s].size()) * of_all_lanes(stream[s]);
        } else {
            words += of_all_lanes(fetches[s]);
        }
    }
    return words + ceil_div(shared, block);
}

TEST(RegisterMapping, ExtraAccessesAreThoseOfAWalkOverTheArray) {
    Rng rng(7);
    int64_t spilling = 0;
    int64_t windows_that_spill = 0;
    for (int64_t run = 0; run < 3000; ++run) {
        // Shares and blocks that divide, where the formula is exact for tensors without windows.
        ConvolutionProblem p;
        LoopExtents share;
        LoopExtents lanes = one_iteration;
        for (const ConvolutionLoop l : convolution_loops) {
            share[l] = rng.chance(1, 2) ? rng.between(1, is_tap_loop(l) ? 3 : 4) : 1;
            if (rng.chance(1, 3)) lanes[l] = rng.between(1, 3);
            p.extent[l] = share[l] * lanes[l];
        }
        p.transposed = rng.chance(1, 8);
        for (WindowSteps& steps : p.steps) steps.stride = rng.chance(1, 4) ? 2 : 1;
        ConvolutionProblem of_share = p;
        of_share.extent = share;
        const BlockOrder order = random_order(rng, of_share, true);
        RegisterMapping mapping{lanes, order, {}, {}};
        for (int64_t& words : mapping.words) words = rng.between(1, 24);
        const auto extra = extra_accesses(p, p.extent, mapping);
        const LoopExtents blocks = block_extents(of_share, order);
        bool fits = true;
        for (size_t t = 0; t < 3; ++t)
            fits &= touched_words(p, all_operands[t], blocks) <= mapping.words[t];
        EXPECT_EQ(extra.has_value(), fits);
        if (!extra) continue;
        for (size_t t = 0; t < 3; ++t) {
            const Operand operand = all_operands[t];
            const bool has_windows =
                operand != Operand::weight && (operand == Operand::output) == p.transposed;
            // The formula looks for reuse between neighbouring iterations alone where a kernel cut
            // below the stride leaves gaps.
            const bool has_gaps = std::any_of(map_axes.begin(), map_axes.end(), [&](MapAxis axis) {
                return p.steps[axis].stride > 1 && blocks[taps_along(axis)] < p.steps[axis].stride;
            });
            if (has_windows && has_gaps) continue;
            const int64_t walked =
                walked_fetches(p, operand, share, lanes, order, mapping.words[t]) -
                touched_words(p, operand, p.extent);
            const int64_t counted = (*extra)[t] / tensor_access(p, operand).traffic;
            const std::string what = to_text(p) + ", share " + to_text(of_share) + ", order " +
                                     to_text(order) + ", " + std::to_string(mapping.words[t]) +
                                     " words of tensor " + std::to_string(t);
            if (has_windows) {
                EXPECT_LE(walked, counted) << what;
                windows_that_spill += counted > 0 ? 1 : 0;
            } else {
                EXPECT_EQ(walked, counted) << what;
                spilling += counted > 0 ? 1 : 0;
            }
        }
    }
    EXPECT_GT(spilling, 100);
    EXPECT_GT(windows_that_spill, 100);
}

TEST(RegisterMapping, FewestExtraAccessesEqualExhaustiveSearch) {
    struct Case {
        const char* problem;
        RegisterArray registers;
    };
    int64_t some_extra = 0;
    for (const Case& c :
         {Case{"k4 c4 x3", {{2}, 6}}, Case{"f2 k3 c4", {{2, 2}, 4}}, Case{"c2 x5 m3", {{2}, 5}},
          Case{"k3 x4 m3 stride 2", {{2}, 7}}, Case{"k2 c2 x3 m2 transposed", {{2}, 5}},
          Case{"x3 y3 m2 n2", {{2, 2}, 4}}, Case{"k5 c5", {{3}, 3}}, Case{"k3 c3", {{2}, 2}}}) {
        const ConvolutionProblem p = parse_convolution(c.problem);
        const RegisterMapper mapper(p, c.registers);
        for_all_blocks(p, [&](const LoopExtents& blocks) {
            const std::optional<int64_t> least =
                least_extra_of_all_mappings(p, blocks, c.registers);
            const auto found = mapper.fewest_extra(blocks, INT64_MAX);
            ASSERT_EQ(found.has_value(), least.has_value()) << c.problem;
            if (!found) return;
            EXPECT_EQ(found->extra_words(), *least) << c.problem;
            EXPECT_EQ(extra_accesses(p, blocks, *found), found->extra) << c.problem;
            EXPECT_LE(found->words[0] + found->words[1] + found->words[2], c.registers.words);
            if (*least == 0) return;
            ++some_extra;
            EXPECT_FALSE(mapper.fewest_extra(blocks, *least)) << c.problem;
        });
    }
    EXPECT_GT(some_extra, 20);
}

TEST(RegisterMapping, SpreadsOverTwelveByFourteenLanes) {
    // CNNFlow section 6: 2772 distinct vectors.
    EXPECT_EQ(lane_batches({12, 14}).size(), 2772U);
}

TEST(RegisterMapping, BlocksOfConv3NeedFewerRegistersThanTheyHave) {
    // f4 k64 c8, 13 x 13 of 3 x 3: with outputs that stay and channels one by one, a PE would need
    // 353 of 260 words. With channels and kernel over the lanes a PE passes over the 13 x 13
    // columns and rows of one picture: 169 inputs that serve all output channels, 64 weights, and
    // an output at a time.
    const ConvolutionProblem p = parse_convolution("f4 k384 c256 x13 y13 m3 n3");
    const LoopExtents blocks{4, 64, 8, 13, 13, 3, 3};
    const auto mapping = RegisterMapper(p, eyeriss_registers).fewest_extra(blocks, 1);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(extra_accesses(p, blocks, *mapping), (PerOperand{0, 0, 0}));
    EXPECT_LE(mapping->words[0] + mapping->words[1] + mapping->words[2], 260);
    // By hand, that mapping: c over 14 lanes (8 channels), m and n over 3 x 4.
    const RegisterMapping by_hand{
        {1, 1, 14, 1, 1, 3, 4},
        parse_block_order(parse_convolution("f4 k64 x13 y13"), "f1 x1 y1 k1"),
        {169, 64, 1},
        {}};
    EXPECT_EQ(extra_accesses(p, blocks, by_hand), (PerOperand{0, 0, 0}));
    // One weight less: 64 weights in 4 * 169 rounds; 63 stay, and one comes again in each of cycles
    // of 63: 675 * 64 / 63 and the rest, for 8 * 9 PEs.
    RegisterMapping one_less = by_hand;
    one_less.words[1] = 63;
    EXPECT_EQ(extra_accesses(p, blocks, one_less).value()[1], 72 * (675 * 64 / 63));
}

}  // namespace
}  // namespace laminate
