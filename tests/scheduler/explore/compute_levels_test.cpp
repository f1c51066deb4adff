#include "scheduler/explore/compute_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
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

/// Schedules of the same loops and levels in several sizes.
std::vector<GroupSchedule> groups_in_sizes(const Network& network) {
    std::vector<GroupSchedule> groups;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        const Schedule schedule = random_schedule(network, seed);
        for (GroupSchedule group : schedule.groups()) {
            for (int n = 0; n < 4; ++n) {
                groups.push_back(group);
                Nest& sink = group.nests.back();
                for (const Dim d : {Dim::y, Dim::x}) sink.tile[d] = std::max<int64_t>(1, sink[d] / 2);
            }
        }
    }
    std::erase_if(groups, [&](const GroupSchedule& group) {
        try {
            check_group(network, group);
            return false;
        } catch (const InputError&) {
            return true;
        }
    });
    return groups;
}

TEST(ComputeLevels, GroupsOfManySizesMoveTogether) {
    const Network network = l3net();
    const std::vector<GroupSchedule> groups = groups_in_sizes(network);
    ASSERT_GT(groups.size(), 300u);
    std::vector<std::vector<GroupSchedule>> moved(2, groups);
    for (size_t n = 0; n < 2; ++n) {
        std::vector<GroupSchedule*> places;
        for (GroupSchedule& group : moved[n]) places.push_back(&group);
        move_compute_levels_out(network, places, n == 0 ? 1 : 3);
    }
    EXPECT_EQ(moved[0], moved[1]);
    TwoLevelCache cache;
    size_t changed = 0;
    for (size_t n = 0; n < groups.size(); ++n) {
        const GroupSchedule& outer = moved[0][n];
        check_group(network, outer);
        EXPECT_EQ(two_level_counts(network, outer), two_level_counts(network, groups[n]));
        EXPECT_EQ(with_outer_compute_levels(network, outer, cache), outer);
        changed += outer != groups[n] ? 1 : 0;
    }
    EXPECT_GT(changed, groups.size() / 10);
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
