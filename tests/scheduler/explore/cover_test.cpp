#include "scheduler/explore/timed/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "base/rng.h"

namespace laminate {
namespace {

using timed::Cover;
using timed::Groups;
using timed::Part;
using timed::Priced;
using timed::Wish;

constexpr Elements any(std::numeric_limits<int64_t>::max());

Priced priced(const std::vector<std::string>& layers, int64_t accesses, int64_t live,
              double milliseconds) {
    Priced group;
    for (const std::string& layer : layers) {
        group.group.nests.emplace_back();
        group.group.nests.back().layer = layer;
    }
    group.accesses = Elements(accesses);
    group.live = Elements(live);
    group.milliseconds = milliseconds;
    return group;
}

double time_of(const Groups& groups) {
    double sum = 0;
    for (const Priced* group : groups) sum += group->milliseconds;
    return sum;
}

TEST(Cover, GroupsOfDifferentWaysMix) {
    const Priced ab = priced({"a", "b"}, 10, 50, 4), c = priced({"c"}, 10, 5, 9),
                 a = priced({"a"}, 10, 5, 5), bc = priced({"b", "c"}, 10, 50, 5),
                 b = priced({"b"}, 10, 5, 5), fast_c = priced({"c"}, 40, 20, 1);
    const Cover cover({{"a", "b", "c"}, {{&ab, &c}, {&a, &bc}, {&a, &b, &c}}, {&fast_c}}, {});
    EXPECT_EQ(time_of(cover.cheapest({any})), 5) << "a b, then the fast c";
    EXPECT_EQ(time_of(cover.cheapest({Elements(20)})), 11) << "a, b and the fast c";
    EXPECT_EQ(time_of(cover.cheapest({Elements(5)})), 19);
    EXPECT_TRUE(cover.cheapest({Elements(4)}).empty());
    constexpr double accesses_first = HUGE_VAL;
    EXPECT_EQ(time_of(cover.cheapest({any, accesses_first})), 10) << "20 accesses: a, then b c";
}

TEST(Cover, TheFirstWayStaysUnlessAnotherOneIsFasterByMoreThanTheModelIsSureOf) {
    const Priced own = priced({"a"}, 10, 50, 10), little = priced({"a"}, 10, 50, 9.5),
                 much = priced({"a"}, 10, 50, 9.2);
    EXPECT_EQ(time_of(Cover({{"a"}, {{&own}, {&little}}, {}}, {}).cheapest({any})), 10);
    EXPECT_EQ(time_of(Cover({{"a"}, {{&own}, {&much}}, {}}, {}).cheapest({any})), 9.2);
}

/// 128 MiB are 32 Mi elements of 4 bytes.
TEST(Cover, AccessesThatNoCacheHoldsAreWorthAPartOfTheTime) {
    constexpr int64_t saved = 32 << 20, few = 3 << 20, most_live = 50;
    const Priced own = priced({"a"}, few + saved, most_live, 10);
    const auto chosen = [&](int64_t accesses, double milliseconds) {
        const Priced other = priced({"a"}, accesses, most_live, milliseconds);
        // What has the fewest accesses may take so long that nobody would run it.
        const Priced fewest = priced({"a"}, 1, most_live, 100);
        const double time =
            time_of(Cover({{"a"}, {{&own}, {&other}, {&fewest}}, {}}, {}).cheapest({any}));
        return time == other.milliseconds;
    };
    EXPECT_TRUE(chosen(few, 10.5));
    EXPECT_FALSE(chosen(few + 1, 10.5)) << "one access less is saved";
    // All of the own accesses are worth 1.5 ms, what is saved of them 32 / 35 of that.
    EXPECT_TRUE(chosen(few, 11.3));
    EXPECT_FALSE(chosen(few, 11.5));
}

TEST(Cover, IsTheBestOfAllSubsetsOfRandomGroupsWithBranches) {
    Rng rng(7);
    constexpr int layers = 6;
    const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
    int infeasible = 0;
    for (int round = 0; round < 300; ++round) {
        std::deque<Priced> groups;
        Part part{names, {}, {}};
        Groups way;
        for (const std::string& name : names) {
            groups.push_back(priced({name}, rng.below(50), rng.below(50), 0));
            groups.back().milliseconds = 1 + static_cast<double>(rng.below(1000));
            way.push_back(&groups.back());
        }
        part.ways.push_back(way);
        for (int n = 0; n < 8; ++n) {
            std::vector<std::string> some;
            for (const std::string& name : names) {
                if (rng.below(3) == 0) some.push_back(name);
            }
            if (some.empty()) continue;
            groups.push_back(priced(some, rng.below(50), rng.below(50), 0));
            groups.back().milliseconds = 1 + static_cast<double>(rng.below(1000));
            part.others.push_back(&groups.back());
        }
        const Elements memory(20 + rng.below(40));
        const double price = static_cast<double>(rng.below(40));
        const bool way_fits =
            std::ranges::all_of(way, [&](const Priced* group) { return group->live <= memory; });
        const auto cost = [&](const Priced* group) {
            const bool is_own = way_fits && std::ranges::find(way, group) != way.end();
            return group->milliseconds * (is_own ? timed::surely_faster : 1) +
                   price * static_cast<double>(group->accesses.value());
        };
        double best = HUGE_VAL;
        for (uint32_t subset = 0; subset < 1U << groups.size(); ++subset) {
            std::multiset<std::string> held;
            double sum = 0;
            for (size_t n = 0; n < groups.size(); ++n) {
                if ((subset >> n & 1U) == 0) continue;
                if (groups[n].live > memory) sum = HUGE_VAL;
                for (const Nest& nest : groups[n].group.nests) held.insert(nest.layer);
                sum += cost(&groups[n]);
            }
            if (held.size() == layers && std::set(held.begin(), held.end()).size() == layers)
                best = std::min(best, sum);
        }
        const Cover cover(part, {});
        double found = 0;
        const Groups chosen = cover.cheapest({memory, price});
        for (const Priced* group : chosen) found += cost(group);
        infeasible += chosen.empty() ? 1 : 0;
        EXPECT_EQ(chosen.empty(), std::isinf(best)) << round;
        if (chosen.empty()) continue;
        EXPECT_NEAR(found, best, 1e-9 * best) << round;
        // Threads find the same, wish by wish.
        const std::vector<Wish> wishes{{memory, price}, {any, price}, {memory}, {any}, {any}};
        Cover of_threads(part, {});
        of_threads.find(wishes, 3);
        for (const Wish& wish : wishes)
            EXPECT_EQ(of_threads.cheapest(wish), cover.cheapest(wish)) << round;
    }
    EXPECT_GT(infeasible, 10);
    EXPECT_LT(infeasible, 290);
}

}  // namespace
}  // namespace laminate
