#include "scheduler/explore/dag/dag_groups.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <set>

#include "instrumentation/walker.h"
#include "nets/random/random_network.h"
#include "nets/zoo/zoo.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/group_search/call_choices.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

std::vector<LayerId> schedulable_layers(const Network& network) {
    std::vector<LayerId> layers;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        if (is_schedulable(network, id)) layers.push_back(id);
    }
    return layers;
}

/// By definition: there is one sink, and every other layer's readers are inside and its tensor is
/// no network output.
bool is_group(const Network& network, const std::set<LayerId>& layers, LayerId sink) {
    for (const LayerId id : layers) {
        if (id == sink) continue;
        const TensorId out = network.layer(id).output;
        if (network.is_output(out)) return false;
        const std::vector<LayerId> readers = network.consumers(out);
        if (readers.empty()) return false;
        for (const LayerId reader : readers) {
            if (layers.count(reader) == 0) return false;
        }
    }
    return true;
}

TEST(GroupsEndingAt, AreAllSetsThatTheDefinitionAllows) {
    int forks = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const Network network = random_network(seed);
        const std::vector<LayerId> layers = schedulable_layers(network);
        if (layers.size() > 9) continue;
        for (const LayerId sink : layers) {
            std::set<std::vector<LayerId>> expected;
            for (size_t subset = 0; subset < (size_t{1} << layers.size()); ++subset) {
                std::set<LayerId> members;
                for (size_t n = 0; n < layers.size(); ++n) {
                    if ((subset >> n & 1) != 0) members.insert(layers[n]);
                }
                if (members.count(sink) == 0 || *members.rbegin() != sink || members.size() > 4)
                    continue;
                if (is_group(network, members, sink))
                    expected.insert({members.begin(), members.end()});
            }
            const std::vector<std::vector<LayerId>> found = groups_ending_at(network, sink, 4);
            EXPECT_EQ(std::set<std::vector<LayerId>>(found.begin(), found.end()), expected) << seed;
            for (const std::vector<LayerId>& group : found) {
                std::map<TensorId, int> readers;
                for (const LayerId id : group) {
                    for (const TensorId t : network.layer(id).inputs)
                        forks += ++readers[t] == 2 ? 1 : 0;
                }
            }
        }
    }
    EXPECT_GT(forks, 10);  // the sample holds groups with shared tensors
}

using Point = std::array<int64_t, 3>;  ///< accesses, memory, MACs
using Points = std::set<Point>;

Point point_of(const GroupPoint& p) {
    return {p.accesses.value(), p.live_total.value(), p.macs.value()};
}

/// On two axes MACs decide between equal accesses.
bool is_no_worse(const Point& a, const Point& b, bool macs_is_axis) {
    if (a[1] > b[1]) return false;
    return macs_is_axis ? a[0] <= b[0] && a[2] <= b[2]
                        : std::pair(a[0], a[2]) <= std::pair(b[0], b[2]);
}

void offer(Points& front, const Point& point, bool macs_is_axis) {
    for (const Point& p : front) {
        if (is_no_worse(p, point, macs_is_axis)) return;
    }
    std::erase_if(front, [&](const Point& p) { return is_no_worse(point, p, macs_is_axis); });
    front.insert(point);
}

/// All exact covers one by one, without a cache.
Points brute_force(const Network& network, const ExploreOptions& options) {
    const std::vector<LayerId> layers = schedulable_layers(network);
    const bool macs_is_axis = options.macs_is_axis.value_or(false);
    std::map<std::vector<LayerId>, std::vector<GroupPoint>> fronts;
    Points result;
    const std::function<void(std::set<LayerId>, const Points&)> cover =
        [&](const std::set<LayerId>& open, const Points& so_far) {
            if (open.empty()) {
                for (const Point& p : so_far) offer(result, p, macs_is_axis);
                return;
            }
            for (const std::vector<LayerId>& group :
                 groups_ending_at(network, *open.rbegin(), *options.max_depth)) {
                std::set<LayerId> rest = open;
                for (const LayerId id : group) rest.erase(id);
                if (rest.size() + group.size() != open.size()) continue;
                auto known = fronts.find(group);
                if (known == fronts.end())
                    known = fronts.emplace(group, dag_group_front(network, group, options)).first;
                Points next;
                for (const Point& p : so_far) {
                    for (const GroupPoint& g : known->second) {
                        const Point q = point_of(g);
                        offer(next, {p[0] + q[0], std::max(p[1], q[1]), p[2] + q[2]}, macs_is_axis);
                    }
                }
                cover(rest, next);
            }
        };
    cover({layers.begin(), layers.end()}, {{0, 0, 0}});
    return result;
}

/// Networks of at most `most_layers`; returns how many.
int expect_front_of_all_covers(uint64_t first, uint64_t last, size_t most_layers, int64_t max_depth,
                               bool macs_is_axis) {
    ExploreOptions options;
    options.max_depth = max_depth;
    options.space = Space::dag;
    options.macs_is_axis = macs_is_axis;
    int tested = 0;
    for (uint64_t seed = first; seed < last; ++seed) {
        const Network network = random_network(seed);
        const size_t count = schedulable_layers(network).size();
        if (count == 0 || count > most_layers) continue;
        ++tested;
        options.tiles = seed % 2 == 0 ? TileSizes::divisors : TileSizes::all;
        const Front front = explore_dag(network, options);
        EXPECT_EQ(front.macs_is_axis, macs_is_axis);
        Points found;
        for (const FrontPoint& point : front.points)
            found.insert({point.counts.accesses.value(), point.counts.live_total.value(),
                          point.counts.macs.value()});
        EXPECT_EQ(found.size(), front.points.size()) << seed;
        EXPECT_EQ(found, brute_force(network, options)) << seed;
    }
    return tested;
}

TEST(ExploreDag, FrontIsThatOfAllExactCovers) {
    EXPECT_GT(expect_front_of_all_covers(0, 40, 8, 4, false), 20);
}

TEST(ExploreDag, WhatAnInterruptLeavesOutIsBounded) {
    int improved = 0;
    for (uint64_t seed = 0; seed < 12; ++seed) {
        const Network network = random_network(seed);
        if (schedulable_layers(network).size() < 2) continue;
        ExploreOptions options;
        options.space = Space::dag;
        options.max_depth = 3;
        const Front whole = explore_dag(network, options);
        std::atomic<bool> stop{true};
        options.stop = &stop;
        const Front part = explore_dag(network, options);
        EXPECT_FALSE(part.is_complete);
        ASSERT_EQ(part.bounds.size(), 1U);
        for (const FrontPoint& point : whole.points)
            EXPECT_GE(point.counts.accesses, part.bounds.front().accesses);
        const auto least = static_cast<double>(part.bounds.front().accesses.value());
        for (const FrontPoint& point : part.points)
            EXPECT_LE(static_cast<double>(point.counts.accesses.value()),
                      least * (1 + part.gap) * (1 + 1e-12))
                << seed;
        if (whole.points.front().counts.accesses < part.points.front().counts.accesses) {
            ++improved;
            EXPECT_GT(part.gap, 0) << seed;
        }
    }
    EXPECT_GT(improved, 4);  // else nothing was left out
}

TEST(ExploreDag, FrontOnThreeAxesIsThatOfAllExactCovers) {
    EXPECT_GT(expect_front_of_all_covers(0, 24, 5, 4, true), 6);
}

TEST(ExploreDagLong, FrontsOfUpToTenLayersAreThoseOfAllExactCovers) {
    EXPECT_GT(expect_front_of_all_covers(100, 400, 10, 10, false), 150);
    EXPECT_GT(expect_front_of_all_covers(100, 250, 7, 7, true), 50);
}

/// Forks and joins too; line buffers in strips are among them.
TEST(FamilyFront, IsLegalAndCountedAsTheModelDoes) {
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    int64_t in_strips = 0;
    int64_t in_input_tiles = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const Network network = random_network(seed);
        for (const LayerId sink : schedulable_layers(network)) {
            const std::vector<LayerId> layers = groups_ending_at(network, sink, 5).back();
            if (layers.size() == 1) continue;
            const std::vector<LayerProblem> problems = layer_problems(network, layers);
            for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
                check_group(network, point.group);
                const GroupCounts counts = two_level_counts(problems, point.group);
                EXPECT_EQ(counts.accesses(), point.accesses) << to_text(point.group);
                EXPECT_EQ(counts.live_total, point.live_total) << to_text(point.group);
                EXPECT_EQ(counts.macs(), point.macs) << to_text(point.group);
                const Level store = point.group.nests.front().y.store;
                const Nest& own = point.group.nests.back();
                in_strips += own.strip[1] > 0 && !store.is_root() ? 1 : 0;
                in_input_tiles += own.tile[Dim::i] < problems.back()[Dim::i] ? 1 : 0;
            }
        }
    }
    EXPECT_GT(in_strips, 0);
    EXPECT_GT(in_input_tiles, 0);
}

/// Lines of 24 channels for 5x5 windows hold more than lines of the four channels that they are made
/// of, so some points keep those and make the 24 channels again for each row, five times in all.
TEST(FamilyFront, MakesExpansionsAgainForEachRow) {
    const Network network = chain(
        1, 24, 30,
        {{4, square_window(3, 1, 1)}, {24, square_window(1)}, {2, square_window(5, 1, 2)}});
    const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    const int64_t once = problems[1][Dim::z] * problems[1][Dim::i] * 24 * 30;
    int64_t again = 0;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
        check_group(network, point.group);
        const GroupCounts counts = two_level_counts(problems, point.group);
        EXPECT_EQ(counts.accesses(), point.accesses) << to_text(point.group);
        EXPECT_EQ(counts.live_total, point.live_total) << to_text(point.group);
        EXPECT_EQ(counts.macs(), point.macs) << to_text(point.group);
        const Nest& sink = point.group.nests.back();
        const Level channel{2, sink.find({Dim::i, Band::inner})};
        const bool has_strips = sink.strip[0] > 0 || sink.strip[1] > 0;
        const bool goes_by_rows =
            sink.find({Dim::y, Band::inner}) < sink.find({Dim::x, Band::inner});
        if (point.group.nest(1).y.store != channel || has_strips || !goes_by_rows) continue;
        ++again;
        // Each row is made for the up to five rows that read it.
        EXPECT_EQ(counts.layers[1].macs.value(), once * (3 + 4 + 20 * 5 + 4 + 3) / 24);
        EXPECT_LT(counts.layers[0].output_buffer.value(), 5 * 30 * 24);
    }
    EXPECT_GT(again, 0);
    options.recompute = false;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all))
        EXPECT_EQ(point.macs.value(), static_cast<int64_t>(search::least_macs(problems)));
}

/// The sink reads 32 channels in tiles of 16, and each tile brings the weights of both layers for
/// its channels. So half of them are in memory, and all come again in each strip.
TEST(FamilyFront, TilesOfTheSinkBringTheWeightsThatMakeThem) {
    const Network network = chain(
        3, 20, 24, {{8, square_window(3, 1, 1)}, {32, square_window(3, 1, 1)}, {4, square_window(3)}});
    const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    int64_t in_halves = 0;
    int64_t strips_of_rows = 0;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
        const Nest& sink = point.group.nests.back();
        const Level tile{2, sink.find({Dim::i, Band::outer})};
        if (sink.tile[Dim::i] != 16 || point.group.nest(1).w->store != tile) continue;
        check_group(network, point.group);
        const GroupCounts counts = walk(network, point.group);
        EXPECT_EQ(difference(two_level_counts(problems, point.group), "model", counts, "walker"), "");
        EXPECT_EQ(counts.accesses(), point.accesses) << to_text(point.group);
        EXPECT_EQ(counts.live_total, point.live_total) << to_text(point.group);
        ++in_halves;
        strips_of_rows += sink.strip[0] > 0 ? 1 : 0;
        const int64_t strips = sink.strip[0] > 0 ? ceil_div(problems[2][Dim::y], sink.strip[0])
                                                 : ceil_div(problems[2][Dim::x], sink.strip[1]);
        for (const size_t k : {1U, 2U}) {
            const int64_t weights = problems[k].weight_elements().value();
            EXPECT_EQ(counts.layers[k].weight_reads.value(), strips * weights);
            EXPECT_EQ(counts.layers[k].weight_buffer.value(), weights / 2);
        }
    }
    // The map is wider than high, so strips of rows of as much memory are fewer.
    EXPECT_GT(in_halves, 0);
    EXPECT_GT(strips_of_rows, 0);
}

/// The sink makes 32 channels in tiles, and each tile brings its own weights and goes through the
/// whole strip again. So a part of the weights is in memory, all of them come in each strip, and
/// the input comes once per tile.
TEST(FamilyFront, TilesOfOutputsBringTheirWeights) {
    const Network network = chain(
        1, 24, 20,
        {{8, square_window(3, 1, 1)}, {8, square_window(3, 1, 1)}, {32, square_window(3, 1, 1)}});
    const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
    ExploreOptions options;
    options.tiles = TileSizes::powers_of_two;
    int64_t in_tiles = 0;
    std::set<int64_t> numbers;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all)) {
        const Nest& sink = point.group.nests.back();
        const int64_t tiles = ceil_div(32, sink.tile[Dim::z]);
        if (tiles == 1) continue;
        numbers.insert(tiles);
        check_group(network, point.group);
        const GroupCounts counts = walk(network, point.group);
        EXPECT_EQ(difference(two_level_counts(problems, point.group), "model", counts, "walker"),
                  "");
        EXPECT_EQ(counts.accesses(), point.accesses) << to_text(point.group);
        EXPECT_EQ(counts.live_total, point.live_total) << to_text(point.group);
        ++in_tiles;
        const int64_t strips = ceil_div(problems[2][Dim::x], sink.strip[1]);
        const int64_t weights = problems[2].weight_elements().value();
        EXPECT_EQ(counts.layers[2].weight_reads.value(), strips * weights);
        EXPECT_EQ(counts.layers[2].weight_buffer.value() * 32, weights * sink.tile[Dim::z]);
        EXPECT_EQ(counts.layers[2].macs.value(), weights * 24 * 20);
        EXPECT_GE(counts.layers[0].macs.value(), tiles * 9 * 8 * 24 * 20);
    }
    EXPECT_GT(in_tiles, 0);
    // Short groups try each number of tiles up to sixteen.
    EXPECT_EQ(numbers, (std::set<int64_t>{2, 3, 4, 5, 6, 7, 8, 11, 16}));
    options.space = Space::dag;
    for (const GroupPoint& point : family_front(problems, options, TileSizes::all))
        EXPECT_EQ(point.group.nests.back().tile[Dim::z], 32);
}

/// Lines that are columns, in strips of rows, cost what lines that are rows cost on the map turned
/// by a right angle.
TEST(FamilyFront, GoesByColumnsWhereMapsAreWide) {
    const std::vector<LayerSpec> layers{{8, square_window(3, 1, 1)},
                                        {32, square_window(1)},
                                        {6, square_window(5, 1, 2)},
                                        {4, square_window(3, 2)}};
    const auto family_of = [&](int64_t rows, int64_t columns) {
        const Network network = chain(3, rows, columns, layers);
        ExploreOptions options;
        options.tiles = TileSizes::powers_of_two;
        std::vector<GroupPoint> points =
            family_front(layer_problems(network, all_layers(network)), options, TileSizes::all);
        for (const GroupPoint& point : points) {
            check_group(network, point.group);
            EXPECT_EQ(difference(two_level_counts(network, point.group), "model",
                                 walk(network, point.group), "walker"),
                      "");
        }
        return points;
    };
    const std::vector<GroupPoint> wide = family_of(11, 17);
    int64_t by_lines = 0;
    for (const GroupPoint& tall : family_of(17, 11)) {
        if (tall.group.nests.front().y.compute.nest == tall.group.sink()) continue;
        ++by_lines;
        EXPECT_TRUE(std::ranges::any_of(wide, [&](const GroupPoint& point) {
            return point.accesses <= tall.accesses && point.live_total <= tall.live_total;
        })) << to_text(tall.group);
    }
    EXPECT_GT(by_lines, 0);
    EXPECT_TRUE(std::ranges::any_of(
        wide, [](const GroupPoint& point) { return point.group.nests.back().strip[0] > 0; }));
}

TEST(ExploreDag, EveryLayerIsCountedAndThreadsDoNotMatter) {
    ExploreOptions options;
    options.max_depth = 3;
    const Network network = zoo_network("resnet18");
    const Front one = explore_dag(network, options);
    options.threads = 2;
    const Front two = explore_dag(network, options);
    ASSERT_EQ(one.points.size(), two.points.size());
    for (size_t n = 0; n < one.points.size(); ++n)
        EXPECT_EQ(schedule_of(network, one, one.points[n]),
                  schedule_of(network, two, two.points[n]));
    size_t layers = 0;
    bool fuses_an_add = false;
    const Schedule fewest = schedule_of(network, one, one.points.front());
    for (const GroupSchedule& group : fewest.groups()) {
        layers += group.nests.size();
        const LayerId sink = network.find_layer(group.nests.back().layer);
        fuses_an_add =
            fuses_an_add || (group.nests.size() > 1 && network.layer(sink).kind == LayerKind::add);
    }
    EXPECT_EQ(layers, schedulable_layers(network).size());
    EXPECT_TRUE(fuses_an_add);
}

}  // namespace
}  // namespace laminate
