#include "scheduler/explore/group_search/annealing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/group_search/call_bound.h"
#include "tests/support/chain.h"

namespace laminate::search {
namespace {

std::vector<LayerProblem> chain_of(const std::vector<LayerSpec>& specs, int64_t side) {
    const Network network = chain(3, side, side + 2, specs);
    return layer_problems(network, all_layers(network));
}

GroupSearchOptions two_axes() {
    GroupSearchOptions options;
    options.tiles = Tiles::all;
    options.macs_is_axis = false;
    return options;
}

TEST(Annealing, FindsSchedulesOfTheSpaceCloseToItsFront) {
    const auto problems = chain_of({{8, square_window(3, 1, 1)}, {6, square_window(3, 1, 1)}}, 12);
    const GroupSearchOptions options = two_axes();
    GroupSearch search(problems, options);
    search.run();
    ASSERT_TRUE(search.is_complete());
    Archive<Nothing> front(false);
    for (const GroupSearch::Point& point : search.front()) front.offer(point.cost, {});
    const CallBound bound(problems);
    const auto found = annealed(problems, options, {}, bound.steps());
    ASSERT_GT(found.size(), 10u);
    double closest = 2;
    for (const GroupSearch::Point& point : found) {
        const GroupCounts counts = two_level_counts(problems, group_schedule(problems, point.choice));
        EXPECT_EQ(point.cost.accesses, static_cast<double>(counts.accesses().value()));
        EXPECT_EQ(point.cost.memory, static_cast<double>(counts.live_total.value()));
        EXPECT_EQ(point.cost.macs, static_cast<double>(counts.macs().value()));
        const double least = front.most_accesses(point.cost.memory, 0);
        EXPECT_GE(point.cost.accesses, least);
        closest = std::min(closest, point.cost.accesses / least);
    }
    EXPECT_LT(closest, 1.05);
    const auto again = annealed(problems, options, {}, bound.steps());
    EXPECT_TRUE(std::ranges::equal(found, again, {}, &GroupSearch::Point::cost,
                                   &GroupSearch::Point::cost));
}

TEST(Annealing, LeavesOutWhatIsKnownToBeBeaten) {
    const auto problems = chain_of({{4, square_window(3)}, {4, square_window(3)}}, 12);
    const CallBound bound(problems);
    const Cost known = bound.steps().back();
    const auto found = annealed(problems, two_axes(), {known}, bound.steps(), {2, 200});
    for (const GroupSearch::Point& point : found) EXPECT_LT(point.cost.memory, known.memory);
}

/// What annealing finds, and then all tiles of structures near it, comes as close to the bound as
/// any schedule does that is known.
void expect_above_the_bound(uint64_t first, uint64_t last) {
    int64_t points = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        Rng rng(seed);
        std::vector<LayerSpec> specs;
        for (int64_t layers = rng.between(2, 4); layers > 0; --layers) {
            if (!specs.empty() && rng.chance(1, 3)) {
                specs.push_back(specs.back());
                continue;
            }
            const int64_t kernel = rng.between(1, 4);
            specs.push_back(
                {rng.between(1, 12), square_window(kernel, 1, rng.between(0, kernel / 2))});
        }
        const auto problems = chain_of(specs, rng.between(14, 26));
        const CallBound bound(problems);
        const GroupSearchOptions options = two_axes();
        const auto found = annealed(problems, options, {}, bound.steps(), {6, 800});
        std::vector<IndexVector<LayerStructure, int>> near;
        for (const GroupSearch::Point& point : found) near.push_back(point.choice.structures);
        GroupSearchOptions nearby = options;
        nearby.near = &near;
        nearby.max_steps = 300'000;
        GroupSearch search(problems, nearby);
        for (const GroupSearch::Point& point : found) search.know(point);
        search.run();
        for (const GroupSearch::Point& point : search.front()) {
            ++points;
            EXPECT_LE(bound.accesses(point.cost.memory), point.cost.accesses)
                << "seed " << seed << ", memory " << point.cost.memory << ": "
                << to_text(group_schedule(problems, point.choice));
        }
    }
    EXPECT_GT(points, static_cast<int64_t>(last - first + 1) * 10);
}

TEST(Annealing, FindsNothingBelowTheBound) { expect_above_the_bound(1, 3); }
TEST(AnnealingLong, FindsNothingBelowTheBound) { expect_above_the_bound(100, 500); }

}  // namespace
}  // namespace laminate::search
