// The search of fused groups against random schedules of the same space, which these tests define a
// second time. None of them may beat the front. The search itself checks every point of the front
// against the model, and throws if they differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "scheduler/explore/explore.h"
#include "tests/scheduler/explore/space_of_a_chain.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

/// Random draws, and walks from a draw that keep every change that is no worse in some mixture of
/// the costs.
void expect_unbeaten(uint64_t seed, int64_t layers, int64_t draws) {
    const Network network = tiny_chain(seed, layers);
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.footprint = seed % 2 == 0 ? Footprint::live : Footprint::sum;
    options.macs_is_axis = true;
    options.max_steps = INT64_MAX;
    // For two layers the front of the one group; for more, that of all partitions, which a single
    // group can at best equal.
    const bool is_pair = network.layers.size() == 2;
    std::vector<ThreeCosts> costs;
    if (is_pair) {
        for (const GroupPoint& p : group_front(network, all_layers(network), options))
            costs.push_back({p.accesses.value(), p.live_total.value(), p.macs.value()});
    } else {
        const Front front = explore(network, options);
        ASSERT_TRUE(front.is_complete && front.macs_is_axis);
        for (const FrontPoint& p : front.points)
            costs.push_back({p.counts.accesses.value(),
                             memory_of(p.counts, options.footprint).value(),
                             p.counts.macs.value()});
    }
    ASSERT_FALSE(costs.empty());
    const SpaceOfAChain space(layer_problems(network, all_layers(network)));
    Rng rng(seed + 1000);
    TwoLevelCache cache;
    ChainSchedule at;
    double value = 0;
    std::array<double, 3> weight{};
    for (int64_t n = 0; n < draws; ++n) {
        const bool starts = n % 400 == 0;
        ChainSchedule next = at;
        if (starts) {
            do next = space.draw(rng);
            while (!space.group(next));
            for (double& w : weight) w = static_cast<double>(rng.between(1, 20));
        } else {
            for (int64_t changes = rng.between(1, 3); changes > 0; --changes)
                space.change(next, rng);
        }
        const auto group = space.group(next);
        if (!group) continue;
        check_group(network, *group);
        const ThreeCosts c = space.cost(*group, options.footprint, cache);
        EXPECT_TRUE(
            std::none_of(costs.begin(), costs.end(),
                         [&](const ThreeCosts& f) { return beats(c, f); }) ||
            std::any_of(costs.begin(), costs.end(), [&](const ThreeCosts& f) { return f == c; }))
            << "seed " << seed << ": " << to_text(*group) << " costs " << c[0] << ", " << c[1]
            << ", " << c[2];
        EXPECT_TRUE(std::any_of(costs.begin(), costs.end(),
                                [&](const ThreeCosts& f) { return f == c || beats(f, c); }))
            << "seed " << seed << ": " << to_text(*group) << " costs " << c[0] << ", " << c[1]
            << ", " << c[2];
        double own = 0;
        for (size_t a = 0; a < 3; ++a) own += weight[a] * std::log(static_cast<double>(c[a]));
        if (starts || own <= value) {
            at = next;
            value = own;
        }
    }
}

TEST(GroupSearch, NoScheduleOfTheSpaceBeatsTheFront) {
    for (uint64_t seed = 1; seed <= test::samples<uint64_t>(6); ++seed)
        expect_unbeaten(seed, 2, 2000);
    expect_unbeaten(8, 3, test::samples(1000));
}

/// Ten chains each: 200, of the long label.
class GroupSearchLong : public testing::TestWithParam<uint64_t> {};
TEST_P(GroupSearchLong, NoScheduleOfTheSpaceBeatsTheFront) {
    for (uint64_t seed = 10 * GetParam(); seed < 10 * GetParam() + 10; ++seed)
        expect_unbeaten(seed, 2 + static_cast<int64_t>(seed % 3), 20000);
}
INSTANTIATE_TEST_SUITE_P(Seeds, GroupSearchLong, testing::Range<uint64_t>(10, 30));

}  // namespace
}  // namespace laminate
