// The search of fused groups against every schedule of the space, as counted and compared by
// every_schedule.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/group_front.h"
#include "tests/scheduler/explore/every_schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// Kernels 1x1 to 3x3, strides, dilation, uneven padding; one layer in five transposed.
LayerSpec small_layer(Rng& rng, int64_t most_channels) {
    LayerSpec spec;
    spec.channels = rng.between(1, most_channels);
    for (size_t axis = 0; axis < 2; ++axis) {
        spec.window.kernel[axis] = rng.between(1, 3);
        spec.window.pad_begin[axis] = rng.chance(1, 3) ? 1 : 0;
        spec.window.pad_end[axis] = rng.chance(1, 3) ? 1 : 0;
    }
    if (rng.chance(1, 5)) {
        spec.kind = LayerKind::conv_transpose;
        spec.window.stride = {rng.between(1, 2), rng.between(1, 2)};
    } else {
        if (rng.chance(1, 3)) spec.window.stride = {rng.between(1, 2), rng.between(1, 2)};
        if (rng.chance(1, 6)) spec.window.dilation = {rng.between(1, 2), rng.between(1, 2)};
    }
    return spec;
}

/// Kernels 1x1 to 9x9 with as much padding as the tiny maps need, strides up to 3.
LayerSpec large_kernel_layer(Rng& rng, int64_t most_channels) {
    LayerSpec spec;
    spec.channels = rng.between(1, most_channels);
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t kernel = rng.between(1, 9);
        spec.window.kernel[axis] = kernel;
        spec.window.pad_begin[axis] = rng.between(0, kernel / 2);
        spec.window.pad_end[axis] = kernel / 2;
        if (rng.chance(1, 3))
            spec.window.stride[axis] = rng.between(1, std::min<int64_t>(kernel, 3));
    }
    return spec;
}

using DrawLayer = LayerSpec (*)(Rng& rng, int64_t most_channels);

/// Extents of 2 to `largest`. A layer equals the one before with probability `equal` of ten.
Network tiny_chain(Rng& rng, int64_t layers, int64_t largest, DrawLayer draw = small_layer,
                   int64_t equal = 0) {
    for (;;) {
        std::vector<LayerSpec> specs;
        for (int64_t k = 0; k < layers; ++k) {
            if (k > 0 && equal > 0 && rng.chance(equal, 10)) {
                specs.push_back(specs.back());
            } else {
                specs.push_back(draw(rng, layers > 2 ? 2 : 3));
            }
        }
        try {
            Network network =
                chain(rng.between(1, 2), rng.between(2, largest), rng.between(2, largest), specs);
            const auto extents_are_small = [&](const Tensor& t) {
                return t.dims[2] <= largest && t.dims[3] <= largest;
            };
            const auto chains = schedulable_chains(network);
            // Transposed kernels that equal their stride end a sequence.
            const auto fuses = [](const LayerSpec& spec) {
                const auto is_tiling = [&](size_t axis) {
                    return spec.window.kernel[axis] == spec.window.stride[axis] &&
                           spec.window.stride[axis] > 1;
                };
                return spec.kind == LayerKind::conv || !(is_tiling(0) || is_tiling(1));
            };
            if (std::all_of(specs.begin(), specs.end(), fuses) && chains.size() == 1 &&
                static_cast<int64_t>(chains.front().size()) == layers &&
                std::all_of(network.tensors.begin(), network.tensors.end(), extents_are_small))
                return network;
        } catch (const InputError&) {  // an output without extent: draw again
        }
    }
}

/// The enumeration counts as the closed form does, schedule by schedule.
TEST(EverySchedule, CountsAsTheModel) {
    Rng rng(1);
    int64_t counted = 0;
    for (int chains = 0; chains < 12; ++chains) {
        const int64_t layers = rng.between(1, 4);
        const Network network = tiny_chain(rng, layers, 5);
        const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
        const SpaceOfAChain space(problems);
        TwoLevelCache cache;
        for (const Footprint footprint : {Footprint::live, Footprint::sum}) {
            EverySchedule every(problems, {TileSizes::all, footprint, true, false});
            for (int n = 0; n < 1000; ++n) {
                const ChainSchedule schedule = space.draw(rng);
                const auto group = space.group(schedule);
                if (!group) continue;
                check_group(network, *group);
                ++counted;
                ASSERT_EQ(every.cost(schedule), space.cost(*group, footprint, cache))
                    << to_text(*group);
            }
        }
    }
    EXPECT_GT(counted, 1000);
}

struct Options {
    TileSizes tiles = TileSizes::all;
    Footprint footprint = Footprint::live;
    Space space = Space::fusion_recompute;
    bool recompute = true;
    bool macs_is_axis = true;
    std::optional<int64_t> max_depth = {};
    [[nodiscard]] ExploreOptions of_search() const {
        ExploreOptions options;
        options.space = space;
        options.tiles = tiles;
        options.footprint = footprint;
        options.recompute = recompute;
        options.macs_is_axis = macs_is_axis;
        options.max_depth = max_depth;
        options.max_steps = INT64_MAX;
        return options;
    }
    [[nodiscard]] EveryScheduleOptions of_enumeration() const {
        return {tiles, footprint, recompute && space != Space::fusion, space == Space::fusion,
                macs_is_axis};
    }
};

std::set<ThreeCosts> costs(const std::vector<GroupPoint>& points) {
    std::set<ThreeCosts> all;
    for (const GroupPoint& p : points)
        all.insert({p.accesses.value(), p.live_total.value(), p.macs.value()});
    return all;
}

std::set<ThreeCosts> costs(const Front& front, Footprint footprint) {
    std::set<ThreeCosts> all;
    for (const FrontPoint& p : front.points)
        all.insert({p.counts.accesses.value(), memory_of(p.counts, footprint).value(),
                    p.counts.macs.value()});
    return all;
}

std::set<ThreeCosts> front_of(const std::set<ThreeCosts>& all, bool macs_is_axis = true) {
    const auto does_beat = macs_is_axis ? beats : beats_before_macs;
    std::set<ThreeCosts> front;
    for (const ThreeCosts& c : all) {
        if (std::none_of(all.begin(), all.end(),
                         [&](const ThreeCosts& o) { return does_beat(o, c); }))
            front.insert(c);
    }
    return front;
}

/// Adds what two parts of a chain cost, one after the other.
void add_sums(const std::set<ThreeCosts>& first, const std::set<ThreeCosts>& second,
              std::set<ThreeCosts>& sums) {
    for (const ThreeCosts& a : first) {
        for (const ThreeCosts& b : second)
            sums.insert({a[0] + b[0], std::max(a[1], b[1]), a[2] + b[2]});
    }
}

std::string text(const ThreeCosts& c) {
    return std::to_string(c[0]) + " accesses, memory " + std::to_string(c[1]) + ", " +
           std::to_string(c[2]) + " MACs";
}

std::set<ThreeCosts> expect_group_front(const Network& network, const std::vector<LayerId>& layers,
                                        const Options& options) {
    const std::set<ThreeCosts> found = costs(group_front(network, layers, options.of_search()));
    EverySchedule every(layer_problems(network, layers), options.of_enumeration());
    const std::set<ThreeCosts> unbeaten = every.unbeaten_by(found);
    for (const ThreeCosts& c : unbeaten)
        EXPECT_TRUE(found.contains(c))
            << "not on the front: " << text(c) << " by " << every.example(c);
    for (const ThreeCosts& c : found)
        EXPECT_TRUE(unbeaten.contains(c)) << "of no schedule of the space: " << text(c);
    return found;
}

/// Every group, then every cut of the chain into groups.
void expect_fronts(const Network& network, const Options& options) {
    const std::vector<LayerId> layers = all_layers(network);
    std::vector<std::set<ThreeCosts>> upto{{{0, 0, 0}}};  // fronts of the first n layers
    for (size_t end = 1; end <= layers.size(); ++end) {
        std::set<ThreeCosts> sums;
        for (size_t begin = 0; begin < end; ++begin) {
            const auto at = [&](size_t n) {
                return layers.begin() + static_cast<std::ptrdiff_t>(n);
            };
            add_sums(upto[begin], expect_group_front(network, {at(begin), at(end)}, options), sums);
        }
        upto.push_back(front_of(sums));
    }
    const Front front = explore(network, options.of_search());
    EXPECT_TRUE(front.is_complete);
    EXPECT_EQ(costs(front, options.footprint), upto.back());
}

/// The front of some layers of a chain by the search. It knows what shorter parts cost together.
std::set<ThreeCosts> searched(const Network& network, const std::vector<LayerId>& layers,
                              const Options& options, const std::set<ThreeCosts>& known) {
    if (layers == all_layers(network)) {
        const Front front = explore(network, options.of_search());
        EXPECT_TRUE(front.is_complete);
        return costs(front, options.footprint);
    }
    std::vector<search::Cost> of_parts;
    for (const ThreeCosts& c : known)
        of_parts.push_back({static_cast<double>(c[0]), static_cast<double>(c[1]),
                            static_cast<double>(c[2])});
    const SegmentFront segment =
        search_segment(layer_problems(network, layers), options.of_search(), options.macs_is_axis,
                       {.known = of_parts});
    EXPECT_TRUE(segment.open.empty());
    std::set<ThreeCosts> all = costs(segment.points);
    all.insert(known.begin(), known.end());
    return front_of(all, options.macs_is_axis);
}

/// Every run of layers of a chain, the shortest first, as one group and in every cut. Unlike in
/// expect_fronts(), the search of a group knows what the cuts cost, as in explore(), so it ends
/// where the front of the group alone takes minutes.
void expect_fronts_of_runs(const Network& network, const Options& options) {
    const std::vector<LayerId> layers = all_layers(network);
    const auto deepest = static_cast<size_t>(options.max_depth.value_or(INT64_MAX));
    std::map<std::pair<size_t, size_t>, std::set<ThreeCosts>> fronts;  // by first layer and end
    for (size_t depth = 1; depth <= layers.size(); ++depth) {
        for (size_t begin = 0; begin + depth <= layers.size(); ++begin) {
            const size_t end = begin + depth;
            SCOPED_TRACE("layers " + std::to_string(begin) + " to " + std::to_string(end - 1));
            std::set<ThreeCosts> all;
            for (size_t cut = begin + 1; cut < end; ++cut)
                add_sums(fronts[{begin, cut}], fronts[{cut, end}], all);
            std::set<ThreeCosts>& front = fronts[{begin, end}];
            front = front_of(all, options.macs_is_axis);
            if (depth > deepest && depth < layers.size()) continue;
            const auto first = layers.begin() + static_cast<std::ptrdiff_t>(begin);
            const std::vector<LayerId> run(first, first + static_cast<std::ptrdiff_t>(depth));
            const std::set<ThreeCosts> found = searched(network, run, options, front);
            if (depth <= deepest) {
                EverySchedule every(layer_problems(network, run), options.of_enumeration());
                front.merge(every.unbeaten_by(found));
                front = front_of(front, options.macs_is_axis);
                for (const ThreeCosts& c : front)
                    EXPECT_TRUE(found.contains(c)) << "not on the front: " << text(c);
            }
            EXPECT_EQ(found, front);
        }
    }
}

Options options_of(uint64_t seed) {
    Options options;
    options.footprint = seed % 2 == 0 ? Footprint::live : Footprint::sum;
    options.recompute = seed % 4 < 3;
    options.tiles = seed % 5 == 0   ? TileSizes::divisors
                    : seed % 5 == 1 ? TileSizes::powers_of_two
                                    : TileSizes::all;
    options.space = seed % 7 == 0 ? Space::fusion : Space::fusion_recompute;
    return options;
}

std::string name_of_chain(uint64_t seed, int64_t layers) {
    return "seed " + std::to_string(seed) + ", " + std::to_string(layers) + " layers";
}

void expect_fronts_of_chain(uint64_t seed, int64_t layers, int64_t largest) {
    SCOPED_TRACE(name_of_chain(seed, layers));
    Rng rng(seed);
    expect_fronts(tiny_chain(rng, layers, largest), options_of(seed));
}

TEST(ExhaustiveFronts, OfPairs) {
    for (uint64_t seed = 0; seed < 12; ++seed) expect_fronts_of_chain(seed, 2, 4);
}
TEST(ExhaustiveFronts, OfThreeLayers) { expect_fronts_of_chain(0, 3, 4); }
TEST(ExhaustiveFronts, OfFourLayers) { expect_fronts_of_chain(0, 4, 2); }

/// A chain of layers with kernels up to 9x9, of which neighbours are often equal: on two axes, and
/// up to three layers on three. Groups of five layers only where nothing is computed twice; with
/// recomputation the search of one takes minutes, so there are groups of up to three.
void expect_fronts_of_equal_neighbours(uint64_t seed, int64_t layers) {
    SCOPED_TRACE(name_of_chain(seed, layers));
    Rng rng(seed);
    const Network network = tiny_chain(rng, layers, layers == 2 ? 4 : 2, large_kernel_layer, 6);
    Options options = options_of(seed);
    if (layers > 4 && options.space == Space::fusion_recompute) options.max_depth = 3;
    for (const bool macs_is_axis : {false, true}) {
        if (macs_is_axis && layers > 3) continue;
        options.macs_is_axis = macs_is_axis;
        expect_fronts_of_runs(network, options);
    }
}

TEST(ExhaustiveFronts, OfEqualNeighbours) {
    for (uint64_t seed = 0; seed < 10; ++seed) expect_fronts_of_equal_neighbours(seed, 2);
    expect_fronts_of_equal_neighbours(0, 3);
    expect_fronts_of_equal_neighbours(14, 4);
    expect_fronts_of_equal_neighbours(14, 5);
}

/// 504 chains: of each fourteen, seven of two layers, five of three, one of four and one of five.
class ExhaustiveFrontsOfEqualNeighboursLong : public testing::TestWithParam<uint64_t> {};
TEST_P(ExhaustiveFrontsOfEqualNeighboursLong, FourteenChains) {
    constexpr std::array<int64_t, 14> layers{2, 3, 2, 3, 2, 4, 3, 2, 3, 2, 5, 3, 2, 2};
    // Seventeen apart, so that every kind of options meets every number of layers.
    for (uint64_t n = 0; n < layers.size(); ++n)
        expect_fronts_of_equal_neighbours(17 * GetParam() + n, layers[n]);
}
INSTANTIATE_TEST_SUITE_P(Seeds, ExhaustiveFrontsOfEqualNeighboursLong,
                         testing::Range<uint64_t>(100, 136));

/// Ten chains each: 230, of the long label.
class ExhaustiveFrontsLong : public testing::TestWithParam<uint64_t> {
protected:
    static void expect_ten(int64_t layers, int64_t largest) {
        for (uint64_t seed = 10 * GetParam(); seed < 10 * GetParam() + 10; ++seed)
            expect_fronts_of_chain(seed, layers, largest);
    }
};
class ExhaustiveFrontsOfPairsLong : public ExhaustiveFrontsLong {};
TEST_P(ExhaustiveFrontsOfPairsLong, TenChains) { expect_ten(2, 5); }
INSTANTIATE_TEST_SUITE_P(Seeds, ExhaustiveFrontsOfPairsLong, testing::Range<uint64_t>(100, 115));
class ExhaustiveFrontsOfThreeLayersLong : public ExhaustiveFrontsLong {};
TEST_P(ExhaustiveFrontsOfThreeLayersLong, TenChains) { expect_ten(3, 4); }
INSTANTIATE_TEST_SUITE_P(Seeds, ExhaustiveFrontsOfThreeLayersLong,
                         testing::Range<uint64_t>(100, 106));
class ExhaustiveFrontsOfFourLayersLong : public ExhaustiveFrontsLong {};
TEST_P(ExhaustiveFrontsOfFourLayersLong, TenChains) { expect_ten(4, 2); }
INSTANTIATE_TEST_SUITE_P(Seeds, ExhaustiveFrontsOfFourLayersLong,
                         testing::Range<uint64_t>(100, 102));

/// The enumeration drops what a point of the front beats. Here it knows no point.
TEST(ExhaustiveFronts, WithoutKnowingTheFront) {
    Rng rng(5);
    for (int n = 0; n < 3; ++n) {
        const Network network = tiny_chain(rng, 2, 3);
        const Options options{TileSizes::all, n % 2 == 0 ? Footprint::live : Footprint::sum};
        EverySchedule every(layer_problems(network, all_layers(network)), options.of_enumeration());
        EXPECT_EQ(every.unbeaten_by({}),
                  costs(group_front(network, all_layers(network), options.of_search())));
    }
}

/// Plain loops over orders, levels and tiles with the closed form. The smallest pair takes minutes.
TEST(LiteralLoopsLong, FrontOfTheTiniestPair) {
    const Network network = chain(1, 2, 1, {{1, square_window(1)}, {1, square_window(1)}});
    const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
    const SpaceOfAChain space(problems);
    TwoLevelCache cache;
    std::array<std::set<ThreeCosts>, 2> all;
    const std::array<Footprint, 2> footprints{Footprint::live, Footprint::sum};
    ChainSchedule schedule;
    schedule.layers.resize(2);
    const auto for_each_layer = [&](size_t k, const auto& body) {
        ChainSchedule::Layer& l = schedule.layers[k];
        std::sort(l.order.begin(), l.order.end());
        do {
            for (l.store = -1; l.store <= 4; ++l.store) {
                for (l.compute = k == 0 ? 4 : std::max(l.store, 0); l.compute <= 4; ++l.compute) {
                    for (l.weights = 0; l.weights <= 6; ++l.weights) {
                        for (l.tile[Dim::y] = 1; l.tile[Dim::y] <= problems[k][Dim::y];
                             ++l.tile[Dim::y])
                            body();
                    }
                }
            }
        } while (std::next_permutation(l.order.begin(), l.order.end()));
    };
    for_each_layer(1, [&] {
        for_each_layer(0, [&] {
            const auto group = space.group(schedule);
            if (!group) return;
            const GroupCounts c = two_level_counts(problems, *group, &cache);
            all[0].insert({c.accesses().value(), c.live_total.value(), c.macs().value()});
            all[1].insert({c.accesses().value(), c.sum_total.value(), c.macs().value()});
        });
    });
    for (size_t f = 0; f < 2; ++f) {
        const Options options{TileSizes::all, footprints[f]};
        EXPECT_EQ(front_of(all[f]),
                  costs(group_front(network, all_layers(network), options.of_search())));
        EverySchedule every(problems, options.of_enumeration());
        EXPECT_EQ(front_of(all[f]), every.unbeaten_by({}));
    }
}

/// A case that this test found. conv2, a 1x1 of stride 2, reads columns 0 and 2 of conv1. Their
/// windows [-1, 0] and [1, 2] share nothing, although neighbours' windows do. So the input, kept
/// while both are computed, folds along columns and then along rows.
TEST(ExhaustiveFronts, WhereALaterStrideLeavesGaps) {
    Window window;
    window.kernel = {3, 2};
    window.pad_begin = {1, 1};
    window.pad_end = {1, 1};
    expect_group_front(chain(1, 4, 3, {{3, window}, {1, square_window(1, 2)}}), {0, 1}, {});
}

}  // namespace
}  // namespace laminate
