// Cutting pictures into windows.
#include "nets/network/reach.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace laminate {
namespace {

TEST(Cut, AWindowAsLargeAsThePictureIsOnePart) {
    const std::vector<AxisPart> parts = cut({1, 2, 3, 3}, {10, 20}, 10);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_EQ(parts[0], (AxisPart{0, 0, 20, 0}));
}

TEST(Cut, ThreeWindowsByHand) {
    // The output is twice as large, the reach is two inputs: windows of 10 on 22. The first keeps
    // inputs 0 .. 7, the second begins at 6 and keeps 8 .. 13, the third begins at 12 and keeps the
    // rest.
    const std::vector<AxisPart> parts = cut({1, 2, 2, 2}, {10, 20}, 22);
    const std::vector<AxisPart> expected{{0, 0, 16, 0}, {6, 16, 28, 4}, {12, 28, 44, 4}};
    EXPECT_EQ(parts, expected);
    EXPECT_EQ(window_for({1, 2, 2, 2}, 22, 3), 10);  // (22 + 2 * 4) / 3
}

TEST(Cut, EveryOutputOnceAndOnlyWhereTheWindowKnowsIt) {
    Rng rng(5);
    for (int trial = 0; trial < 2000; ++trial) {
        AxisReach reach{rng.between(1, 6), rng.between(1, 6), 0, 0};
        reach.before = reach.input_step * rng.between(0, 4);
        reach.after = reach.input_step * rng.between(0, 4);
        const int64_t picture = rng.between(1, 400), count = rng.between(1, 9);
        const int64_t window = window_for(reach, picture, count);
        // A window has a few outputs more or fewer than steps, depending on padding.
        const int64_t output =
            window / reach.input_step * reach.output_step + rng.between(0, reach.output_step);
        if (output < 1) continue;
        const std::vector<AxisPart> parts = cut(reach, {window, output}, picture);
        EXPECT_LE(std::ssize(parts), count);
        int64_t done = 0;
        for (const AxisPart& part : parts) {
            ASSERT_EQ(part.output_begin, done);
            ASSERT_GT(part.output_end, done);
            done = part.output_end;
            ASSERT_EQ(part.input_begin % reach.input_step, 0);
            ASSERT_LE(part.input_begin + window, picture);
            const int64_t shift = part.input_begin / reach.input_step * reach.output_step;
            ASSERT_EQ(part.output_in_window, part.output_begin - shift);
            ASSERT_LE(part.output_end - shift, output);
            // Outputs from step k on read inputs from k * step - before on, outputs before step k
            // up to k * step + after.
            const int64_t first_step = part.output_begin / reach.output_step;
            const int64_t end_step = (part.output_end + reach.output_step - 1) / reach.output_step;
            if (part.input_begin > 0) {
                ASSERT_GE(first_step * reach.input_step - reach.before, part.input_begin);
            }
            if (part.input_begin + window < picture) {
                ASSERT_LE(end_step * reach.input_step + reach.after, part.input_begin + window);
            }
        }
        ASSERT_EQ(done, picture_output(reach, {window, output}, picture));
    }
}

TEST(Cut, AWindowOfOtherStepsIsRefused) {
    EXPECT_THROW((void)cut({4, 4, 0, 0}, {10, 10}, 20),
                 InputError);  // 10 more inputs are no whole steps
    EXPECT_THROW((void)cut({1, 1, 5, 5}, {10, 10}, 20), InputError);  // nothing would be left
}

}  // namespace
}  // namespace laminate
