// Normalisations over the channels of each pixel, in the forms that files have them.
#include <gtest/gtest.h>

#include <cmath>

#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;

/// Two channels on 1 x 2: (5, 1) and (3, 7). Means 3 and 5, variances 4 and 4.
const std::vector<float> pixels{5, 3, 1, 7};

std::vector<float> result_of(const Network& network, std::vector<float> input) {
    return run_reference_network(network, {std::move(input)}, network.outputs, 1).front();
}

/// (x - mean) / sqrt(variance + 5): by three.
const std::vector<float> standardised{2.0F / 3, -2.0F / 3, -2.0F / 3, 2.0F / 3};

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t n = 0; n < found.size(); ++n) EXPECT_NEAR(found[n], expected[n], 1e-6F) << n;
}

/// c = x - mean, of the square of which `square` is the node.
void add_parts(ModelBuilder& m, const std::string& x, bool by_power, int64_t axis = 1) {
    m.weights("epsilon", {}, {5}).weights("two", {}, {2});
    m.node("ReduceMean", {x}, "mean").integers("axes", {1}).integer("keepdims", 1);
    m.node("Sub", {x, "mean"}, "c");
    if (by_power) {
        m.node("Pow", {"c", "two"}, "square");
    } else {
        m.node("Mul", {"c", "c"}, "square");
    }
    m.node("ReduceMean", {"square"}, "variance").integers("axes", {axis}).integer("keepdims", 1);
    m.node("Add", {"variance", "epsilon"}, "sum");
    m.node("Sqrt", {"sum"}, "root");
}

TEST(Normalisations, InNodesAreOneLayer) {
    for (const bool by_power : {false, true}) {
        ModelBuilder m({1, 2, 1, 2});
        add_parts(m, "x", by_power);
        m.node("Div", {"c", "root"}, "y", "norm");
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 1u);
        const GeneralOperator& op = network.layers[0].general;
        EXPECT_EQ(op.kind, GeneralKind::normalise);
        EXPECT_EQ(op.function, GeneralFunction::standardise);
        EXPECT_EQ(op.axes, std::vector<int64_t>{1});
        EXPECT_EQ(op.alpha, 5);
        EXPECT_EQ(network.layers[0].name, "norm");
        expect_near(result_of(network, pixels), standardised);
    }
}

/// The inverse of the root as a factor, the root as a power, and means over the pixels of a channel.
TEST(Normalisations, InOtherNodesAreOneLayer) {
    const auto expect_one = [](const std::string& root, const std::string& inverse,
                               const std::vector<int64_t>& axes) {
        ModelBuilder m({1, 2, 1, 2});
        m.weights("epsilon", {}, {5}).weights("half", {}, {0.5F}).weights("one", {}, {1});
        m.node("ReduceMean", {"x"}, "mean").integers("axes", axes);
        m.node("Sub", {"x", "mean"}, "c");
        m.node("Mul", {"c", "c"}, "square");
        m.node("ReduceMean", {"square"}, "variance").integers("axes", axes);
        m.node("Add", {"variance", "epsilon"}, "sum");
        if (root == "Pow") {
            m.node("Pow", {"sum", "half"}, "root");
        } else {
            m.node("Sqrt", {"sum"}, "root");
        }
        if (inverse == "Reciprocal") {
            m.node("Reciprocal", {"root"}, "factor");
        } else if (!inverse.empty()) {
            m.node("Div", {"one", "root"}, "factor");
        }
        if (inverse.empty()) {
            m.node("Div", {"c", "root"}, "y");
        } else {
            m.node("Mul", {"c", "factor"}, "y");
        }
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 1u) << root << inverse;
        EXPECT_EQ(network.layers[0].general.function, GeneralFunction::standardise);
        EXPECT_EQ(network.layers[0].general.axes, axes);
    };
    expect_one("Sqrt", "Reciprocal", {1});
    expect_one("Sqrt", "Div", {1});
    expect_one("Pow", "", {1});
    expect_one("Sqrt", "", {1, 3});
}

TEST(Normalisations, AMeanOfMeansIsOne) {
    ModelBuilder m({1, 2, 3, 4});
    m.node("ReduceMean", {"x"}, "rows").integers("axes", {3});
    m.node("ReduceMean", {"rows"}, "y").integers("axes", {2});
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].kind, LayerKind::global_average_pool);
}

TEST(Normalisations, WithoutAMeanTheyAreOfSquares) {
    ModelBuilder m({1, 2, 1, 2});
    m.weights("epsilon", {}, {3});
    m.node("Mul", {"x", "x"}, "square");
    m.node("ReduceMean", {"square"}, "mean").integers("axes", {1}).integer("keepdims", 1);
    m.node("Add", {"mean", "epsilon"}, "sum");
    m.node("Sqrt", {"sum"}, "root");
    m.node("Div", {"x", "root"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].general.function, GeneralFunction::root_mean_square);
    // sqrt((25 + 1) / 2 + 3) = 4 and sqrt((9 + 49) / 2 + 3) = sqrt(32).
    expect_near(result_of(network, pixels), {5.0F / 4, 3 / std::sqrt(32.0F), 1.0F / 4,
                                             7 / std::sqrt(32.0F)});
}

TEST(Normalisations, WhatIsReadElsewhereStays) {
    ModelBuilder m({1, 2, 1, 2});
    add_parts(m, "x", false);
    m.node("Div", {"c", "root"}, "z");
    m.node("Mul", {"z", "root"}, "y");
    for (const Layer& layer : m.parse().layers)
        EXPECT_NE(layer.general.kind, GeneralKind::normalise) << layer.name;
}

TEST(Normalisations, ADifferenceOfOtherAxesOrReadElsewhereIsNormalisedBySquares) {
    const auto last_two = [](int64_t axis, bool is_read) {
        ModelBuilder m({1, 2, 1, 2});
        add_parts(m, "x", false, axis);
        m.node("Div", {"c", "root"}, is_read ? "z" : "y");
        if (is_read) m.node("Mul", {"z", "c"}, "y");
        const Network network = m.parse();
        EXPECT_EQ(network.layers.size(), is_read ? 4u : 3u);
        EXPECT_EQ(network.layers.at(2).general.function, GeneralFunction::root_mean_square);
        EXPECT_EQ(network.layers.at(2).general.axes, std::vector<int64_t>{axis});
        return result_of(network, pixels);
    };
    expect_near(last_two(3, false), standardised);  // each channel has 2 and -2
    expect_near(last_two(1, true), {4.0F / 3, 4.0F / 3, 4.0F / 3, 4.0F / 3});
}

TEST(Normalisations, ScaleAndShiftGoIntoTheConvolutionBehind) {
    // Of channels (a, b): 2 a + 1 and 3 b - 1, and of these the sum and the difference with 10.
    const auto model = [](int64_t kernel, int64_t pad) {
        ModelBuilder m({1, 2, 1, 2});
        add_parts(m, "x", false);
        m.node("Div", {"c", "root"}, "normed");
        m.weights("scale", {2, 1, 1}, {2, 3}).weights("shift", {2, 1, 1}, {1, -1});
        m.node("Mul", {"normed", "scale"}, "scaled", "scaling");
        m.node("Add", {"scaled", "shift"}, "shifted");
        std::vector<float> weights(static_cast<size_t>(4 * kernel), 0.0F);
        const auto middle = static_cast<size_t>(kernel / 2), step = static_cast<size_t>(kernel);
        weights[middle] = weights[step + middle] = weights[2 * step + middle] = 1;
        weights[3 * step + middle] = -1;
        m.weights("w", {2, 2, 1, kernel}, weights).weights("b", {2}, {0, 10});
        m.node("Conv", {"shifted", "w", "b"}, "y", "conv").integers("pads", {0, pad, 0, pad});
        return m.parse();
    };
    const float s = 2.0F / 3;
    const std::vector<float> expected{2 * s - 3 * s, -2 * s + 3 * s, 10 + 2 * s + 1 + 3 * s + 1,
                                      10 - 2 * s + 1 - 3 * s + 1};
    const Network folded = model(1, 0);
    ASSERT_EQ(folded.layers.size(), 2u);
    EXPECT_EQ(folded.layers[1].weights->values, (std::vector<float>{2, 3, 2, -3}));
    EXPECT_EQ(folded.layers[1].bias->values, (std::vector<float>{0, 12}));
    EXPECT_EQ(folded.folded.back(), "Mul \"scaling\" into Conv \"conv\"");
    expect_near(result_of(folded, pixels), expected);
    // Zeros of padding are not shifted.
    const Network padded = model(3, 1);
    ASSERT_EQ(padded.layers.size(), 3u);
    expect_near(result_of(padded, pixels), expected);
}

TEST(Normalisations, BetweenTransposesTheyAreOfMaps) {
    // A block of ConvNeXt: LayerNormalization and two MatMuls with their channels last.
    ModelBuilder m({1, 2, 1, 2});
    m.weights("scale", {2}, {3, 3}).weights("shift", {2}, {0, 1});
    m.weights("wide", {2, 3}, {1, 0, 1, 0, 1, 1}).weights("bias", {3}, {0, 0, -1});
    m.weights("narrow", {3, 2}, {1, 0, 0, 1, 0, 10}).weights("gamma", {2}, {1, 2});
    m.node("Transpose", {"x"}, "last").integers("perm", {0, 2, 3, 1});
    m.node("LayerNormalization", {"last", "scale", "shift"}, "normed", "norm").real("epsilon", 5);
    m.node("MatMul", {"normed", "wide"}, "product");
    m.node("Add", {"product", "bias"}, "sum");
    m.node("Relu", {"sum"}, "positive");
    m.node("MatMul", {"positive", "narrow"}, "narrowed");
    m.node("Mul", {"narrowed", "gamma"}, "weighted");
    m.node("Transpose", {"weighted"}, "first").integers("perm", {0, 3, 1, 2});
    m.node("Add", {"x", "first"}, "y");
    const Network network = m.parse();
    std::vector<LayerKind> kinds;
    for (const Layer& layer : network.layers) kinds.push_back(layer.kind);
    EXPECT_EQ(kinds, (std::vector<LayerKind>{LayerKind::general, LayerKind::conv, LayerKind::conv,
                                             LayerKind::add}));
    // Normed (2, -2 + 1) and (-2, 2 + 1); wide, positive: (2, 0, 0) and (0, 3, 0); narrow with
    // gamma: (2, 0) and (0, 6).
    expect_near(result_of(network, pixels), {5 + 2, 3 + 0, 1 + 0, 7 + 6});
}

/// Scale and shift of the channels are a layer of groups, which takes an activation; ones and zeros
/// are none.
TEST(Normalisations, OfImagesScaleAndShiftChannels) {
    const auto model = [](const std::vector<float>& scale, const std::vector<float>& shift) {
        ModelBuilder m({1, 2, 1, 2});
        m.weights("scale", {2}, scale).weights("shift", {2}, shift);
        m.node("InstanceNormalization", {"x", "scale", "shift"}, "normed").real("epsilon", 0);
        m.node("Relu", {"normed"}, "y");
        return m.parse();
    };
    const Network whole = model({2, 3}, {0, 5});  // (5, 3) is (1, -1), (1, 7) is (-1, 1)
    EXPECT_EQ(whole.layers.back().kind, LayerKind::conv);
    EXPECT_EQ(whole.layers.back().activation.kind, ActivationKind::relu);
    expect_near(result_of(whole, pixels), {2, 0, 2, 8});
    const Network neutral = model({1, 1}, {0, 0});
    EXPECT_EQ(neutral.layers.back().kind, LayerKind::activation);
    EXPECT_EQ(neutral.layers.size(), whole.layers.size());
    expect_near(result_of(neutral, pixels), {1, 0, 0, 1});
}

/// What is done to each element; the other layers are of one pixel for each channel.
std::vector<std::string> layers_of_maps(const Network& network) {
    std::vector<std::string> kinds;
    for (const Layer& layer : network.layers) {
        const auto& dims = network.tensor(layer.output).dims;
        if (dims.size() != 4 || dims[2] * dims[3] > 1) kinds.push_back(operation_text(layer));
    }
    return kinds;
}
const std::vector<std::string> difference_and_product{"subtract", "multiply"};

TEST(Normalisations, OfImagesAreADifferenceAndAProduct) {
    ModelBuilder m({1, 2, 1, 2});
    m.weights("ones", {2}, {1, 1}).weights("zeros", {2}, {0, 0});
    m.node("InstanceNormalization", {"x", "ones", "zeros"}, "y", "norm").real("epsilon", 3);
    const Network network = m.parse();
    EXPECT_EQ(layers_of_maps(network), difference_and_product);
    EXPECT_EQ(network.layers.back().name, "norm");
    // Channels (5, 3) and (1, 7): variances 1 and 9, roots sqrt(4) and sqrt(12).
    const float of_second = 3 / std::sqrt(12.0F);
    expect_near(result_of(network, pixels), {0.5F, -0.5F, -of_second, of_second});
}

/// All four elements together have the mean 4 and the variance (1 + 1 + 9 + 9) / 4 = 5.
TEST(Normalisations, OfGroupsOfChannelsAreADifferenceAndAProduct) {
    const std::vector<float> expected{1.0F / 3, -1.0F / 3, -1, 1};
    ModelBuilder reshaped({1, 2, 1, 2});
    reshaped.integers("groups", {1, 1, -1}).integers("map", {1, 2, 1, 2});
    reshaped.weights("one", {1}, {1}).weights("zero", {1}, {0});
    reshaped.node("Reshape", {"x", "groups"}, "split");
    reshaped.node("InstanceNormalization", {"split", "one", "zero"}, "n").real("epsilon", 4);
    reshaped.node("Reshape", {"n", "map"}, "y");
    ModelBuilder whole({1, 2, 1, 2});
    whole.weights("ones", {2, 1, 2}, {1, 1, 1, 1});
    whole.node("LayerNormalization", {"x", "ones"}, "y").real("epsilon", 4).integer("axis", 1);
    ModelBuilder group({1, 2, 1, 2}, 21);
    group.weights("ones", {2}, {1, 1}).weights("zeros", {2}, {0, 0});
    group.node("GroupNormalization", {"x", "ones", "zeros"}, "y")
        .real("epsilon", 4)
        .integer("num_groups", 1);
    for (const ModelBuilder* m : {&reshaped, &whole, &group}) {
        const Network network = m->parse();
        EXPECT_EQ(layers_of_maps(network), difference_and_product);
        expect_near(result_of(network, pixels), expected);
    }
}

TEST(Normalisations, OfImagesBySquaresAreAProduct) {
    ModelBuilder m({1, 2, 1, 2});
    m.weights("epsilon", {}, {3});
    m.node("Mul", {"x", "x"}, "square");
    m.node("ReduceMean", {"square"}, "mean").integers("axes", {2, 3});
    m.node("Add", {"mean", "epsilon"}, "sum");
    m.node("Sqrt", {"sum"}, "root");
    m.node("Div", {"x", "root"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(layers_of_maps(network), std::vector<std::string>{"multiply"});
    // Squares (25 + 9) / 2 + 3 = 20 and (1 + 49) / 2 + 3 = 28.
    expect_near(result_of(network, pixels), {5 / std::sqrt(20.0F), 3 / std::sqrt(20.0F),
                                             1 / std::sqrt(28.0F), 7 / std::sqrt(28.0F)});
}

TEST(Normalisations, MeansOfChannelsAreConvolutionsAndTheLargestAReduction) {
    for (const auto& [op, expected] : {std::pair{"ReduceMean", std::vector<float>{3, 5}},
                                       std::pair{"ReduceMin", std::vector<float>{1, 3}},
                                       std::pair{"ReduceMax", std::vector<float>{5, 7}}}) {
        ModelBuilder m({1, 2, 1, 2});
        m.node(op, {"x"}, "y").integers("axes", {1});
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 1u);
        const bool is_mean = op == std::string("ReduceMean");
        EXPECT_EQ(network.layers[0].kind == LayerKind::conv, is_mean);
        EXPECT_EQ(extreme_of_channels(network.layers[0]).has_value(), !is_mean);
        expect_near(result_of(network, pixels), expected);
    }
}

TEST(Normalisations, OfTokensTheyAreOfMaps) {
    // Restormer's and a SegFormer's block: LayerNorm in nodes with two means, and a MatMul.
    ModelBuilder m({1, 2, 1, 2});
    m.integers("tokens", {1, 2, 2}).integers("map", {1, 2, 1, 2});
    m.weights("scale", {2}, {3, 6}).weights("matrix", {2, 2}, {1, 1, 0, 1});
    m.node("Reshape", {"x", "tokens"}, "flat");
    m.node("Transpose", {"flat"}, "t").integers("perm", {0, 2, 1});
    m.weights("epsilon", {}, {5});
    for (const std::string k : {"1", "2"}) {
        m.node("ReduceMean", {"t"}, "mean" + k).integers("axes", {-1}).integer("keepdims", 1);
        m.node("Sub", {"t", "mean" + k}, "c" + k);
    }
    m.node("Mul", {"c2", "c2"}, "square");
    m.node("ReduceMean", {"square"}, "variance").integers("axes", {-1}).integer("keepdims", 1);
    m.node("Add", {"variance", "epsilon"}, "sum");
    m.node("Sqrt", {"sum"}, "root");
    m.node("Div", {"c1", "root"}, "normed");
    m.node("Mul", {"normed", "scale"}, "scaled");
    m.node("MatMul", {"scaled", "matrix"}, "product");
    m.node("Transpose", {"product"}, "back").integers("perm", {0, 2, 1});
    m.node("Reshape", {"back", "map"}, "joined");
    m.node("Relu", {"joined"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 2u);
    EXPECT_EQ(network.layers[0].general.function, GeneralFunction::standardise);
    EXPECT_EQ(network.layers[0].general.axes, std::vector<int64_t>{1});
    EXPECT_EQ(network.layers[1].kind, LayerKind::conv);
    // Scaled (2, -4) and (-2, 4), of which the second channel is the sum.
    expect_near(result_of(network, pixels), {2, 0, 0, 2});
}

/// An embedding of places that was never trained, and PyTorch's first slopes.
TEST(ChannelsFirst, ConstantsOfOneValueMayHaveTheShapeOfTokens) {
    ModelBuilder m({1, 2, 1, 2});
    m.integers("tokens", {1, 2, 2}).integers("map", {1, 2, 1, 2});
    m.weights("places", {1, 2, 2}, {1, 1, 1, 1}).weights("slopes", {2, 1}, {0.5F, 0.5F});
    m.node("Reshape", {"x", "tokens"}, "flat");
    m.node("Transpose", {"flat"}, "t").integers("perm", {0, 2, 1});
    m.node("Add", {"t", "places"}, "placed");
    m.node("PRelu", {"placed", "slopes"}, "bent");
    m.node("Transpose", {"bent"}, "back").integers("perm", {0, 2, 1});
    m.node("Reshape", {"back", "map"}, "y");
    expect_near(result_of(m.parse(), {-3, 0, 1, -7}), {-1, 1, 2, -3});
}

/// What Keras writes between convolutions: each with its channels last.
TEST(ChannelsFirst, ConcatSplitPadSlicesAndMeans) {
    const std::vector<int64_t> map{1, 2, 3, 2};
    std::vector<float> values(12);
    for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n * n % 7);
    const auto network = [&](bool is_last) {
        ModelBuilder m(map);
        const std::vector<int64_t> to_last{0, 2, 3, 1}, to_first{0, 3, 1, 2};
        const int64_t channels = is_last ? 3 : 1, rows = is_last ? 1 : 2, columns = rows + 1;
        const std::string x = is_last ? "last" : "x";
        if (is_last) m.node("Transpose", {"x"}, "last").integers("perm", to_last);
        std::vector<int64_t> pads(8, 0);
        pads[static_cast<size_t>(rows)] = pads[static_cast<size_t>(4 + columns)] = 1;
        m.integers("pads", pads).integers("one", {1}).integers("three", {3});
        m.integers("rows", {rows}).integers("halves", {1, 1});
        m.node("Pad", {x, "pads"}, "padded").text("mode", "reflect");
        m.node("Slice", {"padded", "one", "three", "rows"}, "part");
        auto* split = m.model.mutable_graph()->add_node();
        split->set_op_type("Split");
        for (const char* input : {"part", "halves"}) split->add_input(input);
        for (const char* half : {"a", "b"}) split->add_output(half);
        test::NodeBuilder(split).integer("axis", channels);
        m.node("ReduceMean", {"part"}, "pooled").integers("axes", {rows, columns});
        m.node("Concat", {"b", "a"}, "swapped").integer("axis", channels);
        m.node("Mul", {"swapped", "pooled"}, "scaled");
        m.node("Concat", {"scaled", "part"}, "all").integer("axis", rows);
        m.node("Neg", {"all"}, is_last ? "negative" : "y");
        if (is_last) m.node("Transpose", {"negative"}, "y").integers("perm", to_first);
        return m.parse();
    };
    const Network last = network(true), first = network(false);
    EXPECT_EQ(last.layers.size(), first.layers.size() + 1);  // the output's own Transpose
    EXPECT_EQ(result_of(last, values), result_of(first, values));
}

TEST(Normalisations, ATransposeWithoutOneBackStays) {
    ModelBuilder m({1, 2, 1, 2});
    m.node("Transpose", {"x"}, "last").integers("perm", {0, 2, 3, 1});
    m.node("Softmax", {"last"}, "soft").integer("axis", 3);
    m.node("Flatten", {"soft"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[0].kind, LayerKind::softmax);
    EXPECT_EQ(network.layers[0].axis, 1);
    const float e = std::exp(-4.0F);  // of both differences
    expect_near(result_of(network, pixels),
                {1 / (1 + e), e / (1 + e), e / (1 + e), 1 / (1 + e)});
}

/// A softmax over many channels that is an output stays behind the Transpose, which is needed anyway.
TEST(Normalisations, ALongSoftmaxOfRowsStaysBehindItsTranspose) {
    for (const int64_t channels : {int64_t{255}, int64_t{256}}) {
        ModelBuilder m({1, channels, 1, 3});
        m.node("Transpose", {"x"}, "last").integers("perm", {0, 2, 3, 1});
        m.node("Softmax", {"last"}, "y").integer("axis", 3);
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 2u);
        const bool is_last = network.layers[1].kind == LayerKind::softmax;
        EXPECT_EQ(is_last, channels == 256);
        EXPECT_EQ(network.layers[is_last ? 1 : 0].kind, LayerKind::softmax);
        EXPECT_EQ(network.layers[is_last ? 1 : 0].axis, is_last ? 3 : 1);
        std::vector<float> x(static_cast<size_t>(3 * channels), 0.0F);
        x[0] = 1;  // of pixel 0
        const std::vector<float> y = result_of(network, x);
        const float e = std::exp(1.0F), all = e + static_cast<float>(channels - 1);
        EXPECT_NEAR(y[0], e / all, 1e-6F);
        EXPECT_NEAR(y[1], 1 / all, 1e-6F);
        EXPECT_NEAR(y[static_cast<size_t>(channels)], 1 / static_cast<float>(channels), 1e-6F);
    }
}

}  // namespace
}  // namespace laminate
