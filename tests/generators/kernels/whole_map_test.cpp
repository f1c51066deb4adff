// Layers straight from the caller's arrays: right, within their arrays, and bit for bit what the
// kernels over line buffers compute.
#include "tests/generators/kernels/code_by_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "generators/compile/group_reference.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/schedule/kernel_legality.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "tests/generators/kernels/added.h"
#include "tests/generators/kernels/last_elements.h"
#include "tests/generators/kernels/poisoned_run.h"
#include "tests/support/chain.h"

namespace laminate {
namespace {

constexpr VectorUnit avx512{16, 24};

/// Layers with seeded weights between -1 and 1, a bias and a PRelu.
Network layers_of(int64_t channels, int64_t rows, int64_t columns,
                  const std::vector<LayerSpec>& specs) {
    std::mt19937 random(11);
    const auto values = [&](int64_t count) {
        std::vector<float> all(static_cast<size_t>(count));
        for (float& v : all) v = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
        return all;
    };
    Network network = chain(channels, rows, columns, specs);
    for (size_t n = 0; n < specs.size(); ++n) {
        Layer& layer = network.layers[n];
        const int64_t of_layer = specs[n].channels;
        const auto by_channel = [&] {
            return std::make_shared<const Constant>(Constant{{of_layer}, values(of_layer)});
        };
        layer.weights = std::make_shared<const Constant>(
            Constant{layer.weights->dims, values(element_count(layer.weights->dims))});
        layer.bias = by_channel();
        layer.activation = {.kind = ActivationKind::prelu, .slope = by_channel()};
    }
    return network;
}

Network layer_of(int64_t channels, int64_t rows, int64_t columns, const LayerSpec& spec) {
    return layers_of(channels, rows, columns, {spec});
}

LayerSpec pointwise(int64_t channels) { return {.channels = channels, .window = square_window(1)}; }
LayerSpec depthwise(int64_t channels, const Window& window) {
    return {.channels = channels, .window = window, .groups = channels};
}

float range_of(const std::vector<float>& values) {
    float range = 0;
    for (const float v : values) range = std::max(range, std::abs(v));
    return range;
}

/// Runs code of one input whole and part by part; both are right and equal, and read nothing outside
/// of the input. Returns the output.
std::vector<float> output_expected_right(const GroupCode& code,
                                         const std::vector<std::vector<float>>& inputs,
                                         const std::vector<float>& expected,
                                         const std::string& what) {
    const Outcome strips = run_poisoned(code, expected.size(), inputs, true);
    const Outcome whole = run_poisoned(code, expected.size(), inputs, false);
    EXPECT_TRUE(whole.guards_intact && strips.guards_intact) << what;
    EXPECT_EQ(whole.output, strips.output) << what;
    const float range = range_of(expected);
    for (size_t e = 0; e < expected.size(); ++e)
        EXPECT_NEAR(whole.output[e], expected[e], 1e-5F * range) << what << ", element " << e;

    const AlignedFloats constants(code.constants);
    AlignedFloats scratch(static_cast<size_t>(code.scratch_bytes) / sizeof(float));
    const JitGroup jit(code.body, false);
    for (const LastElements::Edge edge : {LastElements::Edge::end, LastElements::Edge::begin}) {
        const LastElements input(inputs.front(), edge);
        std::vector<float> output(expected.size());
        const float* in = input.data();
        float* out = output.data();
        EXPECT_EQ(jit.function()(&in, &out, constants.data(), scratch.data(), 0,
                                 static_cast<int32_t>(code.strips)),
                  0);
        EXPECT_EQ(output, whole.output) << what;
    }
    return whole.output;
}

/// The layer is right, and equal to what line buffers in strips of two rows give.
void expect_right(const Network& network, const VectorUnit& unit, const std::string& what) {
    const GroupSchedule group = line_buffer_group(network, {0});
    const std::vector<LayerProblem> problems = group_problems(network, group);
    const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 3);
    const std::vector<float> expected = reference_output(network, problems, inputs);
    ASSERT_TRUE(a_map_kernel_pays(problems.front(), true) ||
                kernel_pays(problems.front(), KernelKind::map_pooling))
        << what;
    const std::optional<GroupCode> code = map_code(network, group, unit);
    ASSERT_TRUE(code) << what;
    const std::vector<float> output = output_expected_right(*code, inputs, expected, what);
    if (testing::Test::HasFailure()) return;

    if (problems.front()[Dim::y] < 4) return;
    const GroupSchedule lines = line_buffer_group(network, {0}, {2, 2, 0});
    ASSERT_FALSE(map_code(network, lines, unit));
    const Outcome by_lines = run_poisoned(default_code(network, lines, unit, {.winograd = false}),
                                          expected.size(), inputs, true);
    const bool is_exact = problems.front().x().pad_begin == 0;
    const float range = range_of(expected);
    for (size_t e = 0; e < expected.size(); ++e)
        ASSERT_NEAR(by_lines.output[e], output[e], is_exact ? 0 : 1e-6F * range)
            << what << ", element " << e;
}

TEST(WholeMap, PointwiseLayers) {
    // Few pixels or many inputs: lanes are channels, in even tiles of pixels. Otherwise lanes are
    // pixels: 400 of them in tiles of three vectors, and a smaller one that reaches back; 64 channels
    // read pixels from a panel.
    for (const auto& [in, extent, out] : {std::array<int64_t, 3>{5, 3, 9},
                                          {96, 7, 41},
                                          {33, 14, 20},
                                          {8, 4, 3},
                                          {7, 20, 64},
                                          {17, 14, 70}}) {
        const std::string what =
            std::to_string(in) + " -> " + std::to_string(out) + " at " + std::to_string(extent);
        expect_right(layer_of(in, extent, extent, pointwise(out)), avx512, what);
        expect_right(layer_of(in, extent, extent, pointwise(out)), {8, 12}, what + ", 8 lanes");
    }
    expect_right(layer_of(20, 3, 5, pointwise(70)), avx512,
                 "15 pixels: lanes are channels, 6 of a last block, in tiles of pixels");
}

TEST(WholeMap, ManyInputChannelsAreComputedInChunksOfPixels) {
    // 800 channels x 400 pixels x 4 bytes = 1.2 MiB: more than a chunk may be.
    const Network network = layer_of(800, 20, 20, pointwise(10));
    expect_right(network, avx512, "chunks");
    EXPECT_GE(map_code(network, line_buffer_group(network, {0}), avx512)->strips, 4);
}

TEST(WholeMap, PanelsOfPixelsKeepWithinTheScratchAllowed) {
    const Network network = layer_of(40, 14, 14, pointwise(64));
    const GroupSchedule group = line_buffer_group(network, {0});
    const std::vector<std::vector<float>> inputs =
        random_group_inputs(network, group_problems(network, group), 3);
    constexpr size_t outputs = size_t{64} * 14 * 14;
    const GroupCode with = *map_code(network, group, avx512);
    EXPECT_GT(with.scratch_bytes, 0);
    const GroupCode without =
        *map_code(network, group, avx512, {.scratch = Bytes(with.scratch_bytes - 1)});
    EXPECT_EQ(without.scratch_bytes, 0);
    EXPECT_EQ(run_poisoned(without, outputs, inputs, true).output,
              run_poisoned(with, outputs, inputs, true).output);
}

TEST(WholeMap, DenseLayers) {
    expect_right(layer_of(50, 1, 1, pointwise(1000)), avx512, "50 -> 1000");
    expect_right(layer_of(3, 1, 1, pointwise(5)), avx512, "3 -> 5");
    expect_right(layer_of(20, 1, 1, pointwise(100)), {4, 24}, "20 -> 100, 4 lanes");
}

TEST(WholeMap, DepthwiseLayers) {
    expect_right(layer_of(9, 14, 14, depthwise(9, square_window(3, 1, 1))), avx512, "14 x 14");
    expect_right(layer_of(3, 7, 7, depthwise(3, square_window(3, 1, 1))), avx512, "7 x 7");
    expect_right(layer_of(2, 14, 14, depthwise(2, square_window(3, 2, 1))), avx512, "stride 2");
    expect_right(layer_of(2, 32, 29, depthwise(2, square_window(3, 2, 1))), avx512,
                 "stride 2, 16 x 15");
    expect_right(layer_of(2, 11, 19, depthwise(2, square_window(5, 1, 2))), {8, 12}, "5 x 5");
    expect_right(layer_of(2, 12, 13, depthwise(2, square_window(3, 1, 2, 2))), {4, 24}, "dilated");
    expect_right(layer_of(2, 9, 9, depthwise(2, square_window(3))), avx512, "without padding");
    // Three whole vectors and a half one, none of which reads padding.
    expect_right(layer_of(2, 6, 30, depthwise(2, square_window(3))), {8, 12},
                 "28 columns without padding");
    expect_right(layer_of(16, 6, 58, depthwise(16, square_window(3))), avx512,
                 "56 columns without padding");
    expect_right(layer_of(16, 9, 121, depthwise(16, square_window(3, 2))), {8, 12},
                 "60 columns of stride 2");
    expect_right(layer_of(16, 9, 88, depthwise(16, square_window(3, 1, 0, 2))), {8, 12},
                 "84 columns, dilated");
    // Long rows, whose vectors in the middle are a loop; the last one full, half or beginning
    // early.
    expect_right(layer_of(16, 12, 44, depthwise(16, square_window(3, 1, 1))), {8, 12},
                 "44 columns");
    expect_right(layer_of(17, 9, 71, depthwise(17, square_window(5, 1, 2))), {8, 12},
                 "5 x 5, 71 columns");
    expect_right(layer_of(16, 11, 128, depthwise(16, square_window(3, 2, 1))), {8, 12},
                 "stride 2, 64 columns");
    // Strided rows with columns of padding behind them: wider and narrower than what is read.
    expect_right(layer_of(16, 18, 57, depthwise(16, square_window(5, 2, 2))), avx512,
                 "5 x 5 of stride 2, 29 columns");
    expect_right(layer_of(3, 11, 11, depthwise(3, square_window(7, 1, 3))), avx512, "7 x 7");
    expect_right(layer_of(16, 30, 44, depthwise(16, square_window(7, 1, 3))), avx512,
                 "7 x 7, several tiles of rows and runs");
    expect_right(layer_of(16, 20, 43, depthwise(16, square_window(7, 2, 3))), {8, 12},
                 "7 x 7, stride 2");
    expect_right(layer_of(2, 11, 20, depthwise(2, square_window(5, 2, 2))), avx512,
                 "5 x 5 of stride 2, 10 columns");
    expect_right(layer_of(16, 70, 126, depthwise(16, square_window(3, 1, 1))), avx512,
                 "126 columns");
    expect_right(layer_of(3, 5, 7, depthwise(3, square_window(3, 1, 1))), {8, 12},
                 "7 columns of 8 lanes");
    expect_right(layer_of(16, 2, 90, depthwise(16, square_window(3, 1, 1))), {8, 12}, "two rows");
}

Network pooled(int64_t channels, int64_t rows, int64_t columns, const Window& window,
               LayerKind kind = LayerKind::max_pool, bool count_include_pad = false) {
    Network network = empty_network(channels, rows, columns);
    append(network, "pool",
           {.kind = kind, .inputs = {0}, .window = window, .count_include_pad = count_include_pad});
    check(network);
    return network;
}

TEST(WholeMap, MaximumPooling) {
    expect_right(pooled(9, 27, 27, square_window(3, 2)), avx512, "3 x 3, stride 2");
    expect_right(pooled(3, 112, 111, square_window(3, 2, 1)), avx512, "3 x 3, stride 2, padded");
    expect_right(pooled(10, 14, 60, square_window(2, 2)), {8, 12}, "2 x 2, stride 2, 8 lanes");
    expect_right(pooled(2, 20, 23, square_window(5, 3, 2)), {4, 24}, "5 x 5, stride 3, 4 lanes");
    expect_right(pooled(2, 15, 17, square_window(3, 2, 2, 2)), avx512, "dilated");
    EXPECT_FALSE(kernel_pays(layer_problem(pooled(1, 4, 300, square_window(2)), 0),
                             KernelKind::map_pooling));
}

TEST(WholeMap, AveragePooling) {
    const auto average = [](int64_t channels, int64_t rows, int64_t columns, const Window& window,
                            bool with_padding) {
        return pooled(channels, rows, columns, window, LayerKind::average_pool, with_padding);
    };
    for (const bool with_padding : {false, true}) {
        const std::string what = with_padding ? ", padding counts" : "";
        expect_right(average(9, 35, 35, square_window(3, 1, 1), with_padding), avx512,
                     "3 x 3, padded" + what);
        expect_right(average(3, 17, 17, square_window(3, 1, 1), with_padding), {8, 12},
                     "17 x 17, 8 lanes" + what);
        expect_right(average(4, 21, 30, square_window(3, 2, 1), with_padding), {4, 24},
                     "stride 2, 4 lanes" + what);
        expect_right(average(2, 15, 17, square_window(3, 2, 2, 2), with_padding), avx512,
                     "dilated" + what);
    }
    expect_right(average(5, 28, 28, square_window(2, 2), false), {8, 12},
                 "2 x 2, stride 2, without padding");
}

LayerSpec conv(int64_t channels, const Window& window) {
    return {.channels = channels, .window = window};
}

TEST(WholeMap, StridedConvolutionsFromAGrid) {
    expect_right(layer_of(17, 14, 14, conv(33, square_window(3, 2, 1))), avx512, "3 x 3, stride 2");
    expect_right(layer_of(16, 35, 33, conv(64, square_window(1, 2))), avx512,
                 "1 x 1, stride 2: some rows and columns are never read");
    // Seven tiles of three vectors of 16: 12 lanes more than pixels.
    expect_right(layer_of(16, 35, 35, conv(64, square_window(1, 2))), avx512,
                 "1 x 1, stride 2: 324 pixels");
    expect_right(layer_of(16, 19, 20, conv(32, square_window(3, 2, 2, 2))), {8, 12},
                 "3 x 3, stride 2, dilated, 8 lanes");
}

TEST(WholeMap, WindowsOnAFewPixelsByChannels) {
    const auto expect_by_channels = [](const Network& network, const VectorUnit& unit,
                                       const std::string& what) {
        const GroupSchedule group = with_default_kernels(
            layer_problems(network, {0}), line_buffer_group(network, {0}), unit, {.winograd = false});
        EXPECT_EQ(group.nests.front().kernel.kind, KernelKind::map_channels) << what;
        expect_right(network, unit, what);
    };
    for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
        const std::string lanes = ", " + std::to_string(unit.lanes) + " lanes";
        expect_by_channels(layer_of(20, 7, 7, conv(70, square_window(3, 1, 1))), unit,
                           "3 x 3" + lanes);
        expect_by_channels(layer_of(20, 13, 14, conv(32, square_window(3, 2, 1))), unit,
                           "3 x 3, stride 2" + lanes);
        expect_by_channels(layer_of(16, 5, 8, conv(33, square_window(5, 1, 2))), unit,
                           "5 x 5" + lanes);
        expect_by_channels(layer_of(16, 10, 9, conv(40, square_window(3, 1, 1, 2))), unit,
                           "3 x 3, dilated" + lanes);
        expect_by_channels(layer_of(16, 17, 17, conv(64, square_window(1, 2))), unit,
                           "1 x 1, stride 2" + lanes);
        // 300 inputs x 3 taps x 32 channels x 4 bytes = 112 KiB: two passes for a row of the
        // window, of 56 KiB each for 16 lanes and one for 8.
        expect_by_channels(layer_of(600, 13, 13, pointwise(280)), unit,
                           "nine blocks, with AVX-512 in two parts each" + lanes);
        expect_by_channels(layer_of(300, 4, 4, conv(64, square_window(3, 1, 1))), unit,
                           "passes over inputs" + lanes);
    }
}

/// A layer alone or with its Add, by map_channels.
std::optional<GroupCode> by_channels(const Network& network, GroupSchedule group,
                                     const VectorUnit& unit) {
    group.nests.front().kernel = kernel_for(KernelKind::map_channels, unit);
    if (group.nests.size() > 1) group.nests.back().kernel = kernel_for(KernelKind::map_sum, unit);
    check_kernels(group, group_problems(network, group));
    return group_code(network, group);
}

TEST(WholeMap, LayersReadPanelsOfAFewPixels) {
    struct Case {
        int64_t inputs, extent, channels;
        Window window;
        VectorUnit unit;
        std::string what;
        int64_t rows = 0;  ///< as many as columns, unless given
    };
    // Rows of so many tiles that those inside of the picture are a loop.
    const auto long_row = [](int64_t kernel, int64_t stride, int64_t pad, int64_t dilation = 1) {
        Window w = square_window(1);
        w.kernel[1] = kernel;
        w.stride[1] = stride;
        w.pad_begin[1] = w.pad_end[1] = pad;
        w.dilation[1] = dilation;
        return w;
    };
    for (const Case& c :
         {Case{300, 14, 136, square_window(1), {8, 12}, "two passes, half of a last block"},
          Case{700, 14, 128, square_window(1), {8, 12}, "chunks of the map, three passes"},
          Case{310, 27, 130, square_window(1, 2), {8, 12}, "stride 2, part of a last vector"},
          Case{40, 7, 67, square_window(1), {4, 12}, "4 lanes"},
          Case{40, 27, 130, square_window(3, 2, 2, 2), {8, 12}, "windows, dilated, stride 2"},
          Case{90, 15, 136, square_window(3, 1, 1), {8, 12}, "windows, stride 1, chunks of rows"},
          Case{20, 30, 70, square_window(3, 2, 1), {16, 24}, "too many taps to write out"},
          Case{9, 38, 70, square_window(3, 2, 1), {4, 24}, "several vectors of a tile"},
          Case{20, 901, 66, long_row(8, 4, 2), {8, 12}, "a long row", 1},
          Case{17, 1350, 66, long_row(9, 7, 8), {8, 12}, "a long row, wide stride", 1},
          Case{18, 700, 130, long_row(5, 2, 30, 12), {16, 24}, "a long row, dilated", 1},
          Case{20, 130, 66, square_window(3, 1, 1), {8, 12}, "some long rows", 5}}) {
        const Network network = layer_of(c.inputs, c.rows == 0 ? c.extent : c.rows, c.extent,
                                         conv(c.channels, c.window));
        const GroupSchedule group = line_buffer_group(network, {0});
        const std::vector<LayerProblem> problems = group_problems(network, group);
        ASSERT_TRUE(map_channels_layout(problems.front(), c.unit).has_panel) << c.what;
        const auto inputs = random_group_inputs(network, problems, 3);
        const GroupCode code = *by_channels(network, group, c.unit);
        const std::vector<float> output = output_expected_right(
            code, inputs, reference_output(network, problems, inputs), c.what);
        const Outcome by_lines =
            run_poisoned(default_code(network, line_buffer_group(network, {0}, {2, 2, 0}), c.unit,
                                      {.winograd = false}),
                         output.size(), inputs, true);
        // Where padding cuts a row short, the compiler may round products before it adds them.
        const float near =
            problems.front().x().pad_begin == 0 ? 0 : 1e-6F * range_of(output);
        for (size_t e = 0; e < output.size(); ++e)
            ASSERT_NEAR(by_lines.output[e], output[e], near) << c.what << ", element " << e;

        Network plain = network;
        plain.layers.back().activation = {};
        expect_added(
            plain,
            [&](const Network& of, const GroupSchedule& groups) {
                return by_channels(of, groups, c.unit);
            },
            c.what);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(WholeMap, FirstLayersFromPanelsOfAllTaps) {
    expect_right(layer_of(3, 50, 57, conv(33, square_window(7, 2, 3))), avx512, "7 x 7, stride 2");
    expect_right(layer_of(3, 50, 57, conv(33, square_window(7, 2, 3))), {8, 12},
                 "7 x 7, stride 2, 8 lanes");
    expect_right(layer_of(1, 61, 63, conv(32, square_window(3, 2))), avx512,
                 "one channel, without padding");
    expect_right(layer_of(4, 53, 60, conv(40, square_window(3, 2, 2, 2))), {4, 24},
                 "dilated, 4 lanes");
    EXPECT_FALSE(a_map_kernel_pays(
        layer_problem(layer_of(3, 300, 300, conv(32, square_window(3, 2))), 0), true));
    EXPECT_FALSE(kernel_pays(layer_problem(layer_of(20, 56, 56, conv(32, square_window(3, 2))), 0),
                             KernelKind::map_panels));
}

TEST(WholeMap, TransposedLayersWithoutOverlap) {
    for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}, VectorUnit{4, 12}}) {
        const std::string lanes = ", " + std::to_string(unit.lanes) + " lanes";
        expect_right(layer_of(40, 6, 32, enlarged(33, 2, 2)), unit, "whole vectors" + lanes);
        expect_right(layer_of(33, 5, 37, enlarged(50, 2, 2)), unit, "ragged rows" + lanes);
        expect_right(layer_of(32, 4, 16, enlarged(35, 1, 2)), unit, "along columns" + lanes);
        expect_right(layer_of(32, 4, 19, enlarged(32, 3, 1)), unit, "along rows" + lanes);
        expect_right(layer_of(300, 7, 24, enlarged(64, 2, 2)), unit,
                     "panels of several tiles" + lanes);
    }
    const auto accepts = [](const LayerSpec& spec) {
        return kernel_row(KernelKind::map_phases).accepts(layer_problem(layer_of(32, 8, 16, spec), 0));
    };
    EXPECT_TRUE(accepts(enlarged(32, 2, 2)));
    EXPECT_FALSE(accepts(enlarged(32, 3, 2)));
    LayerSpec overlapping = enlarged(32, 2, 2);
    overlapping.window.kernel = {3, 3};
    EXPECT_FALSE(accepts(overlapping));
    LayerSpec padded = enlarged(32, 2, 2);
    padded.window.pad_begin = padded.window.pad_end = {1, 1};
    EXPECT_FALSE(accepts(padded));
}

TEST(WholeMap, NarrowConvolutionsFromAGrid) {
    expect_right(layer_of(20, 10, 8, conv(70, square_window(3, 1, 1))), avx512, "3 x 3 at 10 x 8");
    Window tall = square_window(1);
    tall.kernel[0] = 7;
    tall.pad_begin[0] = tall.pad_end[0] = 3;
    expect_right(layer_of(18, 9, 17, conv(40, tall)), avx512, "7 x 1");
    // 22 and 37 vectors of 8 pixels: one more than tiles of three hold, which two tiles of two
    // share, with threads beginning at either.
    tall.kernel[0] = 3;
    tall.pad_begin[0] = tall.pad_end[0] = 1;
    for (const int64_t size : {13, 17})
        expect_right(layer_of(18, size, size, conv(40, tall)), {8, 12},
                     "3 x 1 at " + std::to_string(size));
    expect_right(layer_of(16, 27, 27, conv(64, square_window(1, 2))), {8, 12},
                 "1 x 1, stride 2, 25 vectors");
}

TEST(WholeMap, GridsKeepWithinTheScratchAllowed) {
    const Network network = layer_of(16, 14, 14, conv(32, square_window(3, 2, 1)));
    const GroupSchedule group = line_buffer_group(network, {0});
    const GroupCode free = *map_code(network, group, avx512);
    EXPECT_TRUE(map_code(network, group, avx512, {.scratch = Bytes(free.scratch_bytes)}));
    EXPECT_FALSE(map_code(network, group, avx512, {.scratch = Bytes(free.scratch_bytes - 1)}));
}

/// Two layers with kernels of these kinds, the second in tiles of so many rows, are right.
void expect_pair_right(const Network& network, const std::array<KernelKind, 2>& kinds, int64_t rows) {
    for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
        GroupSchedule group = line_buffer_group(network, {0, 1}, {rows, 0, 0});
        for (size_t k = 0; k < kinds.size(); ++k)
            group.nests[k].kernel = kernel_for(kinds[k], unit);
        const std::vector<LayerProblem> problems = group_problems(network, group);
        check_kernels(group, problems);
        const auto inputs = random_group_inputs(network, problems, 3);
        (void)output_expected_right(group_code(network, group), inputs,
                                    reference_output(network, problems, inputs), to_text(group));
        if (testing::Test::HasFailure()) return;
    }
}

TEST(WholeMap, ADepthwiseLayerFillsThePanelOfThePointwiseLayerBehindIt) {
    struct Case {
        int64_t rows, columns;
        Window window;
        int64_t outputs, band;
    };
    // Rows shorter than a vector, whose vectors reach into the next row; rows of several vectors; a last
    // band of fewer rows; one band; bands of a prime number of rows, taken one by one; strides.
    for (const Case& c : {Case{14, 14, square_window(3, 1, 1), 20, 4},
                          Case{9, 7, square_window(3, 1, 1), 3, 5},
                          Case{11, 40, square_window(3, 1, 1), 33, 3},
                          Case{17, 35, square_window(3, 2, 1), 25, 4},
                          Case{13, 19, square_window(5, 1, 2), 9, 13},
                          Case{23, 23, square_window(3, 1, 0), 16, 11}}) {
        const Network network =
            layers_of(9, c.rows, c.columns, {depthwise(9, c.window), pointwise(c.outputs)});
        expect_pair_right(network, {KernelKind::map_depthwise, KernelKind::map_pixels}, c.band);
    }
}

TEST(WholeMap, APointwiseLayerHandsBlocksOfChannelsToTheDepthwiseLayerBehindIt) {
    struct Case {
        int64_t inputs, rows, columns, channels;
        Window window;
    };
    // Channels that do not fill the last block; several passes, whose sums wait; panels of 8 lanes;
    // strides; a window beyond the padding.
    for (const Case& c :
         {Case{5, 14, 14, 41, square_window(3, 1, 1)}, Case{600, 7, 7, 70, square_window(3, 1, 1)},
          Case{300, 7, 9, 136, square_window(3, 1, 1)}, Case{20, 13, 9, 48, square_window(3, 2, 1)},
          Case{9, 10, 22, 17, square_window(5, 1, 0)},
          // Three blocks in two parts each, whose rows have a halo.
          Case{600, 19, 19, 80, square_window(3, 1, 1)},
          Case{40, 31, 23, 80, square_window(3, 2, 1)},
          Case{40, 23, 19, 80, square_window(5, 1, 4, 2)}}) {
        const Network network = layers_of(c.inputs, c.rows, c.columns,
                                          {pointwise(c.channels), depthwise(c.channels, c.window)});
        expect_pair_right(network, {KernelKind::map_channels, KernelKind::map_depthwise}, 2);
    }
}

/// Sums are kept until all of a tile are there, then the function takes their registers.
TEST(WholeMap, LongFunctionsOfSums) {
    const auto with = [](Network network, GeneralFunction function) {
        for (Layer& layer : network.layers)
            layer.activation = {
                .kind = ActivationKind::unary, .function = function, .alpha = 1};
        return network;
    };
    const std::vector<std::pair<std::string, Network>> layers{
        {"7 -> 64 at 20 x 20", layer_of(7, 20, 20, pointwise(64))},
        {"17 -> 70 at 14 x 14, the last block not full", layer_of(17, 14, 14, pointwise(70))},
        {"3 -> 33, 7 x 7 of stride 2", layer_of(3, 50, 57, {33, square_window(7, 2, 3)})},
        {"300 -> 141 at 7 x 7, by panel", layer_of(300, 7, 7, pointwise(141))},
        {"40 -> 70, 3 x 3 at 7 x 7", layer_of(40, 7, 7, {70, square_window(3, 1, 1)})},
        {"depthwise, 44 columns", layer_of(16, 9, 44, depthwise(16, square_window(7, 1, 3)))},
        {"depthwise, 14 x 14", layer_of(9, 14, 14, depthwise(9, square_window(3, 1, 1)))},
        {"depthwise, 71 columns", layer_of(17, 9, 71, depthwise(17, square_window(5, 1, 2)))},
        {"depthwise, 60 columns of stride 2",
         layer_of(16, 9, 121, depthwise(16, square_window(3, 2)))},
        {"depthwise, 28 columns without padding", layer_of(2, 6, 30, depthwise(2, square_window(3)))}};
    for (const auto& [what, network] : layers) {
        expect_right(with(network, GeneralFunction::gelu), avx512, what + ", GELU");
        expect_right(with(network, GeneralFunction::swish), {8, 12}, what + ", Swish, 8 lanes");
    }
    const Network pair = layers_of(
        9, 11, 40, {depthwise(9, square_window(3, 1, 1)), pointwise(33)});
    expect_pair_right(with(pair, GeneralFunction::swish),
                      {KernelKind::map_depthwise, KernelKind::map_pixels}, 3);
    const Network blocks =
        layers_of(5, 14, 14, {pointwise(41), depthwise(41, square_window(3, 1, 1))});
    expect_pair_right(with(blocks, GeneralFunction::gelu),
                      {KernelKind::map_channels, KernelKind::map_depthwise}, 2);
    // The sums of these rows are too many to be kept.
    const Network wide = with(layer_of(2, 6, 4200, depthwise(2, square_window(3, 1, 1))),
                              GeneralFunction::swish);
    GroupSchedule group = line_buffer_group(wide, {0});
    group.nests.front().kernel = kernel_for(KernelKind::map_depthwise, avx512);
    const std::vector<LayerProblem> problems = group_problems(wide, group);
    const auto inputs = random_group_inputs(wide, problems, 3);
    (void)output_expected_right(group_code(wide, group), inputs,
                                reference_output(wide, problems, inputs), to_text(group));
}

std::optional<GroupCode> avx512_code(const Network& network, const GroupSchedule& group) {
    return map_code(network, group, avx512);
}
std::optional<GroupCode> avx2_code(const Network& network, const GroupSchedule& group) {
    return map_code(network, group, {8, 12});
}

TEST(WholeMap, LayersAddWhileTheyStore) {
    const auto without_activation = [](Network network) {
        network.layers.back().activation = {};
        return network;
    };
    // Lanes are pixels, of the map and of a panel; channels; a grid of a strided layer; rows of a
    // depthwise one.
    for (const auto& [network, what] :
         {std::pair{layer_of(33, 14, 14, pointwise(20)), "14 x 14"},
          {layer_of(17, 14, 14, pointwise(70)), "a panel"},
          {layer_of(20, 3, 5, pointwise(70)), "lanes are channels"},
          {layer_of(17, 14, 14, conv(33, square_window(3, 2, 1))), "a grid"},
          {layer_of(9, 14, 14, depthwise(9, square_window(3, 1, 1))), "depthwise"}}) {
        expect_added(without_activation(network), avx512_code, what);
        expect_added(without_activation(network), avx2_code, std::string(what) + ", 8 lanes");
    }
    // PRelu of 20 channels in both layers.
    const Network activated = layer_of(33, 14, 14, pointwise(20));
    expect_added_near(activated, activated.layers.back().activation, avx512_code, "PRelu twice");
}

TEST(WholeMap, OnlyAnAddOfWhatTheLayerDoesNotReadIsTakenWithIt) {
    Network network = layer_of(16, 14, 14, pointwise(16));
    append(network, "add", {.kind = LayerKind::add, .inputs = {0, 1}});
    EXPECT_FALSE(ends_in_add(layer_problems(network, {0, 1})));
    const Network good = with_add(layer_of(16, 14, 14, pointwise(16)), 1, {});
    EXPECT_TRUE(ends_in_add(layer_problems(good, {0, 1})));
    EXPECT_FALSE(ends_in_add(layer_problems(good, {0})));
    // A stripped group is one of line buffers.
    EXPECT_TRUE(map_code(good, line_buffer_group(good, {0, 1}), avx512));
    EXPECT_FALSE(map_code(good, line_buffer_group(good, {0, 1}, {2, 2, 0}), avx512));
}

/// An Add of two maps of one shape for each of `with_slopes`, which says whether it has a slope for
/// each channel; the second one adds the sum of the first to a third map.
Network additions_of(int64_t channels, int64_t rows, int64_t columns,
                     const std::vector<bool>& with_slopes) {
    Network network;
    network.name = "sum";
    const auto input = [&] {
        const auto id = static_cast<TensorId>(network.tensors.size());
        network.tensors.push_back({"x" + std::to_string(id), {1, channels, rows, columns}});
        network.inputs.push_back(id);
        return id;
    };
    std::vector<TensorId> operands{input(), input()};
    for (size_t n = 0; n < with_slopes.size(); ++n) {
        Layer add{.kind = LayerKind::add, .inputs = operands};
        add.activation.kind = ActivationKind::relu;
        if (with_slopes[n]) {
            std::vector<float> slopes;
            for (int64_t c = 0; c < channels; ++c)
                slopes.push_back((static_cast<float>(c % 5) + static_cast<float>(n)) / 4);
            add.activation = {
                .kind = ActivationKind::prelu,
                .slope = std::make_shared<const Constant>(Constant{{channels}, slopes})};
        }
        const TensorId before = n + 1 < with_slopes.size() ? input() : 0;
        const TensorId sum = append(network, "add" + std::to_string(n + 1), add);
        if (n + 1 < with_slopes.size()) operands = {before, sum};
    }
    check(network);
    return network;
}

TEST(WholeMap, AdditionsAloneAndBeforeAnother) {
    struct Case {
        int64_t channels, rows, columns;
        std::vector<bool> with_slopes;
    };
    for (const Case& c : {Case{1, 1, 3, {false}},
                          Case{3, 1, 5, {true}},
                          Case{5, 7, 7, {false}},
                          Case{64, 14, 14, {false}},
                          Case{19, 13, 17, {true}},
                          Case{2, 40, 65, {false}},
                          Case{5, 7, 9, {false, false}},
                          Case{6, 5, 7, {true, false}},
                          Case{19, 13, 17, {false, true}}}) {
        const Network network = additions_of(c.channels, c.rows, c.columns, c.with_slopes);
        std::vector<LayerId> layers;
        for (size_t n = 0; n < c.with_slopes.size(); ++n) layers.push_back(static_cast<LayerId>(n));
        const GroupSchedule group = line_buffer_group(network, layers);
        const std::vector<LayerProblem> problems = group_problems(network, group);
        const std::vector<std::vector<float>> inputs = random_group_inputs(network, problems, 7);
        const std::vector<float> expected = reference_output(network, problems, inputs);
        for (const VectorUnit& unit : {avx512, VectorUnit{8, 12}}) {
            const std::optional<GroupCode> code = map_code(network, group, unit);
            ASSERT_TRUE(code);
            ASSERT_EQ(code->inputs.size(), network.inputs.size());
            for (const bool strip_by_strip : {false, true}) {
                const Outcome got = run_poisoned(*code, expected.size(), inputs, strip_by_strip);
                EXPECT_TRUE(got.guards_intact);
                EXPECT_EQ(got.output, expected);
            }
            std::vector<std::unique_ptr<LastElements>> last;
            std::vector<const float*> in;
            for (const std::vector<float>& values : inputs) {
                last.push_back(std::make_unique<LastElements>(values));
                in.push_back(last.back()->data());
            }
            const AlignedFloats constants(code->constants);
            std::vector<float> output(expected.size());
            float* out = output.data();
            EXPECT_EQ(JitGroup(code->body, false)
                          .function()(in.data(), &out, constants.data(), nullptr, 0,
                                      static_cast<int32_t>(code->strips)),
                      0);
            EXPECT_EQ(output, expected);
        }
    }
}

TEST(WholeMap, OtherGroupsAreNotForIt) {
    const Network few = layer_of(4, 14, 14, conv(4, square_window(3, 1, 1)));
    EXPECT_FALSE(map_code(few, line_buffer_group(few, {0}), avx512));
    const Network wide = layer_of(4, 40, 40, pointwise(4));
    EXPECT_FALSE(map_code(wide, line_buffer_group(wide, {0}), avx512));
    const Network tiled = layer_of(4, 14, 14, pointwise(4));
    GroupSchedule group = line_buffer_group(tiled, {0});
    ASSERT_TRUE(map_code(tiled, group, avx512));
    group.nests.front().tile[Dim::i] = 2;
    EXPECT_FALSE(map_code(tiled, group, avx512));
}

}  // namespace
}  // namespace laminate
