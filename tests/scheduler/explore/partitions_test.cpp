#include "scheduler/explore/partitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace laminate::search {
namespace {

using Part = std::pair<size_t, size_t>;

/// Random costs of a segment: more layers move less together, and may need more memory.
SegmentFront random_front(Rng& rng, int64_t layers) {
    SegmentFront front;
    for (int64_t n = rng.between(1, 5); n > 0; --n) {
        front.points.push_back({{},
                                Elements(rng.between(3, 12) * layers / (layers > 1 ? 2 : 1)),
                                Elements(rng.between(1, 10)),
                                Macs(rng.between(1, 3))});
        front.counts.emplace_back();
    }
    return front;
}

/// The points that `limits` does not beat.
SegmentFront limited(const SegmentFront& all, const CostFront& limits, int64_t& left_out) {
    SegmentFront kept;
    for (const GroupPoint& point : all.points) {
        if (limits.beats_all_above(cost_of(point))) {
            ++left_out;
            continue;
        }
        kept.points.push_back(point);
        kept.counts.emplace_back();
    }
    return kept;
}

/// Adds all segments, the shortest first, without what their limits beat. Some of the points of
/// segments of three layers and more, and bounds below all points of every segment, are expected.
std::vector<Cost> front_within_limits(Rng& rng, size_t layers,
                                      const std::map<Part, SegmentFront>& fronts,
                                      int64_t& left_out) {
    const std::vector<LayerId> ids(layers);
    Partitions partitions(layers, false);
    std::map<Part, SegmentFront> kept;
    std::map<Part, std::vector<GroupPoint>> sure;
    for (const auto& [run, front] : fronts) {
        std::vector<Cost> known, least;
        for (const GroupPoint& point : front.points) {
            const Cost cost = cost_of(point);
            if (run.second - run.first > 2 && rng.chance(1, 2)) {
                known.push_back(cost);
                sure[run].push_back(point);
            }
            // Bounds need not be integers.
            least.push_back(
                {std::max(0.0, cost.accesses - 0.75 * static_cast<double>(rng.below(3))),
                 cost.memory - static_cast<double>(rng.below(2)), 1});
        }
        if (run.second - run.first > 1) partitions.expect(run.first, run.second, known, least);
    }
    for (size_t length = 1; length <= layers; ++length) {
        for (size_t begin = 0; begin + length <= layers; ++begin)
            partitions.combine(begin, begin + length);
        if (length > 1) partitions.find_limits();
        for (size_t begin = 0; begin + length <= layers; ++begin) {
            const Part run{begin, begin + length};
            SegmentFront& own = kept[run];
            own = fronts.at(run);
            if (length > 1) own = limited(own, partitions.limits(begin, begin + length), left_out);
            for (const GroupPoint& point : sure[run]) {
                own.points.push_back(point);
                own.counts.emplace_back();
            }
        }
        for (size_t begin = 0; begin + length <= layers; ++begin)
            partitions.add(begin, {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(length)},
                           kept.at({begin, begin + length}));
    }
    return partitions.best(0, layers).costs();
}

std::vector<Cost> whole_front(size_t layers, const std::map<Part, SegmentFront>& fronts) {
    std::vector<CostFront> upto(layers + 1, CostFront(false));
    upto[0].offer({}, {});
    for (size_t end = 1; end <= layers; ++end) {
        for (size_t begin = 0; begin < end; ++begin) {
            for (const Cost& before : upto[begin].costs()) {
                for (const GroupPoint& point : fronts.at({begin, end}).points)
                    upto[end].offer(together(before, cost_of(point)), {});
            }
        }
    }
    return upto[layers].costs();
}

TEST(Partitions, WhatLimitsLeaveOutChangesNoFront) {
    Rng rng(7);
    int64_t left_out = 0, points = 0;
    for (int n = 0; n < 3000; ++n) {
        const auto layers = static_cast<size_t>(rng.between(2, 6));
        std::map<Part, SegmentFront> fronts;
        for (size_t begin = 0; begin < layers; ++begin) {
            for (size_t end = begin + 1; end <= layers; ++end) {
                fronts[{begin, end}] = random_front(rng, static_cast<int64_t>(end - begin));
                if (end - begin > 1) points += std::ssize(fronts.at({begin, end}).points);
            }
        }
        ASSERT_EQ(front_within_limits(rng, layers, fronts, left_out), whole_front(layers, fronts))
            << "chain " << n << " of " << layers << " layers";
    }
    // Most of what no partition needs is left out.
    EXPECT_GT(left_out, points / 2);
}

/// Layers 1 and 3 move 10 and 20 in any memory. Layer 2 moves 100 in 4 elements and 50 in 16. All
/// three as one group are known to move 100 in 8 elements, so where there are 8, layer 2 alone must
/// move less than 70.
TEST(Partitions, LimitsAreWhatIsLeftBesideTheOtherLayers) {
    Partitions partitions(3, false);
    const std::vector<LayerId> one(1);
    const auto front = [](std::vector<std::pair<int64_t, int64_t>> costs) {
        SegmentFront made;
        for (const auto& [accesses, memory] : costs) {
            made.points.push_back({{}, Elements(accesses), Elements(memory), Macs(1)});
            made.counts.emplace_back();
        }
        return made;
    };
    const std::vector<SegmentFront> alone{front({{10, 1}}), front({{100, 4}, {50, 16}}),
                                          front({{20, 1}})};
    for (size_t k = 0; k < 3; ++k) partitions.add(k, one, alone[k]);
    partitions.expect(0, 3, {{100, 8, 3}}, {});
    partitions.find_limits();
    // In 4 elements, the three alone move 130, of which 100 are layer 2's; in 16 they move 80.
    const std::vector<Cost> expected{{100, 4, 1}, {70, 8, 1}, {50, 16, 1}};
    EXPECT_EQ(partitions.limits(1, 2).costs(), expected);
}

/// Sums of pairs are offered many at a time. The first of equal costs stays, as if one were offered
/// after the other.
TEST(Partitions, StairsAreAFrontAsIfOfferedOneByOne) {
    Rng rng(11);
    const auto random_cost = [&] {
        return Cost{static_cast<double>(rng.below(12)), static_cast<double>(rng.below(12)),
                    static_cast<double>(rng.below(3))};
    };
    int64_t kept = 0;
    for (int n = 0; n < 5000; ++n) {
        Archive<int64_t> known(false), stairs(false);
        for (int64_t m = rng.below(8); m > 0; --m) known.offer(random_cost(), -m);
        for (int64_t m = rng.below(8); m > 0; --m) stairs.offer(random_cost(), m);
        Archive<int64_t> one_by_one = known, at_once = known;
        for (size_t m = 0; m < stairs.size(); ++m)
            one_by_one.offer(stairs.costs()[m], stairs.items()[m]);
        at_once.offer_stairs(stairs.costs(), [&](size_t m) { return stairs.items()[m]; });
        ASSERT_EQ(at_once.costs(), one_by_one.costs()) << "front " << n;
        ASSERT_EQ(at_once.items(), one_by_one.items()) << "front " << n;
        kept += std::ranges::count_if(at_once.items(), [](int64_t item) { return item > 0; });
    }
    EXPECT_GT(kept, 5000);
}

TEST(Partitions, TheWeakerOfTwoLimitsBeatsWhatBothBeat) {
    CostFront a(false), b(false);
    for (const Cost& cost : {Cost{100, 4, 1}, Cost{50, 10, 1}}) a.offer(cost, {});
    for (const Cost& cost : {Cost{80, 2, 1}, Cost{70, 6, 1}, Cost{40, 12, 1}}) b.offer(cost, {});
    const std::vector<Cost> expected{{100, 4, 1}, {70, 10, 1}, {50, 12, 1}};
    EXPECT_EQ(weaker(a, b).costs(), expected);
}

}  // namespace
}  // namespace laminate::search
