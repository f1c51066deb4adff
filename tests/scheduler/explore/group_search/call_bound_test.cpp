#include "scheduler/explore/group_search/call_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/explore/group_search/group_search.h"
#include "tests/scheduler/explore/space_of_a_chain.h"
#include "tests/support/chain.h"

namespace laminate::search {
namespace {

std::vector<LayerProblem> problems_of(const Network& network) {
    return layer_problems(network, schedulable_chains(network).front());
}

/// The front of the group, found without a CallBound.
std::vector<GroupSearch::Point> front_of(const std::vector<LayerProblem>& problems, bool live,
                                         Tiles tiles = Tiles::powers_of_two) {
    GroupSearchOptions options;
    options.tiles = tiles;
    options.live = live;
    options.macs_is_axis = false;
    GroupSearch search(problems, options);
    search.run();
    return search.front();
}

bool fuses(const std::vector<LayerProblem>& problems) {
    return std::all_of(problems.begin(), problems.end(),
                       [](const LayerProblem& p) { return may_fuse(p); });
}

/// Pairs, and a few chains of three, which take longer.
void expect_below_fronts(uint64_t first, uint64_t last, uint64_t last_pair) {
    uint64_t chains = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        const bool is_long = seed > last_pair;
        const auto problems = problems_of(tiny_chain(seed, is_long ? 3 : 2));
        if (!fuses(problems)) continue;
        ++chains;
        const CallBound bound(problems);
        for (const GroupSearch::Point& point :
             front_of(problems, seed % 2 == 0, is_long ? Tiles::powers_of_two : Tiles::all)) {
            EXPECT_LE(bound.accesses(point.cost.memory), point.cost.accesses)
                << "seed " << seed << ", memory " << point.cost.memory;
            EXPECT_TRUE(std::any_of(bound.steps().begin(), bound.steps().end(),
                                    [&](const Cost& step) {
                                        return step.memory <= point.cost.memory &&
                                               step.accesses <= point.cost.accesses &&
                                               step.macs <= point.cost.macs;
                                    }))
                << "seed " << seed << ", memory " << point.cost.memory;
        }
    }
    EXPECT_GE(chains, (last - first) / 2);
}

TEST(CallBound, IsBelowEveryFrontOfRandomChains) { expect_below_fronts(1, 18, 17); }

TEST(CallBoundLong, IsBelowEveryFrontOfRandomChains) { expect_below_fronts(100, 300, 270); }

/// Chains with more channels than tiny chains have, so calls of one channel differ from calls of
/// all.
TEST(CallBound, IsBelowFrontsOfChainsWithManyChannels) {
    for (const auto& [rows, channels] : std::vector<std::pair<int64_t, std::vector<int64_t>>>{
             {6, {8, 16}}, {5, {16, 6}}, {8, {5, 9}}}) {
        std::vector<LayerSpec> specs;
        for (const int64_t c : channels)
            specs.push_back(
                {c, square_window(specs.size() == 1 ? 1 : 3, 1, specs.size() == 1 ? 0 : 1)});
        const auto problems = problems_of(chain(3, rows, rows, specs));
        const CallBound bound(problems);
        for (const bool live : {true, false}) {
            for (const GroupSearch::Point& point : front_of(problems, live))
                EXPECT_LE(bound.accesses(point.cost.memory), point.cost.accesses)
                    << rows << " rows, memory " << point.cost.memory;
        }
    }
}

/// Chains, of three to five layers unless told otherwise, too deep for their fronts: walks over
/// schedules that keep what comes closer to the bound. One channel at a time in several layers is
/// among them, where the factors of the layers multiply. Large maps have coordinates that no border
/// clips, where halos count.
void expect_below_walks(uint64_t first, uint64_t last, int64_t steps, int64_t least_side = 4,
                        int64_t largest_side = 7, int64_t least_layers = 3,
                        int64_t most_layers = 5) {
    int64_t schedules = 0;
    for (uint64_t seed = first; seed <= last; ++seed) {
        Rng rng(seed);
        std::vector<LayerSpec> specs;
        const int64_t layers = rng.between(least_layers, most_layers);
        for (int64_t k = 0; k < layers; ++k) {
            const int64_t kernel = rng.between(1, 3);
            specs.push_back({rng.between(2, 6), square_window(kernel, 1, kernel / 2)});
        }
        const Network network = chain(rng.between(1, 3), rng.between(least_side, largest_side),
                                      rng.between(least_side, largest_side), specs);
        const std::vector<LayerProblem> problems = layer_problems(network, all_layers(network));
        ASSERT_TRUE(fuses(problems));
        const CallBound bound(problems);
        const SpaceOfAChain space(problems);
        TwoLevelCache cache;
        ChainSchedule at;
        double ratio = 0;
        for (int64_t n = 0; n < steps; ++n) {
            const bool starts = n % 100 == 0;
            ChainSchedule next = at;
            if (starts) {
                do next = space.draw(rng);
                while (!space.group(next));
            } else {
                for (int64_t changes = rng.between(1, 3); changes > 0; --changes)
                    space.change(next, rng);
            }
            const auto group = space.group(next);
            if (!group) continue;
            ++schedules;
            const ThreeCosts cost = space.cost(*group, Footprint::live, cache);
            const double own =
                static_cast<double>(cost[0]) / bound.accesses(static_cast<double>(cost[1]));
            ASSERT_GE(own, 1) << "seed " << seed << ", memory " << cost[1] << ": "
                              << to_text(*group);
            if (starts || own <= ratio) {
                at = next;
                ratio = own;
            }
        }
    }
    EXPECT_GT(schedules, static_cast<int64_t>(last - first + 1) * steps / 20);
}

TEST(CallBound, IsBelowWalksThroughDeepChains) { expect_below_walks(1, 12, 400); }

TEST(CallBound, IsBelowWalksThroughLargerMaps) { expect_below_walks(21, 30, 400, 14, 24); }

/// Their choices tell fewer sets of layers apart.
TEST(CallBound, IsBelowWalksThroughLongerChains) { expect_below_walks(41, 46, 300, 5, 12, 6, 8); }

TEST(CallBoundLong, IsBelowWalksThroughLongerChains) {
    expect_below_walks(500, 540, 5'000, 5, 16, 6, 9);
}

TEST(CallBoundLong, IsBelowWalksThroughDeepChains) { expect_below_walks(100, 200, 20'000); }

TEST(CallBoundLong, IsBelowWalksThroughLargerMaps) { expect_below_walks(300, 340, 10'000, 14, 24); }

TEST(CallBound, EndsAtTheCompulsoryTraffic) {
    const auto problems = problems_of(
        chain(3, 20, 20, {{4, square_window(3)}, {4, square_window(3)}, {5, square_window(3, 2)}}));
    // 3 x 20 x 20 inputs less the last row and column, which the stride leaves over (16 rows -> 7
    // outputs read 15: 19 of 20); weights 108 + 144 + 180, 5 x 7 x 7 outputs.
    const double compulsory = 3 * 19 * 19 + 108 + 144 + 180 + 5 * 7 * 7;
    const CallBound bound(problems);
    EXPECT_EQ(bound.accesses(1e9), compulsory);
    EXPECT_EQ(bound.steps().back().accesses, compulsory);
    EXPECT_EQ(compulsory, static_cast<double>(compulsory_accesses(problems).value()));
}

TEST(CallBound, ItsStaircaseIsCloseToIt) {
    // Six layers of 64 channels, whose weights leave little of the memory: what is reached with all
    // of them held falls quickly there.
    const auto problems =
        problems_of(chain(64, 60, 60, std::vector<LayerSpec>(6, {64, square_window(3, 1, 1)})));
    const CallBound bound(problems);
    size_t steep = 0;
    for (const Cost& step : bound.steps()) {
        const double at_once = bound.accesses(step.memory);
        steep += bound.accesses(step.memory * 1.02) * 1.03 < at_once ? 1 : 0;
        EXPECT_LE(step.accesses, at_once);
        EXPECT_GE(step.accesses, at_once / 1.03);
    }
    EXPECT_GT(steep, 10u);
}

/// Two layers 32 -> 32 of 3x3 on 32 x 32 pixels, V = 9216, S = 1024. A window of A_1 has 9
/// elements. In 16, weights cannot stay. With inputs of the last layer one by one, calls make one
/// channel, and the weights of both layers come for each: 2 V S / 16 = 1.2 M. X comes 32 times,
/// 1.0 M, with halos up to nine times as much, and Y goes and comes 63 times, 2.1 M.
TEST(CallBound, LittleMemoryFetchesWeightsAgainAndAgain) {
    const auto problems = problems_of(
        chain(32, 32, 32, {{32, square_window(3, 1, 1)}, {32, square_window(3, 1, 1)}}));
    const CallBound bound(problems);
    EXPECT_EQ(bound.accesses(8), INFINITY);
    EXPECT_GT(bound.accesses(16), 1.1e6 + 1.0e6 + 2.0e6);
    EXPECT_LT(bound.accesses(16), 1.2e6 + 9 * 1.1e6 + 2.1e6);
    EXPECT_GT(bound.accesses(16), bound.accesses(64));
}

/// Four layers 8 -> 8 of 3x3 on 20 x 20. If the weights of layer 2 alone come with each call, layer
/// 3 has no more calls, so its buffer counts too: with the 14 x 14 coordinates that the 12 x 12 of
/// the last layer need which meet no border.
TEST(CallBound, LayersThatCallNoMoreOftenNeedBuffersToo) {
    const auto problems =
        problems_of(chain(8, 20, 20, std::vector<LayerSpec>(4, {8, square_window(3, 1, 1)})));
    const ChainSizes sizes(problems);
    EXPECT_EQ(sizes.inner, (std::vector<double>{20.0 * 20, 18 * 18, 16 * 16, 14 * 14, 12 * 12}));
    double least = INFINITY;
    double largest = 0;
    for (const CallChoice& c : call_choices(sizes, Detail::coarse)) {
        if (c.divider == 2) least = std::min(least, c.groups);
        if (c.divider != 0) largest = std::max(largest, c.groups);
    }
    const double elements = 8 * (20 * 20 + 14 * 14);
    EXPECT_NEAR(least * least, sizes.weights[2] * elements, 1);
    EXPECT_GT(largest, least);
}

/// Four layers 8 -> 8 of 3x3 on 20 x 20, V = 576 each. If layer 4 reads four channels at a time,
/// half of the weights of layer 3 may live as long as these, and come with each piece.
TEST(CallBound, PartsOfWeightsComeWithPieces) {
    const auto problems =
        problems_of(chain(8, 20, 20, std::vector<LayerSpec>(4, {8, square_window(3, 1, 1)})));
    double part = INFINITY;
    double all = INFINITY;
    for (const CallChoice& c : call_choices(ChainSizes(problems), Detail::coarse)) {
        if (c.halos.last_channels != 4 || c.halos.narrow != 0 || c.roots != 0) continue;
        double& least = c.halos.has_parts ? part : all;
        least = std::min(least, c.held);
    }
    EXPECT_EQ(all, part + 576 / 2);
}

/// DMCNN-VD's twenty layers at 540 x 960, with room for all weights but half of layer 19's, and for
/// lines of three columns (83,811 elements; four take 87,372). X comes twice, each time with
/// (3 + 40) / 3 of the 502 x 920 elements that meet no border, and the 36,864 weights of layer 19
/// with each of 167 lines. With three channels, that is 2 x 14.3 x 1.39 + 6.2 = 46 M elements.
/// 1,728 elements more would make four columns. The weights of the first layer do not give way for
/// these: each of its calls needs room for calls of all layers after it.
TEST(CallBound, LinesHaveHalosAndBringPartsOfWeights) {
    std::vector<LayerSpec> layers(19, {64, square_window(3, 1, 1)});
    layers.push_back({3, square_window(3, 1, 1)});
    const CallBound bound(problems_of(chain(3, 540, 960, layers)));
    const double held = 18 * 36864 + 2 * 1728 - 36864 / 2.0;
    EXPECT_GT(bound.accesses(held + 87372 - 1728 - 1), 46e6);
    EXPECT_LT(bound.accesses(held + 87372), 46e6);
}

/// MC-CNN at 270 x 480, V = 288 + 3 * 9216, with 2,910 elements more than the weights of the first
/// three layers. Kernels for four of the last layer's 32 outputs (1,152) leave room for lines of
/// two rows, which hold 3 (2 + 2 j) elements of each of 32 channels of A_{4-j} and of X's one:
/// 1,758 in all, and one element of Y. X comes eight times with (2 + 8) / 2 of the 262 x 472
/// elements that meet no border, and all kernels with each of 131 lines of two: 8 * 5 * 124 k + 131
/// * 9216 + 4.2 M = 10.3 M, and what meets the borders besides. The front of all tiles has a
/// schedule of 10,548,000. With one element less, two of these things must give way.
TEST(CallBound, WeightsOfTheLastLayerComeWithItsTiles) {
    const CallBound bound(
        problems_of(chain(1, 270, 480, std::vector<LayerSpec>(4, {32, square_window(3, 1, 1)}))));
    const double held = 288 + 2 * 9216 + 4 * 288;
    EXPECT_GT(bound.accesses(held + 1758), 11.5e6);
    EXPECT_GT(bound.accesses(held + 1758 + 1), 10.3e6);
    EXPECT_LE(bound.accesses(held + 1758 + 1), 10'548'000);
}

/// The layers from which on weights share the memory that the others leave are no earlier than the
/// one that divides it. Layer 2 brings little, so its weights may be among those before layer 3;
/// they are not any more where layer 1 divides.
TEST(CallBound, NothingIsBeforeTheFirstLayer) {
    const auto problems = problems_of(chain(24, 20, 20,
                                            {{24, square_window(3, 1, 1)},
                                             {2, square_window(1)},
                                             {24, square_window(3, 1, 1)},
                                             {24, square_window(3, 1, 1)}}));
    bool has_before = false;
    for (const CallChoice& c : call_choices(ChainSizes(problems), Detail::coarse)) {
        has_before |= c.divider > 1 && c.groups_before > 0;
        if (c.divider == 1) {
            EXPECT_EQ(c.groups_before, 0);
        }
    }
    EXPECT_TRUE(has_before);
}

/// What a choice costs at least within `memory` for what calls bring, halos apart.
double cost_without_halos(const ChainSizes& sizes, const CallChoice& c, double memory) {
    const double roots = c.all_roots();
    return c.again * sizes.input() + c.output +
           std::max(sizes.all_weights, c.held + roots * roots / (memory - c.held));
}

/// Layers that are not decided yet may be held, come anew or be narrow. Choices are dropped before
/// all layers are decided, but for each that costs little enough, it or one that beats it is there.
TEST(CallBound, NoChoiceWithinTheLimitIsLost) {
    const std::vector<std::vector<LayerSpec>> chains{{6, {16, square_window(3, 1, 1)}},
                                                     {10, {64, square_window(3, 1, 1)}},
                                                     {{56, square_window(5, 1, 2)},
                                                      {12, square_window(1)},
                                                      {12, square_window(3, 1, 1)},
                                                      {12, square_window(3, 1, 1)},
                                                      {56, square_window(1)},
                                                      {2, square_window(9, 1, 4)}}};
    size_t within = 0, beyond = 0;
    for (const auto& layers : chains) {
        const ChainSizes sizes(problems_of(chain(3, 90, 120, layers)));
        const std::vector<CallChoice> all = call_choices(sizes, Detail::coarse);
        for (double memory = 50; memory < 2 * sizes.all_weights; memory *= 3) {
            double least = std::numeric_limits<double>::infinity();
            for (const CallChoice& c : all) {
                if (c.held < memory) least = std::min(least, cost_without_halos(sizes, c, memory));
            }
            for (const double times : {1.0, 1.3, 4.0}) {
                const double most = least * times;
                const std::vector<CallChoice> some =
                    call_choices(sizes, Detail::coarse, {memory, most});
                beyond += all.size() - some.size();
                for (const CallChoice& c : all) {
                    if (c.held >= memory || cost_without_halos(sizes, c, memory) > most) continue;
                    ++within;
                    const auto beats = [&](const CallChoice& o) {
                        return o.held <= c.held && o.roots <= c.roots && o.again <= c.again &&
                               o.output <= c.output && (o.own & c.own) == c.own &&
                               (o.divider == 0 || (o.divider == c.divider && o.groups <= c.groups &&
                                                   o.groups_before <= c.groups_before)) &&
                               o.halos.are_fewer(c.halos);
                    };
                    EXPECT_TRUE(std::ranges::any_of(some, beats))
                        << layers.size() << " layers, memory " << memory << ", held " << c.held
                        << ", roots " << c.roots << ", again " << c.again;
                }
            }
        }
    }
    EXPECT_GT(within, 1000U);
    EXPECT_GT(beyond, 100'000U);
}

/// SRVGG's eighteen layers at 540 x 960, V = 619,200, with one element less than lines of three
/// rows need beside all weights but two thirds of the last ones. The weights of the last layer, or
/// of the last two, may come with calls of the last but one instead. But calls of hundreds of
/// pixels of 64 channels and lines of the layers before share what is left: 78 k or 115 k elements.
/// Lines that are as long as such a call is do not fit in that, so its layers read halos along both
/// axes. A third of that for the calls' weights, the same for halos, and 25 M for Y: two groups,
/// which move 93.4 M, are near the least.
TEST(CallBound, CallsAndTheLinesBeforeThemShareMemory) {
    std::vector<LayerSpec> layers(17, {64, square_window(3, 1, 1)});
    layers.push_back({48, square_window(3, 1, 1)});
    const CallBound bound(problems_of(chain(3, 540, 960, layers)));
    EXPECT_GT(bound.accesses(669663), 89e6);
    EXPECT_LT(bound.accesses(669663), 93.4e6);
    EXPECT_GT(bound.accesses(650000), 100e6);
}

/// DMCNN-VD's first eleven layers at 540 x 960, with 817 elements more than all weights. Those of
/// the last layer may come with each call of layer 10 instead, some 900 times if calls had all
/// memory that is then left.
TEST(CallBound, WeightsOfTheLastLayerComeWithCallsInLittleMemory) {
    std::vector<LayerSpec> layers(11, {64, square_window(3, 1, 1)});
    const CallBound bound(problems_of(chain(3, 540, 960, layers)));
    const double compulsory = 10 * 36864 + 1728 + (3 + 64) * 540.0 * 960;
    EXPECT_GT(bound.accesses(10 * 36864 + 1728 + 817), compulsory + 30e6);
}

/// DMCNN-VD's first eleven layers at 540 x 960, with 1,385 elements more than all weights. Layer 11
/// may hold kernels for 11 of its 64 outputs (6,336 elements) and make them in six tiles, so that
/// lines of five rows fit. Fewer outputs leave room for longer lines, but X comes eight times then;
/// more leave less. In each case X brings 50 M elements or more, besides Y's 33.2 M. No tile has
/// the room that eight outputs leave and the five trips that 13 make.
TEST(CallBound, TilesOfTheLastOutputsAreToldApartByTrips) {
    std::vector<LayerSpec> layers(11, {64, square_window(3, 1, 1)});
    const CallBound bound(problems_of(chain(3, 540, 960, layers)));
    EXPECT_GT(bound.accesses(371753), 86e6);
    EXPECT_LT(bound.accesses(371753), 89e6);
}

/// MC-CNN's first three layers at 540 x 960, V = 288 + 2 * 9216. Layer 2 may make one channel at a
/// time and keep the 288 weights of one, so that X comes 32 times, 16.6 M elements without halos.
/// The weights of layer 3 come again for each s pixels of which Y's buffer has the sums in 32 s of
/// the 4,536 elements that are left: s = 141 would bring 34 M and leave nothing for lines, and
/// lines of all 4,536 elements would bring 19 M. Since neither has all of them, at least 20 M more
/// move, and layer 2's weights come with pieces or calls besides.
TEST(CallBound, SumsOfTheLastLayerAndLinesShareMemory) {
    const CallBound bound(
        problems_of(chain(1, 540, 960, std::vector<LayerSpec>(3, {32, square_window(3, 1, 1)}))));
    EXPECT_GT(bound.accesses(5112), 96e6);
    EXPECT_LT(bound.accesses(5112), 98e6);
    EXPECT_GT(bound.accesses(3515), 122e6);
}

/// MC-CNN at 100 x 100 in 10,005 elements. Layer 2 may make one channel at a time, which leaves
/// most of them to pieces of A_3, and few calls of layer 3 bring the weights of layers 3 and 4. But
/// they bring those of layer 2 too. Layers 1 and 2 in a group and layers 3 and 4 in another move
/// 2,055,360.
TEST(CallBound, CallsBringTheWeightsOfNarrowLayers) {
    const CallBound bound(
        problems_of(chain(1, 100, 100, std::vector<LayerSpec>(4, {32, square_window(3, 1, 1)}))));
    EXPECT_GT(bound.accesses(10005), 2.0e6);
    EXPECT_LE(bound.accesses(10005), 2'055'360);
}

/// The 20 layers of DMCNN-VD at 270 x 480, where 40 of 270 rows meet a border. A schedule of strips
/// of four rows moves 17,551,872 elements in 728,875, and one of three rows, with larger tiles of
/// the last layer's inputs, 15,970,176 in 731,524. Between the two, weights may come with calls of
/// layer 19; but such calls are few only for pieces that leave no room for lines.
TEST(CallBound, LongChainsHaveLinesOfWholeCoordinates) {
    std::vector<LayerSpec> layers(19, {64, square_window(3, 1, 1)});
    layers.push_back({3, square_window(3, 1, 1)});
    const CallBound bound(problems_of(chain(3, 270, 480, layers)));
    EXPECT_GT(bound.accesses(731523), 17.2e6);
    EXPECT_LE(bound.accesses(728875), 17'551'872);
    EXPECT_GT(bound.accesses(731524), 15.9e6);
    EXPECT_LE(bound.accesses(731524), 15'970'176);
}

/// Three layers 12 -> 12 of 3x3 at 540 x 960, V = 1,296 each, in less memory than the weights of
/// all. With all weights in the nests of their layers, each call of layer 2 brings those of layers
/// 2 and 3, 17 M elements besides X's with halos and Y's 6.2 M. It calls layer 1, which brings half
/// as much again. Layers 1 and 2 in a group and layer 3 alone move 35.9 M.
TEST(CallBound, CallsBringTheWeightsOfLayersBeforeThem) {
    const CallBound bound(
        problems_of(chain(12, 540, 960, std::vector<LayerSpec>(3, {12, square_window(3, 1, 1)}))));
    EXPECT_GT(bound.accesses(3019), 34.5e6);
    EXPECT_LE(bound.accesses(3019), 35'931'888);
}

/// Four layers 8 -> 8 of 3x3, V = 576 each: what a call of layer 3 brings at most if everything is
/// computed once, but for what a layer reads that makes one channel at a time. Where layer 2 does,
/// each of its eight channels has calls of layer 1 of its own. A transposed layer may keep the ones
/// before from being called as often as layer 3: two of its rows read the same ones, so a call for
/// the second asks for nothing new.
TEST(CallBound, LayersThatMayHaveFewerCallsAddNothingToThem) {
    const auto most_per_call = [](const std::vector<LayerSpec>& layers, uint32_t narrow) {
        double most = 0;
        const ChainSizes sizes(problems_of(chain(8, 20, 20, layers)));
        for (const CallChoice& c : call_choices(sizes, Detail::fine)) {
            const double of_narrow = narrow == 0 ? 1 : 8;
            if (c.halos.narrow == narrow && c.again == of_narrow)
                most = std::max(most, c.halos.per_call);
        }
        return most;
    };
    std::vector<LayerSpec> layers(4, {8, square_window(3, 1, 1)});
    EXPECT_EQ(most_per_call(layers, 0), 4 * 576);
    EXPECT_EQ(most_per_call(layers, 1U << 2), (3 + 8) * 576);
    layers[2] = {
        .channels = 8, .window = square_window(3, 2, 1), .kind = LayerKind::conv_transpose};
    EXPECT_EQ(most_per_call(layers, 0), 2 * 576);
    std::swap(layers[1], layers[2]);
    EXPECT_EQ(most_per_call(layers, 0), 3 * 576);
}

/// MC-CNN's first three layers at 540 x 960, V = 288 + 2 * 9216, in 11,233 elements. Layer 2 may
/// make one channel at a time and keep the 288 weights of one beside all of the first and of the
/// last layer, which leaves 1,441 elements. Lines of ten columns would fit in these, and X would
/// come 32 times with (10 + 6) / 10 of it. But then A_2 has all channels and lines of layer 2 begin
/// anew with each of its calls, or Y's buffer has 32 sums of each pixel of a piece, 45 pixels at
/// most. What the front of all tiles reaches there has calls of all channels.
TEST(CallBound, CallsOfOneChannelBeforeTheLastLayerKeepNoLines) {
    const CallBound bound(
        problems_of(chain(1, 540, 960, std::vector<LayerSpec>(3, {32, square_window(3, 1, 1)}))));
    EXPECT_GT(bound.accesses(11233), 52.0e6);
    EXPECT_LE(bound.accesses(11233), 52'140'000);
}

/// What beats a choice moves no more than it: sets of narrow layers have halos of their own, and
/// one is not below the other.
TEST(CallBound, SetsOfNarrowLayersAreToldApart) {
    const Halos one{.last_channels = 4, .narrow = 1U << 2U},
        both{.last_channels = 4, .narrow = 3U << 2U};
    EXPECT_TRUE(one.are_fewer(one));
    EXPECT_FALSE(one.are_fewer(both));
    EXPECT_FALSE(both.are_fewer(one));
    EXPECT_TRUE(Halos{.count = false}.are_fewer(one));
    Halos with_sums = both;
    with_sums.sums = 2;
    EXPECT_TRUE(both.are_fewer(with_sums));
    EXPECT_FALSE(with_sums.are_fewer(both));
}

TEST(CallBound, RaisesWhatASearchLeftOpen) {
    const auto problems = problems_of(
        chain(32, 32, 32, {{32, square_window(3, 1, 1)}, {32, square_window(3, 1, 1)}}));
    const CallBound bound(problems);
    const std::vector<Cost> both = at_least_both({{100000, 20, 0}}, bound.steps());
    ASSERT_FALSE(both.empty());
    for (const Cost& cost : both) {
        EXPECT_GE(cost.memory, 20);
        EXPECT_GE(cost.accesses, std::max(100000.0, bound.accesses(cost.memory * 1.02 + 1)));
    }
    // From 20 elements on, everything is covered.
    EXPECT_EQ(both.front().memory, 20);
}

}  // namespace
}  // namespace laminate::search
