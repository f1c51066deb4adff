#include "instrumentation/presence.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace laminate::walking {
namespace {

/// One channel.
Box box(Range rows, Range columns) { return {Range{0, 1}, rows, columns}; }

TEST(Presence, NothingIsPresentWhenALifetimeBegins) {
    Presence presence({1, 4, 4});
    presence.begin_lifetime();
    presence.bring_in(box({0, 4}, {0, 4}));
    EXPECT_EQ(presence.missing(box({0, 4}, {0, 4})).count, 0);
    presence.begin_lifetime();
    EXPECT_EQ(presence.missing(box({0, 4}, {0, 4})).count, 16);
}

TEST(Presence, MissingIsWhatIsNotThereAndItsBoundingBox) {
    Presence presence({2, 8, 8});
    presence.begin_lifetime();
    presence.bring_in(box({0, 4}, {0, 8}));
    presence.bring_in(box({0, 6}, {0, 4}));
    // Of rows 3-5, columns 2-6 of both channels: in channel 0 rows 4 and 5 lack columns 4-6, in
    // channel 1 nothing is there: 6 + 15.
    const Presence::Missing missing = presence.missing({Range{0, 2}, Range{3, 6}, Range{2, 7}});
    EXPECT_EQ(missing.count, 6 + 15);
    EXPECT_EQ(missing.box, (Box{Range{0, 2}, Range{3, 6}, Range{2, 7}}));
    EXPECT_EQ(presence.missing(box({3, 6}, {2, 7})).box, box({4, 6}, {4, 7}));
}

TEST(Presence, GapsThatWerePassedStayOut) {
    // Pixels (0,0), (0,4), (4,0), (4,4) one after the other: then all below row 5, column 5 counts
    // as present, and of 0-8 x 0-4 rows 5-8 are missing.
    Presence presence({1, 16, 16});
    presence.begin_lifetime();
    for (const int64_t y : {0, 4}) {
        for (const int64_t x : {0, 4}) presence.bring_in(box({y, y + 1}, {x, x + 1}));
    }
    EXPECT_EQ(presence.missing(box({0, 5}, {0, 5})).count, 0);
    EXPECT_EQ(presence.missing(box({0, 9}, {0, 5})).count, 4 * 5);
    // Right of column 4 nothing has come in.
    EXPECT_EQ(presence.missing(box({0, 5}, {0, 9})).count, 5 * 4);
}

TEST(Presence, RowsAboveThePresentOnesAreNotClosedByColumnsToTheRight) {
    // Strip by strip: rows 0-3 of columns 0-3, then rows 4-7 of them; columns 4-7 of no row are
    // there.
    Presence presence({1, 8, 8});
    presence.begin_lifetime();
    presence.bring_in(box({0, 4}, {0, 4}));
    presence.bring_in(box({4, 8}, {0, 4}));
    EXPECT_EQ(presence.missing(box({0, 8}, {0, 8})).box, box({0, 8}, {4, 8}));
    presence.bring_in(box({0, 4}, {4, 8}));
    EXPECT_EQ(presence.missing(box({0, 8}, {0, 8})).box, box({4, 8}, {4, 8}));
}

TEST(Presence, ARehearsalLeavesNoTrace) {
    Presence presence({1, 4, 4});
    presence.begin_lifetime();
    presence.bring_in(box({0, 1}, {0, 4}));
    presence.begin_rehearsal();
    presence.bring_in(box({0, 2}, {0, 4}));
    presence.begin_rehearsal();
    presence.begin_lifetime();
    presence.bring_in(box({0, 4}, {0, 4}));
    presence.rewind();
    EXPECT_EQ(presence.missing(box({0, 4}, {0, 4})).count, 8);
    presence.rewind();
    EXPECT_EQ(presence.missing(box({0, 4}, {0, 4})).count, 12);
    EXPECT_EQ(presence.reached().box(), box({0, 1}, {0, 4}));
}

TEST(Presence, LoopsThatGoBackBelowTheBeginAreAnError) {
    Presence presence({1, 8, 8});
    presence.begin_lifetime();
    presence.bring_in(box({2, 3}, {0, 8}));
    EXPECT_NO_THROW(presence.bring_in(box({2, 5}, {0, 8})));
    EXPECT_THROW(presence.bring_in(box({1, 5}, {0, 8})), std::logic_error);
}

}  // namespace
}  // namespace laminate::walking
