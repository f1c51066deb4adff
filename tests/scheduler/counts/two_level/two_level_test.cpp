// The closed form against hand arithmetic. Sizes in the comments are rows x columns x channels.
#include "scheduler/counts/two_level/two_level.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/chain.h"

namespace laminate {
namespace {

struct Row {
    const char* what;
    const char* text;
    int64_t x, w, y_reads, y_writes, macs;
    int64_t x_buffer, w_buffer, y_buffer;
};

void expect_rows(const Network& network, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        const GroupCounts c = two_level_counts(network, parse_group(network, row.text));
        EXPECT_EQ(c.input_reads(), Elements(row.x)) << row.what;
        EXPECT_EQ(c.layers[0].weight_reads, Elements(row.w)) << row.what;
        EXPECT_EQ(c.output_reads, Elements(row.y_reads)) << row.what;
        EXPECT_EQ(c.output_writes, Elements(row.y_writes)) << row.what;
        EXPECT_EQ(c.layers[0].macs, Macs(row.macs)) << row.what;
        EXPECT_EQ(c.input_buffers(), Elements(row.x_buffer)) << row.what;
        EXPECT_EQ(c.layers[0].weight_buffer, Elements(row.w_buffer)) << row.what;
        EXPECT_EQ(c.layers[0].output_buffer, Elements(row.y_buffer)) << row.what;
        EXPECT_EQ(c.sum_total, Elements(row.x_buffer + row.w_buffer + row.y_buffer)) << row.what;
    }
}

#define CONV1(tiles, levels) "{conv1: zo yo xo io | zi yi xi ii n m; tile " tiles "; " levels "}"

TEST(TwoLevelSingle, FirstLayerOfL2Net) {
    // 18 x 18 x 4 from 20 x 20 x 3, 3 x 3. MACs 18 * 18 * 4 * 3 * 9 = 34992, weights 9 * 3 * 4 =
    // 108.
    const Network network = chain(3, 20, 20, {{4, square_window(3)}});
    expect_rows(
        network,
        {
            // 2 tiles of z x 9 tiles of 8 x 8 x 3; the weights of a z tile (54) in each of 18
            // tiles.
            {"everything per tile", CONV1("z2 y6 x6 i3", "X io/io; W io/io; Y xi/xi"), 2 * 9 * 192,
             9 * 108, 0, 1296, 34992, 192, 54, 1},
            {"X per pixel", CONV1("z2 y6 x6 i3", "X xi/xi; W io/io; Y xi/xi"), 1296 * 27, 972, 0,
             1296, 34992, 27, 54, 1},
            // One row of a tile: 3 x 8 x 3, for 4 z, 18 rows, 3 tiles across; three columns rotate.
            {"X slides along x", CONV1("z2 y6 x6 i3", "X yi/xi; W io/io; Y xi/xi"), 4 * 18 * 3 * 72,
             972, 0, 1296, 34992, 27, 54, 1},
            // Rows must survive across yi, so columns cannot rotate: 3 x 8 x 3, not
            // ConvFusion's 27.
            {"X slides along y and x", CONV1("z2 y6 x6 i3", "X zi/xi; W io/io; Y xi/xi"),
             4 * 9 * 192, 972, 0, 1296, 34992, 72, 54, 1},
            {"X slides along y", CONV1("z2 y6 x6 i3", "X zi/yi; W io/io; Y xi/xi"), 4 * 9 * 192,
             972, 0, 1296, 34992, 72, 54, 1},
            // A loop that does not index X (zi) between its levels: all of the tile stays.
            {"X above zi", CONV1("z2 y6 x6 i3", "X io/xi; W io/io; Y xi/xi"), 2 * 9 * 192, 972, 0,
             1296, 34992, 192, 54, 1},
            // Every element of Y is visited three times: 3 writes, 2 reads.
            {"T_i = 1", CONV1("z2 y6 x6 i1", "X io/io; W io/io; Y xi/xi"), 2 * 9 * 192, 972,
             2 * 1296, 3 * 1296, 34992, 64, 18, 1},
            {"W of one z", CONV1("z2 y6 x6 i3", "X io/io; W io/zi; Y xi/xi"), 3456, 972, 0, 1296,
             34992, 192, 27, 1},
            // Ragged: z 3 + 1, y 5 + 5 + 5 + 3, x 7 + 7 + 4. X: 2 z tiles x (18 + 4 * 2) x (18 + 3
            // * 2) x 3.
            {"ragged", CONV1("z3 y5 x7 i3", "X io/io; W io/io; Y xi/xi"), 2 * 26 * 24 * 3, 12 * 108,
             0, 1296, 34992, 7 * 9 * 3, 81, 1},
            {"ragged partial sums", CONV1("z3 y5 x7 i2", "X yi/xi; W zi/zi; Y xi/xi"),
             4 * 18 * 3 * 24 * 3, 1296, 1296, 2592, 34992, 18, 18, 1},
            {"ragged, rows rotate", CONV1("z3 y5 x7 i2", "X zi/yi; W io/io; Y xi/xi"),
             4 * 26 * 24 * 3, 1296, 1296, 2592, 34992, 54, 54, 1},
        });
}

TEST(TwoLevelSingle, StrideTwo) {
    // 9 x 9 x 4 from 19 x 19 x 3. Rows: 4 + 4 + 1, spans 9 + 9 + 3 = 21; columns 5 + 4: 11 + 9
    // = 20. X: 4 z x 21 x 20 x 3.
    const Network network = chain(3, 19, 19, {{4, square_window(3, 2)}});
    expect_rows(network, {{"stride 2", CONV1("z3 y4 x5 i2", "X zi/yi; W io/io; Y xi/xi"),
                           4 * 21 * 20 * 3, 6 * 108, 324, 648, 8748, 3 * 11 * 2, 54, 1}});
}

TEST(TwoLevelSingle, PaddingIsMultipliedButNotMoved) {
    // 4 x 4 from 4 x 4 with a border of one; tiles of 2 x 4: rows [-1, 3) and [1, 5) are 3 + 3
    // inside, columns 4.
    const Network network = chain(1, 4, 4, {{1, square_window(3, 1, 1)}});
    expect_rows(network, {{"padding", CONV1("z1 y2 x4 i1", "X io/io; W root/root; Y xi/xi"), 24, 9,
                           0, 16, 16 * 9, 12, 9, 1}});
}

TEST(TwoLevelSingle, DepthwiseReadsOneChannelPerMap) {
    // 6 x 6 x 5, each map from its own channel of 8 x 8; tiles of z 2 + 2 + 1.
    const Network network = chain(5, 8, 8, {{5, square_window(3), 5}});
    expect_rows(network, {{"depthwise", CONV1("z2 y6 x6 i1", "X io/io; W io/io; Y xi/xi"), 5 * 64,
                           5 * 9, 0, 180, 180 * 9, 2 * 64, 2 * 9, 1}});
}

TEST(TwoLevelSingle, TransposedConvolutionCountsItsTaps) {
    // 3 rows, kernel 4, stride 2: 8 rows out; two of the four kernel rows meet the stride's grid in
    // each, 16 in each axis (some of them outside the input, where a tap is a MAC with zero).
    const Network network =
        chain(1, 3, 3, {{1, square_window(4, 2), 1, LayerKind::conv_transpose}});
    // Tiles of 4 rows: outputs [0, 4) read rows [-1, 2), [4, 8) rows [1, 4): inside the tensor 2
    // + 2.
    expect_rows(network, {{"transposed", CONV1("z1 y4 x8 i1", "X io/io; W root/root; Y xi/xi"),
                           4 * 3, 16, 0, 64, 256, 2 * 3, 16, 1}});
}

TEST(TwoLevelSingle, L2NetAt4KInPartialSums) {
    // 2158 x 3838 outputs in tiles of 64 x 64 (34 x 60 tiles, both ragged), T_i = 2 of 3.
    const Network network = chain(3, 2160, 3840, {{4, square_window(3)}});
    const GroupCounts c = two_level_counts(
        network, parse_group(network, CONV1("z4 y64 x64 i2", "X io/io; W io/io; Y xi/xi")));
    EXPECT_EQ(c.layers[0].weight_reads, Elements(108 * 34 * 60));
    EXPECT_EQ(c.input_reads(), Elements((2158 + 34 * 2) * (3838 + 60 * 2) * 3));
    EXPECT_EQ(c.output_reads, Elements(2158 * 3838 * 4));
    EXPECT_EQ(c.output_writes, Elements(2 * 2158 * 3838 * 4));
    EXPECT_EQ(c.layers[0].macs, Macs(894'499'632));
}

// ---- fused pairs

#define FUSED(first, second) "{conv1: zo yo xo io | " first " & conv2: zo yo xo io | " second "}"

TEST(TwoLevelFused, TilesOf8RecomputeTheirHalo) {
    // Four tiles of 8 x 8: 10 x 10 of conv1's output each, from 12 x 12 x 3. conv2's weights come
    // again for each tile.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; W "
                                   "root/root; Y conv2.xo/conv2.xo",
                                   "zi yi xi ii n m; tile z4 y8 x8 i4; W io/io; Y xi/xi")));
    EXPECT_EQ(c.input_reads(), Elements(4 * 144 * 3));
    EXPECT_EQ(c.layers[0].weight_reads, Elements(108));
    EXPECT_EQ(c.layers[1].weight_reads, Elements(4 * 144));
    EXPECT_EQ(c.layers[0].macs, Macs(4 * 100 * 4 * 27));
    EXPECT_EQ(c.layers[1].macs, Macs(36864));
    EXPECT_EQ(c.accesses(), Elements(1728 + 108 + 576 + 1024));
    // X 432, W1 108 and the tile of conv1 400 live together. conv2's weights and Y live inside, at
    // the same time as all of them.
    EXPECT_EQ(c.live_total, Elements(432 + 108 + 400 + 144 + 1));
}

TEST(TwoLevelFused, RaggedTilesOf5x7Recompute) {
    // Rows 5 + 5 + 5 + 1, columns 7 + 7 + 2. conv1: (16 + 4 * 2) x (16 + 3 * 2); X: two more each.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; W "
                                   "root/root; Y conv2.xo/conv2.xo",
                                   "zi yi xi ii n m; tile z4 y5 x7 i4; W io/io; Y xi/xi")));
    EXPECT_EQ(c.input_reads(), Elements((16 + 4 * 4) * (16 + 3 * 4) * 3));
    EXPECT_EQ(c.layers[0].macs, Macs(24 * 22 * 4 * 27));
    EXPECT_EQ(c.layers[1].weight_reads, Elements(12 * 144));
}

TEST(TwoLevelFused, RetentionAlongX) {
    // conv1 is stored at the row tile: halo columns stay, halo rows are computed again: (16 + 2 *
    // 2) x 18.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.yo/conv2.xo; W "
                                   "root/root; Y conv2.yo/conv2.xo",
                                   "zi yi xi ii n m; tile z4 y8 x8 i4; W root/root; Y xi/xi")));
    EXPECT_EQ(c.layers[0].macs, Macs(20 * 18 * 4 * 27));
    EXPECT_EQ(c.input_reads(), Elements(24 * 20 * 3));
    EXPECT_EQ(c.layers[0].output_buffer, Elements(10 * 10 * 4));  // columns rotate over xo
}

TEST(TwoLevelFused, LineBuffersReachTheFewestAccesses) {
    // ConvFusion's fused end point of L2Net: 2476 accesses in 649 elements: 3 rows of X, 3 rows of
    // conv1, all weights, one Y.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(
            network,
            FUSED("yi xi zi ii n m; tile z4 y18 x18 i3; X root/yi; W root/root; Y root/conv2.yi",
                  "yi xi zi ii n m; tile z4 y16 x16 i4; W root/root; Y zi/zi")));
    EXPECT_EQ(c.accesses(), Elements(1200 + 108 + 144 + 1024));
    EXPECT_EQ(c.macs(), Macs(34992 + 36864));
    EXPECT_EQ(c.input_buffers(), Elements(3 * 20 * 3));
    EXPECT_EQ(c.layers[0].output_buffer, Elements(3 * 18 * 4));
    EXPECT_EQ(c.live_total, Elements(180 + 108 + 216 + 144 + 1));
}

TEST(TwoLevelFused, ThreeLinesOfLayersReachTheFewestAccesses) {
    // L3Net: X 22 x 22 x 3 = 1452, weights 108 + 144 + 144, Y 1024; lines of 3 x 22 x 3, 3 x 20 x
    // 4, 3 x 18 x 4.
    const Network network = l3net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(
            network,
            "{conv1: zo yo xo io | yi xi zi ii n m; tile z4 y20 x20 i3; X root/yi; W root/root; Y "
            "root/conv2.yi & "
            "conv2: zo yo xo io | yi xi zi ii n m; tile z4 y18 x18 i4; W root/root; Y "
            "root/conv3.yi & "
            "conv3: zo yo xo io | yi xi zi ii n m; tile z4 y16 x16 i4; W root/root; Y zi/zi}"));
    EXPECT_EQ(c.accesses(), Elements(2872));
    EXPECT_EQ(c.live_total, Elements(198 + 108 + 240 + 144 + 216 + 144 + 1));
    EXPECT_EQ(c.live_total, Elements(1051));
}

TEST(TwoLevelFused, BuffersOfSiblingsAreNotLiveTogether) {
    // conv1's weights live in its own call, and conv2's after it. The larger counts; only the
    // paper's rule takes their sum.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; W "
                                   "io/io; Y conv2.xo/conv2.xo",
                                   "zi yi xi ii n m; tile z4 y8 x8 i4; W io/io; Y xi/xi")));
    EXPECT_EQ(c.live_total, Elements(432 + 400 + 144 + 1));
    EXPECT_EQ(c.sum_total, Elements(432 + 108 + 400 + 144 + 1));
}

TEST(TwoLevelFused, TiledOutputChannelsRecomputeTheProducer) {
    // conv2 in two z tiles outside the tile where conv1 hangs: everything of conv1 twice.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; W "
                                   "root/root; Y conv2.xo/conv2.xo",
                                   "zi yi xi ii n m; tile z2 y8 x8 i4; W io/io; Y xi/xi")));
    EXPECT_EQ(c.layers[0].macs, Macs(2 * 43200));
    EXPECT_EQ(c.layers[1].weight_reads, Elements(4 * 144));
}

TEST(TwoLevelFused, AMovedInputWaitsForCallsOnly) {
    // Rule 3: X is fetched at conv2.yo for what conv1 will compute there. conv1 keeps its rows at
    // the root, so the second strip of 8 rows needs 8 more of conv1's rows: 10 rows of X, of which
    // 2 are there already.
    const Network network = l2net();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(network, FUSED("zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W "
                                   "root/root; Y root/conv2.xo",
                                   "zi yi xi ii n m; tile z4 y8 x8 i4; W root/root; Y xi/xi")));
    EXPECT_EQ(c.input_reads(), Elements(20 * 20 * 3));
    EXPECT_EQ(c.input_buffers(), Elements(12 * 20 * 3));  // first strip: 12 rows, then [10, 20)
    EXPECT_EQ(c.layers[0].macs, Macs(34992));
}

TEST(TwoLevelFused, AnotherNameChangesNothing) {
    // A cache shared between groups gives the same counts as none.
    const Network network = l3net();
    TwoLevelCache cache;
    const GroupSchedule group = parse_group(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y20 x20 i3; X io/io; W io/io; Y xi/xi}");
    EXPECT_EQ(two_level_counts(network, group, &cache), two_level_counts(network, group));
    EXPECT_EQ(two_level_counts(network, group, &cache), two_level_counts(network, group));
}

// ---- forks and joins

/// 6 x 6 x 2 through two 3 x 3 convolutions with a border of one, added to itself.
Network residual_block() {
    Network network = empty_network(2, 6, 6);
    const TensorId c1 = append(network, "c1", 0, {2, square_window(3, 1, 1)});
    const TensorId c2 = append(network, "c2", c1, {2, square_window(3, 1, 1)});
    append(network, "add", {.kind = LayerKind::add, .inputs = {c2, 0}});
    check(network);
    return network;
}

TEST(TwoLevelDag, ResidualBlockRowByRow) {
    // Row y of the sum: row y of c2, rows up to y + 1 of c1, rows up to y + 2 of x, and row y of x
    // for the shortcut. Everything comes once.
    const Network network = residual_block();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(
            network,
            "{c1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i2; X root/add.yo; W root/root; Y "
            "root/add.yo & "
            "c2: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i2; W root/root; Y root/add.yo & "
            "add: yo zo xo io | zi yi xi ii n m; tile z2 y1 x6 i1; Y yo/yo}"));
    ASSERT_EQ(c.inputs.size(), 1u);
    EXPECT_EQ(c.inputs[0].reads, Elements(6 * 6 * 2));
    // Rows [y - 1, y + 2) for the new row y of c1, [y, y + 3) when seen from the sum: its own row y
    // is the first of them.
    EXPECT_EQ(c.inputs[0].buffer, Elements(3 * 6 * 2));
    EXPECT_EQ(c.layers[0].output_buffer, Elements(3 * 6 * 2));
    EXPECT_EQ(c.layers[1].output_buffer, Elements(1 * 6 * 2));
    EXPECT_EQ(c.layers[2].output_buffer, Elements(1 * 6 * 2));
    EXPECT_EQ(c.layers[0].macs, Macs(36 * 2 * 2 * 9));
    EXPECT_EQ(c.layers[1].macs, Macs(36 * 2 * 2 * 9));
    EXPECT_EQ(c.layers[2].macs, Macs(0));
    EXPECT_EQ(c.layers[2].weight_reads, Elements(0));
    EXPECT_EQ(c.accesses(), Elements(72 + 36 + 36 + 72));
    EXPECT_EQ(c.live_total, Elements(36 + 36 + 36 + 36 + 12 + 12));  // x, W, c1, W, c2; Y
}

TEST(TwoLevelDag, ResidualBlockInTilesRecomputesItsHalo) {
    // Tiles of 2 rows, nothing kept. c1: rows 3 + 4 + 3 of 6; x, the hull of c1's windows and of
    // the tile itself: 4 + 6 + 4.
    const Network network = residual_block();
    const GroupCounts c = two_level_counts(
        network,
        parse_group(
            network,
            "{c1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i2; X add.yo/add.yo; W root/root; Y "
            "add.yo/add.yo & "
            "c2: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i2; W root/root; Y add.yo/add.yo & "
            "add: yo zo xo io | zi yi xi ii n m; tile z2 y2 x6 i1; Y yo/yo}"));
    EXPECT_EQ(c.inputs[0].reads, Elements((4 + 6 + 4) * 6 * 2));
    EXPECT_EQ(c.inputs[0].buffer, Elements(6 * 6 * 2));
    EXPECT_EQ(c.layers[0].macs, Macs((3 + 4 + 3) * 6 * 2 * 2 * 9));
    EXPECT_EQ(c.layers[1].macs, Macs(6 * 6 * 2 * 2 * 9));
}

TEST(TwoLevelDag, TwoConvolutionsReadOneInputOnce) {
    // Tiles of 2 rows: the 1 x 1 reads [0, 2), the 3 x 3 one more row on each side; the hull is 3 +
    // 4 + 3 rows of 6.
    Network network = empty_network(1, 6, 6);
    const TensorId narrow = append(network, "narrow", 0, {1, square_window(1)});
    const TensorId wide = append(network, "wide", 0, {1, square_window(3, 1, 1)});
    append(network, "add", {.kind = LayerKind::add, .inputs = {narrow, wide}});
    check(network);
    const GroupCounts c = two_level_counts(
        network,
        parse_group(
            network,
            "{narrow: zo yo xo io | zi yi xi ii n m; tile z1 y6 x6 i1; X add.yo/add.yo; W "
            "root/root; Y add.yo/add.yo & "
            "wide: zo yo xo io | zi yi xi ii n m; tile z1 y6 x6 i1; W root/root; Y add.yo/add.yo & "
            "add: yo zo xo io | zi yi xi ii n m; tile z1 y2 x6 i1; Y yo/yo}"));
    ASSERT_EQ(c.inputs.size(), 1u);
    EXPECT_EQ(c.inputs[0].reads, Elements((3 + 4 + 3) * 6));
    EXPECT_EQ(c.inputs[0].buffer, Elements(4 * 6));
}

TEST(TwoLevelDag, InceptionInTilesOfChannels) {
    // A 1 x 1 stem of 3 channels feeds a 1 x 1 convolution (2 channels) and a 3 x 3 pooling (3);
    // their Concat runs in tiles of two channels: the first touches the convolution alone, [2, 4)
    // and [4, 5) the pooling alone. Pictures of 4 x 4.
    Network network = empty_network(2, 4, 4);
    const TensorId stem = append(network, "stem", 0, {3, square_window(1)});
    const TensorId a = append(network, "a", stem, {2, square_window(1)});
    const TensorId p =
        append(network, "p",
               {.kind = LayerKind::max_pool, .inputs = {stem}, .window = square_window(3, 1, 1)});
    append(network, "cat", {.kind = LayerKind::concat, .inputs = {a, p}, .axis = 1});
    check(network);
    const auto counts = [&](const std::string& stem_store) {
        return two_level_counts(
            network,
            parse_group(network,
                        "{stem: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i2; X cat.zo/cat.zo; "
                        "W root/root; Y " +
                            stem_store +
                            "/cat.zo & a: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i3; W "
                            "root/cat.zo; Y cat.zo/cat.zo & "
                            "p: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i1; Y cat.zo/cat.zo & "
                            "cat: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; Y zo/zo}"));
    };
    const GroupCounts kept = counts("root");
    // All channels of the stem when first needed, nothing later.
    EXPECT_EQ(kept.layers[0].macs, Macs(16 * 3 * 2));
    EXPECT_EQ(kept.layers[0].output_buffer, Elements(16 * 3));
    EXPECT_EQ(kept.inputs[0].reads, Elements(16 * 2));
    EXPECT_EQ(kept.layers[1].macs, Macs(16 * 2 * 3));  // called for the first tile only
    EXPECT_EQ(kept.layers[1].weight_reads, Elements(2 * 3));
    EXPECT_EQ(kept.layers[1].output_buffer, Elements(16 * 2));
    EXPECT_EQ(kept.layers[2].output_buffer,
              Elements(16 * 2));  // the larger of two channels and one
    const GroupCounts recomputed = counts("cat.zo");
    EXPECT_EQ(recomputed.layers[0].macs, Macs(3 * 16 * 3 * 2));
    EXPECT_EQ(recomputed.layers[1].macs, Macs(16 * 2 * 3));
}

TEST(TwoLevelDag, OperandsOfConcatAreFetchedChannelByChannel) {
    // External operands of 3 and 2 channels, tiles of two: [0, 2) one, [2, 4) one channel of each,
    // [4, 5) the last.
    Network network = empty_network(2, 4, 4);
    const TensorId first = append(network, "first", 0, {3, square_window(1)});
    const TensorId second = append(network, "second", 0, {2, square_window(1)});
    append(network, "cat", {.kind = LayerKind::concat, .inputs = {first, second}, .axis = 1});
    check(network);
    const GroupCounts c =
        two_level_counts(network, parse_group(network,
                                              "{cat: yo zo xo io | zi yi xi ii n m; tile z2 y1 x4 "
                                              "i1; X0 root/zo; X1 zo/zo; Y zo/zo}"));
    ASSERT_EQ(c.inputs.size(), 2u);
    EXPECT_EQ(c.inputs[0].reads, Elements(3 * 16));
    EXPECT_EQ(c.inputs[1].reads, Elements(2 * 16));
    EXPECT_EQ(c.inputs[0].buffer,
              Elements(2 * 4));  // one row of a tile: rows rotate, then channels
    EXPECT_EQ(c.inputs[1].buffer, Elements(1 * 4));
    EXPECT_EQ(c.macs(), Macs(0));
}

TEST(TwoLevelDag, GlobalPoolingNeedsEverythingOfOneChannel) {
    // 4 x 4 x 3 into one number per channel; the convolution before it is called for one channel at
    // a time.
    Network network = empty_network(2, 6, 6);
    const TensorId c = append(network, "c", 0, {3, square_window(3)});
    append(network, "gap", {.kind = LayerKind::global_average_pool, .inputs = {c}});
    check(network);
    const GroupCounts counts = two_level_counts(
        network, parse_group(network,
                             "{c: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i2; X root/gap.zi; "
                             "W root/gap.zi; Y gap.zi/gap.zi & "
                             "gap: zo yo xo io | zi yi xi ii n m; tile z3 y1 x1 i1; Y root/root}"));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(16));
    EXPECT_EQ(counts.layers[0].macs, Macs(16 * 3 * 2 * 9));
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(2 * 9));
    EXPECT_EQ(counts.inputs[0].reads, Elements(36 * 2));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(36 * 2));
    EXPECT_EQ(counts.layers[1].output_buffer, Elements(3));
}

}  // namespace
}  // namespace laminate
