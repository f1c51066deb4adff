// The choice of windows: they fit the budget, divide the picture, and are worth their halos.
#include "scheduler/explore/planner/picture_windows.h"

#include <gtest/gtest.h>

#include "scheduler/explore/planner/reach.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// Three 3x3 convolutions of 8 maps: 3 elements of reach.
Network three_convolutions(int64_t height, int64_t width) {
    const LayerSpec same{8, square_window(3, 1, 1), 1, LayerKind::conv};
    return chain(1, height, width, {same, same, {1, square_window(3, 1, 1), 1, LayerKind::conv}});
}

WindowDemand demand(int64_t height, int64_t width, int64_t memory) {
    return {.network_of = three_convolutions,
            .height = height,
            .width = width,
            .reach = reach_of(three_convolutions(64, 64)),
            .memory = Bytes(memory),
            .threads = 1};
}

TEST(PictureWindows, AmpleMemoryTakesThePictureWhole) {
    const auto choice = choose_window(demand(200, 300, 64 << 20));
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->height, 200);
    EXPECT_EQ(choice->width, 300);
    EXPECT_EQ(choice->rows * choice->columns, 1);
}

TEST(PictureWindows, StayWithinTheBudgetAndDivideThePicture) {
    for (const int64_t memory : {int64_t{512} << 10, int64_t{2} << 20, int64_t{16} << 20}) {
        const WindowDemand wanted = demand(5001, 7003, memory);
        const auto choice = choose_window(wanted);
        ASSERT_TRUE(choice) << memory;
        EXPECT_LE(choice->memory, Bytes(memory));
        // Input and output alone: one channel each.
        EXPECT_LE(2 * 4 * choice->height * choice->width, memory);
        EXPECT_EQ(choice->height, window_for(wanted.reach.y, 5001, choice->rows));
        EXPECT_EQ(choice->width, window_for(wanted.reach.x, 7003, choice->columns));
        // Halos of 3 on each side: less than a fifth of the work, or the budget was used badly.
        const double work =
            static_cast<double>(choice->rows * choice->columns * choice->height * choice->width);
        EXPECT_LT(work, 1.2 * 5001 * 7003) << choice->height << " x " << choice->width;
    }
}

TEST(PictureWindows, TooLittleMemoryIsNone) {
    EXPECT_FALSE(choose_window(demand(5001, 7003, 4 << 10)));
}

}  // namespace
}  // namespace laminate
