// The numbers of the examples in docs/counting.md, in the order of the page. The walker and the
// closed form must both find them. Sizes in the comments read rows x columns x channels.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "instrumentation/walker.h"
#include "nets/network/network.h"
#include "nets/network/picture_views.h"
#include "scheduler/counts/counts.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

GroupCounts counted(const Network& network, const std::string& text) {
    const GroupSchedule group = parse_group(network, text);
    const GroupCounts walked = walk(network, group);
    EXPECT_EQ(difference(walked, "walker", two_level_counts(network, group), "closed form"), "");
    return walked;
}

/// Why the schedule is refused.
std::string refusal(const Network& network, const std::string& text) {
    try {
        (void)parse_group(network, text);
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

Network single(int64_t channels, int64_t size, const LayerSpec& spec) {
    return chain(channels, size, size, {spec});
}

/// The small layer of the page: 3x3, padding 1, 10 x 10 x 1.
Network small_layer() { return single(1, 10, {1, square_window(3, 1, 1)}); }

/// The small layer by tiles of four rows.
GroupCounts small(const std::string& x, const std::string& w = "root/root") {
    return counted(small_layer(), "{conv1: yo zo xo io | zi yi xi ii n m; tile z1 y4 x10 i1; X " +
                                      x + "; W " + w + "; Y xi/xi}");
}

TEST(CountingPage, Section1Padding) {
    EXPECT_EQ(small("root/yo").macs(), Macs(900));
    EXPECT_EQ(small("root/yo").input_reads(), Elements(100));
}

TEST(CountingPage, Section1Grouped) {
    const GroupCounts counts =
        counted(single(6, 4, {4, square_window(1), 2}),
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i3; X zo/zo; W zo/zo; Y "
                "xi/xi}");
    EXPECT_EQ(counts.macs(), Macs(192));
    EXPECT_EQ(counts.input_reads(), Elements(96 + 48));
    EXPECT_EQ(counts.weight_reads(), Elements(12));
}

TEST(CountingPage, Section1Depthwise) {
    const GroupCounts counts =
        counted(single(4, 10, {4, square_window(3), 4}),
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y8 x8 i1; X zo/zo; W zo/zo; Y "
                "xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(300 + 100));
    EXPECT_EQ(counts.weight_reads(), Elements(36));
    EXPECT_EQ(counts.macs(), Macs(256 * 9));
}

TEST(CountingPage, Section1Transposed) {
    const Network network = single(2, 4, {3, square_window(3, 2, 1), 1, LayerKind::conv_transpose});
    const LayerProblem problem = layer_problem(network, 0);
    // The drawing: input rows of kernel rows 0, 1, 2 for output rows 0 to 6; -1 is no tap.
    const int64_t drawn[7][3] = {{-1, 0, -1}, {1, -1, 0}, {-1, 1, -1}, {2, -1, 1},
                                 {-1, 2, -1}, {3, -1, 2}, {-1, 3, -1}};
    ASSERT_EQ(problem[Dim::y], 7);
    for (int64_t y = 0; y < 7; ++y)
        for (int64_t n = 0; n < 3; ++n)
            EXPECT_EQ(problem.y().input(y, n).value_or(-1), drawn[y][n]) << y << " " << n;
    const GroupCounts counts =
        counted(network,
                "{conv1: yo zo xo io | zi yi xi ii n m; tile z3 y1 x7 i2; X root/yo; W root/root; "
                "Y xi/xi}");
    EXPECT_EQ(counts.macs(), Macs(3 * 2 * 10 * 10));
    EXPECT_EQ(counts.input_reads(), Elements(32));
}

TEST(CountingPage, Section1Pooling) {
    Network network = empty_network(3, 8, 8);
    append(network, "pool1",
           {.kind = LayerKind::max_pool, .inputs = {0}, .window = square_window(2, 2)});
    const GroupCounts counts = counted(
        network, "{pool1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X zo/yo; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(192));
    EXPECT_EQ(counts.output_writes, Elements(48));
    EXPECT_EQ(counts.macs(), Macs(0));
    EXPECT_EQ(counts.weight_reads(), Elements(0));
    EXPECT_EQ(counts.input_buffers(), Elements(2 * 8));
}

TEST(CountingPage, Section1ConcatAndRule8Operands) {
    Network network = empty_network(1, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {3, square_window(1)});
    const TensorId conv2 = append(network, "conv2", 0, {2, square_window(1)});
    append(network, "concat3", {.kind = LayerKind::concat, .inputs = {conv1, conv2}, .axis = 1});
    EXPECT_EQ(layer_problem(network, 2).inputs[1].first_output_channel, 3);
    const std::string at_zo = "W concat3.zo/concat3.zo; Y concat3.zo/concat3.zo & ";
    const GroupCounts counts = counted(
        network,
        "{conv1: zo yo xo io | zi yi xi ii n m; tile z3 y4 x4 i1; X concat3.zo/concat3.zo; " +
            at_zo + "conv2: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; " + at_zo +
            "concat3: zo yo xo io | zi yi xi ii n m; tile z2 y4 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.layers[0].weight_reads, Elements(2 + 1 + 0));
    EXPECT_EQ(counts.layers[1].weight_reads, Elements(0 + 1 + 1));
    EXPECT_EQ(counts.macs(), Macs(3 * 16 + 2 * 16));
    EXPECT_EQ(counts.input_reads(), Elements(3 * 16));
}

TEST(CountingPage, Section1APart) {
    Network network = empty_network(6, 4, 4);
    append(network, "half1",
           {.kind = LayerKind::general,
            .inputs = {0},
            .general = part_of(network.tensor(0).dims, {3, 0, 0}, {3, 4, 4})});
    EXPECT_EQ(layer_problem(network, 0).inputs[0].first_output_channel, -3);
    const GroupCounts counts = counted(
        network, "{half1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; X zo/zo; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements(48));
}

/// 8 channels on 2 x 3.
Network enlarged(Layer layer) {
    Network network = empty_network(8, 2, 3);
    layer.inputs = {0};
    append(network, "layer1", std::move(layer));
    return network;
}

TEST(CountingPage, Section1DepthToSpace) {
    for (const bool crd : {false, true}) {
        const Network network = enlarged(
            {.kind = LayerKind::depth_to_space, .block = 2, .depth_to_space_crd = crd});
        const LayerProblem problem = layer_problem(network, 0);
        EXPECT_EQ(problem.extent, (PerDim<int64_t>{2, 4, 6, crd ? 4 : 8}));
        EXPECT_EQ(problem.groups, crd ? 2 : 1);
        EXPECT_EQ(problem.y().input(1, 1), 0);
        EXPECT_EQ(problem.x().input(2, 0), 1);
        const std::string nest = "{layer1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x6 i" +
                                 std::to_string(problem[Dim::i]);
        const GroupCounts counts = counted(network, nest + "; X zo/zo; Y xi/xi}");
        EXPECT_EQ(counts.input_reads(), Elements(crd ? 48 : 96));
        EXPECT_EQ(counts.macs(), Macs(0));
        EXPECT_EQ(refusal(network, nest + "; X zo/ii; Y xi/xi}"),
                  "layer1: the input of a rearrangement has compute level ii, not outside ii; "
                  "expected a loop around ii");
        EXPECT_EQ(refusal(network, nest + "; X zo/zo; Y ii/ii}"),
                  "layer1: Y of a rearrangement has level ii, inside ii, where it has no partial "
                  "sums; expected a loop around ii");
        EXPECT_EQ(refusal(network, "{layer1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x6 i2; "
                                   "X zo/zo; Y xi/xi}"),
                  "layer1: tile of i is 2 of " + std::to_string(problem[Dim::i]) +
                      "; a rearrangement cannot leave partial sums");
    }
}

TEST(CountingPage, Section1RepeatedRowsAndColumns) {
    const Network network = enlarged(
        {.kind = LayerKind::general, .general = repeated({1, 8, 2, 3}, {2, 2})});
    for (const std::string x : {"root/yo", "yo/yo"}) {
        const GroupCounts counts =
            counted(network, "{layer1: yo zo xo io | zi yi xi ii n m; tile z8 y1 x6 i1; X " + x +
                                 "; Y xi/xi}");
        EXPECT_EQ(counts.input_reads(), Elements(x == "root/yo" ? 48 : 96));
    }
}

TEST(CountingPage, Section1Normalisations) {
    Network network = empty_network(4, 3, 5);
    append(network, "softmax1", {.kind = LayerKind::softmax, .inputs = {0}});
    const std::string by_channels =
        "{softmax1: zo yo xo io | zi yi xi ii n m; tile z1 y3 x5 i4; X zo/zo; Y xi/xi}";
    EXPECT_EQ(counted(network, by_channels).input_reads(), Elements(240));
    EXPECT_EQ(counted(network, by_channels).macs(), Macs(0));
    const GroupCounts by_rows = counted(
        network, "{softmax1: yo zo xo io | zi yi xi ii n m; tile z4 y1 x5 i4; X yo/yo; Y xi/xi}");
    EXPECT_EQ(by_rows.input_reads(), Elements(60));
    EXPECT_EQ(by_rows.inputs[0].buffer, Elements(20));
    EXPECT_EQ(refusal(network, "{softmax1: zo yo xo io | zi yi xi ii n m; tile z4 y3 x5 i4; "
                               "X zo/zo; Y ii/ii}"),
              "softmax1: Y of a normalisation has level ii, inside ii, where it has no partial "
              "sums; expected a loop around ii");
}

TEST(CountingPage, Section1ReductionsOfChannels) {
    Network network = empty_network(4, 3, 5);
    append(network, "extreme1",
           {.kind = LayerKind::general,
            .inputs = {0},
            .general = {.kind = GeneralKind::reduce,
                        .function = GeneralFunction::largest,
                        .axes = {1}}});
    for (const auto& [x, buffer] : {std::pair{"yo/yo", 20}, std::pair{"xi/xi", 4}}) {
        const GroupCounts counts =
            counted(network, "{extreme1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x5 i4; X " +
                                 std::string(x) + "; Y xi/xi}");
        EXPECT_EQ(counts.input_reads(), Elements(60));
        EXPECT_EQ(counts.inputs[0].buffer, Elements(buffer));
        EXPECT_EQ(counts.output_writes, Elements(15));
        EXPECT_EQ(counts.macs(), Macs(0));
    }
    EXPECT_EQ(refusal(network, "{extreme1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x5 i4; "
                               "X ii/ii; Y xi/xi}"),
              "extreme1: the input of a reduction of channels has compute level ii, not outside ii; "
              "expected a loop around ii");
    EXPECT_EQ(refusal(network, "{extreme1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x5 i2; "
                               "X yo/yo; Y xi/xi}"),
              "extreme1: tile of i is 2 of 4; a reduction of channels cannot leave partial sums");
}

TEST(CountingPage, Section1RepeatedOperands) {
    Network network = empty_network(3, 4, 4);
    network.tensors.push_back({"factors", {1, 3, 1, 1}});
    network.inputs.push_back(1);
    append(network, "product1",
           {.kind = LayerKind::general,
            .inputs = {0, 1},
            .general = {.kind = GeneralKind::binary, .function = GeneralFunction::multiply}});
    EXPECT_TRUE(layer_problem(network, 0).inputs[1].is_pixel);
    for (const std::string factors : {"root/yo", "yo/yo"}) {
        const GroupCounts counts = counted(
            network, "{product1: yo zo xo io | zi yi xi ii n m; tile z3 y1 x4 i1; X0 yo/yo; X1 " +
                         factors + "; Y xi/xi}");
        EXPECT_EQ(counts.inputs[0].reads, Elements(48));
        EXPECT_EQ(counts.inputs[1].reads, Elements(factors == "yo/yo" ? 12 : 3));
    }
}

TEST(CountingPage, Section1SpaceToDepthAndShuffles) {
    Network shuffle = empty_network(6, 4, 4);
    append(shuffle, "shuffle1",
           {.kind = LayerKind::general, .inputs = {0}, .general = blocks_of(1, 2)});
    EXPECT_EQ(counted(shuffle, "{shuffle1: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i6; X zo/zo; "
                               "Y xi/xi}")
                  .input_reads(),
              Elements(576));
    EXPECT_EQ(counted(shuffle, "{shuffle1: yo zo xo io | zi yi xi ii n m; tile z6 y1 x4 i6; X yo/yo; "
                               "Y xi/xi}")
                  .input_reads(),
              Elements(96));
    for (const auto& [z, from] : {std::pair{1, 3}, std::pair{2, 1}, std::pair{5, 5}})
        EXPECT_EQ(place_before_shuffle(z, 6, 2), from);

    Network blocks = empty_network(3, 4, 4);
    append(blocks, "blocks1",
           {.kind = LayerKind::general, .inputs = {0}, .general = blocks_of(2, 1)});
    EXPECT_EQ(layer_problem(blocks, 0).groups, 3);
    EXPECT_EQ(counted(blocks, "{blocks1: zo yo xo io | zi yi xi ii n m; tile z1 y2 x2 i1; X zo/zo; "
                              "Y xi/xi}")
                  .input_reads(),
              Elements(192));
}

/// Needed rows, by output row.
std::vector<std::pair<int64_t, int64_t>> needed_rows(const GeneralOperator& general) {
    Network network = empty_network(1, 6, 6);
    append(network, "layer1", {.kind = LayerKind::general, .inputs = {0}, .general = general});
    const AxisWindow rows = layer_problem(network, 0).y();
    std::vector<std::pair<int64_t, int64_t>> needed;
    for (int64_t y = 0; y < rows.out; ++y)
        needed.emplace_back(rows.sampled_begin(y), rows.sampled_end(y + 1) - 1);
    return needed;
}

TEST(CountingPage, Section1PadAndResize) {
    using Needed = std::vector<std::pair<int64_t, int64_t>>;
    const std::vector<int64_t> map{1, 1, 6, 6};
    EXPECT_EQ(needed_rows(padded(map, {Padding::Mode::reflect, {2, 2}, {2, 2}})),
              (Needed{{0, 2}, {0, 2}, {0, 2}, {1, 2}, {2, 2}, {3, 3}, {3, 4}, {3, 5}, {3, 5}, {3, 5}}));
    for (const Padding::Mode mode : {Padding::Mode::constant, Padding::Mode::edge}) {
        EXPECT_EQ(
            needed_rows(padded(map, {mode, {2, 2}, {2, 2}})),
            (Needed{{0, 0}, {0, 0}, {0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {5, 5}, {5, 5}}));
    }
    EXPECT_EQ(needed_rows(interpolated(map, {12, 12})),
              (Needed{{0, 0}, {0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 3}, {2, 3}, {3, 4}, {3, 4}, {4, 5},
                      {4, 5}, {5, 5}}));
}

TEST(CountingPage, Section2Strips) {
    const GroupCounts counts =
        counted(small_layer(),
                "{conv1: ys || yo zo xo io | zi yi xi ii n m; strip y6; tile z1 y4 x10 i1; X "
                "ys/yo; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements((7 + 5) * 10));
}

/// L2Net by line buffers, with the input of conv1 at `x`.
GroupCounts line_buffers(const std::string& x) {
    return counted(l2net(), "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y1 x18 i3; X " + x +
                                "; W root/root; Y root/conv2.yo & conv2: yo zo xo io | zi yi xi ii "
                                "n m; tile z4 y1 x16 i4; W root/root; Y xi/xi}");
}

TEST(CountingPage, Section3LineBuffersAndSection6Sums) {
    const GroupCounts counts = line_buffers("root/yo");
    EXPECT_EQ(counts.input_reads(), Elements(20 * 20 * 3));
    EXPECT_EQ(counts.weight_reads(), Elements(108 + 144));
    EXPECT_EQ(counts.output_writes, Elements(16 * 16 * 4));
    EXPECT_EQ(counts.output_reads, Elements(0));
    EXPECT_EQ(counts.accesses(), Elements(2476));
    EXPECT_EQ(counts.layers[0].macs, Macs(18 * 18 * 4 * 3 * 9));
    EXPECT_EQ(counts.layers[1].macs, Macs(16 * 16 * 4 * 4 * 9));
    EXPECT_EQ(counts.input_buffers(), Elements(3 * 20 * 3));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(3 * 18 * 4));
    EXPECT_EQ(counts.live_total, Elements(180 + 216 + 108 + 144 + 1));
    EXPECT_EQ(counts.sum_total, counts.live_total);
}

TEST(CountingPage, Section4Rules1And2AndSection5) {
    EXPECT_EQ(small("root/yo").input_reads(), Elements((5 + 4 + 1) * 10));
    EXPECT_EQ(small("yo/yo").input_reads(), Elements((5 + 6 + 3) * 10));
    EXPECT_EQ(small("root/yo").input_buffers(), Elements(6 * 10));
    EXPECT_EQ(small("yo/yo").input_buffers(), Elements(6 * 10));
}

TEST(CountingPage, Section4Rule3) {
    const Network network =
        chain(1, 10, 10, {{1, square_window(3, 1, 1)}, {1, square_window(3, 1, 1)}});
    const GroupCounts counts =
        counted(network,
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y10 x10 i1; X conv2.yo/conv2.yo; W "
                "root/root; Y root/conv2.yo & conv2: yo zo xo io | zi yi xi ii n m; tile z1 y4 x10 "
                "i1; W root/root; Y xi/xi}");
    EXPECT_EQ(counts.input_reads(), Elements((6 + 6 + 2) * 10));
    EXPECT_EQ(counts.layers[0].macs, Macs((5 + 4 + 1) * 10 * 9));
}

TEST(CountingPage, Section4Rule4) {
    const Network network = single(1, 10, {1, square_window(1, 3)});
    const auto at = [&](const std::string& x) {
        return counted(network, "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y2 x2 i1; X " + x +
                                    "; W root/root; Y xi/xi}");
    };
    EXPECT_EQ(at("xo/xo").input_reads(), Elements(4 * 16));
    EXPECT_EQ(at("root/xi").input_reads(), Elements(16));
}

TEST(CountingPage, Section4Rule5) {
    EXPECT_EQ(small("root/yo", "yi/yi").weight_reads(), Elements(10 * 9));
}

TEST(CountingPage, Section4Rule6) {
    const auto at = [](const std::string& tile) {
        return counted(single(3, 20, {4, square_window(3)}),
                       "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 " + tile +
                           "; X io/io; W io/io; Y xi/xi}");
    };
    EXPECT_EQ(at("i1").output_writes, Elements(3 * 1296));
    EXPECT_EQ(at("i1").output_reads, Elements(2 * 1296));
    EXPECT_EQ(at("i3").output_writes, Elements(1296));
    EXPECT_EQ(at("i3").output_reads, Elements(0));
}

TEST(CountingPage, Section4Rule7) {
    EXPECT_EQ(refusal(l2net(),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i1; X "
                      "root/root; W root/root; Y root/conv2.yo & conv2: yo zo xo io | "
                      "zi yi xi ii n m; tile z4 y4 x16 i4; W root/root; Y xi/xi}"),
              "conv1: tile of i is 1 of 3; a layer that is not the last of its group cannot leave "
              "partial sums");
}

TEST(CountingPage, Section4Rule8Rows) {
    const GroupCounts counts =
        counted(residual(),
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; X root/add2.yo; W "
                "root/root; Y add2.yo/add2.yo & "
                "add2: yo zo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; Y xi/xi}");
    EXPECT_EQ(counts.inputs[0].reads, Elements(64));
    EXPECT_EQ(counts.inputs[0].buffer, Elements(3 * 8));
    EXPECT_EQ(counts.live_total, Elements(24 + 9 + 8 + 1));
}

TEST(CountingPage, Section4Rule8Channels) {
    Network network = empty_network(4, 4, 4);
    const TensorId conv1 = append(network, "conv1", 0, {4, square_window(3, 1, 1), 4});
    append(network, "add2", {.kind = LayerKind::add, .inputs = {conv1, 0}});
    const GroupCounts counts =
        counted(network,
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y4 x4 i1; X add2.zo/add2.zo; W "
                "root/root; Y add2.zo/add2.zo & add2: zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 "
                "i1; Y xi/xi}");
    EXPECT_EQ(counts.inputs[0].reads, Elements(4 * 64));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(16));
}

TEST(CountingPage, Section4Rule8AxesByThemselves) {
    Network network = empty_network(1, 4, 4);
    const auto window = [](int64_t ky, int64_t kx, int64_t sy, int64_t sx) {
        Window w;
        w.kernel = {ky, kx};
        w.stride = {sy, sx};
        return w;
    };
    const auto up = LayerKind::conv_transpose;
    const TensorId conv1 = append(network, "conv1", 0, {1, window(1, 1, 2, 1)});
    const TensorId up2 = append(network, "up2", conv1, {1, window(2, 1, 2, 1), 1, up});
    const TensorId conv3 = append(network, "conv3", 0, {1, window(1, 1, 1, 2)});
    const TensorId up4 = append(network, "up4", conv3, {1, window(1, 2, 1, 2), 1, up});
    append(network, "add5", {.kind = LayerKind::add, .inputs = {up2, up4}});
    const std::string loops = ": zo yo xo io | zi yi xi ii n m; tile z1 y";
    const GroupCounts counts =
        counted(network,
                "{conv1" + loops + "2 x4 i1; X root/add5.xi; W root/root; Y root/add5.xi & up2" +
                    loops + "4 x4 i1; W root/root; Y add5.xi/add5.xi & conv3" + loops +
                    "4 x2 i1; W root/root; Y root/add5.xi & up4" + loops +
                    "4 x4 i1; W root/root; Y add5.xi/add5.xi & add5" + loops + "4 x4 i1; Y xi/xi}");
    EXPECT_EQ(counts.inputs[0].reads, Elements(16));
    EXPECT_EQ(counts.layers[0].macs, Macs(8));
    EXPECT_EQ(counts.layers[2].macs, Macs(8));
}

TEST(CountingPage, Section4Rule8StoreLevel) {
    // X may not live in a tile while conv1's output lives at the root.
    EXPECT_EQ(refusal(residual(),
                      "{conv1: zo yo xo io | zi yi xi ii n m; tile z1 y1 x8 i1; X "
                      "add2.yo/add2.yo; W root/root; Y root/add2.yo & add2: yo zo xo "
                      "io | zi yi xi ii n m; tile z1 y1 x8 i1; Y xi/xi}"),
              "conv1: computes from input, which several layers of the group read and which is "
              "stored at add2.yo, inside the store level root of its own output; expected to be "
              "stored there or further out");
}

TEST(CountingPage, Section4Rule8NoGaps) {
    Network network = empty_network(1, 7, 7);
    const TensorId conv1 = append(network, "conv1", 0, {1, square_window(1, 2)});
    const TensorId conv2 = append(network, "conv2", 0, {1, square_window(1, 2)});
    append(network, "add3", {.kind = LayerKind::add, .inputs = {conv1, conv2}});
    const std::string nest = ": zo yo xo io | zi yi xi ii n m; tile z1 y4 x4 i1; ";
    const GroupCounts shared =
        counted(network,
                "{conv1" + nest + "X root/add3.yo; W root/root; Y add3.yo/add3.yo & conv2" + nest +
                    "W root/root; Y add3.yo/add3.yo & add3: yo zo xo io | zi yi xi ii n m; tile z1 "
                    "y1 x4 i1; Y xi/xi}");
    EXPECT_EQ(shared.inputs[0].reads, Elements(49));
    const GroupCounts alone = counted(single(1, 7, {1, square_window(1, 2)}),
                                      "{conv1: yo zo xo io | zi yi xi ii n m; tile z1 y1 x4 i1; X "
                                      "root/yo; W root/root; Y xi/xi}");
    EXPECT_EQ(alone.input_reads(), Elements(4 * 7));
}

TEST(CountingPage, Section5Walk) {
    const auto buffer = [](const std::string& x) {
        return counted(single(3, 20, {4, square_window(3)}),
                       "{conv1: zo yo xo io | zi yi xi ii n m; tile z2 y6 x6 i3; X " + x +
                           "; W io/io; Y xi/xi}")
            .input_buffers();
    };
    EXPECT_EQ(buffer("io/io"), Elements(8 * 8 * 3));
    EXPECT_EQ(buffer("io/yi"), Elements(8 * 8 * 3));
    EXPECT_EQ(buffer("zi/yi"), Elements(3 * 8 * 3));
    EXPECT_EQ(buffer("zi/xi"), Elements(3 * 8 * 3));
    EXPECT_EQ(buffer("yi/xi"), Elements(3 * 3 * 3));
}

TEST(CountingPage, Section5LiveAndSum) {
    // Weights of conv1 live while conv1 runs, those of conv2 while conv2 runs.
    const GroupCounts counts =
        counted(l2net(),
                "{conv1: zo yo xo io | zi yi xi ii n m; tile z4 y18 x18 i3; X conv2.yo/conv2.yo; W "
                "zo/zo; Y conv2.yo/conv2.yo & conv2: yo zo xo io | zi yi xi ii n m; tile z4 y4 x16 "
                "i4; W zo/zo; Y xi/xi}");
    EXPECT_EQ(counts.input_buffers(), Elements(8 * 20 * 3));
    EXPECT_EQ(counts.layers[0].output_buffer, Elements(6 * 18 * 4));
    EXPECT_EQ(counts.live_total, Elements(480 + 432 + 144 + 1));
    EXPECT_EQ(counts.sum_total, Elements(480 + 432 + 108 + 144 + 1));
}

}  // namespace
}  // namespace laminate
