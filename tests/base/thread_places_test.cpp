#include "base/thread_places.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace laminate {
namespace {

TEST(ThreadPlaces, ThreadsOfOneCoreMoveApartAndMayStillRunAnywhere) {
    cpu_set_t open;
    ASSERT_EQ(sched_getaffinity(0, sizeof open, &open), 0);
    if (CPU_COUNT(&open) < 2) GTEST_SKIP() << "one core";
    ThreadPlaces places(2);
    const int first = places.take(0);
    ASSERT_GE(first, 0);
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        ASSERT_EQ(sched_getcpu(), first);
        // No other core is open: it stays.
        EXPECT_EQ(places.take(1), first);
        // Nothing but a wish of its own keeps it there now.
        ASSERT_EQ(sched_setaffinity(0, sizeof open, &open), 0);
        if (sched_getcpu() == first) {
            EXPECT_NE(places.take(1), first);
        }
        cpu_set_t now;
        ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
        EXPECT_TRUE(CPU_EQUAL(&now, &open));
    }).join();
}

TEST(ThreadPlaces, ACoreOfItsOwnIsKept) {
    ThreadPlaces places(3);
    const int core = places.take(2);
    EXPECT_EQ(places.take(2), core);
}

}  // namespace
}  // namespace laminate
