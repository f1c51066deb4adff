// Folding of layers, with numbers small enough to check by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::ModelBuilder;

/// Shift 10 and 20, mean 1 and 2, variance 3 and 8. With epsilon 1 and scale 4 and 9: y = 4 /
/// sqrt(3 + 1) * (x - 1) + 10 = 2 x + 8 in channel 0, y = 9 / sqrt(8 + 1) * (x - 2) + 20 = 3 x + 14
/// in channel 1.
void add_statistics(ModelBuilder& m, std::vector<float> scale) {
    m.weights("scale", {2}, std::move(scale))
        .weights("shift", {2}, {10, 20})
        .weights("mean", {2}, {1, 2})
        .weights("variance", {2}, {3, 8});
}

void add_normalisation(ModelBuilder& m, const std::string& in, const std::string& out) {
    m.node("BatchNormalization", {in, "scale", "shift", "mean", "variance"}, out, "bn")
        .real("epsilon", 1);
}

TEST(FoldBatchNormalization, IntoAConvolutionWithBias) {
    ModelBuilder m({1, 1, 4, 4});
    add_statistics(m, {4, 9});
    m.weights("w", {2, 1, 1, 2}, {1, 2, 3, 4}).weights("b", {2}, {5, 6});
    m.node("Conv", {"x", "w", "b"}, "a", "conv");
    add_normalisation(m, "a", "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].weights->values, (std::vector<float>{2, 4, 9, 12}));
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{2 * 5 + 8, 3 * 6 + 14}));
    EXPECT_EQ(network.tensor(network.layers[0].output).name, "y");
    EXPECT_EQ(network.folded,
              (std::vector<std::string>{"BatchNormalization \"bn\" into Conv \"conv\""}));
}

TEST(ShareEqualLayers, RectifiersOfOneTensorAreOneAndFoldIntoTheLayerBefore) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {1, 1, 1, 1}, {2}).weights("low", {}, {0}).weights("high", {}, {6});
    m.node("Conv", {"x", "w"}, "a", "conv");
    m.node("Relu", {"a"}, "b", "one");
    m.node("Relu", {"a"}, "c", "other");
    m.node("Conv", {"b", "w"}, "d", "left");
    m.node("Conv", {"c", "w"}, "e", "right");
    m.node("Relu", {"d"}, "f");
    m.node("Clip", {"d", "low", "high"}, "g");
    m.node("Concat", {"f", "g", "e"}, "y").integer("axis", 1);
    const Network network = m.parse();
    // Two convolutions of the first one's rectified output; a Relu and a Clip are not equal.
    ASSERT_EQ(network.layers.size(), 6u);
    EXPECT_EQ(network.layers[0].activation.kind, ActivationKind::relu);
    EXPECT_EQ(network.layers[1].inputs, network.layers[2].inputs);
    expect_contains(network.folded.front(), "Relu \"other\" is Relu \"one\"");
}

TEST(FoldBatchNormalization, IntoATransposedConvolutionWithGroups) {
    // Weights [input channel][output channel within its group]: input 0 and 1 make output 0, input
    // 2 and 3 make output 1.
    ModelBuilder m({1, 4, 2, 2});
    add_statistics(m, {4, 9});
    m.weights("w", {4, 1, 1, 1}, {1, 2, 3, 4});
    m.node("ConvTranspose", {"x", "w"}, "a").integer("group", 2);
    add_normalisation(m, "a", "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].weights->values, (std::vector<float>{2, 4, 9, 12}));
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{8, 14}));
}

TEST(FoldBatchNormalization, OutputChannelsOfATransposedConvolutionAlternate) {
    ModelBuilder m({1, 2, 2, 2});
    add_statistics(m, {4, 9});
    m.weights("w", {2, 2, 1, 2});  // [input][output][1][2], values 1 to 8
    m.node("ConvTranspose", {"x", "w"}, "a");
    add_normalisation(m, "a", "y");
    EXPECT_EQ(m.parse().layers[0].weights->values,
              (std::vector<float>{2, 4, 9, 12, 10, 12, 21, 24}));
}

TEST(FoldBatchNormalization, IntoGemm) {
    ModelBuilder m({1, 2});
    add_statistics(m, {4, 9});
    m.weights("w", {2, 2}, {1, 2, 3, 4});
    m.node("Gemm", {"x", "w"}, "a").integer("transB", 1);
    add_normalisation(m, "a", "y");
    EXPECT_EQ(m.parse().layers[0].weights->values, (std::vector<float>{2, 4, 9, 12}));
    EXPECT_EQ(m.parse().layers[0].bias->values, (std::vector<float>{8, 14}));
}

TEST(FoldBatchNormalization, AloneItIsADepthwiseConvolution) {
    ModelBuilder m({1, 2, 4, 4});
    add_statistics(m, {4, 9});
    add_normalisation(m, "x", "a");
    m.node("Relu", {"a"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    const Layer& layer = network.layers[0];
    EXPECT_EQ(layer.kind, LayerKind::conv);
    EXPECT_EQ(layer.name, "bn");
    EXPECT_EQ(layer.groups, 2);
    EXPECT_EQ(layer.weights->dims, (std::vector<int64_t>{2, 1, 1, 1}));
    EXPECT_EQ(layer.weights->values, (std::vector<float>{2, 3}));
    EXPECT_EQ(layer.bias->values, (std::vector<float>{8, 14}));
    EXPECT_EQ(layer.activation.kind, ActivationKind::relu);
    EXPECT_EQ(network.tensor(layer.output).dims, (std::vector<int64_t>{1, 2, 4, 4}));
}

/// Networks without normalised maps have normalised weights instead.
TEST(FoldBatchNormalization, OfWeightsIsEvaluated) {
    ModelBuilder m({1, 2, 4, 4});
    add_statistics(m, {4, 9});
    m.weights("w", {1, 2, 1, 2}, {1, 2, 3, 4});
    add_normalisation(m, "w", "normal");
    m.node("Conv", {"x", "normal"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].weights->values, (std::vector<float>{10, 12, 23, 26}));
}

TEST(FoldBatchNormalization, NotAcrossAnActivationAnotherReaderOrAnOutput) {
    const auto layers = [](bool activation, bool reader, bool output) {
        ModelBuilder m({1, 1, 4, 4});
        add_statistics(m, {4, 9});
        m.weights("w", {2, 1, 1, 1});
        m.node("Conv", {"x", "w"}, "a");
        if (activation) m.node("Relu", {"a"}, "b");
        add_normalisation(m, activation ? "b" : "a", reader ? "c" : "y");
        if (reader) m.node("Add", {"a", "c"}, "y");
        if (output) m.model.mutable_graph()->add_output()->set_name("a");
        return m.parse().layers.size();
    };
    EXPECT_EQ(layers(false, false, false), 1u);
    EXPECT_EQ(layers(true, false, false), 2u);
    EXPECT_EQ(layers(false, true, false), 3u);
    EXPECT_EQ(layers(false, false, true), 2u);
}

TEST(FoldBatchNormalization, OnVectorsItIsAProductAndASum) {
    ModelBuilder m({1, 2});
    m.weights("scale", {2}, {6, 6})
        .weights("shift", {2}, {1, 2})
        .weights("mean", {2}, {1, 1})
        .weights("variance", {2}, {3, 8});
    add_normalisation(m, "x", "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 2u);
    // epsilon is 1: (5 - 1) * 6 / sqrt(3 + 1) + 1 = 13, (4 - 1) * 6 / sqrt(8 + 1) + 2 = 8
    const auto y = run_reference_network(network, {{5, 4}})[0];
    EXPECT_NEAR(y[0], 13, 1e-4);
    EXPECT_NEAR(y[1], 8, 1e-4);
}

TEST(FoldBatchNormalization, BadStatistics) {
    ModelBuilder negative({1, 2, 4, 4});
    negative.weights("scale", {2})
        .weights("shift", {2})
        .weights("mean", {2})
        .weights("variance", {2}, {1, -5});
    add_normalisation(negative, "x", "y");
    expect_contains(negative.error(),
                    "node \"bn\" (BatchNormalization): variance of channel 1 is -5.0");
    ModelBuilder few({1, 3, 4, 4});
    add_statistics(few, {1, 1});
    add_normalisation(few, "x", "y");
    expect_contains(few.error(), "input \"scale\" has 2 values for 3 channels");
}

TEST(FoldAdd, AConstantPerChannelBecomesBias) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 1, 1}).weights("b", {2}, {1, 2}).weights("c", {1, 2, 1, 1}, {10, 20});
    m.node("Conv", {"x", "w", "b"}, "a");
    m.node("Add", {"c", "a"}, "y");  // the constant may stand on either side
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{11, 22}));
}

TEST(FoldAdd, OneValueGoesToEveryChannel) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 1, 1}).weights("c", {}, {7});
    m.node("Conv", {"x", "w"}, "a");
    m.node("Add", {"a", "c"}, "y");
    EXPECT_EQ(m.parse().layers[0].bias->values, (std::vector<float>{7, 7}));
}

/// No convolution is beside them, so they are one themselves, which groups hold.
TEST(FoldAdd, SumsAndProductsAloneAreADepthwiseConvolution) {
    ModelBuilder m({1, 2, 4, 4});
    m.weights("mean", {1, 2, 1, 1}, {3, 5}).weights("deviation", {1, 2, 1, 1}, {2, 4});
    m.node("Sub", {"x", "mean"}, "centred");
    m.node("Div", {"centred", "deviation"}, "scaled");
    m.node("MaxPool", {"scaled"}, "y").integers("kernel_shape", {2, 2});
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 2u);
    EXPECT_EQ(network.layers[0].kind, LayerKind::conv);
    EXPECT_EQ(network.layers[0].groups, 2);
    EXPECT_EQ(network.layers[0].weights->values, (std::vector<float>{0.5F, 0.25F}));
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{-1.5F, -1.25F}));

    ModelBuilder one({1, 2, 4, 4});
    one.weights("c", {}, {7});
    one.node("Add", {"x", "c"}, "a");
    one.node("Relu", {"a"}, "y");
    const Network sum = one.parse();
    ASSERT_EQ(sum.layers.size(), 1u);
    EXPECT_EQ(sum.layers[0].weights->values, (std::vector<float>{1, 1}));
    EXPECT_EQ(sum.layers[0].bias->values, (std::vector<float>{7, 7}));
    EXPECT_EQ(sum.layers[0].activation.kind, ActivationKind::relu);
}

TEST(FoldAdd, AConstantLessAMapIsOneToo) {
    ModelBuilder m({1, 2, 4, 4});
    m.weights("c", {2, 1, 1}, {3, 5});
    m.node("Sub", {"c", "x"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].kind, LayerKind::conv);
    EXPECT_EQ(network.layers[0].weights->values, (std::vector<float>{-1, -1}));
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{3, 5}));
}

TEST(FoldAdd, AWholePictureStaysAnOperand) {
    ModelBuilder m({1, 1, 2, 3});
    m.weights("w", {2, 1, 1, 1}).weights("c", {2, 2, 3});
    m.node("Conv", {"x", "w"}, "a");
    m.node("Add", {"a", "c"}, "b");
    m.node("Tanh", {"b"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[1].weights->dims, (std::vector<int64_t>{1, 2, 2, 3}));
    EXPECT_EQ(network.layers[2].kind, LayerKind::add);
    EXPECT_EQ(network.layers[2].inputs.size(), 2u);
    EXPECT_EQ(network.layers[2].activation.kind, ActivationKind::tanh);
}

TEST(FoldAdd, OtherShapesAreGeneralLayers) {
    ModelBuilder m({1, 1, 2, 3});
    m.weights("c", {3}, {10, 20, 30});  // per column
    m.node("Add", {"x", "c"}, "y", "s");
    const Network network = m.parse();
    EXPECT_EQ(network.layers[0].kind, LayerKind::general);
    EXPECT_EQ(run_reference_network(network, {{1, 2, 3, 4, 5, 6}})[0],
              (std::vector<float>{11, 22, 33, 14, 25, 36}));

    ModelBuilder wrong({1, 1, 2, 3});
    wrong.weights("c", {4});
    wrong.node("Add", {"x", "c"}, "y", "s");
    EXPECT_EQ(
        wrong.error(),
        "net.onnx: node \"s\" (Add): operands are 1x1x2x3 and 4, expected shapes that broadcast");
}

TEST(FoldAdd, OneValuePerColumnOfAProductBecomesItsBias) {
    const auto biases = [](std::vector<int64_t> summand) {
        ModelBuilder m({1, 2, 3});
        m.weights("w", {3, 2});
        m.weights("b", summand);
        m.node("MatMul", {"x", "w"}, "a");
        m.node("Add", {"b", "a"}, "y");
        const Network network = m.parse();
        return network.layers.size() == 1 ? network.layers[0].bias : nullptr;
    };
    ASSERT_NE(biases({2}), nullptr);
    EXPECT_EQ(biases({2})->values, (std::vector<float>{1, 2}));
    EXPECT_EQ(biases({2, 1}), nullptr);     // per row
    EXPECT_EQ(biases({2, 2, 2}), nullptr);  // makes a larger tensor
}

TEST(FoldMul, AFactorPerChannelGoesIntoTheWeights) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 1, 1}, {1, 2})
        .weights("b", {2}, {1, 1})
        .weights("c", {2, 1, 1}, {10, 4})
        .weights("d", {}, {2});
    m.node("Conv", {"x", "w", "b"}, "a");
    m.node("Mul", {"a", "c"}, "e");
    m.node("Div", {"e", "d"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].weights->values,
              (std::vector<float>{5, 4}));  // 1 * 10 / 2, 2 * 4 / 2
    EXPECT_EQ(network.layers[0].bias->values, (std::vector<float>{5, 2}));
}

TEST(FoldActivation, IntoTheLayerThatFeedsOnlyIt) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 1, 1});
    m.node("Conv", {"x", "w"}, "a");
    m.node("LeakyRelu", {"a"}, "b").real("alpha", 0.25f);
    m.node("Relu", {"b"}, "c");  // a second one stays
    m.node("MaxPool", {"c"}, "d").integers("kernel_shape", {2, 2});
    m.node("Sigmoid", {"d"}, "y");  // pooling carries none
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 4u);
    EXPECT_EQ(network.layers[0].activation.kind, ActivationKind::leaky_relu);
    EXPECT_EQ(network.layers[0].activation.alpha, 0.25f);
    EXPECT_EQ(network.layers[1].kind, LayerKind::activation);
    EXPECT_EQ(network.layers[2].kind, LayerKind::max_pool);
    EXPECT_EQ(network.layers[3].activation.kind, ActivationKind::sigmoid);
}

TEST(FoldActivation, ResidualBlock) {
    ModelBuilder m({1, 2, 4, 4});
    m.weights("w", {2, 2, 1, 1});
    m.node("Conv", {"x", "w"}, "a", "conv");
    m.node("Relu", {"a"}, "b");
    m.node("Add", {"a", "b"}, "c", "sum");  // reads the convolution too: its Relu may not fold
    m.node("Relu", {"c"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[0].activation.kind, ActivationKind::none);
    EXPECT_EQ(network.layers[2].name, "sum");
    EXPECT_EQ(network.layers[2].activation.kind, ActivationKind::relu);
}

Activation unary(GeneralFunction function, float alpha = 0, float beta = 0) {
    return {.kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta};
}

void expect_activation(const Layer& layer, const Activation& expected) {
    EXPECT_EQ(layer.activation.kind, expected.kind) << activation_text(layer.activation);
    EXPECT_EQ(layer.activation.function, expected.function) << activation_text(layer.activation);
    EXPECT_EQ(layer.activation.alpha, expected.alpha);
    EXPECT_EQ(layer.activation.beta, expected.beta);
}

TEST(FoldActivation, EveryUnaryOneIntoAConvolution) {
    struct Case {
        std::string op;
        std::vector<std::pair<const char*, float>> attributes;
        Activation expected;
    };
    using enum GeneralFunction;
    const std::vector<Case> cases{
        {"Abs", {}, unary(absolute)},
        {"Neg", {}, unary(negative)},
        {"Elu", {{"alpha", 0.5f}}, unary(elu, 0.5f)},
        {"Selu", {{"alpha", 1.5f}, {"gamma", 2}}, unary(selu, 1.5f, 2)},
        {"Celu", {{"alpha", 3}}, unary(celu, 3)},
        {"Softplus", {}, unary(softplus)},
        {"Softsign", {}, unary(softsign)},
        {"HardSigmoid", {{"alpha", 0.25f}}, unary(hard_sigmoid, 0.25f, 0.5f)},
        {"HardSwish", {}, unary(hard_swish)},
        {"Mish", {}, unary(mish)},
        {"Swish", {{"alpha", 2}}, unary(swish, 2)},
        {"Gelu", {}, unary(gelu)},
        {"Exp", {}, unary(exponential)},
        {"Log", {}, unary(logarithm)},
        {"Sqrt", {}, unary(square_root)},
        {"Reciprocal", {}, unary(reciprocal)},
        {"Floor", {}, unary(floor)},
        {"Ceil", {}, unary(ceil)},
        {"Round", {}, unary(round_to_even)},
        {"Sign", {}, unary(sign)},
        {"Erf", {}, unary(error_function)},
        {"Sin", {}, unary(sine)},
        {"Cos", {}, unary(cosine)},
        {"Tan", {}, unary(tangent)},
        {"ThresholdedRelu", {{"alpha", 2}}, unary(thresholded_relu, 2)},
        {"Shrink", {{"lambd", 2}, {"bias", 1}}, unary(shrink, 2, 1)}};
    for (const Case& c : cases) {
        ModelBuilder m({1, 1, 4, 4}, 24);
        m.weights("w", {2, 1, 1, 1});
        m.node("Conv", {"x", "w"}, "a");
        auto node = m.node(c.op, {"a"}, "y");
        for (const auto& [name, value] : c.attributes) node.real(name, value);
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 1u) << c.op;
        expect_activation(network.layers[0], c.expected);
    }
}

TEST(FoldActivation, NotOneThatDividesByZero) {
    ModelBuilder divides_by_zero({1, 1, 4, 4});
    divides_by_zero.node("Celu", {"x"}, "y").real("alpha", 0);
    EXPECT_EQ(divides_by_zero.parse().layers[0].kind, LayerKind::general);
}

/// Conv, then the nodes that `write` adds from "a" to "y".
Network after_convolution(const std::function<void(ModelBuilder&)>& write) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 1, 1})
        .weights("three", {}, {3})
        .weights("six", {}, {6})
        .weights("zero", {}, {0})
        .weights("one", {}, {1})
        .weights("half", {}, {0.5f})
        .weights("root", {}, {1.4142135f})
        .weights("reciprocal", {}, {0.70710677f});
    m.node("Conv", {"x", "w"}, "a", "conv");
    write(m);
    return m.parse();
}

void expect_whole(const char* what, const Activation& expected,
                  const std::function<void(ModelBuilder&)>& write) {
    SCOPED_TRACE(what);
    const Network network = after_convolution(write);
    ASSERT_EQ(network.layers.size(), 1u);
    expect_activation(network.layers[0], expected);
    EXPECT_EQ(network.tensor(network.layers[0].output).name, "y");
}

TEST(ActivationsInNodes, BecomeOneLayer) {
    using enum GeneralFunction;
    expect_whole("PyTorch's SiLU", unary(swish, 1), [](ModelBuilder& m) {
        m.node("Sigmoid", {"a"}, "s");
        m.node("Mul", {"a", "s"}, "y");
    });
    expect_whole("of a multiple", unary(swish, 6), [](ModelBuilder& m) {
        m.node("Mul", {"a", "six"}, "b");
        m.node("Sigmoid", {"b"}, "s");
        m.node("Mul", {"s", "a"}, "y");
    });
    expect_whole("Mish before opset 18", unary(mish), [](ModelBuilder& m) {
        m.node("Softplus", {"a"}, "b");
        m.node("Tanh", {"b"}, "t");
        m.node("Mul", {"a", "t"}, "y");
    });
    expect_whole("HardSwish with HardSigmoid", unary(hard_swish), [](ModelBuilder& m) {
        m.node("HardSigmoid", {"a"}, "h").real("alpha", 1.0f / 6);
        m.node("Mul", {"a", "h"}, "y");
    });
    const auto distributed = [](ModelBuilder& m) {
        m.node("Div", {"a", "root"}, "b");
        m.node("Erf", {"b"}, "e");
        m.node("Add", {"e", "one"}, "d");
    };
    expect_whole("GELU, halved at the end", unary(gelu), [&](ModelBuilder& m) {
        distributed(m);
        m.node("Mul", {"a", "d"}, "p");
        m.node("Mul", {"p", "half"}, "y");
    });
    expect_whole("GELU, halved first", unary(gelu), [&](ModelBuilder& m) {
        m.node("Mul", {"a", "half"}, "h");
        distributed(m);
        m.node("Mul", {"h", "d"}, "y");
    });
    expect_whole("GELU, its factor halved", unary(gelu), [](ModelBuilder& m) {
        m.node("Mul", {"a", "reciprocal"}, "b");
        m.node("Erf", {"b"}, "e");
        m.node("Add", {"one", "e"}, "d");
        m.node("Mul", {"d", "half"}, "h");
        m.node("Mul", {"a", "h"}, "y");
    });
    const auto clipped = [](ModelBuilder& m) {
        m.node("Add", {"a", "three"}, "b");
        m.node("Clip", {"b", "zero", "six"}, "c");
    };
    expect_whole("HardSwish, divided at the end", unary(hard_swish), [&](ModelBuilder& m) {
        clipped(m);
        m.node("Mul", {"a", "c"}, "d");
        m.node("Div", {"d", "six"}, "y");
    });
    expect_whole("HardSwish, divided before", unary(hard_swish), [&](ModelBuilder& m) {
        clipped(m);
        m.node("Div", {"c", "six"}, "d");
        m.node("Mul", {"d", "a"}, "y");
    });
    expect_whole("HardSigmoid", unary(hard_sigmoid, 1.0f / 6, 0.5f), [&](ModelBuilder& m) {
        clipped(m);
        m.node("Div", {"c", "six"}, "y");
    });
}

TEST(ActivationsInNodes, GeluByTanhInAnyOrder) {
    const Activation expected = unary(GeneralFunction::gelu_tanh);
    const auto constants = [](ModelBuilder& m) {
        m.weights("cubic", {}, {0.044715f}).weights("outer", {}, {0.79788456f});
    };
    const auto end = [](ModelBuilder& m) {
        m.node("Tanh", {"inside"}, "t");
        m.node("Add", {"one", "t"}, "d");
    };
    expect_whole("PyTorch", expected, [&](ModelBuilder& m) {
        constants(m);
        m.node("Mul", {"a", "a"}, "square");
        m.node("Mul", {"a", "square"}, "cube");
        m.node("Mul", {"cubic", "cube"}, "b");
        m.node("Add", {"a", "b"}, "sum");
        m.node("Mul", {"outer", "sum"}, "inside");
        end(m);
        m.node("Mul", {"a", "d"}, "p");
        m.node("Mul", {"half", "p"}, "y");
    });
    expect_whole("Transformers", expected, [&](ModelBuilder& m) {
        constants(m);
        m.node("Pow", {"a", "three"}, "cube");
        m.node("Mul", {"cube", "cubic"}, "b");
        m.node("Add", {"b", "a"}, "sum");
        m.node("Mul", {"sum", "outer"}, "inside");
        end(m);
        m.node("Mul", {"a", "half"}, "h");
        m.node("Mul", {"h", "d"}, "y");
    });
    expect_whole("x taken out", expected, [&](ModelBuilder& m) {
        constants(m);
        m.node("Mul", {"a", "outer"}, "b");
        m.node("Mul", {"a", "a"}, "square");
        m.node("Mul", {"square", "cubic"}, "c");
        m.node("Add", {"c", "one"}, "sum");
        m.node("Mul", {"b", "sum"}, "inside");
        end(m);
        m.node("Mul", {"d", "half"}, "h");
        m.node("Mul", {"h", "a"}, "y");
    });
}

TEST(ActivationsInNodes, OfTensorFlowBecomeOneLayer) {
    using enum GeneralFunction;
    const auto logarithm_of_sum = [](ModelBuilder& m, const std::string& to) {
        m.node("Exp", {"a"}, "e");
        m.node("Add", {"e", "one"}, "sum");
        m.node("Log", {"sum"}, to);
    };
    expect_whole("Softplus", unary(softplus), [&](ModelBuilder& m) { logarithm_of_sum(m, "y"); });
    expect_whole("Mish", unary(mish), [&](ModelBuilder& m) {
        logarithm_of_sum(m, "b");
        m.node("Tanh", {"b"}, "t");
        m.node("Mul", {"a", "t"}, "y");
    });
    expect_whole("LeakyRelu", {.kind = ActivationKind::leaky_relu, .alpha = 0.5f},
                 [](ModelBuilder& m) {
                     m.node("Mul", {"half", "a"}, "b");
                     m.node("Max", {"b", "a"}, "y");
                 });
    expect_whole("Relu", {.kind = ActivationKind::relu},
                 [](ModelBuilder& m) { m.node("Max", {"zero", "a"}, "y"); });
    for (const bool begins_with_maximum : {false, true}) {
        const Network clipped = after_convolution([&](ModelBuilder& m) {
            m.node(begins_with_maximum ? "Max" : "Min",
                   {"a", begins_with_maximum ? "zero" : "six"}, "b");
            m.node(begins_with_maximum ? "Min" : "Max",
                   {"b", begins_with_maximum ? "six" : "zero"}, "y");
        });
        ASSERT_EQ(clipped.layers.size(), 1u);
        EXPECT_EQ(clipped.layers[0].activation.kind, ActivationKind::clip);
        EXPECT_EQ(clipped.layers[0].activation.low, 0);
        EXPECT_EQ(clipped.layers[0].activation.high, 6);
    }
}

/// Slopes 0.25 and 0.75 of two channels.
TEST(ActivationsInNodes, PReluAsSums) {
    const auto slopes_of = [](const char* last, std::vector<float> scale, bool by_absolute) {
        const Network network = after_convolution([&](ModelBuilder& m) {
            m.weights("scale", {1, 2, 1, 1}, std::move(scale));
            m.node("Relu", {"a"}, "positive");
            if (by_absolute) {
                m.node("Abs", {"a"}, "b");
                m.node("Sub", {"a", "b"}, "negative");
            } else {
                m.node("Neg", {"a"}, "b");
                m.node("Relu", {"b"}, "negative");
            }
            m.node("Mul", {"scale", "negative"}, "c");
            m.node(last, {"positive", "c"}, "y");
        });
        EXPECT_EQ(network.layers.size(), 1u);
        const Activation& activation = network.layers.back().activation;
        EXPECT_EQ(activation.kind, ActivationKind::prelu);
        return activation.slope ? std::vector<float>(activation.slope->values.begin(),
                                                     activation.slope->values.end())
                                : std::vector<float>{};
    };
    const std::vector<float> slopes{0.25f, 0.75f};
    EXPECT_EQ(slopes_of("Add", {0.125f, 0.375f}, true), slopes);
    EXPECT_EQ(slopes_of("Sub", {-0.125f, -0.375f}, true), slopes);
    EXPECT_EQ(slopes_of("Add", {-0.25f, -0.75f}, false), slopes);
    EXPECT_EQ(slopes_of("Sub", slopes, false), slopes);
}

TEST(ActivationsInNodes, SaysWhatBecameOne) {
    const Network network = after_convolution([](ModelBuilder& m) {
        m.node("Sigmoid", {"a"}, "s", "gate");
        m.node("Mul", {"a", "s"}, "y", "silu");
    });
    EXPECT_EQ(network.folded, (std::vector<std::string>{"Sigmoid \"gate\" into Mul \"silu\"",
                                                        "Mul \"silu\" into Conv \"conv\""}));
}

TEST(ActivationsInNodes, WhatOnlyLooksLikeOneStays) {
    const auto layers_of = [](const std::function<void(ModelBuilder&)>& write) {
        return after_convolution(write).layers.size();
    };
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // another tensor's sigmoid
                  m.node("Sigmoid", {"x"}, "s");
                  m.node("Relu", {"a"}, "r");
                  m.node("Mul", {"r", "s"}, "y");
              }),
              3u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // erf of another multiple
                  m.node("Erf", {"a"}, "e");
                  m.node("Add", {"e", "one"}, "d");
                  m.node("Mul", {"a", "d"}, "p");
                  m.node("Mul", {"p", "half"}, "y");
              }),
              5u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // somebody else reads it
                  m.node("Sigmoid", {"a"}, "s");
                  m.node("Mul", {"a", "s"}, "b");
                  m.node("Add", {"b", "s"}, "y");
              }),
              4u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // other ends
                  m.node("Add", {"a", "three"}, "b");
                  m.node("Clip", {"b", "zero", "three"}, "c");
                  m.node("Mul", {"a", "c"}, "d");
                  m.node("Div", {"d", "six"}, "y");
              }),
              4u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // a maximum that is another one's where x > 0
                  m.node("Mul", {"a", "three"}, "b");
                  m.node("Max", {"a", "b"}, "y");
              }),
              3u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // the positive part of another tensor
                  m.node("Relu", {"x"}, "positive");
                  m.node("Neg", {"a"}, "b");
                  m.node("Relu", {"b"}, "negative");
                  m.node("Mul", {"negative", "half"}, "c");
                  m.node("Sub", {"positive", "c"}, "y");
              }),
              5u);
    EXPECT_EQ(layers_of([](ModelBuilder& m) {  // another slope
                  m.node("HardSigmoid", {"a"}, "h").real("alpha", 0.2f);
                  m.node("Mul", {"a", "h"}, "y");
              }),
              3u);
}

TEST(RemoveDeadLayers, WhatNoOutputNeeds) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {1, 1, 1, 1});
    m.node("Conv", {"x", "w"}, "a", "conv");
    m.node("Sigmoid", {"a"}, "unread", "idle");
    m.node("Relu", {"a"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);  // with the reader gone, the Relu folds
    EXPECT_EQ(network.layers[0].activation.kind, ActivationKind::relu);
    EXPECT_EQ(network.folded[0], "Sigmoid \"idle\" removed: no output needs it");
}

TEST(RemoveDeadLayers, BranchesOfAnyKind) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {1, 1, 1, 1});
    m.node("Conv", {"x", "w"}, "a", "conv");
    m.node("NoSuchOperator", {"a", "nobody writes this"}, "b", "foreign");
    m.node("Add", {"b", "d"}, "c", "turn");
    m.node("Relu", {"c"}, "d", "round");
    m.node("Relu", {"a"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.folded[0], "NoSuchOperator \"foreign\" removed: no output needs it");
}

TEST(NameLayers, IdentifiersFromNodesOrByKind) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {1, 1, 1, 1});
    m.node("Conv", {"x", "w"}, "a", "/features/features.0/Conv");
    m.node("Conv", {"a", "w"}, "b");
    m.node("Conv", {"b", "w"}, "c", "0");
    m.node("Conv", {"c", "w"}, "d", "conv1");
    m.node("Conv", {"d", "w"}, "e", "conv1");
    m.node("Conv", {"e", "w"}, "f", "...");
    m.node("ConvTranspose", {"f", "w"}, "y");
    std::vector<std::string> names;
    for (const Layer& layer : m.parse().layers) names.push_back(layer.name);
    EXPECT_EQ(names, (std::vector<std::string>{"features_features_0_Conv", "conv2", "n0", "conv1",
                                               "conv1_2", "conv3", "deconv1"}));
}

TEST(Charge, SharedWeightsCannotBeCopiedWithoutEnd) {
    // 2^20 values, copied by each of 100 Reshape and 100 MatMul nodes: 200 * 2^20 > 2^26 + 4 *
    // 2^20.
    ModelBuilder m({1, 1024});
    m.weights("w", {1024, 1024}, std::vector<float>(1 << 20, 0.0f));
    std::string x = "x";
    for (int i = 0; i < 100; ++i) {
        const std::string next = i == 99 ? "y" : "t" + std::to_string(i);
        m.node("Reshape", {"w", "square"}, "w" + std::to_string(i));
        m.node("MatMul", {x, "w" + std::to_string(i)}, next);
        x = next;
    }
    m.integers("square", {1024, 1024});
    expect_contains(m.error(),
                    "folding constants makes many times more values than the file holds");
}

}  // namespace
}  // namespace laminate
