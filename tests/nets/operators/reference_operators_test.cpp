#include "nets/operators/reference_operators.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/support/sanitized.h"

namespace laminate {
namespace {

using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

ConstantPtr constant(Dims dims, Values values) {
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

/// Runs the layer in an array with a guard element at each end, to detect writes outside the
/// output.
Values run(const Layer& layer, const std::vector<Dims>& dims, const std::vector<Values>& inputs,
           int threads = 0) {
    std::vector<const float*> arrays;
    for (const Values& values : inputs) arrays.push_back(values.data());
    const Dims out = infer_output_dims(layer, dims);
    const auto count = static_cast<size_t>(element_count(out));
    Values guarded(count + 2, -12345.0f);
    run_reference_layer(layer, dims, arrays, out, guarded.data() + 1, threads);
    EXPECT_EQ(guarded.front(), -12345.0f);
    EXPECT_EQ(guarded.back(), -12345.0f);
    return {guarded.begin() + 1, guarded.end() - 1};
}

Layer layer_of(LayerKind kind) {
    Layer layer;
    layer.name = "layer";
    layer.kind = kind;
    return layer;
}

Layer convolution(Dims weight_dims, Values weights, Window window = {}, int64_t groups = 1) {
    Layer layer = layer_of(LayerKind::conv);
    window.kernel = {weight_dims[2], weight_dims[3]};
    layer.weights = constant(std::move(weight_dims), std::move(weights));
    layer.window = window;
    layer.groups = groups;
    return layer;
}

Layer activation(ActivationKind kind) {
    Layer layer = layer_of(LayerKind::activation);
    layer.activation.kind = kind;
    return layer;
}

TEST(ReferenceConv, OneTapMovesThePictureAndReadsZerosOutside) {
    // The only weight sits left above the centre: output (y, x) = 2 * input (y - 1, x - 1).
    Window window;
    window.pad_begin = window.pad_end = {1, 1};
    const Layer layer = convolution({1, 1, 3, 3}, {2, 0, 0, 0, 0, 0, 0, 0, 0}, window);
    EXPECT_EQ(run(layer, {{1, 1, 2, 3}}, {{1, 2, 3, 4, 5, 6}}), (Values{0, 0, 0, 0, 2, 4}));
}

TEST(ReferenceConv, SumsOverChannelsThenAddsBiasThenActivates) {
    // z0: 1 * x0 + 10 * x1 - 100; z1: 2 * x0 - 5 * x1 + 0, leaky with slope 0.5.
    Layer layer = convolution({2, 2, 1, 1}, {1, 10, 2, -5});
    layer.bias = constant({2}, {-100, 0});
    layer.activation.kind = ActivationKind::leaky_relu;
    layer.activation.alpha = 0.5f;
    // x = (3, 4): z0 = 3 + 40 - 100 = -57 -> -28.5; z1 = 6 - 20 = -14 -> -7. x = (50, 7): z0 = 50 +
    // 70 - 100 = 20; z1 = 100 - 35 = 65.
    EXPECT_EQ(run(layer, {{1, 2, 1, 2}}, {{3, 50, 4, 7}}), (Values{-28.5f, 20, -7, 65}));
}

TEST(ReferenceConv, StrideDilationAndUnequalPadding) {
    // Rows: (5 + 0 + 1 - 3) / 1 + 1 = 4 with kernel 2, dilation 2. Columns: (5 + 2 + 0 - 2) / 2 + 1
    // = 3, kernel 2, stride 2.
    Window window;
    window.stride = {1, 2};
    window.dilation = {2, 1};
    window.pad_begin = {0, 2};
    window.pad_end = {1, 0};
    const Layer layer = convolution({1, 1, 2, 2}, {1, 10, 100, 1000}, window);
    Values input(25);
    for (size_t k = 0; k < input.size(); ++k)
        input[k] = static_cast<float>(k);  // in(y, x) = 5 y + x
    // Output (y, x) = in(y, 2x-2) + 10 in(y, 2x-1) + 100 in(y+2, 2x-2) + 1000 in(y+2, 2x-1); column
    // 0 reads padding only, row 3 reads row 5, which is padding. (0,1): 0 + 10*1 + 100*10 + 1000*11
    // = 12010. (0,2): 2 + 30 + 1200 + 13000 = 14232. Each row adds 5 * 1111 = 5555 while row y + 2
    // exists. (3,1): 15 + 160 = 175; (3,2): 17 + 180 = 197.
    EXPECT_EQ(run(layer, {{1, 1, 5, 5}}, {input}),
              (Values{0, 12010, 14232, 0, 17565, 19787, 0, 23120, 25342, 0, 175, 197}));
}

TEST(ReferenceConv, GroupsReadTheirOwnChannels) {
    // Two groups of two channels and one output each: z0 = x0 + 2 x1, z1 = 3 x2 + 4 x3.
    const Layer layer = convolution({2, 2, 1, 1}, {1, 2, 3, 4}, {}, 2);
    EXPECT_EQ(run(layer, {{1, 4, 1, 1}}, {{1, 10, 100, 1000}}), (Values{21, 4300}));
}

TEST(ReferenceConv, DepthwiseWithSlopesPerChannelAndBatch) {
    Layer layer = convolution({2, 1, 1, 1}, {1, -1}, {}, 2);
    layer.activation.kind = ActivationKind::prelu;
    layer.activation.slope = constant({2}, {10, 100});
    // Image 0: x0 = 5 -> 5; x1 = 6 -> -6 * 100. Image 1: x0 = -7 -> -70; x1 = -8 -> 8.
    EXPECT_EQ(run(layer, {{2, 2, 1, 1}}, {{5, 6, -7, -8}}), (Values{5, -600, -70, 8}));
}

/// The definition, element by element and tap by tap, without tiles.
Values convolution_by_definition(const Layer& layer, const Dims& in, const Values& x,
                                 const Dims& out) {
    const bool transposed = layer.kind == LayerKind::conv_transpose;
    const Window& w = layer.window;
    const int64_t group_in = in[1] / layer.groups, group_out = out[1] / layer.groups;
    const auto at = [](const Values& v, int64_t k) { return v[static_cast<size_t>(k)]; };
    Values result;
    for (int64_t image = 0; image < out[0]; ++image)
        for (int64_t z = 0; z < out[1]; ++z)
            for (int64_t y = 0; y < out[2]; ++y)
                for (int64_t col = 0; col < out[3]; ++col) {
                    float sum = layer.bias ? at(layer.bias->values, z) : 0;
                    const int64_t group = z / group_out;
                    for (int64_t i = 0; i < group_in; ++i)
                        for (int64_t n = 0; n < w.kernel[0]; ++n)
                            for (int64_t m = 0; m < w.kernel[1]; ++m) {
                                int64_t iy = y * w.stride[0] + n * w.dilation[0] - w.pad_begin[0];
                                int64_t ix = col * w.stride[1] + m * w.dilation[1] - w.pad_begin[1];
                                if (transposed) {
                                    iy = y + w.pad_begin[0] - n * w.dilation[0];
                                    ix = col + w.pad_begin[1] - m * w.dilation[1];
                                    if (iy % w.stride[0] != 0 || ix % w.stride[1] != 0) continue;
                                    iy /= w.stride[0], ix /= w.stride[1];
                                }
                                if (iy < 0 || iy >= in[2] || ix < 0 || ix >= in[3]) continue;
                                const int64_t channel = group * group_in + i;
                                const int64_t row = transposed ? channel * group_out + z % group_out
                                                               : z * group_in + i;
                                sum +=
                                    at(x, ((image * in[1] + channel) * in[2] + iy) * in[3] + ix) *
                                    at(layer.weights->values,
                                       (row * w.kernel[0] + n) * w.kernel[1] + m);
                            }
                    result.push_back(sum);
                }
    return result;
}

TEST(ReferenceConv, EqualsTheDefinitionOnRandomShapes) {
    // Small integers keep every sum exact. Widths around 16, 32 and 64 give whole, ragged and
    // narrow tiles.
    std::mt19937 random(7);
    const auto pick = [&](int64_t low, int64_t high) {
        return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
    };
    int transposed_cases = 0;
    for (int trial = 0; trial < test::samples(300); ++trial) {
        Layer layer = layer_of(pick(0, 1) ? LayerKind::conv : LayerKind::conv_transpose);
        const bool transposed = layer.kind == LayerKind::conv_transpose;
        transposed_cases += transposed;
        layer.groups = pick(1, 3);
        const int64_t group_in = pick(1, 3), group_out = pick(1, 9);
        for (size_t axis = 0; axis < 2; ++axis) {
            layer.window.kernel[axis] = pick(1, 5);
            layer.window.stride[axis] = pick(1, 3);
            layer.window.dilation[axis] = pick(1, 2);
            layer.window.pad_begin[axis] = pick(0, 2);
            layer.window.pad_end[axis] = pick(0, 2);
            if (transposed)
                layer.window.output_padding[axis] = pick(0, layer.window.stride[axis] - 1);
        }
        const Dims in{pick(1, 2), group_in * layer.groups, pick(9, 14), pick(9, 70)};
        const auto draw = [&](int64_t count, int64_t range) {
            Values values(static_cast<size_t>(count));
            for (float& v : values) v = static_cast<float>(pick(-range, range));
            return values;
        };
        const int64_t taps = layer.window.kernel[0] * layer.window.kernel[1];
        const Dims weight_dims =
            transposed ? Dims{in[1], group_out, layer.window.kernel[0], layer.window.kernel[1]}
                       : Dims{group_out * layer.groups, group_in, layer.window.kernel[0],
                              layer.window.kernel[1]};
        layer.weights = constant(weight_dims, draw(in[1] * group_out * taps, 3));
        layer.bias = constant({group_out * layer.groups}, draw(group_out * layer.groups, 9));
        const Values x = draw(element_count(in), 5);
        const Dims out = infer_output_dims(layer, {in});
        ASSERT_EQ(run(layer, {in}, {x}), convolution_by_definition(layer, in, x, out))
            << "trial " << trial << ", " << to_string(layer.kind) << " of " << dims_text(in)
            << " by " << dims_text(weight_dims) << " in " << layer.groups << " groups to "
            << dims_text(out);
    }
    EXPECT_GT(transposed_cases, test::samples(100));
}

TEST(ReferenceConv, ThreadsAndAnEnclosingParallelRegionDoNotChangeABit) {
    Window window;
    window.pad_begin = window.pad_end = {1, 1};
    Values weights(5 * 3 * 9), input(3 * 20 * 37);
    std::mt19937 random(1);
    for (float& v : weights) v = static_cast<float>(random()) * 1e-9f;
    for (float& v : input) v = static_cast<float>(random()) * 1e-9f;
    const Layer layer = convolution({5, 3, 3, 3}, weights, window);
    const Values one = run(layer, {{1, 3, 20, 37}}, {input}, 1);
    EXPECT_EQ(run(layer, {{1, 3, 20, 37}}, {input}, 3), one);
    std::vector<Values> nested(2);
#pragma omp parallel for num_threads(2)
    for (int k = 0; k < 2; ++k)
        nested[static_cast<size_t>(k)] = run(layer, {{1, 3, 20, 37}}, {input}, 2);
    EXPECT_EQ(nested[0], one);
    EXPECT_EQ(nested[1], one);
}

TEST(ReferenceConvTranspose, StrideTwoScattersTheKernel) {
    Layer layer = layer_of(LayerKind::conv_transpose);
    layer.window.kernel = {1, 3};
    layer.window.stride = {1, 2};
    layer.window.pad_begin = {0, 1};
    layer.window.pad_end = {0, 1};
    layer.window.output_padding = {0, 1};
    layer.weights = constant({1, 1, 1, 3}, {1, 10, 100});
    // Width (3 - 1) * 2 + 3 + 1 - 2 = 6. Without padding: 1 10 100+2 20 200+3 30 300, and a zero;
    // the first column is cut off.
    EXPECT_EQ(run(layer, {{1, 1, 1, 3}}, {{1, 2, 3}}), (Values{10, 102, 20, 203, 30, 300}));
}

TEST(ReferenceConvTranspose, WeightsAreInputChannelFirst) {
    Layer layer = layer_of(LayerKind::conv_transpose);
    layer.weights = constant({2, 3, 1, 1}, {1, 2, 3, 10, 20, 30});
    layer.bias = constant({3}, {100, 200, 300});
    // z = x0 * (1, 2, 3) + x1 * (10, 20, 30) + bias with x = (1, 2).
    EXPECT_EQ(run(layer, {{1, 2, 1, 1}}, {{1, 2}}), (Values{121, 242, 363}));
}

TEST(ReferenceGemm, RowsOfWeightsAreOutputFeatures) {
    Layer layer = layer_of(LayerKind::gemm);
    layer.weights = constant({2, 3}, {1, 2, 3, -1, 0, 1});
    layer.bias = constant({2}, {10, 0});
    layer.activation.kind = ActivationKind::relu;
    // (1, 1, 1): 6 + 10, 0. (5, 0, 2): 5 + 6 + 10, -5 + 2 -> 0.
    EXPECT_EQ(run(layer, {{2, 3}}, {{1, 1, 1, 5, 0, 2}}), (Values{16, 0, 21, 0}));
}

TEST(ReferenceGemm, LongRowsAreSummedWholeAndExactly) {
    // 1 + 2 + ... + 100 = 5050; 100 = 3 * 32 + 4 meets both the lanes and the rest.
    Values ones(100, 1), ramp(100);
    for (size_t k = 0; k < ramp.size(); ++k) ramp[k] = static_cast<float>(k + 1);
    Layer layer = layer_of(LayerKind::gemm);
    layer.weights = constant({1, 100}, ones);
    EXPECT_EQ(run(layer, {{1, 100}}, {ramp}), (Values{5050}));
}

TEST(ReferencePool, MaximumIgnoresPaddingEvenWhenAllIsNegative) {
    Layer layer = layer_of(LayerKind::max_pool);
    layer.window.kernel = {2, 2};
    layer.window.stride = {2, 2};
    layer.window.pad_begin = layer.window.pad_end = {1, 1};
    // Windows of the 2x2 map with a border: one element each.
    EXPECT_EQ(run(layer, {{1, 1, 2, 2}}, {{-1, -2, -3, -4}}), (Values{-1, -2, -3, -4}));
}

TEST(ReferencePool, MaximumOfOverlappingWindows) {
    Layer layer = layer_of(LayerKind::max_pool);
    layer.window.kernel = {1, 3};
    EXPECT_EQ(run(layer, {{1, 2, 1, 4}}, {{1, 5, 2, 3, 9, 0, 0, 7}}), (Values{5, 5, 9, 7}));
}

TEST(ReferencePool, MeanCountsPaddingOnlyWhenTold) {
    Layer layer = layer_of(LayerKind::average_pool);
    layer.window.kernel = {1, 2};
    layer.window.pad_begin = {0, 1};
    // Windows (pad, 6), (6, 10).
    EXPECT_EQ(run(layer, {{1, 1, 1, 2}}, {{6, 10}}), (Values{6, 8}));
    layer.count_include_pad = true;
    EXPECT_EQ(run(layer, {{1, 1, 1, 2}}, {{6, 10}}), (Values{3, 8}));
}

TEST(ReferencePool, GlobalMeanPerChannelAndImage) {
    EXPECT_EQ(run(layer_of(LayerKind::global_average_pool), {{2, 1, 2, 2}},
                  {{1, 2, 3, 4, 10, 10, 20, 20}}),
              (Values{2.5f, 15}));
}

TEST(ReferenceAdd, TwoMapsThenActivation) {
    Layer layer = layer_of(LayerKind::add);
    layer.activation.kind = ActivationKind::clip;
    layer.activation.low = 0;
    layer.activation.high = 6;
    EXPECT_EQ(run(layer, {{1, 3, 1, 1}, {1, 3, 1, 1}}, {{1, 5, -9}, {2, 5, 3}}), (Values{3, 6, 0}));
}

TEST(ReferenceAdd, AConstantIsOneValueOnePerChannelOrAWholeImage) {
    Layer layer = layer_of(LayerKind::add);
    const Dims dims{2, 2, 1, 2};
    const Values zeros(8, 0);
    layer.weights = constant({1}, {7});
    EXPECT_EQ(run(layer, {dims}, {zeros}), Values(8, 7));
    layer.weights = constant({2}, {1, 2});
    EXPECT_EQ(run(layer, {dims}, {zeros}), (Values{1, 1, 2, 2, 1, 1, 2, 2}));
    layer.weights = constant({2, 1, 2}, {1, 2, 3, 4});
    EXPECT_EQ(run(layer, {dims}, {zeros}), (Values{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(ReferenceConcat, AlongChannelsAndAlongRows) {
    Layer layer = layer_of(LayerKind::concat);
    // Channels of each image follow each other.
    EXPECT_EQ(
        run(layer, {{2, 1, 1, 2}, {2, 2, 1, 2}}, {{1, 2, 3, 4}, {10, 11, 12, 13, 14, 15, 16, 17}}),
        (Values{1, 2, 10, 11, 12, 13, 3, 4, 14, 15, 16, 17}));
    layer.axis = 2;
    EXPECT_EQ(run(layer, {{1, 2, 1, 1}, {1, 2, 2, 1}}, {{1, 2}, {3, 4, 5, 6}}),
              (Values{1, 3, 4, 2, 5, 6}));
}

/// Runs shorter than a vector, of some vectors, and longer than what a thread copies at once.
TEST(ReferenceConcat, RunsOfAnyLengthOnAnyThreads) {
    Layer layer = layer_of(LayerKind::concat);
    layer.axis = 2;
    for (const int64_t columns : {1, 15, 16, 17, 100, 129, 9000}) {
        const std::vector<Dims> dims{{2, 3, 1, columns}, {2, 3, 2, columns}};
        std::vector<Values> inputs;
        for (const Dims& of : dims) {
            Values& values = inputs.emplace_back(static_cast<size_t>(element_count(of)));
            std::iota(values.begin(), values.end(), 1000.0F * static_cast<float>(inputs.size()));
        }
        Values expected;
        for (int64_t plane = 0; plane < 6; ++plane) {
            for (size_t k = 0; k < 2; ++k) {
                const int64_t length = columns * static_cast<int64_t>(k + 1);
                const auto first = inputs[k].begin() + plane * length;
                expected.insert(expected.end(), first, first + length);
            }
        }
        for (const int threads : {1, 3}) EXPECT_EQ(run(layer, dims, inputs, threads), expected);
    }
}

TEST(ReferenceDepthToSpace, BothOrdersOfTheBlock) {
    // 8 channels of one pixel, block 2: two output channels of 2 x 2.
    Layer layer = layer_of(LayerKind::depth_to_space);
    layer.block = 2;
    const Values input{0, 1, 2, 3, 4, 5, 6, 7};
    // DCR: input channel = (row * 2 + column) * 2 + output channel.
    EXPECT_EQ(run(layer, {{1, 8, 1, 1}}, {input}), (Values{0, 2, 4, 6, 1, 3, 5, 7}));
    // CRD: input channel = output channel * 4 + row * 2 + column.
    layer.depth_to_space_crd = true;
    EXPECT_EQ(run(layer, {{1, 8, 1, 1}}, {input}), input);
}

TEST(ReferenceDepthToSpace, PixelsInterleave) {
    Layer layer = layer_of(LayerKind::depth_to_space);
    layer.block = 2;
    // Channel c holds 10 c + pixel; the 1 x 2 map becomes 2 x 4.
    EXPECT_EQ(run(layer, {{1, 4, 1, 2}}, {{0, 1, 10, 11, 20, 21, 30, 31}}),
              (Values{0, 10, 1, 11, 20, 30, 21, 31}));
}

TEST(ReferenceFlatten, CopiesOrStaysWhereItIs) {
    Layer layer = layer_of(LayerKind::flatten);
    EXPECT_EQ(run(layer, {{1, 2, 1, 2}}, {{1, 2, 3, 4}}), (Values{1, 2, 3, 4}));
    Values array{5, 6};
    run_reference_layer(layer, {{1, 2, 1, 1}}, {array.data()}, {1, 2}, array.data());
    EXPECT_EQ(array, (Values{5, 6}));
}

TEST(ReferenceSoftmax, AlongTheAxisAndWithoutOverflow) {
    Layer layer = layer_of(LayerKind::softmax);
    // exp(ln 3) = 3: (0, ln 3) -> (1/4, 3/4); adding 1000 to both changes nothing.
    const float ln3 = std::log(3.0f);
    const Values result = run(layer, {{2, 2}}, {{0, ln3, 1000, 1000}});
    EXPECT_NEAR(result[0], 0.25f, 1e-6f);
    EXPECT_NEAR(result[1], 0.75f, 1e-6f);
    EXPECT_EQ(result[2], 0.5f);
    EXPECT_EQ(result[3], 0.5f);
    // Along channels of a 1x2x1x2 map: pairs (0, ln 3) and (0, 0).
    const Values map = run(layer, {{1, 2, 1, 2}}, {{0, 0, ln3, 0}});
    EXPECT_NEAR(map[0], 0.25f, 1e-6f);
    EXPECT_NEAR(map[1], 0.5f, 1e-6f);
    EXPECT_NEAR(map[2], 0.75f, 1e-6f);
    EXPECT_NEAR(map[3], 0.5f, 1e-6f);
}

TEST(ReferenceActivation, EachKind) {
    const Dims dims{1, 2, 1, 2};
    const Values x{-2, 3, -4, 0};
    EXPECT_EQ(run(activation(ActivationKind::relu), {dims}, {x}), (Values{0, 3, 0, 0}));
    Layer leaky = activation(ActivationKind::leaky_relu);
    leaky.activation.alpha = 0.25f;
    EXPECT_EQ(run(leaky, {dims}, {x}), (Values{-0.5f, 3, -1, 0}));
    Layer prelu = activation(ActivationKind::prelu);
    prelu.activation.slope = constant({2}, {2, 3});
    EXPECT_EQ(run(prelu, {dims}, {x}), (Values{-4, 3, -12, 0}));
    prelu.activation.slope = constant({1}, {2});
    EXPECT_EQ(run(prelu, {dims}, {x}), (Values{-4, 3, -8, 0}));
    Layer clip = activation(ActivationKind::clip);
    clip.activation.low = -3;
    clip.activation.high = 1;
    EXPECT_EQ(run(clip, {dims}, {x}), (Values{-2, 1, -3, 0}));
    const Values sigmoid =
        run(activation(ActivationKind::sigmoid), {{1, 2}}, {{0, std::log(3.0f)}});
    EXPECT_NEAR(sigmoid[0], 0.5f, 1e-6f);
    EXPECT_NEAR(sigmoid[1], 0.75f, 1e-6f);  // 1 / (1 + 1/3)
    const Values tanh = run(activation(ActivationKind::tanh), {{1, 2}}, {{0, std::log(2.0f)}});
    EXPECT_NEAR(tanh[0], 0.0f, 1e-6f);
    EXPECT_NEAR(tanh[1], 0.6f, 1e-6f);  // (2 - 1/2) / (2 + 1/2)
}

/// input -> a (+1) -> b (relu); sum = a + b. Both a and b have later readers.
Network diamond() {
    Network network;
    network.name = "diamond";
    for (const char* name : {"input", "a", "b", "sum"})
        network.tensors.push_back({name, {1, 1, 1, 2}});
    Layer add_one = layer_of(LayerKind::add);
    add_one.name = "add_one", add_one.inputs = {0}, add_one.output = 1,
    add_one.weights = constant({1}, {1});
    Layer relu = activation(ActivationKind::relu);
    relu.name = "relu", relu.inputs = {1}, relu.output = 2;
    Layer sum = layer_of(LayerKind::add);
    sum.name = "sum", sum.inputs = {1, 2}, sum.output = 3;
    network.layers = {add_one, relu, sum};
    network.inputs = {0};
    network.outputs = {3};
    check(network);
    return network;
}

TEST(ReferenceNetwork, BranchesJoin) {
    // (-5, 2) -> a = (-4, 3), b = (0, 3), sum = (-4, 6).
    EXPECT_EQ(run_reference_network(diamond(), {{-5, 2}}), (std::vector<Values>{{-4, 6}}));
}

TEST(ReferenceNetwork, AnyTensorCanBeAskedForEvenTwiceAndTheInput) {
    EXPECT_EQ(run_reference_network(diamond(), {{-5, 2}}, {1, 3, 1, 0}),
              (std::vector<Values>{{-4, 3}, {-4, 6}, {-4, 3}, {-5, 2}}));
}

std::string error_of(const std::vector<Values>& inputs, const std::vector<TensorId>& requested) {
    try {
        (void)run_reference_network(diamond(), inputs, requested);
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

TEST(ReferenceNetwork, WrongInputsAreNamed) {
    EXPECT_EQ(error_of({}, {}), "network diamond: found 0 inputs, expected 1");
    EXPECT_EQ(error_of({{1, 2, 3}}, {}),
              "network diamond: input input: found 3 elements, expected 1x1x1x2");
    EXPECT_EQ(error_of({{1, 2}}, {4}), "network diamond: requested tensor 4, expected 0 to 3");
}

}  // namespace
}  // namespace laminate
