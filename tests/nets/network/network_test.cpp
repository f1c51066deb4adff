#include "nets/network/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "nets/network/taps.h"
#include "nets/zoo/zoo.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::message_of;

ConstantPtr constant(std::vector<int64_t> dims) {
    const auto count = static_cast<size_t>(element_count(dims));
    return std::make_shared<const Constant>(
        Constant{std::move(dims), std::vector<float>(count, 1.0f)});
}

Layer conv(std::vector<int64_t> weights, Window window = {}) {
    Layer layer{.name = "c", .kind = LayerKind::conv};
    window.kernel = {weights[2], weights[3]};
    layer.window = window;
    layer.weights = constant(std::move(weights));
    return layer;
}

/// x -> layer -> y
Network of(Layer layer, std::vector<std::vector<int64_t>> input_dims) {
    Network network;
    network.name = "test";
    for (size_t i = 0; i < input_dims.size(); ++i) {
        network.tensors.push_back({"x" + std::to_string(i), input_dims[i]});
        network.inputs.push_back(static_cast<TensorId>(i));
        layer.inputs.push_back(static_cast<TensorId>(i));
    }
    layer.output = static_cast<TensorId>(network.tensors.size());
    network.tensors.push_back({"y", infer_output_dims(layer, input_dims)});
    network.outputs = {layer.output};
    network.layers.push_back(std::move(layer));
    return network;
}

TEST(InferOutputDims, ConvolutionWithStrideDilationAndUnevenPadding) {
    // Rows: padded 9 + 1 + 2 = 12, window (3 - 1) * 2 + 1 = 5, (12 - 5) / 2 + 1 = 4. Columns: (7 +
    // 0 + 1 - 2) / 3 + 1 = 3.
    const Layer layer =
        conv({8, 3, 3, 2},
             {.stride = {2, 3}, .dilation = {2, 1}, .pad_begin = {1, 0}, .pad_end = {2, 1}});
    EXPECT_EQ(infer_output_dims(layer, {{2, 3, 9, 7}}), (std::vector<int64_t>{2, 8, 4, 3}));
}

TEST(InferOutputDims, TransposedConvolutionWithOutputPadding) {
    // Rows: (5 - 1) * 2 + 9 - 4 - 4 + 1 = 10, twice the input; columns: (4 - 1) * 3 + 5 - 1 - 0
    // = 13.
    Layer layer{.name = "d", .kind = LayerKind::conv_transpose};
    layer.weights = constant({6, 2, 9, 5});
    layer.groups = 3;
    layer.window = {.kernel = {9, 5},
                    .stride = {2, 3},
                    .pad_begin = {4, 1},
                    .pad_end = {4, 0},
                    .output_padding = {1, 0}};
    EXPECT_EQ(infer_output_dims(layer, {{1, 6, 5, 4}}),
              (std::vector<int64_t>{1, 6, 10, 13}));  // 2 channels for each of 3 groups
}

TEST(InferOutputDims, OtherKinds) {
    Layer pool{.name = "p", .kind = LayerKind::max_pool};
    pool.window = {.kernel = {3, 3}, .stride = {2, 2}, .pad_begin = {1, 1}, .pad_end = {1, 1}};
    EXPECT_EQ(infer_output_dims(pool, {{1, 64, 112, 112}}),
              (std::vector<int64_t>{1, 64, 56, 56}));  // (112 + 2 - 3) / 2 + 1
    EXPECT_EQ(
        infer_output_dims({.name = "g", .kind = LayerKind::global_average_pool}, {{2, 5, 7, 9}}),
        (std::vector<int64_t>{2, 5, 1, 1}));
    EXPECT_EQ(infer_output_dims({.name = "c", .kind = LayerKind::concat, .axis = 1},
                                {{1, 2, 4, 4}, {1, 3, 4, 4}}),
              (std::vector<int64_t>{1, 5, 4, 4}));
    EXPECT_EQ(infer_output_dims({.name = "s", .kind = LayerKind::depth_to_space, .block = 2},
                                {{1, 12, 3, 5}}),
              (std::vector<int64_t>{1, 3, 6, 10}));
    EXPECT_EQ(infer_output_dims({.name = "f", .kind = LayerKind::flatten}, {{2, 3, 4, 5}}),
              (std::vector<int64_t>{2, 60}));
    EXPECT_EQ(
        infer_output_dims({.name = "f", .kind = LayerKind::flatten, .axis = 0}, {{2, 3, 4, 5}}),
        (std::vector<int64_t>{1, 120}));
    Layer gemm{.name = "fc", .kind = LayerKind::gemm};
    gemm.weights = constant({10, 60});
    EXPECT_EQ(infer_output_dims(gemm, {{2, 60}}), (std::vector<int64_t>{2, 10}));
    Layer biased{.name = "a", .kind = LayerKind::add};
    biased.weights = constant({3});
    EXPECT_EQ(infer_output_dims(biased, {{2, 3, 4, 5}}), (std::vector<int64_t>{2, 3, 4, 5}));
}

TEST(InferOutputDims, RefusesWithTheLayerAndBothNumbers) {
    struct Case {
        Layer layer;
        std::vector<std::vector<int64_t>> inputs;
        std::string message;
    };
    Layer uneven = conv({8, 3, 3, 3});
    uneven.groups = 2;
    Layer wrong_bias = conv({8, 3, 3, 3});
    wrong_bias.bias = constant({7});
    Layer outside{.name = "p", .kind = LayerKind::average_pool};
    outside.window = {.kernel = {2, 2}, .pad_begin = {2, 0}};
    Layer activated{.name = "p",
                    .kind = LayerKind::global_average_pool,
                    .activation = {.kind = ActivationKind::relu}};
    Layer slopes = conv({8, 3, 3, 3});
    slopes.activation = {.kind = ActivationKind::prelu, .slope = constant({3})};
    Layer jumps = conv({8, 3, 3, 3});
    jumps.activation = {.kind = ActivationKind::unary, .function = GeneralFunction::is_zero};
    Layer named = conv({8, 3, 3, 3});
    named.activation = {.kind = ActivationKind::relu, .function = GeneralFunction::elu};
    Layer huge = conv({8, 3, 3, 3}, {.pad_begin = {int64_t{1} << 30, int64_t{1} << 30}});
    Layer overflowing = conv({8, 3, 3, 3}, {.dilation = {int64_t{1} << 62, 1}});
    Layer deconv{.name = "d", .kind = LayerKind::conv_transpose};
    deconv.weights = constant({3, 2, 2, 2});
    deconv.window = {.kernel = {2, 2}, .stride = {2, 2}, .output_padding = {0, 2}};
    const std::vector<Case> cases{
        {conv({8, 4, 3, 3}),
         {{1, 3, 9, 9}},
         "c (conv): weights 8x4x3x3 in 1 groups read 4 channels, the input has 3"},
        {conv({8, 3, 3, 3}),
         {{1, 3, 2, 9}},
         "c (conv): window spans 3 along y, the padded input only 2"},
        {conv({8, 3, 3, 3}),
         {{1, 27}},
         "c (conv): input is 1x27, expected 4 dimensions (N, C, H, W)"},
        {conv({8, 3, 3, 3}), {{1, 3, 9, 9}, {1, 3, 9, 9}}, "c (conv): has 2 inputs, expected 1"},
        {uneven, {{1, 3, 9, 9}}, "c (conv): 2 groups do not divide 3 input channels"},
        {wrong_bias,
         {{1, 3, 9, 9}},
         "c (conv): bias has 7 values, expected one for each of 8 output channels"},
        {outside, {{1, 3, 9, 9}}, "p (average_pool): a window along y lies wholly in the padding"},
        {activated,
         {{1, 3, 9, 9}},
         "p (global_average_pool): carries relu; expected a separate activation layer"},
        {slopes, {{1, 3, 9, 9}}, "c (conv): 3 slopes for 1x8x7x7, expected 1 or one per channel"},
        {jumps, {{1, 3, 9, 9}}, "c (conv): is_zero of 0.000000 and 0.000000 is no activation"},
        {named, {{1, 3, 9, 9}}, "c (conv): relu names the function elu"},
        {huge, {{1, 3, 9, 9}}, "more than 2^40 elements"},
        {overflowing,
         {{1, 3, 9, 9}},
         "c (conv): dilation along y is 4611686018427387904, expected 1 to 2147483647"},
        {deconv,
         {{1, 3, 9, 9}},
         "d (conv_transpose): output padding 2 along x, expected less than stride or dilation"},
        {{.name = "a", .kind = LayerKind::add},
         {{1, 3, 9, 9}, {1, 3, 9, 8}},
         "a (add): operands are 1x3x9x9 and 1x3x9x8, expected equal shapes"},
        {{.name = "c", .kind = LayerKind::concat},
         {{1, 3, 9, 9}, {1, 3, 9, 8}},
         "inputs are 1x3x9x9 and 1x3x9x8, expected to differ only in axis 1"},
        {{.name = "s", .kind = LayerKind::softmax, .axis = 4},
         {{1, 3, 9, 9}},
         "s (softmax): axis 4 of an input with 4 dimensions"},
        {{.name = "d", .kind = LayerKind::depth_to_space, .block = 2},
         {{1, 3, 9, 9}},
         "block 2: its square does not divide 3 channels"},
    };
    for (const Case& c : cases) {
        expect_contains(message_of([&] { (void)infer_output_dims(c.layer, c.inputs); }), c.message);
    }
}

/// Counts taps one by one, from the definition.
int64_t transposed_macs_by_walking(const Network& network) {
    const Layer& layer = network.layers[0];
    const auto& in = network.tensor(layer.inputs[0]).dims;
    const auto& out = network.tensor(layer.output).dims;
    const Window& w = layer.window;
    int64_t macs = 0;
    for (int64_t y = 0; y < out[2]; ++y) {
        for (int64_t x = 0; x < out[3]; ++x) {
            for (int64_t n = 0; n < w.kernel[0]; ++n) {
                for (int64_t m = 0; m < w.kernel[1]; ++m) {
                    const int64_t row = y + w.pad_begin[0] - n * w.dilation[0];
                    const int64_t column = x + w.pad_begin[1] - m * w.dilation[1];
                    if (row % w.stride[0] == 0 && column % w.stride[1] == 0)
                        macs += out[0] * out[1] * (in[1] / layer.groups);
                }
            }
        }
    }
    return macs;
}

// Every window tap by tap, on all small windows.
TEST(EveryWindowReads, AsTheTapsDo) {
    int passed = 0;
    for (int64_t code = 0; code < 4 * 5 * 6 * 8 * 4 * 6; ++code) {
        int64_t rest = code;
        const auto next = [&](int64_t values) {
            const int64_t digit = rest % values;
            rest /= values;
            return digit;
        };
        const AxisTaps taps{next(4) + 1, next(5) + 1, next(6) + 1, next(8)};
        const int64_t in = next(4) + 1, out = next(6) + 1;
        bool expected = true;
        for (int64_t window = 0; window < out; ++window) {
            bool reads = false;
            for (int64_t tap = 0; tap < taps.kernel; ++tap) {
                const int64_t at = window * taps.stride - taps.pad_begin + tap * taps.dilation;
                reads = reads || (at >= 0 && at < in);
            }
            expected = expected && reads;
        }
        ASSERT_EQ(every_window_reads(taps, in, out), expected) << "window " << code;
        passed += expected && taps.dilation > in && taps.pad_begin > 0 && taps.kernel > 1;
    }
    EXPECT_GT(passed, 100);  // padded windows whose taps lie further apart than the input
}

TEST(LayerMacs, TransposedConvolutionCountsTheTapsOfTheWalk) {
    int cases = 0;
    for (const int64_t kernel : {1, 2, 3, 5}) {
        for (const int64_t stride : {1, 2, 3}) {
            for (const int64_t dilation : {1, 2}) {
                for (const int64_t pad : {0, 1, 2}) {
                    Layer layer{.name = "d", .kind = LayerKind::conv_transpose};
                    layer.weights = constant({4, 3, kernel, 2});
                    layer.groups = 2;
                    layer.window = {.kernel = {kernel, 2},
                                    .stride = {stride, 2},
                                    .dilation = {dilation, 1},
                                    .pad_begin = {pad, 0},
                                    .output_padding = {0, 1}};
                    if ((6 - 1) * stride + (kernel - 1) * dilation + 1 - pad < 1) continue;
                    const Network network = of(layer, {{2, 4, 6, 3}});
                    EXPECT_EQ(layer_macs(network, 0), transposed_macs_by_walking(network))
                        << "kernel " << kernel << " stride " << stride << " dilation " << dilation
                        << " pad " << pad;
                    ++cases;
                }
            }
        }
    }
    EXPECT_EQ(cases, 4 * 3 * 2 * 3);
}

TEST(LayerMacs, GroupsBatchAndGemm) {
    Layer depthwise = conv({6, 1, 3, 3});
    depthwise.groups = 6;
    EXPECT_EQ(layer_macs(of(depthwise, {{2, 6, 10, 8}}), 0),
              2 * 6 * 8 * 6 * 9);  // outputs 2 x 6 x 8 x 6, nine taps each
    Layer gemm{.name = "fc", .kind = LayerKind::gemm};
    gemm.weights = constant({10, 60});
    EXPECT_EQ(layer_macs(of(gemm, {{3, 60}}), 0), 3 * 10 * 60);
    EXPECT_EQ(layer_macs(of({.name = "s", .kind = LayerKind::softmax}, {{3, 60}}), 0), 0);
}

TEST(ElementCount, BoundsEveryTensor) {
    EXPECT_EQ(element_count({2, 3, 4}), 24);
    EXPECT_EQ(element_count({}), 1);
    EXPECT_EQ(element_count({1 << 20, 1 << 20}), int64_t{1} << 40);
    expect_contains(message_of([] {
                        (void)element_count({1 << 20, 1 << 20, 2});
                    }),
                    "more than 2^40 elements");
    // 2^31 - 1 to the fourth would wrap around 64 bits.
    const int64_t most = 2147483647;
    expect_contains(message_of([&] {
                        (void)element_count({most, most, most, most});
                    }),
                    "more than 2^40 elements");
    expect_contains(message_of([] {
                        (void)element_count({1, 0, 4});
                    }),
                    "tensor of 1x0x4: dimension 0, expected 1 to 2147483647");
}

TEST(Check, FindsWhatIsWrong) {
    const auto broken = [](const std::function<void(Network&)>& breaking) {
        Network network = zoo_network("l3net");
        breaking(network);
        return message_of([&] { check(network); });
    };
    EXPECT_EQ(broken([](Network&) {}), "no error");
    expect_contains(broken([](Network& n) { n.layers[1].name = "conv1"; }),
                    "l3net: two layers are named conv1");
    expect_contains(broken([](Network& n) { n.layers[1].name = "1st"; }),
                    "layer name \"1st\" is not an identifier");
    expect_contains(broken([](Network& n) { n.tensors[1].name = "input"; }),
                    "two tensors are named \"input\"");
    expect_contains(broken([](Network& n) { n.tensors[2].dims[3] = 17; }),
                    "conv2 (conv): output is 1x4x18x17, expected 1x4x18x18");
    expect_contains(broken([](Network& n) { std::swap(n.layers[0], n.layers[1]); }),
                    "conv2 (conv): reads tensor 1 before any layer writes it");
    expect_contains(broken([](Network& n) { n.layers[1].output = 1; }),
                    "conv2 (conv): writes \"conv1_out\", which is written already");
    expect_contains(broken([](Network& n) { n.layers[1].inputs[0] = 7; }),
                    "conv2 (conv): reads tensor 7");
    expect_contains(broken([](Network& n) { n.outputs = {0}; }),
                    "an output is not written by any layer");
    expect_contains(broken([](Network& n) { n.outputs = {1}; }),
                    "nothing reads tensor \"conv3_out\", and it is no output");
    expect_contains(broken([](Network& n) { n.outputs.clear(); }), "has no outputs");
    expect_contains(broken([](Network& n) {
                        n.tensors.push_back({"stray", {1}});
                    }),
                    "nothing writes tensor \"stray\"");
}

TEST(Check, CountsThatDoNotFitIn64Bits) {
    // More than 2^20 x 2^19 outputs of 2^12 x 2^12 taps each: 2^39 * 2^24 = 2^63.
    Layer layer{.name = "d", .kind = LayerKind::conv};
    layer.weights = constant({1, 1, 1 << 12, 1 << 12});
    layer.window = {.kernel = {1 << 12, 1 << 12},
                    .pad_begin = {(1 << 20) + (1 << 12), (1 << 19) + (1 << 12)}};
    const Network network = of(layer, {{1, 1, 8, 8}});
    expect_contains(message_of([&] { check(network); }),
                    "test: more than 2^63 multiply-accumulates");
}

TEST(NetworkHash, ChangesWithEverythingThatCounts) {
    const Network original = zoo_network("resnet18", {.height = 32, .width = 32});
    const std::string hash = network_hash(original);
    EXPECT_EQ(hash.size(), 16u);
    const auto changed = [&](const std::function<void(Network&)>& change) {
        Network network = original;
        change(network);
        return network_hash(network);
    };
    EXPECT_EQ(changed([](Network&) {}), hash);
    EXPECT_EQ(changed([](Network& n) { n.name = "other"; }), hash);
    EXPECT_EQ(changed([](Network& n) { n.tensors[3].name = "other"; }), hash);
    EXPECT_EQ(changed([](Network& n) { n.layers[0].onnx_name = "other"; }), hash);
    EXPECT_EQ(changed([](Network& n) { n.layers[0].axis = 3; }),
              hash);  // a convolution has no axis

    EXPECT_NE(changed([](Network& n) { n.layers[0].name = "first"; }), hash);
    EXPECT_NE(changed([](Network& n) { n.layers[0].activation = {}; }), hash);
    const auto with_unary = [&](GeneralFunction function, float alpha, float beta) {
        return changed([&](Network& n) {
            n.layers[0].activation = {
                .kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta};
        });
    };
    const std::string elu = with_unary(GeneralFunction::elu, 1, 0);
    EXPECT_EQ(with_unary(GeneralFunction::elu, 1, 0), elu);
    EXPECT_NE(with_unary(GeneralFunction::celu, 1, 0), elu);
    EXPECT_NE(with_unary(GeneralFunction::elu, 2, 0), elu);
    EXPECT_NE(with_unary(GeneralFunction::elu, 1, 1), elu);
    EXPECT_NE(changed([](Network& n) { n.layers[1].window.pad_end[1] = 2; }), hash);
    EXPECT_NE(changed([](Network& n) { n.layers[1].kind = LayerKind::average_pool; }), hash);
    EXPECT_NE(changed([](Network& n) { n.layers.back().axis = 0; }), hash);
    EXPECT_NE(changed([](Network& n) { n.tensors[0].dims[2] = 33; }), hash);
    const auto with_weight = [&](size_t at, float value) {
        return changed([&](Network& n) {
            std::vector<float> weights = n.layers[0].weights->values;
            weights[at] = value;
            n.layers[0].weights = std::make_shared<const Constant>(
                Constant{n.layers[0].weights->dims, std::move(weights)});
        });
    };
    const float old = original.layers[0].weights->values[5];
    EXPECT_EQ(with_weight(5, old), hash);
    EXPECT_NE(with_weight(5, std::nextafter(old, 10.0f)), hash);  // one bit of one weight
    EXPECT_NE(with_weight(original.layers[0].weights->values.size() - 1, 0.0f), hash);
}

TEST(StructureHash, ChangesWithEverythingButTheValuesOfConstants) {
    const Network original = zoo_network("fsrcnn", {.height = 32, .width = 32});
    const std::string hash = structure_hash(original);
    EXPECT_NE(hash, network_hash(original));
    EXPECT_EQ(structure_hash(zoo_network("fsrcnn", {.height = 32, .width = 32, .seed = 2})), hash);
    const auto changed = [&](const std::function<void(Layer&)>& change) {
        Network network = original;
        change(network.layers[0]);
        return structure_hash(network);
    };
    EXPECT_NE(changed([](Layer& l) { l.name = "first"; }), hash);
    EXPECT_NE(changed([](Layer& l) { l.activation = {}; }), hash);
    EXPECT_NE(changed([](Layer& l) { l.bias = nullptr; }), hash);
    EXPECT_NE(changed([](Layer& l) { l.activation.slope = constant({1}); }),
              hash);  // one slope for all 56 channels
    EXPECT_NE(changed([](Layer& l) { l.weights = constant({56, 1, 25, 1}); }), hash);
}

TEST(NetworkHash, DoesNotDependOnTheNumberingOfTensors) {
    Network network = zoo_network("l2net");
    const std::string hash = network_hash(network);
    std::swap(network.tensors[0], network.tensors[2]);  // input and output change places
    network.inputs = {2};
    network.layers[0].inputs = {2};
    network.layers[1].output = 0;
    network.outputs = {0};
    check(network);
    EXPECT_EQ(network_hash(network), hash);
}

TEST(Network, ProducersAndConsumers) {
    const Network network = zoo_network("resnet18", {.height = 32, .width = 32});
    const LayerId pool = network.find_layer("pool1");
    ASSERT_EQ(pool, 1);
    const TensorId pooled = network.layer(pool).output;
    EXPECT_EQ(network.producer(pooled), pool);
    EXPECT_EQ(network.producer(network.inputs[0]), -1);
    // The first block's first convolution, and the addition that ends the block.
    EXPECT_EQ(network.consumers(pooled),
              (std::vector<LayerId>{network.find_layer("layer1_0_conv1"),
                                    network.find_layer("layer1_0_add")}));
    EXPECT_EQ(network.find_layer("nothing"), -1);
    EXPECT_FALSE(network.is_output(pooled));
    EXPECT_TRUE(network.is_output(network.layers.back().output));
}

TEST(IsIdentifier, LettersDigitsUnderscore) {
    EXPECT_TRUE(is_identifier("conv1"));
    EXPECT_TRUE(is_identifier("_"));
    EXPECT_FALSE(is_identifier(""));
    EXPECT_FALSE(is_identifier("1conv"));
    EXPECT_FALSE(is_identifier("conv.1"));
    EXPECT_FALSE(is_identifier("conv\xc3\xa9"));
}

}  // namespace
}  // namespace laminate
