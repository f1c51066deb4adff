// Hand arithmetic for the plain walker, from docs/counting.md alone. Sizes in the comments are rows
// x columns x channels.
#include "instrumentation/walker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "nets/random/random_network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/explore/random_schedule.h"
#include "scheduler/schedule/schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

/// The single layers of L2Net.
Network l2net_conv1() { return chain(3, 20, 20, {{4, square_window(3)}}); }
Network l2net_conv2() { return chain(4, 18, 18, {{4, square_window(3)}}); }

GroupCounts walked(const Network& network, const std::string& text) {
    return walk(network, parse_group(network, text));
}

/// The numbers of a row of halide-notes 3.1 for one layer.
struct Row {
    int64_t x, w, y_reads, y_writes, macs, x_buffer, w_buffer, y_buffer;
};

void expect_row(const GroupCounts& counts, const Row& row) {
    EXPECT_EQ(counts.input_reads(), Elements(row.x));
    EXPECT_EQ(counts.weight_reads(), Elements(row.w));
    EXPECT_EQ(counts.output_reads, Elements(row.y_reads));
    EXPECT_EQ(counts.output_writes, Elements(row.y_writes));
    EXPECT_EQ(counts.macs(), Macs(row.macs));
    EXPECT_EQ(counts.input_buffers(), Elements(row.x_buffer));
    ASSERT_EQ(counts.layers.size(), 1U);
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(row.w_buffer));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(row.y_buffer));
    // One layer: every buffer is around the innermost body, unless the schedule under test says
    // otherwise.
    EXPECT_EQ(counts.live_total, Elements(row.x_buffer + row.w_buffer + row.y_buffer));
    EXPECT_EQ(counts.sum_total, counts.live_total);
}

constexpr const char* conv1_tile_6x6 = "conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i3; ";

TEST(WalkerSingleLayer, TileIsLoadedOncePerTile) {
    // 2 z tiles x 3 x 3 tiles; X 8 x 8 x 3 = 192 each, W 2 * 3 * 9 = 54 each: 18 * 192, 18 * 54.
    // MACs 18 * 18 * 4 * 27.
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X io/io; W io/io; Y xi/xi}"),
        {3456, 972, 0, 1296, 34992, 192, 54, 1});
}

TEST(WalkerSingleLayer, InputAtThePixelIsReadForEveryTap) {
    // 1296 outputs, a window of 3 x 3 x 3 = 27 each.
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X xi/xi; W io/io; Y xi/xi}"),
        {34992, 972, 0, 1296, 34992, 27, 54, 1});
}

TEST(WalkerSingleLayer, WindowSlidesAlongARow) {
    // Each row of a tile, for each z: 3 x 8 x 3 = 72 once; 18 tiles * 2 z * 6 rows * 72. Three
    // columns live: 3 x 3 x 3. Halide's own folding rounds the columns up to 4 (36 words in the
    // notes); the page counts what the rotation needs.
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X yi/xi; W io/io; Y xi/xi}"),
        {15552, 972, 0, 1296, 34992, 27, 54, 1});
}

TEST(WalkerSingleLayer, WindowSlidesDownATile) {
    // Each z reloads the tile: 18 * 2 * 192. Three rows of 8 x 3 live: 72 (96 with Halide's power
    // of two).
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X zi/yi; W io/io; Y xi/xi}"),
        {6912, 972, 0, 1296, 34992, 72, 54, 1});
}

TEST(WalkerSingleLayer, RowsMustSurviveWhenTheStoreLevelIsAboveThem) {
    // SL above yi, CL at xi: rows y+1 and y+2 are needed again, so their 8 columns stay: 3 x 8 x 3
    // = 72, where ConvFusion's formula says 27. Loads as with CL at yi.
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X zi/xi; W io/io; Y xi/xi}"),
        {6912, 972, 0, 1296, 34992, 72, 54, 1});
}

TEST(WalkerSingleLayer, ALoopThatDoesNotIndexTheBufferKeepsEverything) {
    // SL above zi, CL below it: the second z reads the whole tile again, so nothing may go: 192
    // (the paper folds to 72).
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X io/yi; W io/io; Y xi/xi}"),
        {3456, 972, 0, 1296, 34992, 192, 54, 1});
}

TEST(WalkerSingleLayer, WeightsOfOneOutputChannelAtATime) {
    // SL io, CL zi: z is passed once, so one channel's 3 * 9 = 27 weights are enough.
    expect_row(
        walked(l2net_conv1(), std::string("{") + conv1_tile_6x6 + "X io/io; W io/zi; Y xi/xi}"),
        {3456, 972, 0, 1296, 34992, 192, 27, 1});
}

TEST(WalkerSingleLayer, PartialSumsLeaveAndComeBack) {
    // Three visits of each of 1296 outputs: 3 * 1296 writes, 2 * 1296 reads. X 8 x 8 x 1 in 54
    // bodies, W 2 * 1 * 9.
    expect_row(
        walked(
            l2net_conv1(),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i1; X io/io; W io/io; Y xi/xi}"),
        {3456, 972, 2592, 3888, 34992, 64, 18, 1});
}

TEST(WalkerSingleLayer, PartialSumsOfATileHeldInsideTheChannelLoop) {
    // conv2, D_i 4: 2 * 4 * 2 tiles, io 2, ii 2: 64 bodies of ii, each with X 6 x 10 x 1 and W 2 *
    // 1 * 9. Y 2 x 4 x 8 = 64 is held over ii but leaves at io: 2 visits of 1024 outputs. MACs 1024
    // * 36.
    expect_row(
        walked(
            l2net_conv2(),
            "{conv1: zo yo xo io | ii zi yi xi n m; tile z2 y4 x8 i2; X ii/ii; W ii/ii; Y io/io}"),
        {3840, 1152, 1024, 2048, 36864, 60, 18, 64});
}

TEST(WalkerSingleLayer, PartialSumsOfOneChannelOfATile) {
    // Order zi ii: 32 tiles of X 6 x 10 x 2 = 120; per (tile, z) W 2 * 9 = 18 and Y 4 x 8 = 32.
    expect_row(
        walked(
            l2net_conv2(),
            "{conv1: zo yo xo io | zi ii yi xi n m; tile z2 y4 x8 i2; X io/io; W zi/zi; Y zi/zi}"),
        {3840, 1152, 1024, 2048, 36864, 120, 18, 32});
}

TEST(WalkerSingleLayer, RaggedTilesMoveOnlyWhatTheyNeed) {
    // z 4 = 3 + 1, y 18 = 5 + 5 + 5 + 3, x 18 = 7 + 7 + 4. Rows of X 7 + 7 + 7 + 5 = 26, columns 9
    // + 9 + 6 = 24: 2 * 26
    // * 24 * 3. W 12 tiles * 108.
    expect_row(
        walked(
            l2net_conv1(),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y5 x7 i3; X io/io; W io/io; Y xi/xi}"),
        {3744, 1296, 0, 1296, 34992, 189, 81, 1});
}

TEST(WalkerSingleLayer, RaggedTilesWithPartialSumsAndARowWindow) {
    // Every output row of every z: 3 rows of 24 columns of 3 channels: 4 * 18 * 3 * 24 * 3. Live 3
    // x 3 x 2.
    expect_row(
        walked(
            l2net_conv1(),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y5 x7 i2; X yi/xi; W zi/zi; Y xi/xi}"),
        {15552, 1296, 1296, 2592, 34992, 18, 18, 1});
}

TEST(WalkerSingleLayer, RaggedTilesWithAColumnWindow) {
    // Every z: 26 rows, 24 columns, 3 channels: 4 * 26 * 24 * 3. Live 3 x 9 x 2.
    expect_row(
        walked(
            l2net_conv1(),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y5 x7 i2; X zi/yi; W zi/zi; Y xi/xi}"),
        {7488, 1296, 1296, 2592, 34992, 54, 18, 1});
}

TEST(WalkerSingleLayer, StrideTwo) {
    // 9 x 9 outputs. y 4 + 4 + 1 reads 9 + 9 + 3 = 21 rows, x 5 + 4 reads 11 + 9 = 20 columns: 4 *
    // 21 * 20 * 3. Live 3 x 11 x 2. W (3 + 1) * 27 * 6 tiles; buffer 3 * 2 * 9. MACs 324 * 27.
    expect_row(
        walked(
            chain(3, 19, 19, {{4, square_window(3, 2)}}),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x5 i2; X zi/yi; W io/io; Y xi/xi}"),
        {5040, 648, 324, 648, 8748, 66, 54, 1});
}

TEST(WalkerSingleLayer, StrideBeyondTheKernelMovesTheGapsInsideABodyOnly) {
    // 1x1, stride 3, 10 -> 4 rows and columns. A tile of two outputs reads a box of 4: 2 tiles * 4
    // = 8 of 10 rows; one pixel at a time reads 4 * 4 elements and nothing between them.
    const Network network = chain(1, 10, 10, {{1, square_window(1, 3)}});
    expect_row(walked(network,
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y2 x2 i1; X xo/xo; W "
                      "root/root; Y xi/xi}"),
               {64, 1, 0, 16, 16, 16, 1, 1});
    expect_row(walked(network,
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y2 x2 i1; X root/xi; W "
                      "root/root; Y xi/xi}"),
               {16, 1, 0, 16, 16, 1, 1, 1});
}

TEST(WalkerSingleLayer, StrideThreeKeepsNoRowOfAKernelOfThree) {
    // 3x3, stride 3 on 12 x 12: 4 x 4 outputs, windows touch but do not overlap, so one window of 9
    // is all that is ever live.
    expect_row(walked(chain(1, 12, 12, {{1, square_window(3, 3)}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; X root/xi; W "
                      "root/root; Y xi/xi}"),
               {144, 9, 0, 16, 144, 9, 9, 1});
}

TEST(WalkerSingleLayer, PaddingIsCountedAsMacsButNeverMoved) {
    // 8 x 8, 3x3, pad 1. y tiles 0-2, 3-5, 6-7 read rows 0-3, 2-6, 5-7: 4 + 5 + 3 = 12 rows of 8.
    // MACs 64 * 9. Largest body 5 x 8.
    expect_row(walked(chain(1, 8, 8, {{1, square_window(3, 1, 1)}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y3 x8 i1; X yo/yo; W "
                      "root/root; Y xi/xi}"),
               {96, 9, 0, 64, 576, 40, 9, 1});
}

TEST(WalkerSingleLayer, PaddingWiderThanTheInput) {
    // 3x3, pad 2 on 2 x 2: 4 x 4 outputs. Output rows 0-3 see rows 0, 0-1, 0-1, 1: 1 + 2 + 2 + 1 =
    // 6 rows of 2. MACs 16
    // * 9.
    expect_row(walked(chain(1, 2, 2, {{1, square_window(3, 1, 2)}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X yo/yo; W "
                      "root/root; Y xi/xi}"),
               {12, 9, 0, 16, 144, 4, 9, 1});
}

TEST(WalkerSingleLayer, AsymmetricPaddingAndRectangularWindow) {
    // Kernel 3 x 1, pad 1 above and 0 below, 6 x 5 -> 5 x 5. Row by row: rows 0-1, 0-2, 1-3, 2-4,
    // 3-5: 2 + 3 + 3 + 3 + 3 = 14 rows of 5.
    Window w = square_window(1);
    w.kernel = {3, 1};
    w.stride = {1, 1};
    w.pad_begin = {1, 0};
    w.pad_end = {0, 0};
    expect_row(walked(chain(1, 6, 5, {{1, w}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x5 i1; X yo/yo; W "
                      "root/root; Y xi/xi}"),
               {70, 3, 0, 25, 75, 15, 3, 1});
}

TEST(WalkerSingleLayer, DilationReadsABoxAndKeepsItsSpan) {
    // 3x3, dilation 2, 9 x 9 -> 5 x 5: a row of outputs needs rows y, y+2, y+4: a box of 5 rows, of
    // which each later row adds one. X once, 81; live 5 x 9.
    expect_row(walked(chain(1, 9, 9, {{1, square_window(3, 1, 0, 2)}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y5 x5 i1; X root/yi; W "
                      "root/root; Y xi/xi}"),
               {81, 9, 0, 25, 225, 45, 9, 1});
}

TEST(WalkerSingleLayer, DepthwiseReadsOneChannelPerOutputChannel) {
    // 4 groups of one channel, 3x3 on 10 x 10 -> 8 x 8. X at zo, T_z 3: channels 0-2 then 3: 300 +
    // 100. W 9 per channel. MACs 256 * 9.
    expect_row(
        walked(
            chain(4, 10, 10, {{4, square_window(3), 4}}),
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y8 x8 i1; X zo/zo; W zo/zo; Y xi/xi}"),
        {400, 36, 0, 256, 2304, 300, 27, 1});
}

TEST(WalkerSingleLayer, DepthwisePlanesFoldAway) {
    // The same with X brought in plane by plane: one plane of 100 is live.
    expect_row(walked(chain(4, 10, 10, {{4, square_window(3), 4}}),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y8 x8 i1; X root/zi; W "
                      "zo/zo; Y xi/xi}"),
               {400, 36, 0, 256, 2304, 100, 27, 1});
}

TEST(WalkerSingleLayer, GroupsAcrossTilesAreReadTwice) {
    // 2 groups of 3 -> 2 channels, 1x1 on 4 x 4. T_z 3: z 0-2 needs groups 0 and 1 (6 channels), z
    // 3 group 1 (3 channels): 9 * 16. W (3 + 1) * 3. MACs 64 * 3.
    const Network network = chain(6, 4, 4, {{4, square_window(1), 2}});
    expect_row(
        walked(
            network,
            "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i3; X zo/zo; W zo/zo; Y xi/xi}"),
        {144, 12, 0, 64, 192, 96, 9, 1});
    // Kept from the root on, group 1 is there already; z 0-2 and z 3 share it, so the 6 channels of
    // the first tile are the most that is live.
    expect_row(walked(network,
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i3; X root/zo; W "
                      "zo/zo; Y xi/xi}"),
               {96, 12, 0, 64, 192, 96, 9, 1});
}

TEST(WalkerSingleLayer, TransposedConvolutionCountsItsTaps) {
    // 3x3, stride 2, pad 1: 4 -> 7. Even outputs have one tap (n = 1), odd ones two (n = 0, 2): 4 *
    // 1 + 3 * 2 = 10 per axis. MACs 2 * 3 * 10 * 10. Row by row X is 1 or 2 rows: 10 rows of 4 x 2
    // channels in.
    const Network network =
        chain(2, 4, 4, {{3, square_window(3, 2, 1), 1, LayerKind::conv_transpose}});
    expect_row(walked(network,
                      "{conv1: yo zo xo io | zi yi xi ii n m; tile z3 y1 x7 i2; X yo/yo; W "
                      "root/root; Y xi/xi}"),
               {80, 54, 0, 147, 600, 16, 54, 1});
    // Kept from the root on every row comes once; an odd output row has two live.
    expect_row(walked(network,
                      "{conv1: yo zo xo io | zi yi xi ii n m; tile z3 y1 x7 i2; X root/yo; W "
                      "root/root; Y xi/xi}"),
               {32, 54, 0, 147, 600, 16, 54, 1});
}

TEST(WalkerSingleLayer, TransposedConvolutionWhoseWindowsTouch) {
    // 2x2, stride 2, no pad: 3 -> 6, one tap each: output pixel by pixel reads one element, 36
    // times; kept from the root on 9 times, and as output row 2k + 1 reads input row k again, one
    // row of 3 is live.
    const Network network =
        chain(1, 3, 3, {{1, square_window(2, 2), 1, LayerKind::conv_transpose}});
    expect_row(walked(network,
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x1 i1; X xi/xi; W "
                      "root/root; Y xi/xi}"),
               {36, 4, 0, 36, 36, 1, 4, 1});
    expect_row(walked(network,
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x1 i1; X root/xi; W "
                      "root/root; Y xi/xi}"),
               {9, 4, 0, 36, 36, 3, 4, 1});
}

TEST(WalkerSingleLayer, FullyConnected) {
    // Gemm 12 -> 5 as a layer with one row and column: io outside, T_i 5 of 12: 3 visits.
    Network network;
    network.name = "dense";
    network.tensors = {{"input", {1, 12}}, {"out", {1, 5}}};
    network.inputs = {0};
    network.outputs = {1};
    Layer layer;
    layer.name = "fc";
    layer.kind = LayerKind::gemm;
    layer.inputs = {0};
    layer.output = 1;
    network.layers = {layer};
    // X 12 once (io is outermost and passes it once), W 60 once; the largest X body 5, W 2 * 5.
    expect_row(
        walked(network,
               "{fc: io zo yo xo | zi yi xi ii n m; tile z2 y1 x1 i5; X io/io; W zo/zo; Y zo/zo}"),
        {12, 60, 10, 15, 60, 5, 10, 2});
}

TEST(WalkerOutput, StoreLevelOutsideTheChannelLoopKeepsPartialSums) {
    // Y at xo, io inside it: one visit. At root: the whole output, one visit. With io outermost and
    // Y at xo: 2 visits.
    const Network network = l2net_conv2();
    const std::string tiles = " | zi yi xi ii n m; tile z4 y5 x16 i3; X root/root; W root/root; ";
    const GroupCounts at_xo = walked(network, "{conv1: zo yo xo io" + tiles + "Y xo/xo}");
    EXPECT_EQ(at_xo.output_reads, Elements(0));
    EXPECT_EQ(at_xo.output_writes, Elements(1024));
    EXPECT_EQ(at_xo.layers[0].output_buffer, Elements(4 * 5 * 16));
    const GroupCounts at_root = walked(network, "{conv1: io zo yo xo" + tiles + "Y root/root}");
    EXPECT_EQ(at_root.output_reads, Elements(0));
    EXPECT_EQ(at_root.output_writes, Elements(1024));
    EXPECT_EQ(at_root.layers[0].output_buffer, Elements(1024));
    const GroupCounts outside = walked(network, "{conv1: io zo yo xo" + tiles + "Y xo/xo}");
    EXPECT_EQ(outside.output_reads, Elements(1024));
    EXPECT_EQ(outside.output_writes, Elements(2048));
}

TEST(WalkerOutput, EveryInputChannelIsAVisitWhenYLivesInsideIt) {
    // Y at ii, the innermost loop: 4 visits of 1024.
    const GroupCounts counts = walked(l2net_conv2(),
                                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y16 x16 i4; "
                                      "X root/root; W root/root; Y ii/ii}");
    EXPECT_EQ(counts.output_reads, Elements(3 * 1024));
    EXPECT_EQ(counts.output_writes, Elements(4 * 1024));
}

// ---- fused pairs

/// L2Net with conv2 in tiles of 8 x 8 and conv1's output placed at `a`; X at `x`.
std::string fused_8x8(const std::string& x, const std::string& a) {
    return "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X " + x +
           "; W root/root; Y " + a +
           " & conv2: zo yo xo io | zi yi xi ii n m; tile z4 y8 x8 i4; W io/io; Y xi/xi}";
}

TEST(WalkerFused, RecomputedHalo) {
    // 4 tiles: conv1 computes 10 x 10 x 4 for each, 27 MACs: 43200; X 12 x 12 x 3 for each.
    const GroupCounts counts = walked(l2net(), fused_8x8("conv2.xo/conv2.xo", "conv2.xo/conv2.xo"));
    ASSERT_EQ(counts.layers.size(), 2U);
    EXPECT_EQ(counts.layers[0].macs, Macs(4 * 100 * 4 * 27));
    EXPECT_EQ(counts.layers[1].macs, Macs(256 * 4 * 36));
    EXPECT_EQ(counts.input_reads(), Elements(4 * 432));
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(108));
    EXPECT_EQ(counts.layers[1].weight_reads, Elements(4 * 144));
    EXPECT_EQ(counts.output_writes, Elements(1024));
    EXPECT_EQ(counts.output_reads, Elements(0));
    EXPECT_EQ(counts.input_buffers(), Elements(432));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(400));
    // While conv2 runs: W of conv1 108, X 432, conv1's output 400, W of conv2 144, Y 1.
    EXPECT_EQ(counts.live_total, Elements(108 + 432 + 400 + 144 + 1));
    EXPECT_EQ(counts.sum_total, counts.live_total);
}

TEST(WalkerFused, HaloKeptAlongX) {
    // Per yo 10 rows, columns 10 then 8 new: 2 * 10 * 18 * 4 * 27 = 38880; X 2 * 12 * 20 * 3 =
    // 1440. Only the tile stays: 10 x 10 x 4, 12 x 12 x 3.
    const GroupCounts counts = walked(l2net(), fused_8x8("conv2.yo/conv2.xo", "conv2.yo/conv2.xo"));
    EXPECT_EQ(counts.layers[0].macs, Macs(38880));
    EXPECT_EQ(counts.input_reads(), Elements(1440));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(400));
    EXPECT_EQ(counts.input_buffers(), Elements(432));
}

TEST(WalkerFused, HaloKeptAlongXAndY) {
    // Everything once: 18 * 18 * 4 * 27 = 34992, X 1200. Rows of the tile over the whole width: 10
    // x 18 x 4, 12 x 20 x 3.
    const GroupCounts counts = walked(l2net(), fused_8x8("root/conv2.xo", "root/conv2.xo"));
    EXPECT_EQ(counts.layers[0].macs, Macs(34992));
    EXPECT_EQ(counts.input_reads(), Elements(1200));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(720));
    EXPECT_EQ(counts.input_buffers(), Elements(720));
}

TEST(WalkerFused, LineBuffers) {
    // conv2 row by row, conv1 row by row inside it: 3 x 18 x 4 = 216 and 3 x 20 x 3 = 180, weights
    // 108 + 144, Y 1: 649 in all, the anchor of the fewest accesses: 1200 + 108 + 144 + 1024 =
    // 2476.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y1 x18 i3; X root/yo; W root/root; "
               "Y root/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y1 x16 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_buffers(), Elements(180));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(216));
    EXPECT_EQ(counts.live_total, Elements(649));
    EXPECT_EQ(counts.accesses(), Elements(2476));
    EXPECT_EQ(counts.macs(), Macs(34992 + 36864));
}

TEST(WalkerFused, LineBuffersWithTheInputAtTheConsumersRow) {
    // X at conv2.yo: the first row of conv2 calls conv1 for 3 rows at once, so 5 rows of X are
    // there together; later bodies add one.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y1 x18 i3; X root/conv2.yo; W "
               "root/root; Y root/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y1 x16 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_buffers(), Elements(5 * 20 * 3));
    EXPECT_EQ(counts.input_reads(), Elements(1200));
}

TEST(WalkerFused, LineBuffersWithTheOutputSplitInTwo) {
    // yo 5 + 5 + 5 + 1, CL at yi: the three rows rotate across the tiles of yo as well; each row of
    // conv1 is computed once.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | yi zi xi ii n m; tile z4 y1 x18 i3; X root/yo; W root/root; "
               "Y root/conv2.yi & "
               "conv2: zo yo xo io | yi zi xi ii n m; tile z4 y5 x16 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(216));
    EXPECT_EQ(counts.layers[0].macs, Macs(34992));
    EXPECT_EQ(counts.input_reads(), Elements(1200));
    EXPECT_EQ(counts.input_buffers(), Elements(180));
}

TEST(WalkerFused, TiledOutputChannelsRecomputeTheProducer) {
    // zo of conv2 has two trips and the store level is inside: conv1 runs twice per tile.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; "
               "W root/root; Y conv2.xo/conv2.xo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y8 x8 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(86400));
    EXPECT_EQ(counts.input_reads(), Elements(2 * 1728));
}

TEST(WalkerFused, RaggedTilesOfTheSink) {
    // y 16 = 5 + 5 + 5 + 1, x 16 = 7 + 7 + 2. conv1 rows 7 + 7 + 7 + 3 = 24, columns 9 + 9 + 4 =
    // 22: 24 * 22 * 4 * 27 = 57024 per z tile. X rows 32, columns 28: 32 * 28 * 3 = 2688 per z
    // tile. Two z tiles (3 + 1), as in the notes: 114048 and 5376.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.xo/conv2.xo; "
               "W root/root; Y conv2.xo/conv2.xo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z3 y5 x7 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(114048));
    EXPECT_EQ(counts.input_reads(), Elements(5376));
    EXPECT_EQ(counts.layers[1].weight_reads, Elements(12 * 144));
}

TEST(WalkerFused, ChannelTilesOfTheSinkCallTheProducerForTheirChannels) {
    // T_i 3 of 4 at io: conv1 is called for channels 0-2, then for 3. X is read in both calls; MACs
    // stay. Y leaves twice.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.io/conv2.io; "
               "W conv2.io/conv2.io; Y conv2.io/conv2.io & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y8 x8 i3; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(43200));
    EXPECT_EQ(counts.input_reads(), Elements(2 * 1728));
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(4 * 108));
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(3 * 27));
    EXPECT_EQ(counts.output_reads, Elements(1024));
    EXPECT_EQ(counts.output_writes, Elements(2048));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(300));
}

TEST(WalkerFused, StrideTwoProducerLines) {
    // conv1 3x3 stride 2 on 19 x 19 -> 9 x 9, conv2 3x3 -> 7 x 7. Row by row: each row once. X 19 *
    // 19 * 3 = 1083, conv1 81 * 4 * 27. Of X 3 rows live when conv1 runs row by row: row 2 of a
    // window is row 0 of the next.
    const GroupCounts counts =
        walked(chain(3, 19, 19, {{4, square_window(3, 2)}, {4, square_window(3)}}),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y1 x9 i3; X root/yo; W root/root; Y "
               "root/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y1 x7 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(1083));
    EXPECT_EQ(counts.layers[0].macs, Macs(8748));
    EXPECT_EQ(counts.input_buffers(), Elements(3 * 19 * 3));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(3 * 9 * 4));
}

TEST(WalkerFused, PaddedChainKeepsItsLines) {
    // Two 3x3 with pad 1 on 8 x 8: the first body of conv2 needs rows 0-1 (row -1 is padding), the
    // last one adds nothing, so conv1 runs 7 times. Rows once: 64 * 9 MACs each. Three rows live in
    // both.
    const GroupCounts counts =
        walked(chain(1, 8, 8, {{1, square_window(3, 1, 1)}, {1, square_window(3, 1, 1)}}),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; X root/yo; W zo/zo; Y "
               "root/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(576));
    EXPECT_EQ(counts.input_reads(), Elements(64));
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(7 * 9));
    EXPECT_EQ(counts.input_buffers(), Elements(24));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(24));
}

TEST(WalkerFused, AGapThatWasPassedIsNotBroughtInLater) {
    // conv1 1x1 with row stride 4, 21 x 1 -> 6 x 1; conv2 3 x 1 -> 4 x 1 in tiles of 2 rows,
    // recomputing conv1 for rows 0-3, then 2-5. conv1 in tiles of 3 rows, X kept from the root on.
    // Rows 0-2 read the box 0-8 (9 elements), row 3 reads 12 (1; 9-11 are passed by). Rows 2-4 span
    // 8-16, of which 13-16 are new (4; 8 and 12 are there, nothing ever reads 9-11), row 5 reads 20
    // (1).
    Window strided = square_window(1);
    strided.stride = {4, 1};
    Window tall = square_window(1);
    tall.kernel = {3, 1};
    const GroupCounts counts =
        walked(chain(1, 21, 1, {{1, strided}, {1, tall}}),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y3 x1 i1; X root/yo; W root/root; Y "
               "conv2.yo/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y2 x1 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(9 + 1 + 4 + 1));
    EXPECT_EQ(counts.layers[0].macs, Macs(8));
}

TEST(WalkerFused, UpsamplingTailReusesItsInputRow) {
    // conv1 1x1 on 4 x 4, conv2 transposed 4x4 stride 2 pad 1 -> 8 x 8: every output row has two
    // taps (k and k + 2), rows floor((y-1)/2) and the next; clipped at the border. conv1's rows
    // once, two live. MACs: 16, and (8 * 2)^2.
    const GroupCounts counts = walked(
        chain(1, 4, 4,
              {{1, square_window(1)}, {1, square_window(4, 2, 1), 1, LayerKind::conv_transpose}}),
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X conv2.yo/conv2.yo; W "
        "root/root; Y root/conv2.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(16));
    EXPECT_EQ(counts.layers[1].macs, Macs(256));
    EXPECT_EQ(counts.input_reads(), Elements(16));
    EXPECT_EQ(counts.input_buffers(), Elements(4));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(2 * 4));
}

// ---- what a body will read (section 4, rule 3)

TEST(WalkerFutureCalls, InputOutsideTheProducersCallsIsNeededByTheirNewPartsOnly) {
    // conv1's output is kept from the root on, computed tile by tile; X lives for one yo. yo 0:
    // conv1 will be called for rows 0-9: rows 0-11 of X. yo 1: for rows 10-17 only: rows 10-19. (12
    // + 10) * 20 * 3.
    const GroupCounts counts = walked(l2net(), fused_8x8("conv2.yo/conv2.yo", "root/conv2.xo"));
    EXPECT_EQ(counts.input_reads(), Elements(22 * 20 * 3));
    EXPECT_EQ(counts.input_buffers(), Elements(12 * 20 * 3));
    EXPECT_EQ(counts.layers[0].macs, Macs(34992));
}

TEST(WalkerFutureCalls, ABodyWithoutCallsReadsNothing) {
    // zo of conv2 has two trips; in the second conv1's output is there already. X and W of conv1
    // live for one trip of zo, and the second trip needs neither: 1200 and 108, not twice.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.zo/conv2.zo; "
               "W conv2.zo/conv2.zo; Y root/conv2.xo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y8 x8 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(1200));
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(108));
    // The second trip reads all of conv1's output again.
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(18 * 18 * 4));
}

TEST(WalkerFutureCalls, WeightsOfTheChannelsThatWillBeComputed) {
    // conv2 is depthwise and tiles z by 2 of 4: conv1 is called for channels 0-1, then 2-3. W of
    // conv1 at conv2.zo: 2 * 3 * 9 each.
    const GroupCounts counts =
        walked(chain(3, 20, 20, {{4, square_window(3)}, {4, square_window(3), 4}}),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/root; W "
               "conv2.zo/conv2.zo; Y conv2.yo/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y8 x16 i1; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(108));
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(54));
    // Per zo: rows 10 + 10, 18 columns, 2 channels, 27 MACs.
    EXPECT_EQ(counts.layers[0].macs, Macs(2 * 20 * 18 * 2 * 27));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(10 * 18 * 2));
    EXPECT_EQ(counts.layers[1].macs, Macs(1024 * 9));
}

/// Three 3x3 layers: 12x12x1 -> 10x10x1 -> 8x8x1 -> 6x6x1.
Network three_layers() {
    return chain(1, 12, 12, {{1, square_window(3)}, {1, square_window(3)}, {1, square_window(3)}});
}

TEST(WalkerFutureCalls, ThreeLayersAtOneLevel) {
    // Tiles of 3 rows, all at conv3.yo, kept from the root on: each row once. Bodies: conv2 5 then
    // 3 rows, conv1 7 then 3, X 9 then 3. Live: conv2's output 5 x 8; conv1's 7 x 10; X 9 x 12.
    const GroupCounts counts = walked(
        three_layers(),
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y10 x10 i1; X root/conv3.yo; W root/root; "
        "Y root/conv3.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y8 x8 i1; W root/root; Y root/conv3.yo & "
        "conv3: zo yo xo io | zi yi xi ii n m; tile z1 y3 x6 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(900));
    EXPECT_EQ(counts.layers[1].macs, Macs(576));
    EXPECT_EQ(counts.layers[2].macs, Macs(324));
    EXPECT_EQ(counts.input_reads(), Elements(144));
    EXPECT_EQ(counts.input_buffers(), Elements(9 * 12));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(7 * 10));
    EXPECT_EQ(counts.layers[1].output_buffer, Elements(5 * 8));
}

TEST(WalkerFutureCalls, ThreeLayersAtThreeDepths) {
    // conv2's output at conv3.xo (3 x 3 tiles), kept along both; conv1's output at conv3.yo, living
    // for that body only; X at root. yo 0: conv2 will be called for rows 0-4, all columns: conv1
    // rows 0-6. yo 1: for rows 5-7: conv1 rows 5-9, rows 5 and 6 again. conv1: (7 + 5) * 10 * 9 =
    // 1080. X at root: all 144 once, all of it live.
    const GroupCounts counts = walked(
        three_layers(),
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y10 x10 i1; X root/root; W root/root; Y "
        "conv3.yo/conv3.yo & "
        "conv2: zo yo xo io | zi yi xi ii n m; tile z1 y8 x8 i1; W root/root; Y root/conv3.xo & "
        "conv3: zo yo xo io | zi yi xi ii n m; tile z1 y3 x3 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(1080));
    EXPECT_EQ(counts.layers[1].macs, Macs(576));
    EXPECT_EQ(counts.input_reads(), Elements(144));
    EXPECT_EQ(counts.input_buffers(), Elements(144));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(7 * 10));
    EXPECT_EQ(counts.layers[1].output_buffer, Elements(5 * 8));
}

TEST(WalkerFutureCalls, AProducerInsideItsConsumersOwnNest) {
    // conv1's output hangs at conv2.yi, inside the nest of conv2, which itself hangs at conv3.yo
    // and recomputes: conv2 is called for rows 0-4 and 3-7, conv1's lines live for one call: rows
    // 0-6 and 3-9, three at a time.
    const GroupCounts counts =
        walked(three_layers(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x10 i1; X yo/yo; W root/root; Y "
               "conv3.yo/conv2.yi & "
               "conv2: zo yo xo io | yi zi xi ii n m; tile z1 y8 x8 i1; W root/root; Y "
               "conv3.yo/conv3.yo & "
               "conv3: zo yo xo io | zi yi xi ii n m; tile z1 y3 x6 i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[1].macs, Macs(2 * 5 * 8 * 9));
    EXPECT_EQ(counts.layers[0].macs, Macs(2 * 7 * 10 * 9));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(3 * 10));
    // X is not kept: 3 rows of 12 for each of 14 rows.
    EXPECT_EQ(counts.input_reads(), Elements(14 * 3 * 12));
}

// ---- strips, footprint

TEST(WalkerStrips, HaloBetweenStripsIsRecomputed) {
    // Strips of 6 rows: 6 + 6 + 4. Lines kept inside a strip: conv1 8 + 8 + 6 = 22 rows of 18, X 10
    // + 10 + 8 = 28 rows of 20.
    const GroupCounts counts = walked(l2net(),
                                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y1 x18 i3; X "
                                      "conv2.ys/yo; W root/root; Y conv2.ys/conv2.yo & "
                                      "conv2: ys || zo yo xo io | zi yi xi ii n m; strip y6; tile "
                                      "z4 y1 x16 i4; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].macs, Macs(22 * 18 * 4 * 27));
    EXPECT_EQ(counts.layers[1].macs, Macs(36864));
    EXPECT_EQ(counts.input_reads(), Elements(28 * 20 * 3));
    EXPECT_EQ(counts.input_buffers(), Elements(3 * 20 * 3));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(3 * 18 * 4));
}

TEST(WalkerStrips, TilesStartAtTheStripAndAreCutByIt) {
    // Strips of 7 rows and 10 columns of 16 x 16: 7 + 7 + 2 and 10 + 6; tiles of 4: 4 + 3, 4 + 3, 2
    // and 4 + 4 + 2, 4 +
    // 2. One 3x3 layer, X at the tile: rows 6 + 5 + 6 + 5 + 4 = 26, columns 6 + 6 + 4 + 6 + 4 = 26,
    // 4 channels.
    const GroupCounts counts = walked(l2net_conv2(),
                                      "{conv1: ys xs || zo yo xo io | zi yi xi ii n m; strip y7 "
                                      "x10; tile z4 y4 x4 i4; X xo/xo; W ys/ys; Y xs/xs}");
    EXPECT_EQ(counts.input_reads(), Elements(26 * 26 * 4));
    EXPECT_EQ(counts.weight_reads(), Elements(3 * 144));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(4 * 7 * 10));
    EXPECT_EQ(counts.output_writes, Elements(1024));
}

TEST(WalkerFootprint, BuffersOfSiblingBodiesAreNotLiveTogether) {
    // X 432 and W 108 of conv1 live inside conv1's nest (its io body), W 144 and Y 1 of conv2
    // inside conv2's; conv1's output 400 around both. Live: 400 + max(432 + 108, 144 + 1); the sum
    // has them all.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X io/io; W io/io; Y "
               "conv2.xo/conv2.xo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z4 y8 x8 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.live_total, Elements(400 + 540));
    EXPECT_EQ(counts.sum_total, Elements(400 + 540 + 145));
}

TEST(WalkerFootprint, GapsOfAStrideAreHeldWhenABodySpansThem) {
    // 1x1 stride 3 on 10 x 10, tiles of 2 x 2 outputs: boxes of 4 x 4; kept from the root on they
    // do not overlap: 4 x 4 and no more.
    const GroupCounts counts = walked(chain(1, 10, 10, {{1, square_window(1, 3)}}),
                                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y2 x2 i1; X "
                                      "root/xo; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_buffers(), Elements(16));
    EXPECT_EQ(counts.input_reads(), Elements(64));
}

TEST(WalkerFootprint, ColumnsAreReusedWhenTheRowLoopIsInside) {
    // xo outside yo, both 8 of 16, everything kept from the root on: the columns of the halo must
    // survive a walk over all rows: 18 rows x 10 columns x 4.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/root; W "
               "root/root; Y root/conv2.yo & "
               "conv2: zo xo yo io | zi yi xi ii n m; tile z4 y8 x8 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(18 * 10 * 4));
    EXPECT_EQ(counts.layers[0].macs, Macs(34992));
}

TEST(WalkerFootprint, AnInputThatIsNotNeededAgainNeedNotStay) {
    // zo of conv2 has two trips, but conv1 runs in the first only: X is never needed again, so its
    // rows rotate: the 12 rows that the first tile needs, 12 x 20 x 3. conv1's output is read again
    // in the second trip and stays whole.
    const GroupCounts counts =
        walked(l2net(),
               "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X root/conv2.yo; W "
               "root/root; Y root/conv2.yo & "
               "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y8 x16 i4; W io/io; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(1200));
    EXPECT_EQ(counts.input_buffers(), Elements(12 * 20 * 3));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(18 * 18 * 4));
}

TEST(WalkerTrips, WeightsOfEveryPixelAreReadForEachOfThem) {
    // 2 * 3 * 9 weights for each of a million pixels. Each pair of channels needs its 9 once, so the
    // buffer holds those of one pair.
    const int64_t side = 1000;
    const GroupCounts counts = walked(chain(3, side, side, {{2, square_window(3, 1, 1)}}),
                                      "{conv1: zo yo xo io | yi xi zi ii n m; tile z2 y1000 "
                                      "x1000 i3; X root/root; W xi/ii; Y root/root}");
    EXPECT_EQ(counts.weight_reads(), Elements(54) * side * side);
    EXPECT_EQ(counts.macs(), Macs(54) * side * side);
    EXPECT_EQ(counts.layers[0].weight_buffer, Elements(9));
}

/// Alike trips are as common in these groups as all the others.
template <class MakeNetwork>
void expect_alike_trips_count_as_every_trip(const MakeNetwork& make, uint64_t seeds) {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        const Network network = make(seed);
        RandomOptions options;
        options.max_macs = Macs(200'000);
        const Schedule schedule = random_schedule(network, seed, options);
        for (const GroupSchedule& group : schedule.groups()) {
            ASSERT_EQ(difference(walk(network, group), "together",
                                 walk(network, group, WalkTrips::every_trip), "one by one"),
                      "")
                << "seed " << seed << ": " << to_text(group);
        }
    }
}

TEST(WalkerTrips, AlikeTripsCountAsEveryTrip) {
    expect_alike_trips_count_as_every_trip(random_chain, 1000);
    expect_alike_trips_count_as_every_trip(random_network, 500);
    expect_alike_trips_count_as_every_trip(random_picture_network, 500);
}

}  // namespace
}  // namespace laminate
