#include "scheduler/explore/explore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/group_front.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using Cost = std::array<int64_t, 3>;  // accesses, live memory, MACs

bool beats(const Cost& a, const Cost& b) { return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]; }

std::set<Cost> front_of(const std::set<Cost>& all) {
    std::set<Cost> front;
    for (const Cost& c : all) {
        if (std::none_of(all.begin(), all.end(),
                         [&](const Cost& o) { return o != c && beats(o, c); }))
            front.insert(c);
    }
    return front;
}

Cost cost(const GroupCounts& c) {
    return {c.accesses().value(), c.live_total.value(), c.macs().value()};
}
Cost cost(const FrontPoint& p) {
    return {p.counts.accesses.value(), p.counts.live_total.value(), p.counts.macs.value()};
}
Cost cost(const GroupPoint& p) {
    return {p.accesses.value(), p.live_total.value(), p.macs.value()};
}

template <class Point>
std::set<Cost> costs(const std::vector<Point>& points) {
    std::set<Cost> all;
    for (const Point& p : points) all.insert(cost(p));
    return all;
}

TEST(TileSizes, ByKind) {
    EXPECT_EQ(tile_sizes(12, TileSizes::divisors), (std::vector<int64_t>{1, 2, 3, 4, 6, 12}));
    EXPECT_EQ(tile_sizes(12, TileSizes::powers_of_two), (std::vector<int64_t>{1, 2, 4, 8, 12}));
    EXPECT_EQ(tile_sizes(5, TileSizes::all), (std::vector<int64_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(tile_sizes(1, TileSizes::powers_of_two), (std::vector<int64_t>{1}));
}

/// Every order of the inner loops, every store and compute level from the innermost outer loop
/// inwards, every tile.
std::set<Cost> brute_force(const Network& network) {
    const LayerProblem p = layer_problem(network, 0);
    std::set<Cost> all;
    TwoLevelCache cache;
    std::array<Dim, 4> inner{Dim::z, Dim::y, Dim::x, Dim::i};
    do {
        GroupSchedule group;
        Nest nest;
        nest.layer = p.name;
        for (const Dim d : all_dims) nest.loops.push_back({d, Band::outer});
        for (const Dim d : inner) nest.loops.push_back({d, Band::inner});
        group.nests = {nest};
        Nest& n = group.nests[0];
        const int x_limit =
            p.groups > 1 && p[Dim::i] > 1 ? nest.find({Dim::i, Band::inner}) - 1 : 7;
        for (int xs = 3; xs <= x_limit; ++xs) {
            for (int xc = xs; xc <= x_limit; ++xc) {
                for (int ws = 3; ws <= 7; ++ws) {
                    for (int wc = ws; wc <= 7; wc += std::max(1, 7 - ws)) {
                        for (int y = 3; y <= 7; ++y) {
                            n.x = {{0, {{0, xs}, {0, xc}}}};
                            n.w = Placement{{0, ws}, {0, wc}};
                            n.y = {{0, y}, {0, y}};
                            for (n.tile[Dim::z] = 1; n.tile[Dim::z] <= p[Dim::z];
                                 ++n.tile[Dim::z]) {
                                for (n.tile[Dim::y] = 1; n.tile[Dim::y] <= p[Dim::y];
                                     ++n.tile[Dim::y]) {
                                    for (n.tile[Dim::x] = 1; n.tile[Dim::x] <= p[Dim::x];
                                         ++n.tile[Dim::x]) {
                                        n.tile[Dim::i] = p.groups > 1 ? p[Dim::i] : 1;
                                        for (; n.tile[Dim::i] <= p[Dim::i]; ++n.tile[Dim::i])
                                            all.insert(cost(two_level_counts({p}, group, &cache)));
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    } while (std::next_permutation(inner.begin(), inner.end()));
    return front_of(all);
}

ExploreOptions all_tiles() {
    ExploreOptions options;
    options.tiles = TileSizes::all;
    return options;
}

void expect_brute_force_front(const Network& network) {
    EXPECT_EQ(costs(group_front(network, {0}, all_tiles())), brute_force(network));
}

/// Extent of the map. It is one less under a sanitizer: brute force still sees every schedule, but
/// of fewer tiles.
int64_t extent(int64_t whole) { return test::is_sanitized ? whole - 1 : whole; }

TEST(ExploreSingle, FrontEqualsBruteForce) {
    expect_brute_force_front(chain(2, extent(5), extent(4), {{2, square_window(3)}}));
}
TEST(ExploreSingle, FrontEqualsBruteForceWithPadding) {
    expect_brute_force_front(chain(2, extent(3), extent(3), {{2, square_window(3, 1, 1)}}));
}
TEST(ExploreSingle, FrontEqualsBruteForceWithStrideBeyondTheKernel) {
    expect_brute_force_front(chain(2, extent(5), extent(5), {{2, square_window(1, 2)}}));
}
TEST(ExploreSingle, FrontEqualsBruteForceDepthwise) {
    expect_brute_force_front(chain(3, extent(5), extent(4), {{3, square_window(3), 3}}));
}
TEST(ExploreSingle, FrontEqualsBruteForceGrouped) {
    expect_brute_force_front(chain(4, 4, 3, {{2, square_window(2), 2}}));
}
TEST(ExploreSingle, FrontEqualsBruteForceTransposed) {
    expect_brute_force_front(
        chain(2, extent(2), extent(2), {{2, square_window(2, 1), 1, LayerKind::conv_transpose}}));
}

TEST(ExploreSingle, FrontEqualsBruteForceTransposedWithPadding) {
    // Kernel equal to stride, shifted by the padding: whether two rows of a tile share an input row
    // depends on the tile.
    Window window = square_window(2, 2, 1);
    expect_brute_force_front(
        chain(2, extent(3), extent(3), {{2, window, 1, LayerKind::conv_transpose}}));
}

/// ConvFusion's two micro networks under its own footprint, all points of the three-axis fronts
/// counted by a re-coding of the paper's model with an exhaustive search (docs/search.md):
/// baseline, then tiling, fusion, fusion-recompute with divisors, and with all tiles.
std::vector<size_t> front_sizes(const Network& network) {
    ExploreOptions options;
    options.footprint = Footprint::sum;
    options.space = Space::baseline;
    std::vector<size_t> sizes{explore(network, options).points.size()};
    for (const TileSizes tiles : {TileSizes::divisors, TileSizes::all}) {
        for (const Space space : {Space::tiling, Space::fusion, Space::fusion_recompute}) {
            options.tiles = tiles;
            options.space = space;
            const Front front = explore(network, options);
            EXPECT_TRUE(front.is_complete);
            EXPECT_TRUE(front.macs_is_axis);
            sizes.push_back(front.points.size());
        }
    }
    return sizes;
}
TEST(Explore, FrontSizesOfTheFourSpacesL2Net) {
    EXPECT_EQ(front_sizes(l2net()), (std::vector<size_t>{9, 36, 39, 44, 48, 52, 60}));
}
TEST(Explore, FrontSizesOfTheFourSpacesL3Net) {
    EXPECT_EQ(front_sizes(l3net()), (std::vector<size_t>{11, 53, 60, 75, 65, 75, 94}));
}

TEST(Explore, EndPointsOfTheSpacesUnderTheSumOfBuffers) {
    // (memory, accesses) of ConvFusion's restated model: least memory, and fewest accesses unfused
    // and fused.
    const auto ends = [](const Network& network, Space space) {
        ExploreOptions options;
        options.footprint = Footprint::sum;
        options.space = space;
        const Front front = explore(network, options);
        const auto pair = [](const FrontPoint& p) {
            return std::pair(p.counts.sum_total.value(), p.counts.accesses.value());
        };
        return std::pair(pair(front.points.back()), pair(front.points.front()));
    };
    using Ends = std::pair<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>>;
    EXPECT_EQ(ends(l2net(), Space::baseline), (Ends{{19, 146032}, {1333, 5068}}));
    EXPECT_EQ(ends(l2net(), Space::tiling), (Ends{{19, 40684}, {361, 5068}}));
    EXPECT_EQ(ends(l2net(), Space::fusion_recompute), (Ends{{19, 40684}, {649, 2476}}));
    EXPECT_EQ(ends(l3net(), Space::baseline), (Ends{{19, 257360}, {1637, 8664}}));
    EXPECT_EQ(ends(l3net(), Space::tiling), (Ends{{19, 71580}, {385, 8664}}));
    EXPECT_EQ(ends(l3net(), Space::fusion_recompute), (Ends{{19, 71580}, {1051, 2872}}));
}

TEST(Explore, EndPointsOfL2Net) {
    const Front front = explore(l2net());
    const std::set<Cost> found = costs(front.points);
    // ConvFusion's reference: least memory, and fewest accesses fused without recomputation.
    EXPECT_TRUE(found.count({40684, 19, 71856}));
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const Cost& c) {
        return beats(c, {2476, 649, 71856});
    }));
    EXPECT_EQ(front.points.front().counts.accesses,
              Elements(2476));  // no schedule moves less: X, weights and Y once
    EXPECT_EQ(front.points.back().counts.live_total, Elements(19));
    // Layer by layer: 3 rows of 18 x 4, 144 weights and one output in conv2: 361 elements for 2604
    // + 2464 accesses.
    const std::vector<GroupPoint> conv2 = group_front(l2net(), {1}, {});
    EXPECT_EQ(conv2.front().accesses, Elements(1296 + 144 + 1024));
    EXPECT_EQ(conv2.front().live_total, Elements(216 + 144 + 1));
}

TEST(Explore, EndPointsOfL3Net) {
    const std::set<Cost> found = costs(explore(l3net()).points);
    EXPECT_TRUE(found.count({71580, 19, 126720}));
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const Cost& c) {
        return beats(c, {2872, 1051, 126720});
    }));
}

TEST(Explore, CountsComeFromTheModel) {
    const Network network = l3net();
    const Front front = explore(network);
    for (const FrontPoint& point : front.points)
        EXPECT_EQ(point.counts, two_level_counts(network, schedule_of(network, front, point)));
}

TEST(Explore, EachGroupIsThereOnceAndUsed) {
    const Front front = explore(l3net());
    std::set<std::string> texts;
    for (const GroupSchedule& group : front.groups) texts.insert(to_text(group));
    EXPECT_EQ(texts.size(), front.groups.size());
    std::set<uint32_t> used;
    for (const FrontPoint& point : front.points)
        used.insert(point.groups.begin(), point.groups.end());
    EXPECT_EQ(used.size(), front.groups.size());
}

TEST(FrontOf, SchedulesAreCountedAndSorted) {
    const Network network = l3net();
    const Front all = explore(network);
    std::vector<Schedule> schedules;
    for (const FrontPoint& point : all.points)
        schedules.push_back(schedule_of(network, all, point));
    std::ranges::reverse(schedules);
    const Front front = front_of(network, schedules);
    EXPECT_FALSE(front.is_complete);
    EXPECT_EQ(front.groups.size(), all.groups.size());
    ASSERT_EQ(front.points.size(), all.points.size());
    for (size_t n = 0; n < front.points.size(); ++n) {
        EXPECT_EQ(front.points[n].counts, all.points[n].counts);
        EXPECT_EQ(schedule_of(network, front, front.points[n]),
                  schedule_of(network, all, all.points[n]));
    }
}

TEST(Explore, PartitionsEqualTheirCombinationByHand) {
    const Network network =
        chain(2, 6, 5, {{2, square_window(3)}, {1, square_window(1)}, {2, square_window(2)}});
    ExploreOptions options;
    options.space = Space::fusion;
    const auto segment = [&](std::vector<LayerId> layers) {
        return group_front(network, layers, options);
    };
    const auto sums = [](const std::set<Cost>& a, const std::vector<GroupPoint>& b) {
        std::set<Cost> all;
        for (const Cost& c : a) {
            for (const GroupPoint& p : b)
                all.insert({c[0] + p.accesses.value(), std::max(c[1], p.live_total.value()),
                            c[2] + p.macs.value()});
        }
        return front_of(all);
    };
    const auto one = segment({0}), two = segment({1}), three = segment({2});
    std::set<Cost> all = sums(front_of(sums(costs(one), two)), three);
    all.merge(sums(costs(segment({0, 1})), three));
    all.merge(sums(costs(one), segment({1, 2})));
    for (const Cost& c : costs(segment({0, 1, 2}))) all.insert(c);
    const Front front = explore(network, options);
    EXPECT_TRUE(front.macs_is_axis);
    EXPECT_EQ(costs(front.points), front_of(all));
}

TEST(Explore, MacsAreAnAxisOfUpToThreeLayers) {
    for (const size_t layers : {3, 4}) {
        ExploreOptions options;
        options.tiles = TileSizes::powers_of_two;
        const Network network =
            chain(1, 6, 6, std::vector<LayerSpec>(layers, {1, square_window(1)}));
        EXPECT_EQ(explore(network, options).macs_is_axis, layers <= 3) << layers;
    }
}

TEST(Explore, DoesNotDependOnThreads) {
    ExploreOptions one;
    ExploreOptions three;
    three.threads = 3;
    const Front a = explore(l3net(), one);
    const Front b = explore(l3net(), three);
    ASSERT_EQ(a.points.size(), b.points.size());
    for (size_t n = 0; n < a.points.size(); ++n)
        EXPECT_EQ(schedule_of(l3net(), a, a.points[n]), schedule_of(l3net(), b, b.points[n]));
}

/// Too long to be searched to the end.
Network six_equal_layers() {
    return chain(8, 20, 20, std::vector<LayerSpec>(6, {8, square_window(3, 1, 1)}));
}
ExploreOptions options_of_long_chains() {
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.max_steps = 20'000;
    return options;
}

void expect_same(const Network& network, const Front& a, const Front& b) {
    EXPECT_EQ(a.gap, b.gap);
    ASSERT_EQ(a.points.size(), b.points.size());
    for (size_t n = 0; n < a.points.size(); ++n)
        EXPECT_EQ(schedule_of(network, a, a.points[n]), schedule_of(network, b, b.points[n]));
    ASSERT_EQ(a.bounds.size(), b.bounds.size());
    for (size_t n = 0; n < a.bounds.size(); ++n) {
        EXPECT_EQ(a.bounds[n].accesses, b.bounds[n].accesses);
        EXPECT_EQ(a.bounds[n].memory, b.bounds[n].memory);
    }
}

TEST(Explore, ALongChainDoesNotDependOnThreads) {
    const Network network = six_equal_layers();
    ExploreOptions options = options_of_long_chains();
    const Front one = explore(network, options);
    options.threads = 3;
    EXPECT_FALSE(one.is_complete);
    expect_same(network, one, explore(network, options));
}

/// As long as DMCNN-VD, with its layers at both ends.
TEST(Explore, TwentyLayersDoNotDependOnThreads) {
    std::vector<LayerSpec> layers(20, {4, square_window(3, 1, 1)});
    layers.back().channels = 3;
    const Network network = chain(3, 8, 8, layers);
    ExploreOptions options = options_of_long_chains();
    options.macs_is_axis = false;
    options.max_steps = 5'000;
    const Front one = explore(network, options);
    options.threads = 2;
    EXPECT_FALSE(one.is_complete);
    expect_same(network, one, explore(network, options));
}

TEST(Explore, WithoutRecomputationMacsAreLeast) {
    ExploreOptions options;
    options.recompute = false;
    for (const FrontPoint& point : explore(l3net(), options).points)
        EXPECT_EQ(point.counts.macs, Macs(126720));
}

TEST(Explore, KeepsTheMemoryBudget) {
    ExploreOptions options;
    options.memory = Elements(200);
    const Front front = explore(l3net(), options);
    ASSERT_FALSE(front.points.empty());
    for (const FrontPoint& point : front.points) EXPECT_LE(point.counts.live_total, Elements(200));
    options.memory = Elements(18);
    EXPECT_TRUE(explore(l3net(), options).points.empty());
}

TEST(Explore, MaximumDepthOfOneFusesNothing) {
    ExploreOptions options;
    options.max_depth = 1;
    for (const FrontPoint& point : explore(l3net(), options).points)
        EXPECT_EQ(point.groups.size(), 3u);
}

TEST(Explore, WhatALimitLeavesOutIsBounded) {
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.macs_is_axis = false;
    const Front whole = explore(l3net(), options);
    ASSERT_TRUE(whole.is_complete);
    EXPECT_EQ(whole.gap, 0.0);
    options.max_steps = 3000;
    const Front part = explore(l3net(), options);
    EXPECT_FALSE(part.is_complete);
    ASSERT_FALSE(part.bounds.empty());
    EXPECT_GT(part.gap, 0.0);
    for (const FrontPoint& point : whole.points) {
        EXPECT_TRUE(std::any_of(part.bounds.begin(), part.bounds.end(),
                                [&](const FrontBound& bound) {
                                    return bound.memory <= point.counts.live_total &&
                                           bound.accesses <= point.counts.accesses;
                                }))
            << point.counts.accesses.value() << " accesses, memory "
            << point.counts.live_total.value();
    }
}

TEST(Explore, TwoAxesAreTheShadowOfThree) {
    ExploreOptions options;
    const Front three = explore(l3net(), options);
    options.macs_is_axis = false;
    const Front two = explore(l3net(), options);
    ASSERT_TRUE(three.macs_is_axis);
    EXPECT_FALSE(two.macs_is_axis);
    std::map<int64_t, std::pair<int64_t, int64_t>>
        best;  // by memory: fewest accesses, then MACs, among points that need no more
    for (const FrontPoint& p : three.points) {
        const auto [accesses, memory, macs] = cost(p);
        std::pair<int64_t, int64_t> least{accesses, macs};
        for (const FrontPoint& q : three.points) {
            const auto other = cost(q);
            if (other[1] <= memory) least = std::min(least, {other[0], other[2]});
        }
        best[memory] = least;
    }
    std::set<Cost> expected;
    std::pair<int64_t, int64_t> last{INT64_MAX, INT64_MAX};
    for (const auto& [memory, least] : best) {
        if (least < last) expected.insert({least.first, memory, least.second});
        last = least;
    }
    EXPECT_EQ(costs(two.points), expected);
}

TEST(Explore, AnInterruptedSearchStillAnswers) {
    std::atomic<bool> stop{false};
    ExploreOptions options;
    options.stop = &stop;
    options.progress = [&](const ExploreProgress&) { stop = true; };
    const Front front = explore(l3net(), options);
    ASSERT_FALSE(front.points.empty());
    EXPECT_FALSE(front.is_complete);
    // Groups that were not searched are bounded by compulsory traffic. All three layers move X,
    // weights and Y: 22 * 22 * 3 + 396 + 16 * 16 * 4 = 2872.
    EXPECT_GT(front.gap, 0);
    EXPECT_TRUE(std::isfinite(front.gap));
    for (const FrontPoint& point : front.points) {
        EXPECT_TRUE(std::ranges::any_of(
            front.bounds,
            [&](const FrontBound& bound) {
                return bound.memory <= point.counts.live_total &&
                       bound.accesses <= point.counts.accesses &&
                       static_cast<double>(point.counts.accesses.value()) <=
                           (1 + front.gap) * static_cast<double>(bound.accesses.value()) *
                               (1 + 1e-12);
            }))
            << point.counts.accesses.value() << " accesses, memory "
            << point.counts.live_total.value();
    }
}

TEST(Explore, AnInterruptLosesNothingThatWasFound) {
    const Network network = six_equal_layers();
    const auto after = [&](int64_t segments) {
        std::atomic<bool> stop{false};
        ExploreOptions options = options_of_long_chains();
        options.stop = &stop;
        options.progress = [&](const ExploreProgress& p) { stop = p.segments_done >= segments; };
        return explore(network, options);
    };
    Front last = after(1);
    for (const int64_t segments : {6, 12}) {
        Front front = after(segments);
        EXPECT_FALSE(front.is_complete);
        for (const FrontPoint& p : last.points)
            EXPECT_TRUE(std::ranges::any_of(front.points,
                                            [&](const FrontPoint& other) {
                                                return other.counts.accesses <= p.counts.accesses &&
                                                       other.counts.live_total <=
                                                           p.counts.live_total;
                                            }))
                << segments << " segments: " << p.counts.accesses.value() << " accesses, memory "
                << p.counts.live_total.value();
        last = std::move(front);
    }
}

TEST(Explore, ProgressEndsAtTheTotal) {
    ExploreProgress last;
    int64_t calls = 0;
    ExploreOptions options;
    options.progress = [&](const ExploreProgress& p) {
        last = p;
        ++calls;
    };
    (void)explore(l3net(), options);
    EXPECT_EQ(last.segments_done, last.segments_total);
    EXPECT_EQ(calls, last.segments_total);
}

TEST(Choose, FewestAccessesWithinTheBudget) {
    const Front front = explore(l2net());
    const auto large = std::get<FrontPoint>(choose(front, Elements(1'000'000)));
    EXPECT_EQ(large.counts.accesses, Elements(2476));
    EXPECT_EQ(large.counts.macs, Macs(71856));  // among equals, the one that recomputes nothing
    const auto small = std::get<FrontPoint>(choose(front, Elements(19)));
    EXPECT_EQ(small.counts.live_total, Elements(19));
}

TEST(Choose, NamesTheSmallestBudgetThatWorks) {
    const auto answer = choose(explore(l2net()), Elements(18));
    const auto* infeasible = std::get_if<Infeasible>(&answer);
    ASSERT_NE(infeasible, nullptr);
    EXPECT_EQ(infeasible->demand, Elements(19));
    EXPECT_EQ(infeasible->capacity, Elements(18));
}

/// MC-CNN's four layers in one group, in a search that is cut short. It comes to a structure of the
/// first layer in which a loop over channels stands outside and has one trip, and takes it for one
/// with several, so X seems to need 24 elements more. The front has what the model counts.
TEST(ExploreLong, PointsOfASearchThatIsCutShortAreThoseOfTheModel) {
    const Network network =
        chain(1, 100, 100, std::vector<LayerSpec>(4, {32, square_window(3, 1, 1)}));
    const auto problems = layer_problems(network, all_layers(network));
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.max_steps = 20'000'000;
    const SegmentFront front = search_segment(problems, options, false, {});
    ASSERT_FALSE(front.points.empty());
    for (const GroupPoint& point : front.points) {
        const GroupCounts counts = two_level_counts(problems, point.group);
        EXPECT_EQ(point.live_total, counts.live_total);
        EXPECT_EQ(point.accesses, counts.accesses());
    }
}

}  // namespace
}  // namespace laminate
