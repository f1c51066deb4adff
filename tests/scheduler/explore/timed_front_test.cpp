#include "scheduler/explore/timed/timed_front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "nets/open.h"
#include "scheduler/counts/done.h"
#include "scheduler/counts/work.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/planner/depthwise_pairs.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/planner/tiled_layer.h"
#include "scheduler/explore/timed/pricing.h"
#include "scheduler/explore/timed/strips_cache.h"
#include "scheduler/schedule/kernel_legality.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

TimedOptions options_for(int64_t lanes, int threads = 1) {
    TimedOptions options;
    options.unit = lanes == 16 ? VectorUnit{16, 24} : VectorUnit{8, 12};
    options.speed = usual_cpu_speed({.lanes = lanes});
    options.threads = threads;
    return options;
}

TEST(TimedFront, PointsHaveKernelsAndTheTimeThatTheModelGivesTheirSchedule) {
    const Network network = open_network("zoo:fsrcnn?height=34&width=100");
    const TimedOptions options = options_for(16, 2);
    const Front front = timed_front(network, {}, options);
    ASSERT_GT(front.points.size(), 3U);
    for (const FrontPoint& point : front.points) {
        const Schedule schedule = schedule_of(network, front, point);
        for (const GroupSchedule& group : schedule.groups()) {
            EXPECT_TRUE(group.nests.front().kernel.is_chosen());
            check_kernels(group, group_problems(network, group));
        }
        EXPECT_NEAR(*point.milliseconds,
                    predicted_milliseconds(network, schedule, options.speed, 2),
                    1e-9 * *point.milliseconds);
        EXPECT_EQ(point.counts, two_level_counts(network, schedule));
    }
}

/// On one thread, tiles of channels look as fast as map_channels if code that asks for no weights
/// waits for none.
TEST(TimedFront, DenseLayersOfLargeWeightsAskForThem) {
    const Network network = open_network("zoo:alexnet");
    TimedOptions options = options_for(16);
    options.speed = usual_cpu_speed({.lanes = 16, .has_halves = true});
    const Schedule schedule = std::get<Schedule>(fastest_schedule(network, options));
    int dense = 0;
    for (const GroupSchedule& group : schedule.groups()) {
        if (!group.nests.front().layer.starts_with("fc")) continue;
        ++dense;
        EXPECT_EQ(group.nests.front().kernel.kind, KernelKind::map_channels) << to_text(group);
    }
    EXPECT_EQ(dense, 3);
}

/// Threads share the strips of all images, so four of them take no longer than one four times.
TEST(TimedFront, TimesAreOfAllImagesOfTheBatch) {
    const TimedOptions options = options_for(8, 2);
    const auto milliseconds = [&](int64_t images) {
        const Network network =
            open_network("zoo:fsrcnn?height=40&width=60&batch=" + std::to_string(images));
        const Schedule schedule = std::get<Schedule>(fastest_schedule(network, options));
        const Front front = timed_front(network, {}, options);
        for (const FrontPoint& point : front.points) {
            EXPECT_NEAR(*point.milliseconds,
                        predicted_milliseconds(network, schedule_of(network, front, point),
                                               options.speed, 2),
                        1e-9 * *point.milliseconds);
        }
        return predicted_milliseconds(network, schedule, options.speed, 2);
    };
    const double one = milliseconds(1), four = milliseconds(4);
    EXPECT_LE(four, 4 * one);
    EXPECT_GE(four, 3 * one);
}

TEST(TimedFront, DepthwiseLayersShareGroupsWithPointwiseOnes) {
    // On 56 x 56 with the one behind, in several bands for each thread; on 14 x 14, where threads
    // divide channels, with the one before.
    const LayerSpec depthwise{256, square_window(3, 1, 1), 256}, pointwise{256, square_window(1)};
    const auto fastest = [&](int64_t extent) {
        const Network network =
            chain(256, extent, extent, {depthwise, pointwise, depthwise, pointwise});
        return std::get<Schedule>(fastest_schedule(network, options_for(16, 2)));
    };
    const auto kinds = [](const GroupSchedule& group) {
        std::vector<KernelKind> all;
        for (const Nest& nest : group.nests) all.push_back(nest.kernel.kind);
        return all;
    };
    using enum KernelKind;
    const Schedule large = fastest(56), small = fastest(14);
    ASSERT_EQ(large.groups().size(), 2U);
    for (const GroupSchedule& group : large.groups()) {
        EXPECT_EQ(kinds(group), (std::vector{map_depthwise, map_pixels}));
        EXPECT_LE(group.nests[1][Dim::y], 56 / 4);
    }
    ASSERT_EQ(small.groups().size(), 3U);
    EXPECT_EQ(kinds(small.groups()[1]), (std::vector{map_channels, map_depthwise}));
}

/// Bands of two rows would divide evenly among two threads, but tiles of two rows wait for their sums.
TEST(TimedFront, BandsOfLargeDepthwiseWindowsHaveTilesOfFourRows) {
    const Network network =
        chain(80, 44, 44, {{80, square_window(7, 1, 3), 80}, {16, square_window(1)}});
    const auto group = depthwise_pair_group(
        network, {0, 1}, {.unit = {8, 12}, .threads = 2, .second_level_cache = Bytes(512 << 10)});
    ASSERT_TRUE(group);
    EXPECT_EQ(group->nests.front()[Dim::y] % 4, 0) << to_text(*group);
}

/// A row of 28 columns fills three and a half vectors, and two rows fill seven, in a panel of more than half the
/// second-level cache. Rows of 37 columns leave less empty as one axis of the whole map.
TEST(TimedFront, BandsThatLeaveLanesEmptyArePriced) {
    TimedOptions options = options_for(8, 2);
    options.second_level_cache = Bytes(512 << 10);
    int compared = 0;
    const auto fastest = [&](int64_t extent) {
        const Network network =
            chain(728, extent, extent, {{728, square_window(3, 1, 1), 728}, {728, square_window(1)}});
        const Schedule schedule = std::get<Schedule>(fastest_schedule(network, options));
        for (const GroupSchedule& group : schedule.groups()) {
            const std::vector<LayerProblem> problems = group_problems(network, group);
            const NestDone& pointwise = done_counts(group, problems).nests.back();
            if (group.nests.back().kernel.kind != KernelKind::map_pixels) continue;
            ++compared;
            EXPECT_EQ(group_work(group, problems, {}).at("map_pixels.products"),
                      static_cast<double>(pointwise.done.value()) / 8)
                << to_text(group);
        }
        return schedule;
    };
    const Schedule even = fastest(28), uneven = fastest(37);
    EXPECT_EQ(compared, 2);
    ASSERT_EQ(even.groups().size(), 1U);
    EXPECT_EQ(even.groups().front().nests.front()[Dim::y] % 2, 0) << to_text(even);
    EXPECT_EQ(uneven.groups().size(), 2U) << to_text(uneven);
}

TEST(TimedFront, NoPointIsFarBelowTheRateOfTheFastest) {
    const Network network = open_network("zoo:mobilenetv2?height=64&width=64");
    const TimedOptions options = options_for(16);
    const Front front = timed_front(network, {}, options);
    const auto rate = [&](const FrontPoint& point) {
        double done = 0;
        const Schedule schedule = schedule_of(network, front, point);
        for (const GroupSchedule& group : schedule.groups()) {
            const DoneCounts counts = done_counts(group, group_problems(network, group));
            done += static_cast<double>(counts.done().value());
        }
        return done / *point.milliseconds;
    };
    const auto fastest = std::ranges::min_element(
        front.points, {}, [](const FrontPoint& point) { return *point.milliseconds; });
    const auto memory = [](const FrontPoint& point) {
        return std::max(to_bytes(point.counts.live_total), *point.scratch);
    };
    Bytes least = memory(*fastest);
    for (const FrontPoint& point : front.points) {
        EXPECT_GE(rate(point), 0.7 * rate(*fastest)) << point.counts.live_total.value();
        least = std::min(least, memory(point));
    }
    // Less memory than any point of the front holds is still to be had on request.
    TimedOptions within = options;
    within.memory = Bytes(least.value() / 2);
    EXPECT_TRUE(std::holds_alternative<Schedule>(fastest_schedule(network, within)));
}

TEST(GroupWork, WeightsBeyondTheLastCacheComeFromMainMemoryForEveryBox) {
    const Network network = open_network("zoo:vgg16");
    const auto main_memory = [&](int64_t rows, Bytes third) {
        const GroupSchedule group = line_buffer_group(
            network, {network.find_layer("conv3_1"), network.find_layer("conv3_2")}, {rows, 0, 0});
        const std::vector<LayerProblem> problems = group_problems(network, group);
        const auto work = group_work(
            with_default_kernels(problems, group, VectorUnit{16, 24}, {.winograd = false}),
            problems, {Bytes(1 << 20), third});
        const auto found = work.find("memory.main");
        return found == work.end() ? 0.0 : found->second;
    };
    constexpr Bytes large(64 << 20), small(2 << 20);
    EXPECT_EQ(main_memory(4, large), 0);
    // Twice as many boxes read the weights twice as often.
    EXPECT_GT(main_memory(4, small), 1.5 * main_memory(8, small));
}

TEST(GroupWork, TransformedWeightsComeAnewForEveryBandOfABox) {
    const Network network = chain(64, 64, 64, {{64, square_window(3, 1, 1)}});
    const auto main_memory = [&](int64_t rows, const std::string& kernel) {
        const GroupSchedule group = parse_group(
            network, "{conv1: zo yo xo io | zi yi xi ii n m; tile z64 y" + std::to_string(rows) +
                         " x64 i64; X root/yo; W root/root; Y xi/xi; kernel " + kernel + "}");
        // 36 * 64 * 64 weights take 576 KiB of a cache of 512 KiB.
        return group_work(group, group_problems(network, group),
                          {Bytes(64 << 10), Bytes(512 << 10)})
            .at("memory.main");
    };
    constexpr double weights = 36 * 64 * 64 / 16.0;
    // 16 bands, whether they are as many boxes or four. Two vectors of tiles are a whole row and
    // more.
    EXPECT_EQ(main_memory(4, "winograd_rows z8 x1 f1 v16"),
              main_memory(16, "winograd_rows z8 x1 f1 v16"));
    EXPECT_EQ(main_memory(4, "winograd_rows z8 x1 f1 v16"),
              main_memory(4, "winograd_rows z8 x2 f1 v16"));
    // Half a row's tiles at a time, four bands at a time.
    EXPECT_EQ(
        main_memory(4, "winograd_rows z8 x1 f1 v8") - main_memory(4, "winograd_rows z8 x1 f1 v16"),
        16 * weights);
    EXPECT_EQ(main_memory(16, "winograd_rows z8 x1 f1 v16") -
                  main_memory(16, "winograd_channels z4 x6 p4 f1 v16"),
              12 * weights);
}

TEST(TimedFront, NoPointIsBeatenByAnother) {
    const Network network = open_network("zoo:mc-cnn?height=30&width=90");
    const Front front = timed_front(network, {}, options_for(8));
    for (const FrontPoint& a : front.points) {
        for (const FrontPoint& b : front.points) {
            if (&a == &b) continue;
            EXPECT_FALSE(a.counts.accesses <= b.counts.accesses &&
                         a.counts.live_total <= b.counts.live_total &&
                         *a.milliseconds <= *b.milliseconds)
                << to_text(schedule_of(network, front, a)) << "\n"
                << to_text(schedule_of(network, front, b));
        }
    }
}

TEST(TimedFront, LessMemoryIsNeverFaster) {
    const Network network = open_network("zoo:mobilenetv2?height=64&width=64");
    TimedOptions options = options_for(16);
    double slowest = HUGE_VAL;
    for (const int64_t kib : {32, 64, 128, 256, 512, 1024, 4096}) {
        options.memory = Bytes(kib << 10);
        const Front front = fastest_front(network, options);
        ASSERT_EQ(front.points.size(), 1U) << kib;
        const FrontPoint& point = front.points.front();
        EXPECT_LE(to_bytes(point.counts.live_total), *options.memory);
        EXPECT_LE(*point.scratch, *options.memory);
        // The incumbents differ from budget to budget, and with them what is taken for faster.
        constexpr double unsure = 1 / 0.93;
        EXPECT_LE(*point.milliseconds, slowest * unsure) << kib;
        slowest = *point.milliseconds;
    }
}

TEST(TimedFront, TheFastestScheduleIsAmongThePointsOfTheFrontWithinTheMarginOfTheModel) {
    const Network network = open_network("zoo:resnet18?height=64&width=64");
    const TimedOptions options = options_for(16);
    const Front one = fastest_front(network, options);
    const Front all = timed_front(network, {false, false, false, true}, options);
    ASSERT_EQ(one.points.size(), 1U);
    ASSERT_EQ(all.points.size(), 1U) << "one axis, one point";
    constexpr double margin = 1 / 0.93;
    EXPECT_LE(*all.points.front().milliseconds, margin * *one.points.front().milliseconds);
    EXPECT_LE(*one.points.front().milliseconds, margin * *all.points.front().milliseconds);
}

// Issue 31, 2: within what the model is sure of, the schedule without large tensors between groups.
TEST(TimedFront, OfEqualTimesTheOneThatMovesHalfIsTaken) {
    const LayerSpec inner{16, square_window(3, 1, 1)};
    const Network network =
        chain(1, 1080, 1920, {inner, inner, inner, inner, inner, {1, square_window(3, 1, 1)}});
    const Front front = fastest_front(network, options_for(16, 2));
    ASSERT_EQ(front.points.size(), 1U);
    // Input, output and halos, but no map of 16 x 1080 x 1920 between groups.
    EXPECT_LT(front.points.front().counts.accesses.value(), 3 * 1080 * 1920);
}

TEST(TimedFront, OfEqualTimesTheOneInLittleMemoryIsTaken) {
    const LayerSpec inner{32, square_window(3, 1, 1)};
    const Network network = chain(1, 1080, 1920, {inner, inner, inner, inner, inner, inner});
    const Front front = fastest_front(network, options_for(16, 2));
    ASSERT_EQ(front.points.size(), 1U);
    // One group, in strips of columns: a row of whole lines of 32 channels is 240 KiB, and each of
    // five tensors has six of them.
    ASSERT_EQ(front.points.front().groups.size(), 1U);
    EXPECT_LT(to_bytes(front.points.front().counts.live_total), Bytes(4 << 20));
}

/// Whole rows of these lines, 11 MiB for each thread, would be as fast.
TEST(TimedFront, ALargeSecondLevelCacheIsNotFilledForNothing) {
    const LayerSpec inner{32, square_window(3, 1, 1)};
    const Network network =
        chain(1, 1080, 1920, {inner, inner, inner, inner, inner, inner, {4, square_window(3, 1, 1)}});
    TimedOptions options = options_for(16, 2);
    options.speed = open_cpu_speed("xeon6");
    for (const int64_t cache_mib : {1, 2}) {
        options.second_level_cache = Bytes(cache_mib << 20);
        const auto found = fastest_schedule(network, options);
        const std::vector<GroupSchedule>& groups = std::get<Schedule>(found).groups();
        ASSERT_EQ(groups.size(), 1U);
        EXPECT_LT(scratch_bytes(groups.front(), group_problems(network, groups.front())), Bytes(4 << 20))
            << cache_mib;
    }
}

TEST(TimedFront, ALongChainIsOneGroupInStripsOfColumns) {
    const Network network =
        chain(64, 540, 960, std::vector<LayerSpec>(18, {64, square_window(3, 1, 1)}));
    for (const auto& [tile_rows, most] : {std::pair{4, Bytes(8 << 20)}, {6, Bytes(9 << 20)}}) {
        TimedOptions options = options_for(16, 2);
        options.kernels.tile_rows = tile_rows;
        const auto found = fastest_schedule(network, options);
        const std::vector<GroupSchedule>& groups = std::get<Schedule>(found).groups();
        ASSERT_EQ(groups.size(), 1U);
        const GroupSchedule& group = groups.front();
        EXPECT_EQ(group.nests.back().loops.front(), (Loop{Dim::x, Band::strip}));
        for (const Nest& nest : group.nests) {
            EXPECT_EQ(nest.kernel.kind, KernelKind::winograd_rows) << to_text(nest.kernel);
            EXPECT_EQ(rows_of_tile(nest.kernel), tile_rows) << to_text(nest.kernel);
        }
        // Of six or eight rows for each tensor two stay, and one layer's weights are transformed at
        // a time.
        EXPECT_LT(scratch_bytes(group, group_problems(network, group)), most);
    }
}

/// Transformed weights of a layer take 576 KiB, and all of them more than the third-level cache;
/// but the code of a long chain reads plain ones, a quarter.
TEST(TimedFront, ALongChainIsOneGroupWithASmallSecondLevelCacheToo) {
    const Network network =
        chain(64, 540, 960, std::vector<LayerSpec>(16, {64, square_window(3, 1, 1)}));
    TimedOptions options = options_for(8, 2);
    options.second_level_cache = Bytes(512 << 10);
    for (const auto& [tile_rows, most] : {std::pair{4, Bytes(7 << 20)}, {6, Bytes(8 << 20)}}) {
        options.kernels.tile_rows = tile_rows;
        const auto found = fastest_schedule(network, options);
        const std::vector<GroupSchedule>& groups = std::get<Schedule>(found).groups();
        ASSERT_EQ(groups.size(), 1U);
        const GroupSchedule& group = groups.front();
        EXPECT_EQ(group.nests.back().loops.front(), (Loop{Dim::x, Band::strip}));
        EXPECT_LT(scratch_bytes(group, group_problems(network, group)), most);
    }
}

/// Rows of a step of each layer, where the network is one group; else none.
std::vector<int64_t> rows_of_layers(const Network& network, int64_t tile_rows) {
    LineBufferOptions options;
    options.tile_rows = tile_rows;
    options.second_level_cache = Bytes(6 << 20);
    const auto planned = line_buffer_schedule(network, options);
    const std::vector<GroupSchedule>& groups = std::get<Schedule>(planned).groups();
    std::vector<int64_t> rows;
    if (groups.size() != 1) return rows;
    for (const Nest& nest : groups.front().nests) rows.push_back(nest[Dim::y]);
    return rows;
}

/// Layers before an Add of enlarged maps go by four rows as well.
TEST(TimedFront, AnAddOfEnlargedMapsGoesByAllTheirRows) {
    const LayerSpec inner{16, square_window(3, 1, 1)};
    Network network = chain(16, 64, 256, {inner, inner, inner});
    const TensorId last = network.layers.back().output, before = network.layers[1].output;
    std::vector<TensorId> enlarged;
    for (const TensorId map : {before, last})
        enlarged.push_back(
            append(network, "enlarged" + std::to_string(map),
                   {.kind = LayerKind::depth_to_space, .inputs = {map}, .block = 2}));
    append(network, "add", {.kind = LayerKind::add, .inputs = enlarged});
    const std::vector<int64_t> rows = rows_of_layers(network, 4);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows.back(), 8);
}

/// Four times the size, halved: six rows of the last layer with weights are twelve of the outputs.
TEST(TimedFront, LayersBehindTheLastConvolutionLeaveItsTilesWhole) {
    const LayerSpec inner{16, square_window(3, 1, 1)};
    Network network = chain(16, 96, 256, {inner, inner, inner});
    const TensorId enlarged = append(
        network, "enlarged",
        {.kind = LayerKind::depth_to_space, .inputs = {network.layers.back().output}, .block = 4});
    append(network, "halved",
           {.kind = LayerKind::average_pool, .inputs = {enlarged}, .window = square_window(2, 2)});
    const std::vector<int64_t> rows = rows_of_layers(network, 6);
    ASSERT_FALSE(rows.empty());
    EXPECT_EQ(rows.back(), 12);
}

/// Nine outputs are too few for tiles of two rows, but not for those of four.
TEST(TimedFront, AMiddleLayerOfFewOutputsGoesByTilesOfFourRows) {
    Network network = chain(64, 96, 256, {{32, square_window(3, 1, 1)}, {9, square_window(3, 1, 1)}});
    append(network, "enlarged",
           {.kind = LayerKind::depth_to_space, .inputs = {network.layers.back().output}, .block = 3});
    ASSERT_FALSE(kernel_pays(layer_problem(network, 1), KernelKind::winograd_rows));
    EXPECT_EQ(rows_of_layers(network, 4), (std::vector<int64_t>{4, 4, 12}));
}

/// All transformed weights of a long chain are 13 MiB. A second-level cache of 2 MiB holds those of a layer,
/// which are transformed once for a step; beside a tensor between groups they are constants. One of 1 MiB gets
/// two blocks of them at a time.
TEST(TimedFront, ManyWeightsAreTransformedAsTheSecondLevelCacheAllows) {
    const Network network =
        chain(64, 540, 960, std::vector<LayerSpec>(18, {64, square_window(3, 1, 1)}));
    const auto weights_of = [&](int64_t second_level_kib, bool ends_in_group) {
        TimedOptions options = options_for(16, 2);
        options.second_level_cache = Bytes(second_level_kib << 10);
        LineBufferSizes sizes{6, 0, 480, 6};
        std::vector<LayerId> layers(ends_in_group ? 16 : 18);
        std::iota(layers.begin(), layers.end(), 0);
        timed::Pricing pricing(network, options);
        const Kernel kernel =
            pricing.price(line_buffer_group(network, layers, sizes)).group.nests[5].kernel;
        EXPECT_EQ(kernel.kind, KernelKind::winograd_rows);
        return std::pair(kernel[KernelSize::weights], ceil_div(64, kernel[KernelSize::channels]));
    };
    const auto [some, blocks] = weights_of(1024, false);
    EXPECT_EQ(some, 2);
    EXPECT_GT(blocks, 2);
    EXPECT_EQ(weights_of(2048, false).first, blocks);
    EXPECT_EQ(weights_of(2048, true).first, 0);
    EXPECT_EQ(weights_of(1024, true).first, 2);
}

/// Rows of 147 columns have 37 tiles: lanes of tiles waste a quarter of them, and are faster all the same.
TEST(TimedFront, LanesOfMinimalFilteringAreChosenByTime) {
    const Network network = chain(3, 299, 299,
                                  {{32, square_window(3, 2)},
                                   {32, square_window(3)},
                                   {64, square_window(3, 1, 1)}});
    TimedOptions options = options_for(16, 2);
    options.speed = open_cpu_speed("xeon6");
    const auto found = fastest_schedule(network, options);
    for (const GroupSchedule& group : std::get<Schedule>(found).groups()) {
        for (const Nest& nest : group.nests) {
            EXPECT_NE(nest.kernel.kind, KernelKind::winograd_channels) << to_text(group);
        }
    }
}

TEST(TimedFront, StripsOfColumnsReadWeightsThatFitIntoTheSecondLevelCache) {
    // Transformed weights of one layer take 1.3 MiB.
    const LayerSpec inner{96, square_window(3, 1, 1)};
    const Network network = chain(96, 540, 960, {inner, inner, inner});
    const Front front = fastest_front(network, options_for(16, 2));
    ASSERT_EQ(front.points.size(), 1U);
    for (const uint32_t group : front.points.front().groups)
        EXPECT_NE(front.groups[group].nests.back().loops.front(), (Loop{Dim::x, Band::strip}));
}

TEST(TimedFront, AnInterruptKeepsWhatTheSearchHasFound) {
    const Network network = l3net();
    ExploreOptions search;
    search.tiles = TileSizes::powers_of_two;
    const Front found = explore(network, search);
    const auto least = [](const Front& front) {
        Elements memory(INT64_MAX);
        for (const FrontPoint& point : front.points)
            memory = std::min(memory, point.counts.live_total);
        return memory;
    };
    TimedOptions options = options_for(16);
    const std::atomic<bool> stop = true;
    options.stop = &stop;
    const Front planned = timed_front(network, {}, options);
    options.searched = found.groups;
    const Front both = timed_front(network, {}, options);
    EXPECT_GT(least(planned), least(found));
    EXPECT_EQ(least(both), least(found));
}

/// Each point of a searched front has one with at most 2 % more memory whose groups are kept, and
/// the smallest one's are. Not all groups are.
TEST(TimedFront, OfASearchedFrontPointsTwoPercentApartAreKept) {
    ExploreOptions options;
    options.tiles = TileSizes::all;
    options.macs_is_axis = false;
    const Front front =
        explore(chain(3, 40, 50, {{4, square_window(3)}, {4, square_window(3)}}), options);
    const std::vector<GroupSchedule> kept = groups_of_steps(front);
    EXPECT_LT(kept.size(), front.groups.size());
    const auto is_kept = [&](const FrontPoint& point) {
        return std::ranges::all_of(point.groups, [&](uint32_t place) {
            return std::ranges::find(kept, front.groups[place]) != kept.end();
        });
    };
    for (const FrontPoint& point : front.points) {
        const auto memory = static_cast<double>(point.counts.live_total.value());
        EXPECT_TRUE(std::ranges::any_of(front.points, [&](const FrontPoint& other) {
            const auto larger = static_cast<double>(other.counts.live_total.value());
            return larger >= memory && larger <= memory * 1.02 && is_kept(other);
        })) << memory;
    }
    EXPECT_TRUE(is_kept(front.points.back()));
}

TEST(TimedFront, NothingFitsInNoMemoryAndTheDemandDoes) {
    const Network network = l3net();
    TimedOptions options = options_for(8);
    options.memory = Bytes(8);
    const auto none = fastest_schedule(network, options);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(none));
    options.memory = to_bytes(std::get<Infeasible>(none).demand);
    EXPECT_TRUE(std::holds_alternative<Schedule>(fastest_schedule(network, options)));
}

TEST(TimedFront, ANetworkWithoutLayersToScheduleHasOneEmptySchedule) {
    Network network = empty_network(4, 6, 6);
    append(network, "flatten", {.kind = LayerKind::flatten, .inputs = {0}});
    const auto found = fastest_schedule(network, options_for(8));
    EXPECT_TRUE(std::get<Schedule>(found).groups().empty());
}

TEST(TiledLayer, EveryPointIsLegalAndCountsAsTheModelDoes) {
    const Network network = chain(
        12, 20, 40,
        {{24, square_window(3, 1, 1)}, {24, square_window(3, 2, 1), 24}, {8, square_window(1)}});
    for (const LayerId layer : all_layers(network)) {
        const std::vector<LayerProblem> problems = layer_problems(network, {layer});
        TwoLevelCache cache;
        const std::vector<GroupPoint> points = tiled_layer_points(problems, 1, cache);
        ASSERT_GT(points.size(), 1U);
        for (size_t n = 0; n < points.size(); ++n) {
            check_group(network, points[n].group);
            const GroupCounts counts = two_level_counts(network, points[n].group);
            EXPECT_EQ(counts.accesses(), points[n].accesses);
            EXPECT_EQ(counts.live_total, points[n].live_total);
            if (n > 0) {
                EXPECT_GT(points[n].accesses, points[n - 1].accesses);
                EXPECT_LT(points[n].live_total, points[n - 1].live_total);
            }
        }
    }
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

TEST(GroupWork, OfAPointwiseMapIsItsVectorsOfProductsAndOutputs) {
    Network network = empty_network(64, 16, 16);
    append(network, "conv1", 0, {32, square_window(1)});
    const std::vector<LayerProblem> problems = layer_problems(network, {0});
    const GroupSchedule group =
        with_default_kernels(problems, line_buffer_group(network, {0}), {16, 24});
    ASSERT_EQ(group.nests.front().kernel.kind, KernelKind::map_pixels);
    const WorkTerms work = group_work(group, problems, {});
    EXPECT_EQ(work.at("map_pixels.products"), 16 * 16 * 32 * 64 / 16);
    EXPECT_EQ(work.at("map_pixels.outputs"), 16 * 16 * 32 / 16);
    // 64 x 256 of X, 32 x 256 of Y and 32 x 64 weights stay within the second level.
    EXPECT_EQ(work.at("memory.second"), (64 * 256 + 32 * 256 + 32 * 64) / 16.0);
    EXPECT_EQ(work.at("groups.begun"), 1);
}

TEST(GroupWork, ArraysBeyondTheCachesComeFromFurtherAway) {
    Network network = empty_network(64, 16, 16);
    append(network, "conv1", 0, {32, square_window(1)});
    const std::vector<LayerProblem> problems = layer_problems(network, {0});
    const GroupSchedule group =
        with_default_kernels(problems, line_buffer_group(network, {0}), {16, 24});
    const CoreCaches small{Bytes(16 << 10), Bytes(128 << 10)};
    const WorkTerms work = group_work(group, problems, small, Bytes(40 << 10));
    // A quarter of the third level is 32 KiB: the 96 KiB of maps leave it altogether, and of the
    // 48 KiB of weights half.
    const double weights = 32 * 64 / 16.0;
    // Half of the third level is 64 KiB, so half of the maps is beyond it surely.
    const double maps = (64 * 256 + 32 * 256) / 16.0;
    EXPECT_EQ(work.at("memory.maps"), maps / 2);
    EXPECT_EQ(work.at("memory.main"), maps / 2 + weights / 2);
    EXPECT_EQ(work.at("memory.third"), weights / 2);
}

/// A dense layer reads each weight once, and map_channels alone asks for those of the next pass.
TEST(GroupWork, DenseLayersWaitForWeightsThatNoCodeAsksFor) {
    const Network network = chain(4096, 1, 1, {{1024, square_window(1)}});
    const auto waited = [&](const Network& of, const std::string& tile, const std::string& kernel) {
        const GroupSchedule group =
            parse_group(of, "{conv1: zo yo xo io | zi yi xi ii n m; tile " + tile +
                                "; X root/yo; W root/root; Y xi/xi; kernel " + kernel + "}");
        // The weights' 16 MiB exceed half of the third level.
        const WorkTerms work =
            group_work(group, group_problems(of, group), {Bytes(1 << 20), Bytes(16 << 20)});
        const auto found = work.find("lines.main");
        return found == work.end() ? 0.0 : found->second;
    };
    EXPECT_EQ(waited(network, "z1024 y1 x1 i4096", "channels z4 x1 v16"), 4096 * 1024 / 16.0);
    EXPECT_EQ(waited(network, "z1024 y1 x1 i4096", "map_channels a24 v16"), 0);
    // The sums of 16 pixels take longer.
    EXPECT_EQ(waited(chain(4096, 4, 4, {{1024, square_window(1)}}), "z1024 y4 x4 i4096",
                     "channels z4 x4 v16"),
              0);
}

TEST(GroupWork, ShortPiecesOfFarMapsComeFromWhatTheyAreAskedOf) {
    // 16 channels of 64 x 64 in tiles of 8 rows and 16 columns; X is 256 KiB.
    const Network network = chain(16, 64, 64, {{16, square_window(3, 1, 1)}});
    const auto work = [&](const std::string& tile, const std::string& x, int64_t third) {
        const GroupSchedule group =
            parse_group(network, "{conv1: zo yo xo io | zi yi xi ii n m; tile " + tile + "; X " +
                                     x + "; W io/io; Y xo/xo; kernel rows z4 y1 x1 v16}");
        return group_work(group, group_problems(network, group),
                          {Bytes(16 << 10), Bytes(third << 10)});
    };
    const auto of = [](const WorkTerms& terms, const char* name) {
        const auto found = terms.find(name);
        return found == terms.end() ? 0.0 : found->second;
    };
    // Two channels at a time: code asks for what the next trips need, which then costs nothing
    // beyond the copies unless it comes from main memory.
    const WorkTerms near = work("z16 y8 x16 i2", "io/io", 4096);
    EXPECT_GT(of(near, "lines.copies"), 0);
    EXPECT_EQ(of(near, "lines.ahead"), 0);
    EXPECT_EQ(of(near, "lines.third"), 0);
    const WorkTerms far = work("z16 y8 x16 i2", "io/io", 256);
    EXPECT_EQ(of(far, "lines.ahead"), of(far, "lines.copies"));
    EXPECT_EQ(of(far, "lines.main"), 0);
    // All channels at a time: no trip over channels is next. 8 of the 10 rows of a box are new.
    const WorkTerms third = work("z16 y8 x16 i16", "xo/xo", 4096);
    EXPECT_GT(of(third, "lines.third"), 0.8 * of(third, "lines.copies") - 1);
    EXPECT_LT(of(third, "lines.third"), of(third, "lines.copies"));
    EXPECT_EQ(of(work("z16 y8 x16 i16", "xo/xo", 256), "lines.third"), 0);
    EXPECT_EQ(of(work("z16 y8 x16 i16", "xo/xo", 256), "lines.main"), of(third, "lines.third"));
}

TEST(GroupWork, FewSumsWaitForEachOther) {
    // The first and last input rows of a tile of four output rows serve one of them: of one channel
    // and vector that is a single sum, of eight channels eight.
    const auto cycles = [](const std::string& kernel) {
        const Network network = chain(8, 32, 32, {{8, square_window(9, 1, 4)}});
        const GroupSchedule group =
            parse_group(network,
                        "{conv1: zo yo xo io | zi yi xi ii n m; tile z8 y32 x32 i8; X root/root; W "
                        "root/root; Y xi/xi; kernel " +
                            kernel + "}");
        return group_work(group, group_problems(network, group), {}).at("rows.products");
    };
    EXPECT_GT(cycles("rows z1 y4 x1 v16"), 1.3 * cycles("rows z8 y1 x1 v16"));
    EXPECT_GT(cycles("rows z1 y1 x1 v16"), 3.9 * cycles("rows z8 y1 x2 v16"));
}

TEST(CpuSpeed, TimesAreFoundFromAmountsAndTimes) {
    std::vector<TimedWork> rows;
    for (int n = 1; n <= 20; ++n) {
        TimedWork row;
        row.amounts = {{"a.products", n * n}, {"a.boxes", 100 - n}, {"never", 0}};
        row.nanoseconds = 0.5 * n * n + 3.0 * (100 - n);
        rows.push_back(row);
    }
    const LeastNanoseconds least{.product_vector = 0.1, .map_vector = 2};
    const auto times = fitted_nanoseconds(rows, least);
    EXPECT_NEAR(times.at("a.products"), 0.5, 1e-3);
    EXPECT_NEAR(times.at("a.boxes"), 3.0, 1e-3);
    // A multiplication cannot take less than at the peak, whatever was measured.
    EXPECT_GE(fitted_nanoseconds(rows, {.product_vector = 0.7, .map_vector = 2}).at("a.products"),
              0.7);
    // Nor can maps come faster than memory gives them, even if the probes found theirs in a cache.
    for (TimedWork& row : rows) row.amounts["memory.maps"] = 1;
    EXPECT_GE(fitted_nanoseconds(rows, least).at("memory.maps"), 2);
}

TEST(StripsCache, StripsAreWiderWhereTheColumnsThatTheySaveTakeTime) {
    const Network network = open_network("zoo:fsrcnn?height=540&width=960");
    const TensorSizes sizes(network);
    AnySizeOptions options;
    options.unit = {16, 24};
    // Without products, wide strips save nothing; with products that take long, they do.
    const auto times_with = [&](double product_nanoseconds) {
        CpuSpeed speed = usual_cpu_speed({.lanes = 16});
        for (auto& [term, time] : speed.nanoseconds) {
            if (term.starts_with("columns."))
                time = term == "columns.products" ? product_nanoseconds : 0;
        }
        return best_strips_cache(sizes, options, speed).value() /
               options.second_level_cache.value();
    };
    EXPECT_EQ(times_with(0), 1);
    EXPECT_GT(times_with(100), 1);
}

TEST(CpuSpeed, AFileWithoutAKernelIsRefused) {
    CpuSpeed speed = usual_cpu_speed({.lanes = 8});
    std::erase_if(speed.nanoseconds,
                  [](const auto& entry) { return entry.first.starts_with("map_pixels."); });
    try {
        (void)parse_cpu_speed(to_json(speed), "mine.json");
        FAIL() << "accepted";
    } catch (const InputError& error) {
        EXPECT_EQ(
            std::string(error.what()).find("mine.json: nanoseconds: map_pixels.*: found none"), 0U)
            << error.what();
    }
}

TEST(CpuSpeed, PrintsAndParses) {
    const CpuSpeed speed = usual_cpu_speed({.lanes = 16});
    const CpuSpeed again = parse_cpu_speed(to_json(speed), "text");
    EXPECT_EQ(again.name, speed.name);
    EXPECT_EQ(again.second_level_cache, speed.second_level_cache);
    EXPECT_EQ(again.nanoseconds, speed.nanoseconds);
    EXPECT_GT(nanoseconds_of({{"rows.products", 100}}, speed), 0);
    std::set<std::string> terms;
    for (const auto& [term, time] : speed.nanoseconds) terms.insert(term.substr(0, term.find('.')));
    for (const KernelRow* row : kernel_table())
        EXPECT_EQ(terms.count(row->name), 1U) << row->name << " was not measured";
}

}  // namespace
}  // namespace laminate
