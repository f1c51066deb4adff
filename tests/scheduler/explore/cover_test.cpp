#include "scheduler/explore/timed/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "base/rng.h"
#include "scheduler/explore/compute_levels.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/planner/tiled_layer.h"
#include "scheduler/explore/random_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

using timed::Cover;
using timed::Groups;
using timed::Part;
using timed::Priced;

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
    }
    EXPECT_GT(infeasible, 10);
    EXPECT_LT(infeasible, 290);
}

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

TEST(TiledLayer, FormsForSeveralThreadsHaveRowsInStrips) {
    const Network network =
        chain(12, 20, 40, {{24, square_window(3, 1, 1)}, {8, square_window(1)}});
    for (const LayerId layer : all_layers(network)) {
        const LayerProblem p = layer_problem(network, layer);
        for (const int threads : {2, 3}) {
            const std::vector<GroupSchedule> forms = tiled_layer_forms(p, threads);
            ASSERT_GT(forms.size(), 10U);
            for (const GroupSchedule& form : forms) {
                check_group(network, form);
                EXPECT_GE(form.nests.front().strip[0] * threads, p[Dim::y]);
                EXPECT_LT(form.nests.front().strip[0], p[Dim::y]);
            }
        }
    }
}

}  // namespace
}  // namespace laminate
