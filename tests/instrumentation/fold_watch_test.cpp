// The fold rule on needs written by hand: rows and columns of one channel.
#include "instrumentation/fold_watch.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace laminate::walking {
namespace {

constexpr size_t rows = 1;
constexpr size_t columns = 2;

/// Three loops, outermost first, whose trips the tests count by hand.
struct Loops {
    std::array<int64_t, 3> bodies{0, 0, 0};
    /// Loop `index` begins another body.
    void step(size_t index) { ++bodies[index]; }
};

Box box(Range y, Range x) { return {Range{0, 1}, y, x}; }

TEST(FoldWatch, WithoutLoopsTheLargestNeedIsHeld) {
    FoldWatch watch;
    watch.see(box({0, 3}, {0, 2}));
    watch.end_lifetime();
    watch.see(box({4, 6}, {0, 5}));
    watch.end_lifetime();
    // 3 rows in the first lifetime, 5 columns in the second.
    EXPECT_EQ(watch.extents(), (Extents{1, 3, 5}));
}

TEST(FoldWatch, RowsThatOverlapFoldAndEndTheWalk) {
    // Rows y to y+2 for y = 0..5, the columns 0-3 and 2-5 in two trips each: the second trip of
    // rows needs rows again, so columns are not folded.
    Loops loops;
    FoldWatch watch({{loops.bodies.data(), rows}, {&loops.bodies[1], columns}});
    for (int64_t y = 0; y < 6; ++y) {
        loops.step(0);
        for (int64_t x = 0; x < 4; x += 2) {
            loops.step(1);
            watch.see(box({y, y + 3}, {x, x + 4}));
        }
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents(), (Extents{1, 3, 6}));
}

TEST(FoldWatch, WithoutOverlapTheWalkGoesOn) {
    // Rows 0-2, 3-5: none twice. Then the columns fold to 4.
    Loops loops;
    FoldWatch watch({{loops.bodies.data(), rows}, {&loops.bodies[1], columns}});
    for (int64_t y = 0; y < 6; y += 3) {
        loops.step(0);
        for (int64_t x = 0; x < 6; x += 2) {
            loops.step(1);
            watch.see(box({y, y + 3}, {x, x + 4}));
        }
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents(), (Extents{1, 3, 4}));
}

TEST(FoldWatch, ALoopThatIndexesNothingEndsTheWalk) {
    Loops loops;
    FoldWatch watch({{loops.bodies.data(), std::nullopt}, {&loops.bodies[1], rows}});
    for (int64_t z = 0; z < 2; ++z) {
        loops.step(0);
        for (int64_t y = 0; y < 6; ++y) {
            loops.step(1);
            watch.see(box({y, y + 3}, {0, 4}));
        }
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents(), (Extents{1, 8, 4}));
    // A loop with a single trip that needs anything is skipped; the second body sees nothing.
    FoldWatch once({{loops.bodies.data(), std::nullopt}, {&loops.bodies[1], rows}});
    loops.step(0);
    for (int64_t y = 0; y < 6; ++y) {
        loops.step(1);
        once.see(box({y, y + 3}, {0, 4}));
    }
    loops.step(0);
    loops.step(1);
    once.end_lifetime();
    EXPECT_EQ(once.extents(), (Extents{1, 3, 4}));
}

TEST(FoldWatch, AdjacentLoopsOfOneDimensionActAsOne) {
    // Tiles of 4 rows, row by row, 3 rows each, around a loop over columns with a single trip: tile
    // bodies hold 6 rows, but rows rotate through the tiles: 3.
    Loops loops;
    FoldWatch watch(
        {{loops.bodies.data(), rows}, {&loops.bodies[1], columns}, {&loops.bodies[2], rows}});
    for (int64_t yo = 0; yo < 8; yo += 4) {
        loops.step(0);
        loops.step(1);
        for (int64_t y = yo; y < yo + 4; ++y) {
            loops.step(2);
            watch.see(box({y, y + 3}, {0, 5}));
        }
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents(), (Extents{1, 3, 5}));
}

TEST(FoldWatch, ColumnsBetweenKeepRowLoopsApart) {
    // The same with two trips of columns: the tiles of rows overlap, so the walk ends there with
    // the 6 rows of a tile.
    Loops loops;
    FoldWatch watch(
        {{loops.bodies.data(), rows}, {&loops.bodies[1], columns}, {&loops.bodies[2], rows}});
    for (int64_t yo = 0; yo < 8; yo += 4) {
        loops.step(0);
        for (int64_t x = 0; x < 10; x += 5) {
            loops.step(1);
            for (int64_t y = yo; y < yo + 4; ++y) {
                loops.step(2);
                watch.see(box({y, y + 3}, {x, x + 5}));
            }
        }
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents(), (Extents{1, 6, 10}));
}

TEST(FoldWatch, HeldReachesUpToTheFrontier) {
    // Recomputed calls: rows 0-6, then 2-3 (there already), then 4-8. At the second, rows 2-6 are
    // held although it needs two; the largest is the first, 7 rows.
    Loops loops;
    FoldWatch watch({{loops.bodies.data(), rows}});
    for (const Range need : {Range{0, 7}, Range{2, 4}, Range{4, 9}}) {
        loops.step(0);
        watch.see(box(need, {0, 1}));
    }
    watch.end_lifetime();
    EXPECT_EQ(watch.extents()[rows], 7);
    FoldWatch longer({{loops.bodies.data(), rows}});
    for (const Range need : {Range{0, 3}, Range{2, 9}, Range{1, 4}}) {
        loops.step(0);
        longer.see(box(need, {0, 1}));
    }
    longer.end_lifetime();
    // From 1 to 9.
    EXPECT_EQ(longer.extents()[rows], 8);
}

}  // namespace
}  // namespace laminate::walking
