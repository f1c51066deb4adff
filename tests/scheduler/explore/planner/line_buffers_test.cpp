#include "scheduler/explore/planner/line_buffers.h"
#include "base/error.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/schedule/kernel_legality.h"

#include <gtest/gtest.h>

#include <set>

#include "nets/network/picture_views.h"
#include "nets/open.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/kernels/columns.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

TEST(LineBufferGroup, HasTheFormThatTheGeneratorsExecute) {
    const Network network = l2net();
    EXPECT_EQ(to_text(line_buffer_group(network, {0, 1}, {4, 0, 0})),
              "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y4 x18 i3; X root/yo; W root/root; Y "
              "root/conv2.yo & "
              "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(to_text(line_buffer_group(network, {0, 1}, {2, 8, 0})),
              "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y2 x18 i3; X conv2.ys/yo; W "
              "root/root; Y conv2.ys/conv2.yo & "
              "conv2: ys || zo yo xo io | zi yi xi ii n m; strip y8; tile z4 y2 x16 i4; W "
              "root/root; Y xi/xi}");
    EXPECT_EQ(to_text(line_buffer_group(network, {1}, {99, 8, 4})),
              "{conv2: ys xs || zo yo xo io | zi yi xi ii n m; strip y8 x4; tile z4 y16 x16 i4; X "
              "xs/yo; W root/root; "
              "Y xi/xi}");
}

TEST(LineBufferGroup, RowsFollowTheStrides) {
    // Four rows of a x2 transposed sink need two new rows of its input, which are four of the
    // strided layer before.
    const Network network = chain(1, 32, 32,
                                  {{1, square_window(3)},
                                   {1, square_window(3, 2)},
                                   {1, square_window(4, 2), 1, LayerKind::conv_transpose}});
    const GroupSchedule group = line_buffer_group(network, {0, 1, 2}, {4, 0, 0});
    EXPECT_EQ(group.nests[2][Dim::y], 4);
    EXPECT_EQ(group.nests[1][Dim::y], 2);
    EXPECT_EQ(group.nests[0][Dim::y], 4);
}

TEST(LineBufferGroup, CountsByHand) {
    // Rows of 4: conv1 keeps 4 + 2 rows of 18 x 4; X, which comes in for 4 rows of conv1 at a time,
    // 4 + 2 rows of 20 x 3.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(network, line_buffer_group(network, {0, 1}, {4, 0, 0}));
    EXPECT_EQ(c.accesses(), Elements(1200 + 108 + 144 + 1024));
    EXPECT_EQ(c.layers[0].output_buffer, Elements(6 * 18 * 4));
    EXPECT_EQ(c.input_buffers(), Elements(6 * 20 * 3));
    EXPECT_EQ(c.live_total, Elements(360 + 108 + 432 + 144 + 1));
    // Two strips compute conv1's two halo rows twice: 2 * 10 rows.
    EXPECT_EQ(
        two_level_counts(network, line_buffer_group(network, {0, 1}, {4, 8, 0})).layers[0].macs,
        Macs(20 * 18 * 4 * 27));
}

Schedule planned(const Network& network, const LineBufferOptions& options) {
    return std::get<Schedule>(line_buffer_schedule(network, options));
}

TEST(LineBufferSchedule, FusesAllThatFits) {
    EXPECT_EQ(planned(l3net(), {}).groups().size(), 1u);
    EXPECT_EQ(layer_by_layer_schedule(l3net()).groups().size(), 3u);
}

TEST(LineBufferSchedule, SmallMapsAreGroupsOfTheirOwnUnlessABudgetAsksForFewAccesses) {
    // 1x1, depthwise 3x3, 1x1 on maps of 14 x 14; the depthwise layer of stride 2 before them reads
    // 28 x 28.
    const std::vector<LayerSpec> block{{16, square_window(3, 2, 1), 16},
                                       {32, square_window(1)},
                                       {32, square_window(3, 1, 1), 32},
                                       {16, square_window(1)}};
    const Network small = chain(16, 28, 28, block);
    const Schedule alone = planned(small, {std::nullopt, 2});
    EXPECT_EQ(alone.groups().size(), 4u);
    // Threads divide channels, not rows.
    for (const GroupSchedule& group : alone.groups())
        EXPECT_EQ(group.nests.back().strip, (std::array<int64_t, 2>{0, 0}));
    EXPECT_EQ(planned(small, {Bytes(1 << 20), 1}).groups().size(), 1u);
    // On maps of 150 x 150 too, but not on larger ones, where they are fused.
    EXPECT_EQ(planned(chain(16, 300, 300, block), {}).groups().size(), 4u);
    EXPECT_EQ(planned(chain(16, 400, 400, block), {}).groups().size(), 1u);
}

/// 1x1 -> 1x1 on the main path and, at its side, a strided 1x1 layer or nothing; then their Add.
Network residual(bool with_shortcut) {
    Network network = empty_network(32, 28, 28);
    const int64_t stride = with_shortcut ? 2 : 1;
    TensorId main =
        append(network, "conv1", 0, {.channels = 24, .window = square_window(1, stride)});
    main = append(network, "conv2", main, {.channels = 32, .window = square_window(1)});
    const TensorId side =
        with_shortcut ? append(network, "side", 0, {.channels = 32, .window = square_window(1, 2)})
                      : 0;
    append(network, "add", {.kind = LayerKind::add, .inputs = {side, main}});
    check(network);
    return network;
}

std::string layers_of(const Schedule& schedule) {
    std::string text;
    for (const GroupSchedule& group : schedule.groups()) {
        text += text.empty() ? "" : " | ";
        for (const Nest& nest : group.nests)
            text += (&nest == group.nests.data() ? "" : "+") + nest.layer;
    }
    return text;
}

TEST(LineBufferSchedule, AnAddIsTakenByALayerThatIsComputedFromItsWholeInput) {
    const Network plain = residual(false);
    EXPECT_EQ(layers_of(planned(plain, {})), "conv1 | conv2+add");
    EXPECT_EQ(to_text(planned(plain, {}).groups().back()),
              "{conv2: zo yo xo io | zi yi xi ii n m; tile z32 y4 x28 i24; X root/yo; W root/root; "
              "Y root/add.yo & "
              "add: zo yo xo io | zi yi xi ii n m; tile z32 y4 x28 i1; X root/yo; Y xi/xi}");
    // conv2's output is no longer external, and the other operand is read once: 24 x 28 x 28, 24 x
    // 32 weights, and twice 32 x 28 x 28.
    EXPECT_EQ(two_level_counts(plain, planned(plain, {}).groups().back()).accesses(),
              Elements(24 * 784 + 24 * 32 + 2 * 32 * 784));
    // Of two layers, the pointwise one takes the Add, because it stores from registers.
    EXPECT_EQ(layers_of(planned(residual(true), {})), "conv1 | side | conv2+add");
    EXPECT_EQ(layers_of(layer_by_layer_schedule(plain)), "conv1 | conv2");
}

// So these networks are slower than layer by layer by at most the cost of an Add where it is
// stored.
TEST(LineBufferSchedule, ClassifiersOfSmallMapsAreTheirLayersAndAdds) {
    for (const int threads : {1, 2}) {
        for (const char* spec :
             {"zoo:mobilenetv1", "zoo:mobilenetv2", "zoo:resnet18", "zoo:squeezenet"}) {
            const Network network = open_network(spec);
            const Schedule one_by_one = layer_by_layer_schedule(network, threads);
            const Schedule chosen = planned(network, {.memory = {}, .threads = threads});
            std::set<std::string> by_itself;
            for (const GroupSchedule& group : one_by_one.groups()) by_itself.insert(to_text(group));
            int64_t adds = 0, layers = 0;
            for (const GroupSchedule& group : chosen.groups()) {
                layers += std::ssize(group.nests);
                if (group.nests.size() == 1) {
                    EXPECT_TRUE(by_itself.contains(to_text(group)))
                        << spec << ": " << to_text(group);
                    continue;
                }
                ++adds;
                ASSERT_EQ(group.nests.size(), 2U) << to_text(group);
                const std::vector<LayerProblem> problems = group_problems(network, group);
                EXPECT_TRUE(ends_in_add(problems)) << to_text(group);
                // What the layer's own group would be.
                const GroupSchedule alone =
                    line_buffer_group(network, {network.find_layer(group.nests[0].layer)},
                                      {group.nests[0][Dim::y], 0, 0});
                EXPECT_TRUE(by_itself.contains(to_text(alone))) << spec << ": " << to_text(alone);
            }
            EXPECT_EQ(layers, std::ssize(by_itself) + adds) << spec;
        }
    }
}

TEST(LineBufferSchedule, WithinABudgetAnAddIsTakenByTheGroupThatStillFits) {
    const Network plain = residual(false);
    const auto groups = [&](const Network& network, int64_t bytes) {
        return layers_of(planned(network, {Bytes(bytes), 1}));
    };
    EXPECT_EQ(groups(plain, 1 << 20), "conv1+conv2+add");
    const GroupSchedule group = planned(plain, {Bytes(1 << 20), 1}).groups().back();
    check_group(plain, group);
    // The Add reads what conv1 reads, which comes in once at a level around both.
    EXPECT_EQ(group.nests.front().x.front().placement.compute,
              (Level{2, group.nests.back().find({Dim::y, Band::outer})}));
    EXPECT_TRUE(group.nests.back().x.empty());
    EXPECT_EQ(two_level_counts(plain, group).accesses(),
              Elements(32 * 784 + 2 * 24 * 32 + 32 * 784));
    // If the three do not fit, no group exceeds the budget.
    const Elements all = two_level_counts(plain, group).live_total;
    int64_t bytes = to_bytes(all).value();
    EXPECT_EQ(groups(plain, bytes), "conv1+conv2+add");
    for (; bytes > 0; bytes -= 512) {
        const auto found = line_buffer_schedule(plain, {Bytes(bytes), 1});
        const auto* schedule = std::get_if<Schedule>(&found);
        if (schedule == nullptr) break;
        for (const GroupSchedule& each : schedule->groups())
            EXPECT_LE(to_bytes(two_level_counts(plain, each).live_total), Bytes(bytes));
    }
    EXPECT_LT(bytes, to_bytes(all).value() / 2);
    // Of two groups, the one that saves more takes the Add: conv1 and conv2 continue to the Add,
    // and side's output is read.
    EXPECT_EQ(groups(residual(true), 1 << 20), "side | conv1+conv2+add");
}

TEST(LineBufferSchedule, AnAddIsLeftAloneWhereALayersOutputIsWantedToo) {
    Network network = residual(false);
    network.outputs.push_back(network.layers[1].output);
    EXPECT_EQ(layers_of(planned(network, {})), "conv1 | conv2");
}

TEST(LineBufferSchedule, EveryGroupStaysWithinTheBudget) {
    const Network network = l3net();
    // Three lines of rows of one: 3 x 22 x 3 + 3 x 20 x 4 + 3 x 18 x 4 + 396 weights + 1 = 1051
    // elements.
    const Schedule fused = planned(network, {Bytes(4 * 1051), 1});
    EXPECT_EQ(fused.groups().size(), 1u);
    EXPECT_EQ(two_level_counts(network, fused).live_total, Elements(1051));
    const Schedule cut = planned(network, {Bytes(4 * 1050), 1});
    EXPECT_EQ(cut.groups().size(), 2u);
    EXPECT_LE(two_level_counts(network, cut).live_total, Elements(1050));
}

TEST(LineBufferSchedule, GroupsStayWithinTwiceTheSecondLevelCache) {
    const Network network =
        chain(1, 64, 1920,
              {{32, square_window(5, 1, 2)}, {8, square_window(1)}, {8, square_window(5, 1, 2)}});
    const auto most = [&](int64_t cache) {
        LineBufferOptions options;
        options.winograd = false;  // by the definition: lines are what the model counts
        options.second_level_cache = Bytes(cache);
        Bytes largest;
        const Schedule schedule = planned(network, options);
        for (const GroupSchedule& group : schedule.groups()) {
            const Bytes live = to_bytes(two_level_counts(network, group).live_total);
            if (group.nests.size() > 1) largest = std::max(largest, live);
        }
        return largest;
    };
    EXPECT_GT(most(2 << 20), Bytes(512 << 10));
    EXPECT_LE(most(256 << 10), Bytes(512 << 10));
    EXPECT_GT(most(256 << 10), Bytes(0));
}

TEST(LineBufferSchedule, ChainsForWinogradAreFusedBeyondASmallSecondLevelCache) {
    const Network network = chain(1, 540, 960,
                                  {{32, square_window(3, 1, 1)},
                                   {32, square_window(3, 1, 1)},
                                   {32, square_window(3, 1, 1)},
                                   {32, square_window(3, 1, 1)}});
    const auto groups = [&](int64_t cache) {
        LineBufferOptions options;
        options.second_level_cache = Bytes(cache);
        const Schedule schedule = planned(network, options);
        for (const GroupSchedule& group : schedule.groups()) {
            const Bytes live = to_bytes(two_level_counts(network, group).live_total);
            EXPECT_TRUE(group.nests.size() == 1 || live <= most_winograd_memory(Bytes(cache)));
        }
        return schedule.groups().size();
    };
    EXPECT_EQ(groups(512 << 10), 1u);
    EXPECT_EQ(groups(256 << 10), 1u);
    EXPECT_EQ(most_winograd_memory(Bytes(4 << 20)), Bytes(8 << 20));
}

TEST(LineBufferSchedule, ChainsByColumnTilesTakeWhatTheirLinesReallyNeed) {
    const Network network =
        chain(1, 64, 1920,
              {{32, square_window(5, 1, 2)}, {8, square_window(1)}, {8, square_window(5, 1, 2)}});
    const std::vector<LayerProblem> problems =
        layer_problems(network, schedulable_chains(network).front());
    ASSERT_TRUE(column_chain_pays(problems));
    const auto sizes = [&](int64_t cache) {
        LineBufferOptions options;
        options.second_level_cache = Bytes(cache);
        const Schedule schedule = planned(network, options);
        EXPECT_EQ(schedule.groups().size(), 1u);
        std::vector<int64_t> rows;
        for (const Nest& nest : schedule.groups()[0].nests) rows.push_back(nest[Dim::y]);
        const int64_t strip = schedule.groups()[0].nests.back().strip[1];
        const int64_t columns = strip == 0 ? problems.back()[Dim::x] : strip;
        return std::pair{columns, column_tiles_memory(problems, rows, columns)};
    };
    // A small cache is treated as one of 1 MiB.
    const auto [columns, memory] = sizes(256 << 10);
    EXPECT_LT(columns, 1920);
    EXPECT_LE(memory, Bytes(1 << 20));
    EXPECT_GT(memory, Bytes(512 << 10));
    EXPECT_EQ(sizes(128 << 10).first, columns);
    // If the live elements fit, strips may be wider than that.
    EXPECT_EQ(sizes(1 << 20).first, 1920);
}

/// Sizes that differ in one member alone are other groups.
TEST(LineBufferCounts, AreThoseOfTheirGroups) {
    const Network network =
        chain(32, 200, 320, {{32, square_window(3, 1, 1)}, {32, square_window(3, 1, 1)}, {4, square_window(1)}});
    ASSERT_TRUE(kernel_pays(layer_problem(network, 0), KernelKind::winograd_rows));
    const std::vector<LayerProblem> problems = layer_problems(network, {0, 1, 2});
    LineBufferCounts all;
    TwoLevelCache cache;
    std::set<std::pair<Elements, Macs>> different;
    for (int time = 0; time < 2; ++time) {
        for (const int64_t rows : {3, 12}) {
            for (const int64_t strip_rows : {0, 24}) {
                for (const int64_t strip_columns : {0, 32}) {
                    for (const int64_t tile_rows : {2, 4, 6}) {
                        const LineBufferSizes sizes{rows, strip_rows, strip_columns, tile_rows};
                        const GroupCounts expected =
                            two_level_counts(network, line_buffer_group(network, {0, 1, 2}, sizes));
                        const LineBufferCounts::Counts& found = all.of(problems, sizes, cache);
                        EXPECT_EQ(found.accesses, expected.accesses());
                        EXPECT_EQ(found.live, expected.live_total);
                        EXPECT_EQ(found.macs, expected.macs());
                        different.emplace(found.live, found.macs);
                    }
                }
            }
        }
    }
    EXPECT_GT(different.size(), 12U);  // each member of the sizes matters
}

TEST(LineBufferSchedule, SaysWhatWouldFit) {
    // Conv2 and conv3 in tiles of all four output channels, two of four input channels, one row and
    // 16 of its columns: 2 * 3 * 18 of X, 2 * 4 * 9 weights and 4 * 16 sums.
    const auto answer = line_buffer_schedule(l3net(), {Bytes(4 * 100), 1});
    const auto* infeasible = std::get_if<Infeasible>(&answer);
    ASSERT_NE(infeasible, nullptr);
    EXPECT_EQ(infeasible->capacity, Elements(100));
    EXPECT_EQ(infeasible->demand, Elements(244));
    EXPECT_TRUE(std::holds_alternative<Schedule>(
        line_buffer_schedule(l3net(), {to_bytes(infeasible->demand), 1})));
}

TEST(LineBufferSchedule, ThreadsGetStrips) {
    const Network network = chain(3, 404, 64, {{4, square_window(3)}, {4, square_window(3)}});
    // 400 rows for two threads: four strips of 100; halo 2 * 3 rows of conv1 more, about 1 %.
    const Schedule schedule = planned(network, {std::nullopt, 2});
    ASSERT_EQ(schedule.groups().size(), 1u);
    EXPECT_EQ(schedule.groups()[0].nests.back().strip, (std::array<int64_t, 2>{100, 0}));
    EXPECT_EQ(planned(network, {}).groups()[0].nests.back().strip, (std::array<int64_t, 2>{0, 0}));
}

TEST(LineBufferSchedule, ThreadsGetEvenStripsOfFewRows) {
    // In tiles of four, 34 rows would make strips of 20 and 14, or of 12, 12, 10 and nothing.
    // Strips of 17 and 17 leave no thread waiting.
    const Network network = chain(3, 38, 64, {{4, square_window(3)}, {4, square_window(3)}});
    const Schedule schedule = planned(network, {std::nullopt, 2});
    ASSERT_EQ(schedule.groups().size(), 1u);
    EXPECT_EQ(schedule.groups()[0].nests.back().strip, (std::array<int64_t, 2>{17, 0}));
}

/// A softmax of one row of 40 columns: threads share whole half vectors of it. Rows are shared where there are
/// enough of them, and little is left to one thread.
TEST(LineBufferSchedule, ThreadsShareColumnsOfALayerOfOneRow) {
    const auto strip_of = [](int64_t channels, int64_t rows, int64_t columns, int threads) {
        Network network = empty_network(channels, rows, columns);
        append(network, "softmax", {.kind = LayerKind::softmax, .inputs = {0}, .axis = 1});
        return with_layers_alone(network, {network, {}}, threads).groups().front().nests.back().strip;
    };
    using Strip = std::array<int64_t, 2>;
    EXPECT_EQ(strip_of(2000, 1, 40, 2), (Strip{0, 24}));
    EXPECT_EQ(strip_of(2000, 1, 80, 5), (Strip{0, 16}));
    EXPECT_EQ(strip_of(2000, 1, 40, 1), (Strip{0, 0}));
    EXPECT_EQ(strip_of(20, 1, 40, 2), (Strip{0, 0}));
    EXPECT_EQ(strip_of(2000, 8, 40, 2)[1], 0);
    EXPECT_GT(strip_of(2000, 8, 40, 2)[0], 0);
}

/// Convolutions of sound have one row. Strips repeat little, so many that the input of each stays in the
/// second-level cache if weights do not.
TEST(LineBufferSchedule, ThreadsShareColumnsOfConvolutionsOfOneRow) {
    const auto strip_of = [](int64_t channels, int64_t columns, const LayerSpec& spec, int threads) {
        return planned(chain(channels, 1, columns, {spec}), {std::nullopt, threads})
            .groups().front().nests.back().strip;
    };
    const auto spec = [](int64_t channels, int64_t kernel, int64_t stride = 1) {
        LayerSpec layer{channels, square_window(1)};
        layer.window.kernel[1] = kernel;
        layer.window.stride[1] = stride;
        return layer;
    };
    using Strip = std::array<int64_t, 2>;
    // (16,000 - 251) + 1 = 15,750 columns.
    EXPECT_EQ(strip_of(1, 16000, spec(80, 251), 2), (Strip{0, 7888}));
    EXPECT_EQ(strip_of(1, 16000, spec(80, 251), 1), (Strip{0, 0}));
    // 2 x 80 x 20 products are not worth a second thread.
    EXPECT_EQ(strip_of(1, 99, spec(2, 20), 2), (Strip{0, 0}));
    // A strip of 32 of 33 columns would leave a second thread one.
    EXPECT_EQ(strip_of(90, 123, spec(60, 91), 2), (Strip{0, 0}));
    // map_channels by a panel is divided without strips; by a layout without one, nothing is.
    EXPECT_EQ(strip_of(512, 3199, spec(512, 3, 2), 2), (Strip{0, 0}));
    EXPECT_EQ(strip_of(16, 1001, spec(32, 3, 2), 2), (Strip{0, 256}));
    // 8,199 x 512 floats are 21.4 times three quarters of 1 MiB: 22 strips of 4,099 columns, in vectors.
    EXPECT_EQ(strip_of(512, 8199, spec(512, 3, 2), 2), (Strip{0, 192}));
    LayerSpec deconv = spec(64, 8, 4);
    deconv.kind = LayerKind::conv_transpose;
    EXPECT_EQ(strip_of(64, 800, deconv, 2), (Strip{0, 1616}));
}

/// A second strip would compute more than a quarter again: 90 columns of the first layer's 169 are its halo.
TEST(LineBufferSchedule, ThreadsDoNotShareColumnsThatAreMostlyHalo) {
    LayerSpec first{60, square_window(1)}, second{60, square_window(1)};
    first.window.kernel[1] = 31;
    const auto strips = [&](int64_t kernel) {
        second.window.kernel[1] = kernel;
        const Schedule schedule =
            planned(chain(90, 1, 199, {first, second}), {std::nullopt, 2});
        EXPECT_EQ(schedule.groups().size(), 1u);
        return schedule.groups().front().nests.back().strip[1];
    };
    EXPECT_EQ(strips(91), 0);
    EXPECT_GT(strips(9), 0);
}

/// Layers without weights have no products to compare by.
TEST(LineBufferSchedule, ThreadsShareFewRowsOfPools) {
    Network network = empty_network(16, 256, 256);
    append(network, "pool",
           {.kind = LayerKind::average_pool, .inputs = {0}, .window = square_window(64, 64)});
    const Schedule schedule = with_layers_alone(network, {network, {}}, 2);
    EXPECT_EQ(schedule.groups().front().nests.back().strip, (std::array<int64_t, 2>{2, 0}));
}

/// Between layers of small maps, which are groups of their own, nothing else makes rows for it.
TEST(LineBufferSchedule, ALayerThatEnlargesAMapIsAGroupWhateverTheTiles) {
    for (const int64_t times : {2, 4, 8}) {
        Network network = empty_network(32, 5, 7);
        const TensorId x = append(network, "conv1", 0, {.channels = 32, .window = square_window(3, 1, 1)});
        const TensorId enlarged =
            append(network, "resize2",
                   {.kind = LayerKind::general,
                    .inputs = {x},
                    .general = repeated(network.tensor(x).dims, {times, times})});
        append(network, "conv3", enlarged, {.channels = 32, .window = square_window(3, 1, 1)});
        for (const int64_t tile_rows : {2, 4, 6}) {
            EXPECT_EQ(layers_of(planned(network, {.tile_rows = tile_rows})), "conv1 | resize2 | conv3")
                << times << " times, tiles of " << tile_rows << " rows";
        }
    }
}

TEST(LineBufferSchedule, WideLinesAreCutIntoColumnsWhereTheBudgetAsks) {
    const Network network = chain(8, 64, 1028, {{8, square_window(3)}, {8, square_window(3)}});
    // Full width: X 3 x 1028 x 8 and conv1 3 x 1026 x 8 alone are 49296 elements.
    const Schedule schedule = planned(network, {Bytes(4 * 30'000), 1});
    ASSERT_EQ(schedule.groups().size(), 1u);
    EXPECT_GT(schedule.groups()[0].nests.back().strip[1], 0);
    EXPECT_LE(two_level_counts(network, schedule).live_total, Elements(30'000));
}

TEST(LineBufferSchedule, ThreadsShareOutEvenStripsOfColumnsWithoutStripsOfRows) {
    const Network network = chain(8, 400, 1028, {{8, square_window(3)}, {8, square_window(3)}});
    const auto strip = [&](int64_t columns, int threads) {
        const Bytes memory =
            to_bytes(two_level_counts(network, line_buffer_group(network, {0, 1}, {1, 0, columns}))
                         .live_total);
        return planned(network, {memory, threads}).groups()[0].nests.back().strip;
    };
    EXPECT_EQ(strip(256, 2), (std::array<int64_t, 2>{0, 256}));
    EXPECT_EQ(strip(256, 4), (std::array<int64_t, 2>{0, 256}));
    // Three strips of 352, the last of 320: one thread would wait.
    EXPECT_EQ(strip(352, 2)[1], 352);
    EXPECT_GT(strip(352, 2)[0], 0);
}

TEST(LineBufferSchedule, StripsOfColumnsAreTheWidestThatFit) {
    const Network network = chain(8, 64, 1028, {{8, square_window(3)}, {8, square_window(3)}});
    const auto live = [&](int64_t columns) {
        return two_level_counts(network, line_buffer_group(network, {0, 1}, {1, 0, columns}))
            .live_total;
    };
    // Two to seven equal strips of 1024 columns, in whole vectors.
    for (const int64_t columns : {512, 352, 256, 208, 176, 160}) {
        const Schedule schedule = planned(network, {to_bytes(live(columns)), 1});
        ASSERT_EQ(schedule.groups().size(), 1u);
        EXPECT_EQ(schedule.groups()[0].nests.back().strip[1], columns);
    }
}

/// Without minimal filtering, and with strides, windows on small maps do not go by lines.
TEST(DefaultKernels, WindowsOnSmallMapsHaveMapKernels) {
    const auto kernel_of = [](int64_t side, int64_t stride, bool filters) {
        const Network network = chain(64, side, side, {{64, square_window(3, stride, 1)}});
        LineBufferOptions options;
        options.winograd = filters;
        options.threads = 2;
        const auto planned = line_buffer_schedule(network, options);
        const GroupSchedule group = std::get<Schedule>(planned).groups().front();
        return with_default_kernels(layer_problems(network, {0}), group, {16, 24}, {.winograd = filters})
            .nests.front()
            .kernel.kind;
    };
    for (const int64_t side : {10, 14}) {
        EXPECT_EQ(kernel_of(side, 1, true), KernelKind::winograd_map) << side;
        EXPECT_EQ(kernel_of(side, 1, false), KernelKind::map_channels) << side;
    }
    for (const int64_t side : {17, 20, 80})  // to 9x9, 10x10 and 40x40
        EXPECT_EQ(kernel_of(side, 2, true), KernelKind::map_channels) << side;
}

TEST(DefaultKernels, MinimalFilteringOfAScheduleContradictsSumsByTheDefinition) {
    const Network network =
        chain(32, 16, 130, {{.channels = 32, .window = square_window(3, 1, 1)}});
    const GroupSchedule group = line_buffer_group(network, {0}, {4, 0, 0});
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const VectorUnit unit{16, 24};
    const GroupSchedule filtered = with_default_kernels(problems, group, unit);
    EXPECT_EQ(with_default_kernels(problems, filtered, unit), filtered);
    const GroupSchedule direct = with_default_kernels(problems, group, unit, {.winograd = false});
    ASSERT_NE(direct, filtered);
    EXPECT_EQ(with_default_kernels(problems, group, unit, {.strict = true}), direct);
    for (const KernelOptions& options :
         {KernelOptions{.winograd = false}, KernelOptions{.strict = true}}) {
        EXPECT_EQ(with_default_kernels(problems, direct, unit, options), direct);
        EXPECT_THROW((void)with_default_kernels(problems, filtered, unit, options), InputError);
    }
}

}  // namespace
}  // namespace laminate
