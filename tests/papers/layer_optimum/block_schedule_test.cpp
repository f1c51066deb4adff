#include "papers/layer_optimum/block_schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/units.h"

namespace laminate {
namespace {

TEST(BlockCandidates, SmallestBlockOfEveryNumberOfBlocks) {
    // An extent of 13: 1 block of 13, 2 of 7, 3 of 5, 4 of 4, 5 of 3, 7 of 2, 13 of 1. 6 blocks
    // would need 3, which makes 5.
    EXPECT_EQ(block_candidates(13), (std::vector<int64_t>{13, 7, 5, 4, 3, 2, 1}));
    EXPECT_EQ(block_candidates(1), std::vector<int64_t>{1});
    for (int64_t extent = 1; extent < 400; ++extent) {
        const std::vector<int64_t> candidates = block_candidates(extent);
        EXPECT_LE(static_cast<int64_t>(candidates.size() * candidates.size()), 4 * extent);
        std::vector<int64_t> smallest;
        for (int64_t block = extent; block >= 1; --block)
            if (block == 1 || ceil_div(extent, block - 1) > ceil_div(extent, block))
                smallest.push_back(block);
        EXPECT_EQ(candidates, smallest) << extent;
    }
}

TEST(BlockCandidates, OfWholeWindows) {
    // 7 columns in windows of 2 are 4 windows, the last one short: 1, 2 or 4 blocks.
    EXPECT_EQ(block_candidates(7, 2), (std::vector<int64_t>{7, 4, 2}));
    EXPECT_EQ(block_candidates(3, 5), std::vector<int64_t>{3});
    const ConvolutionProblem p = parse_convolution("k4 x7 y6 m2 finished 2x3");
    EXPECT_EQ(to_text(p), "f1 k4 c1 x7 y6 m2 n1 finished 2x3");
    EXPECT_EQ(block_candidates(p, ConvolutionLoop::x), (std::vector<int64_t>{7, 4, 2}));
    EXPECT_EQ(block_candidates(p, ConvolutionLoop::y), (std::vector<int64_t>{6, 3}));
    EXPECT_EQ(block_candidates(p, ConvolutionLoop::k), (std::vector<int64_t>{4, 2, 1}));
}

TEST(BlockOrder, TextIsItsIdentity) {
    const ConvolutionProblem p = parse_convolution("f4 k96 c3 x55 y55 m11 n11 stride 4");
    EXPECT_EQ(to_text(p), "f4 k96 c3 x55 y55 m11 n11 stride 4");
    EXPECT_EQ(to_text(parse_block_order(p, "f1 x19 y8 k24")), "f1 x19 y8 k24");
    EXPECT_EQ(to_text(parse_block_order(p, "f4 k24")), "k24") << "a loop of one block has no place";
    EXPECT_EQ(block_extents(p, parse_block_order(p, "f1 k24")),
              (LoopExtents{1, 24, 3, 55, 55, 11, 11}));
}

TEST(BlockOrder, RefusesWhatIsNoOrder) {
    const ConvolutionProblem p = parse_convolution("f4 k96");
    for (const char* text : {"k97", "k0", "k2 k3", "z2", "k"})
        EXPECT_THROW((void)parse_block_order(p, text), InputError) << text;
    try {
        (void)parse_block_order(p, "k97");
        FAIL();
    } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "block order \"k97\": found \"k97\", expected each of f k c x y m n at most "
                     "once, with a block of "
                     "1 to its extent in "
                     "f4 k96 c1 x1 y1 m1 n1");
    }
    EXPECT_THROW((void)parse_convolution("k4 q3"), InputError);
    EXPECT_THROW((void)parse_convolution("k4 stride"), InputError);
}

}  // namespace
}  // namespace laminate
