#include "runtime/arena_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace laminate {
namespace {

TEST(ArenaPlan, AChainNeedsTwoNeighboursAtATime) {
    // t0 lives during steps 0-1, t1 1-2, t2 2-3, all of 128 bytes: t2 takes t0's place.
    const std::vector<Lifetime> chain{{128, 0, 1}, {128, 1, 2}, {128, 2, 3}};
    const ArenaPlan plan = plan_arena(chain);
    EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 128, 0}));
    EXPECT_EQ(plan.bytes, 256);
}

TEST(ArenaPlan, LargestFirstThenTheLowestGap) {
    // Largest first: 256 at 0. The 64 of step 1 goes to 0 (the 256 are dead), the 128 of steps 0-1
    // behind the 256.
    const std::vector<Lifetime> lifetimes{{64, 1, 1}, {256, 0, 0}, {128, 0, 1}};
    const ArenaPlan plan = plan_arena(lifetimes);
    EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0, 256}));
    EXPECT_EQ(plan.bytes, 384);
}

TEST(ArenaPlan, EveryBlockStartsOnACacheLine) {
    const ArenaPlan plan = plan_arena({{4, 0, 0}, {4, 0, 0}, {65, 0, 0}});
    // 65 bytes take 128, each of the others 64.
    EXPECT_EQ(plan.offsets, (std::vector<int64_t>{128, 192, 0}));
    EXPECT_EQ(plan.bytes, 256);
}

TEST(ArenaPlan, NothingNeedsNothing) {
    EXPECT_EQ(plan_arena({}).bytes, 0);
    EXPECT_EQ(arena_lower_bound({}), 0);
}

TEST(ArenaPlan, LiveBlocksNeverOverlap) {
    int64_t plan_sum = 0, bound_sum = 0;
    for (uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        std::vector<Lifetime> lifetimes(random() % 40);
        for (Lifetime& life : lifetimes) {
            life.bytes = static_cast<int64_t>(random() % 2000 + 1);
            life.first_step = static_cast<int>(random() % 20);
            life.last_step = life.first_step + static_cast<int>(random() % 6);
        }
        const ArenaPlan plan = plan_arena(lifetimes);
        for (size_t a = 0; a < lifetimes.size(); ++a) {
            EXPECT_EQ(plan.offsets[a] % arena_alignment_bytes, 0) << "seed " << seed;
            EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.bytes) << "seed " << seed;
            for (size_t b = 0; b < a; ++b) {
                const bool both_live = lifetimes[a].first_step <= lifetimes[b].last_step &&
                                       lifetimes[b].first_step <= lifetimes[a].last_step;
                const bool apart = plan.offsets[a] + lifetimes[a].bytes <= plan.offsets[b] ||
                                   plan.offsets[b] + lifetimes[b].bytes <= plan.offsets[a];
                EXPECT_TRUE(!both_live || apart)
                    << "seed " << seed << ", blocks " << b << " and " << a;
            }
        }
        EXPECT_GE(plan.bytes, arena_lower_bound(lifetimes)) << "seed " << seed;
        plan_sum += plan.bytes;
        bound_sum += arena_lower_bound(lifetimes);
    }
    // The plan is also good: on average within a quarter of the lower bound.
    EXPECT_LE(plan_sum * 4, bound_sum * 5);
}

}  // namespace
}  // namespace laminate
