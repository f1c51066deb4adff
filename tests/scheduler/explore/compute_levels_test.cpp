#include "scheduler/explore/compute_levels.h"

#include <gtest/gtest.h>

#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

TEST(ComputeLevels, MoveOutwardWhileNoCountChanges) {
    const Network network = l3net();
    TwoLevelCache cache;
    int moved = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupSchedule outer = with_outer_compute_levels(network, group, cache);
            check_group(network, outer);
            EXPECT_EQ(two_level_counts(network, outer), two_level_counts(network, group));
            EXPECT_EQ(with_outer_compute_levels(network, outer, cache), outer);
            moved += outer != group ? 1 : 0;
        }
    }
    EXPECT_GT(moved, 20);
}

TEST(ComputeLevels, WholeTilesHaveNothingButSumsInside) {
    const Network network = l3net();
    int moved = 0;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const Schedule schedule = random_schedule(network, seed);
        for (const GroupSchedule& group : schedule.groups()) {
            const GroupSchedule whole = with_whole_tiles(network, group);
            check_group(network, whole);
            if (whole == group) continue;
            ++moved;
            for (const Nest& nest : whole.nests) {
                for (const InputPlacement& input : nest.x) {
                    const Level level = input.placement.compute;
                    EXPECT_TRUE(level.is_root() || whole.loop(level).band != Band::inner);
                }
            }
        }
    }
    EXPECT_GT(moved, 20);
}

}  // namespace
}  // namespace laminate
