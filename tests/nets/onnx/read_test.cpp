// The importer, node by node. tests/peers compares the results of whole models with onnxruntime.
#include <gtest/gtest.h>

#include <limits>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::ModelBuilder;

const Layer& only_layer(const Network& network) {
    EXPECT_EQ(network.layers.size(), 1u);
    return network.layers.at(0);
}

std::vector<int64_t> output_dims(const Network& network) {
    return network.tensor(network.outputs[0]).dims;
}

using Pair = std::array<int64_t, 2>;

TEST(ReadConv, AttributesBiasAndGroups) {
    ModelBuilder m({1, 4, 9, 8});
    m.weights("w", {6, 2, 3, 2}).weights("b", {6});
    m.node("Conv", {"x", "w", "b"}, "y", "the_conv")
        .integers("kernel_shape", {3, 2})
        .integers("strides", {2, 1})
        .integers("dilations", {1, 2})
        .integers("pads", {1, 2, 0, 1})
        .integer("group", 2);
    const Network network = m.parse();
    const Layer& layer = only_layer(network);
    EXPECT_EQ(layer.kind, LayerKind::conv);
    EXPECT_EQ(layer.name, "the_conv");
    EXPECT_EQ(layer.groups, 2);
    EXPECT_EQ(layer.window.kernel, (Pair{3, 2}));
    EXPECT_EQ(layer.window.stride, (Pair{2, 1}));
    EXPECT_EQ(layer.window.dilation, (Pair{1, 2}));
    EXPECT_EQ(layer.window.pad_begin, (Pair{1, 2}));
    EXPECT_EQ(layer.window.pad_end, (Pair{0, 1}));
    EXPECT_EQ(layer.weights->values[3], 4.0f);
    EXPECT_EQ(layer.bias->values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
    // Rows (9 + 1 - 3) / 2 + 1 = 4, columns 8 + 3 - ((2 - 1) * 2 + 1) + 1 = 9.
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 6, 4, 9}));
}

TEST(ReadConv, AutoPadSameGivesTheOddElementToTheNamedEnd) {
    for (const bool upper : {true, false}) {
        ModelBuilder m({1, 1, 10, 10});
        m.weights("w", {1, 1, 4, 3});
        m.node("Conv", {"x", "w"}, "y")
            .text("auto_pad", upper ? "SAME_UPPER" : "SAME_LOWER")
            .integers("strides", {1, 2});
        const Network network = m.parse();
        // Rows: 9 + 4 - 10 = 3 in all. Columns: (5 - 1) * 2 + 3 - 10 = 1 in all.
        const Window& w = only_layer(network).window;
        EXPECT_EQ(w.pad_begin, upper ? (Pair{1, 0}) : (Pair{2, 1}));
        EXPECT_EQ(w.pad_end, upper ? (Pair{2, 1}) : (Pair{1, 0}));
        EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 1, 10, 5}));
    }
}

TEST(ReadConv, ALineIsAPictureOfOneRow) {
    ModelBuilder m({1, 3, 8});
    m.weights("w", {5, 3, 3});
    m.node("Conv", {"x", "w"}, "a", "c").integers("pads", {1, 2}).integers("strides", {2});
    m.node("Relu", {"a"}, "b");
    m.node("MaxPool", {"b"}, "y", "p").integers("kernel_shape", {2});
    // A chain of layers stays on pictures, with one reshape before it and one after it.
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 4u);
    EXPECT_EQ(network.layers[0].general.dims, (std::vector<int64_t>{1, 3, 1, 8}));
    const Layer& conv = network.layers[1];
    EXPECT_EQ(conv.weights->dims, (std::vector<int64_t>{5, 3, 1, 3}));
    EXPECT_EQ(conv.window.pad_begin, (Pair{0, 1}));
    EXPECT_EQ(conv.window.pad_end, (Pair{0, 2}));
    EXPECT_EQ(conv.window.stride, (Pair{1, 2}));
    EXPECT_EQ(conv.activation.kind, ActivationKind::relu);
    EXPECT_EQ(network.layers[2].kind, LayerKind::max_pool);
    // (8 + 3 - 3) / 2 + 1 = 5 columns, 4 after pooling.
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 5, 4}));
}

TEST(ReadConv, ThreeDimensionsAreAGeneralLayer) {
    ModelBuilder three({1, 3, 8, 8, 8});
    three.weights("w", {5, 3, 3, 3, 3});
    three.node("Conv", {"x", "w"}, "y", "c");
    const Network network = three.parse();
    EXPECT_EQ(only_layer(network).kind, LayerKind::general);
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 5, 6, 6, 6}));
    EXPECT_EQ(layer_macs(network, 0), 5 * 6 * 6 * 6 * 3 * 27);

    ModelBuilder mixed({1, 3, 8});
    mixed.weights("w", {5, 3, 3, 3});
    mixed.node("Conv", {"x", "w"}, "y", "c");
    EXPECT_EQ(mixed.error(),
              "net.onnx: node \"c\" (Conv): weights are 5x3x3x3 (2 spatial dimensions) for an "
              "input of 1");
}

TEST(ReadConvTranspose, OutputShapeAndAutoPadBecomePadding) {
    ModelBuilder shaped({1, 2, 5, 5});
    shaped.weights("w", {2, 3, 5, 4});
    shaped.node("ConvTranspose", {"x", "w"}, "y")
        .integers("strides", {2, 2})
        .integers("output_shape", {10, 10});
    // Rows: 4 * 2 + 5 - 10 = 3 to cut, 2 first and 1 last; columns: 4 * 2 + 4 - 10 = 2.
    const Network network = shaped.parse();
    EXPECT_EQ(only_layer(network).window.pad_begin, (Pair{2, 1}));
    EXPECT_EQ(only_layer(network).window.pad_end, (Pair{1, 1}));
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 3, 10, 10}));

    ModelBuilder same({1, 2, 5, 5});
    same.weights("w", {2, 3, 5, 4});
    same.node("ConvTranspose", {"x", "w"}, "y")
        .integers("strides", {2, 2})
        .text("auto_pad", "SAME_UPPER");
    EXPECT_EQ(only_layer(same.parse()).window.pad_begin, (Pair{1, 1}));
    EXPECT_EQ(output_dims(same.parse()), (std::vector<int64_t>{1, 3, 10, 10}));

    ModelBuilder gaps({1, 2, 5, 5});  // windows that leave gaps reach 4 * 3 + 1 rows, not 5 * 3
    gaps.weights("w", {2, 3, 1, 4});
    gaps.node("ConvTranspose", {"x", "w"}, "y")
        .integers("strides", {3, 2})
        .text("auto_pad", "SAME_LOWER");
    EXPECT_EQ(output_dims(gaps.parse()), (std::vector<int64_t>{1, 3, 13, 10}));

    ModelBuilder large({1, 2, 5, 5});
    large.weights("w", {2, 3, 5, 4});
    large.node("ConvTranspose", {"x", "w"}, "y", "d")
        .integers("strides", {2, 2})
        .integers("output_shape", {15, 10});
    expect_contains(large.error(),
                    "node \"d\" (ConvTranspose): output of 15 is larger than an input of 5 gives "
                    "without padding");
}

TEST(ReadPool, CeilModeBecomesTrailingPadding) {
    ModelBuilder m({1, 1, 6, 7});
    m.node("MaxPool", {"x"}, "y")
        .integers("kernel_shape", {3, 3})
        .integers("strides", {2, 2})
        .integer("ceil_mode", 1);
    // Rows: ceil((6 - 3) / 2) + 1 = 3 windows reach row 6, one past the end. Columns: (7 - 3) / 2 +
    // 1 = 3 windows fit exactly.
    EXPECT_EQ(only_layer(m.parse()).window.pad_end, (Pair{1, 0}));
    EXPECT_EQ(output_dims(m.parse()), (std::vector<int64_t>{1, 1, 3, 3}));
}

TEST(ReadPool, CeilModeDropsAWindowThatWouldStartInThePadding) {
    ModelBuilder m({1, 1, 4, 5});
    m.node("MaxPool", {"x"}, "y")
        .integers("kernel_shape", {2, 2})
        .integers("strides", {3, 3})
        .integers("pads", {1, 1, 1, 1})
        .integer("ceil_mode", 1);
    // Rows: ceil((4 + 2 - 2) / 3) + 1 = 3, but the third would start at 6 - 1 = 5 >= 4. Columns:
    // the third starts at 5
    // >= 5 too.
    EXPECT_EQ(output_dims(m.parse()), (std::vector<int64_t>{1, 1, 2, 2}));
}

TEST(ReadPool, CountIncludePad) {
    const auto pool = [](std::vector<int64_t> pads, int64_t size, bool ceil) {
        ModelBuilder m({1, 1, size, size});
        m.node("AveragePool", {"x"}, "y", "p")
            .integers("kernel_shape", {3, 3})
            .integers("strides", {2, 2})
            .integers("pads", std::move(pads))
            .integer("count_include_pad", 1)
            .integer("ceil_mode", ceil);
        return m;
    };
    EXPECT_TRUE(only_layer(pool({1, 1, 1, 1}, 8, false).parse()).count_include_pad);
    EXPECT_FALSE(
        only_layer(pool({0, 0, 0, 0}, 8, false).parse()).count_include_pad);  // no padding to count
    EXPECT_FALSE(only_layer(pool({0, 0, 0, 0}, 8, true).parse())
                     .count_include_pad);  // the extension of ceil_mode never counts
    // Windows start at -1, 1, 3, 5, 7. The last one covers rows 7 .. 9: 7 is in the picture, 8 is
    // padding, 9 is neither, so the divisor is 2 * 2.
    const Network both = pool({1, 1, 1, 1}, 8, true).parse();
    EXPECT_EQ(only_layer(both).kind, LayerKind::general);
    EXPECT_EQ(output_dims(both), (std::vector<int64_t>{1, 1, 5, 5}));
    std::vector<float> x(64, 0.0f);
    x[63] = 8;
    EXPECT_EQ(run_reference_network(both, {x})[0].back(), 2.0f);
}

TEST(ReadActivation, ClipInBothForms) {
    ModelBuilder old({1, 1, 4, 4}, 8);
    old.node("Clip", {"x"}, "y").real("min", 0).real("max", 6);
    const Network before = old.parse();
    EXPECT_EQ(only_layer(before).activation.kind, ActivationKind::clip);
    EXPECT_EQ(only_layer(before).activation.high, 6.0f);

    ModelBuilder m({1, 1, 4, 4});
    m.weights("low", {}, {-1}).weights("high", {}, {2.5});
    m.node("Clip", {"x", "low", "high"}, "y");
    const Network after = m.parse();
    EXPECT_EQ(only_layer(after).activation.low, -1.0f);
    EXPECT_EQ(only_layer(after).activation.high, 2.5f);

    ModelBuilder upper({1, 1, 4, 4});
    upper.weights("high", {}, {2.5});
    upper.node("Clip", {"x", "", "high"}, "y");
    EXPECT_EQ(only_layer(upper.parse()).activation.low, std::numeric_limits<float>::lowest());

    // Issue 26, 2: without an upper bound infinity becomes the largest float, as in onnxruntime.
    constexpr float infinity = std::numeric_limits<float>::infinity();
    ModelBuilder lower({1, 1, 1, 3});
    lower.weights("low", {}, {0});
    lower.node("Clip", {"x", "low"}, "y");
    EXPECT_EQ(run_reference_network(lower.parse(), {{infinity, -infinity, 2}})[0],
              (std::vector<float>{std::numeric_limits<float>::max(), 0, 2}));
    lower.weights("high", {}, {infinity});
    lower.model.mutable_graph()->mutable_node(0)->add_input("high");
    EXPECT_EQ(only_layer(lower.parse()).activation.kind, ActivationKind::relu);

    ModelBuilder crossed({1, 1, 4, 4});
    crossed.weights("low", {}, {3}).weights("high", {}, {2});
    crossed.node("Clip", {"x", "low", "high"}, "y", "k");
    EXPECT_EQ(only_layer(crossed.parse()).activation.low, 2.0f);  // everything is the upper limit
    EXPECT_EQ(only_layer(crossed.parse()).activation.high, 2.0f);
}

TEST(ReadActivation, PReluSlopesFollowBroadcasting) {
    const auto with = [](std::vector<int64_t> dims) {
        ModelBuilder m({1, 3, 4, 4});
        m.weights("s", dims);
        m.node("PRelu", {"x", "s"}, "y", "p");
        return m;
    };
    EXPECT_EQ(only_layer(with({3, 1, 1}).parse()).activation.slope->values,
              (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(only_layer(with({1, 3, 1, 1}).parse()).activation.slope->dims,
              (std::vector<int64_t>{3}));
    EXPECT_EQ(only_layer(with({1}).parse()).activation.slope->values.size(), 1u);
    const Network per_column = with({4}).parse();
    ASSERT_EQ(per_column.layers.size(), 2U);
    EXPECT_EQ(per_column.layers[1].general.function, GeneralFunction::prelu);
    EXPECT_EQ(per_column.tensor(per_column.layers[0].output).dims,
              (std::vector<int64_t>{1, 1, 4, 4}));
    expect_contains(with({3}).error(),
                    "operands are 1x3x4x4 and 3, expected shapes that broadcast");
}

TEST(ReadGemm, TransposesAndFactorsAreFolded) {
    ModelBuilder m({2, 3});
    m.weights("b", {3, 2}, {1, 2, 3, 4, 5, 6}).weights("c", {1, 2}, {10, 20});
    m.node("Gemm", {"x", "b", "c"}, "y").real("alpha", 2).real("beta", 0.5);
    const Network network = m.parse();
    EXPECT_EQ(only_layer(network).weights->dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(only_layer(network).weights->values,
              (std::vector<float>{2, 6, 10, 4, 8, 12}));  // columns of b, doubled
    EXPECT_EQ(only_layer(network).bias->values, (std::vector<float>{5, 10}));

    ModelBuilder transposed({2, 3});
    transposed.weights("b", {2, 3});
    transposed.node("Gemm", {"x", "b"}, "y").integer("transB", 1);
    EXPECT_EQ(only_layer(transposed.parse()).weights->values,
              (std::vector<float>{1, 2, 3, 4, 5, 6}));

    ModelBuilder a({2, 3});
    a.weights("b", {2, 3});
    a.node("Gemm", {"x", "b"}, "y", "g").integer("transA", 1);
    const Network left = a.parse();  // [[1, 2, 3], [4, 5, 6]] transposed times itself
    EXPECT_EQ(run_reference_network(left, {{1, 2, 3, 4, 5, 6}})[0],
              (std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45}));
}

TEST(ReadShapes, ReshapeAsFlatten) {
    const auto reshaped = [](std::vector<int64_t> target) {
        ModelBuilder m({2, 3, 4, 5});
        m.integers("shape", target);
        m.node("Relu", {"x"}, "a");
        m.node("Reshape", {"a", "shape"}, "y", "r");
        return m;
    };
    const Network network = reshaped({0, -1}).parse();
    EXPECT_EQ(network.layers[1].kind, LayerKind::flatten);
    EXPECT_EQ(network.layers[1].axis, 1);
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{2, 60}));
    EXPECT_EQ(reshaped({-1, 20}).parse().layers[1].axis, 2);
    EXPECT_EQ(reshaped({1, 120}).parse().layers[1].axis, 0);
    EXPECT_EQ(only_layer(reshaped({2, 3, -1, 5}).parse()).kind,
              LayerKind::activation);  // changes nothing
    const Network other = reshaped({6, 4, 5}).parse();
    EXPECT_EQ(other.layers[1].general.kind, GeneralKind::reshape);
    EXPECT_EQ(output_dims(other), (std::vector<int64_t>{6, 4, 5}));
    expect_contains(reshaped({7, -1}).error(), "shape 7x-1 does not fit 2x3x4x5");
    expect_contains(reshaped({2, 61}).error(), "shape 2x61 does not fit 2x3x4x5");
    expect_contains(reshaped({-1, -1}).error(), "shape -1x-1 does not fit 2x3x4x5");
    expect_contains(reshaped({int64_t{1} << 62, int64_t{1} << 62, -1}).error(), "does not fit");
}

TEST(ReadShapes, AFlattenComputedFromTheShape) {
    // What `x.view(x.size(0), -1)` exports to.
    ModelBuilder m({2, 3, 4, 5});
    m.integers("zero", {0}).integers("minus", {-1});
    m.node("Shape", {"x"}, "s");
    m.node("Gather", {"s", "zero"}, "n").integer("axis", 0);
    m.node("Concat", {"n", "minus"}, "shape").integer("axis", 0);
    m.node("Reshape", {"x", "shape"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(only_layer(network).kind, LayerKind::flatten);
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{2, 60}));
}

TEST(ReadShapes, AShapeThatDoublesItselfStaysSmall) {
    ModelBuilder m({2, 3});
    m.node("Shape", {"x"}, "s0");
    for (int i = 0; i < 40; ++i) {
        const std::string s = "s" + std::to_string(i);
        m.node("Concat", {s, s}, "s" + std::to_string(i + 1)).integer("axis", 0);
    }
    m.node("Reshape", {"x", "s40"}, "y");
    expect_contains(m.error(), "integers, expected at most 1048576");
}

TEST(ReadOperators, TheRest) {
    ModelBuilder m({1, 8, 4, 4});
    m.node("DepthToSpace", {"x"}, "a").integer("blocksize", 2).text("mode", "CRD");
    m.node("Sigmoid", {"a"}, "b");
    m.node("Concat", {"a", "b"}, "c").integer("axis", -3);
    m.node("ReduceMean", {"c"}, "d").integers("axes", {-1, -2}).integer("keepdims", 0);
    m.node("Softmax", {"d"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 6u);
    EXPECT_TRUE(network.layers[0].depth_to_space_crd);
    EXPECT_EQ(network.layers[2].kind, LayerKind::concat);
    EXPECT_EQ(network.layers[2].axis, 1);
    EXPECT_EQ(network.layers[3].kind, LayerKind::global_average_pool);
    EXPECT_EQ(network.layers[4].kind, LayerKind::flatten);
    EXPECT_EQ(network.layers[5].axis, 1);  // the last one
    EXPECT_EQ(output_dims(network), (std::vector<int64_t>{1, 4}));
}

TEST(ReadOperators, SoftmaxBeforeOpset13) {
    ModelBuilder one({2, 5, 1, 1}, 11);
    one.node("Softmax", {"x"}, "y");
    EXPECT_EQ(only_layer(one.parse()).axis, 1);
    ModelBuilder several({2, 5, 3, 1}, 11);
    several.node("Softmax", {"x"}, "y", "s");
    EXPECT_EQ(only_layer(several.parse()).general.axes, (std::vector<int64_t>{1, 2}));  // together
}

TEST(ReadGraph, NodesInAnyOrder) {
    ModelBuilder m({1, 1, 4, 4});
    m.node("Sigmoid", {"b"}, "y");
    m.node("Tanh", {"a"}, "b");
    m.node("Relu", {"x"}, "a");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[0].activation.kind, ActivationKind::relu);
    EXPECT_EQ(network.layers[2].activation.kind, ActivationKind::sigmoid);
}

TEST(ReadGraph, InitializersAmongTheInputsAreNoInputs) {
    ModelBuilder m({1, 1, 4, 4});
    m.weights("w", {2, 1, 3, 3});
    m.input("w", {2, 1, 3, 3});
    m.node("Conv", {"x", "w"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.inputs.size(), 1u);
    EXPECT_EQ(network.tensor(network.inputs[0]).name, "x");
}

TEST(ReadGraph, IdentityAndDropoutVanish) {
    ModelBuilder m({1, 1, 4, 4});
    m.node("Relu", {"x"}, "a");
    m.node("Dropout", {"a"}, "b", "drop").real("ratio", 0.5f);
    m.node("Identity", {"b"}, "y", "same");
    const Network network = m.parse();
    EXPECT_EQ(only_layer(network).kind, LayerKind::activation);
    EXPECT_EQ(network.tensor(network.outputs[0]).name,
              "y");  // the output keeps the name that callers know
    EXPECT_EQ(network.folded,
              (std::vector<std::string>{"Dropout \"drop\" removed", "Identity \"same\" removed"}));
}

TEST(ReadGraph, BrokenGraphs) {
    ModelBuilder cycle({1, 1, 4, 4});
    cycle.node("Relu", {"x"}, "free", "before");
    cycle.node("Add", {"free", "b"}, "a", "p");
    cycle.node("Relu", {"a"}, "b", "q");
    cycle.node("Relu", {"b"}, "y", "after");
    EXPECT_EQ(cycle.error(),
              "net.onnx: node \"p\" (Add): needs its own result: the graph has a cycle");

    ModelBuilder missing({1, 1, 4, 4});
    missing.node("Add", {"x", "b"}, "y", "p");
    EXPECT_EQ(
        missing.error(),
        "net.onnx: node \"p\" (Add): reads \"b\", which no node, initializer or input provides");

    ModelBuilder twice({1, 1, 4, 4});
    twice.node("Relu", {"x"}, "y", "p");
    twice.node("Relu", {"x"}, "y", "q");
    EXPECT_EQ(twice.error(), "net.onnx: node \"q\" (Relu): writes \"y\", which exists already");

    ModelBuilder initializers({1, 1, 4, 4});
    initializers.weights("w", {1}).weights("w", {1});
    initializers.node("Relu", {"x"}, "y");
    EXPECT_EQ(initializers.error(), "net.onnx: initializer \"w\" is given twice");

    ModelBuilder inputs({1, 1, 4, 4});
    inputs.input("x", {1, 1, 4, 4});
    inputs.node("Relu", {"x"}, "y");
    EXPECT_EQ(inputs.error(), "net.onnx: input \"x\" is given twice");

    ModelBuilder no_output({1, 1, 4, 4});
    no_output.node("Relu", {"x"}, "z");
    EXPECT_EQ(no_output.error(), "net.onnx: output \"y\" is written by no node");

    ModelBuilder indices({1, 1, 4, 4});
    indices.node("MaxPool", {"x"}, "pooled", "p").integers("kernel_shape", {2, 2});
    indices.model.mutable_graph()->mutable_node(0)->add_output("y");
    EXPECT_EQ(indices.error(),
              "net.onnx: value \"y\" is a second result of its node, which is not supported");

    ModelBuilder through({1, 1, 4, 4});
    through.node("Identity", {"x"}, "y");
    EXPECT_EQ(run_reference_network(through.parse(), {std::vector<float>(16, 3.0f)})[0],
              std::vector<float>(16, 3.0f));  // a copy

    ModelBuilder constant({1, 1, 4, 4});
    constant.weights("w", {1});
    constant.node("Identity", {"w"}, "y");
    EXPECT_EQ(run_reference_network(constant.parse(), {std::vector<float>(16, 3.0f)})[0],
              std::vector<float>{1});

    ModelBuilder integers({1, 1, 4, 4});
    integers.node("Shape", {"x"}, "y");
    EXPECT_EQ(integers.error(), "net.onnx: output \"y\" is a list of integers, expected FLOAT");
}

TEST(ReadGraph, UnsupportedThingsAreNamed) {
    ModelBuilder unknown({1, 1, 4, 4});
    unknown.node("NonMaxSuppression", {"x"}, "y", "x1");
    expect_contains(unknown.error(),
                    "net.onnx: node \"x1\": operator NonMaxSuppression is not supported; "
                    "supported: Abs, Add, And, ArgMax, ArgMin, "
                    "AveragePool,");

    ModelBuilder custom({1, 1, 4, 4});
    custom.node("Relu", {"x"}, "y", "x1");
    custom.model.mutable_graph()->mutable_node(0)->set_domain("com.example");
    expect_contains(custom.error(), "operator com.example.Relu is not supported");

    ModelBuilder attribute({1, 1, 4, 4});
    attribute.node("Relu", {"x"}, "y", "r").integer("beta", 1);
    EXPECT_EQ(attribute.error(),
              "net.onnx: node \"r\" (Relu): attribute \"beta\" is not supported");

    ModelBuilder type({1, 1, 4, 4});
    type.node("LeakyRelu", {"x"}, "y", "r").integer("alpha", 1);
    EXPECT_EQ(type.error(),
              "net.onnx: node \"r\" (LeakyRelu): attribute \"alpha\" has the wrong type");

    ModelBuilder old({1, 1, 4, 4}, 5);
    old.node("Relu", {"x"}, "y");
    EXPECT_EQ(old.error(), "net.onnx: uses ONNX operators of version 5, expected 6 or later");

    ModelBuilder mask({1, 1, 4, 4});
    mask.node("Dropout", {"x"}, "a");
    mask.model.mutable_graph()->mutable_node(0)->add_output("mask");
    mask.node("Add", {"a", "mask"}, "y");
    EXPECT_EQ(mask.error(),
              "net.onnx: value \"mask\" is a second result of its node, which is not supported");

    ModelBuilder live({1, 1, 4, 4});
    live.input("w", {1, 1, 3, 3});
    live.node("Conv", {"x", "w"}, "y", "c");
    EXPECT_EQ(live.error(),
              "net.onnx: node \"c\" (Conv): input \"w\" is an input of the network, expected a "
              "constant FLOAT tensor "
              "(an initializer)");
    ModelBuilder computed({1, 1, 4, 4});
    computed.node("Relu", {"x"}, "w");
    computed.node("Conv", {"x", "w"}, "y", "c");
    expect_contains(
        computed.error(),
        "input \"w\" is computed when the network runs, expected a constant FLOAT tensor");

    ModelBuilder training({1, 1, 4, 4});
    for (const char* name : {"s", "b", "m", "v"}) training.weights(name, {1});
    training.node("BatchNormalization", {"x", "s", "b", "m", "v"}, "y", "n")
        .integer("training_mode", 1);
    expect_contains(
        training.error(),
        "node \"n\" (BatchNormalization): training mode or spatial = 0 is not supported");
}

TEST(ReadGraph, AbsurdDimensionsAreRefusedBeforeAnythingIsAllocated) {
    ModelBuilder input({1, int64_t{1} << 30, int64_t{1} << 30, 4});
    input.node("Relu", {"x"}, "y");
    expect_contains(
        input.error(),
        "net.onnx: input \"x\": tensor of 1x1073741824x1073741824x4: more than 2^40 elements");

    ModelBuilder zero({1, 0, 4, 4});
    zero.node("Relu", {"x"}, "y");
    expect_contains(zero.error(), "input \"x\": tensor of 1x0x4x4: dimension 0");

    ModelBuilder pads({1, 1, 4, 4});
    pads.weights("w", {1, 1, 1, 1});
    pads.node("Conv", {"x", "w"}, "y", "c")
        .integers("pads", {int64_t{1} << 62, int64_t{1} << 62, 0, 0});
    expect_contains(
        pads.error(),
        "node \"c\" (Conv): pads contains 4611686018427387904, expected 0 to 2147483647");

    ModelBuilder wide({1, 1, 4, 4});
    wide.weights("w", {1, 1, 1, 1});
    wide.node("Conv", {"x", "w"}, "y", "c").integers("pads", {2000000000, 2000000000, 0, 0});
    expect_contains(wide.error(),
                    "node \"c\" (convolution): output: tensor of 1x1x2000000004x2000000004: more "
                    "than 2^40 elements");

    ModelBuilder weights({1, 1, 4, 4});
    weights.weights("w", {1, 1, 1, 1});
    auto* w = weights.model.mutable_graph()->mutable_initializer(0);
    w->set_dims(0, int64_t{1} << 39);
    weights.node("Conv", {"x", "w"}, "y", "c");
    expect_contains(weights.error(),
                    "initializer \"w\": tensor of 549755813888x1x1x1: dimension 549755813888");
}

TEST(ReadSizes, DynamicDimensions) {
    ModelBuilder m({1, 1, 4, 4});
    m.symbols({"N", "3", "H", "W"});
    m.node("Relu", {"x"}, "y");
    EXPECT_EQ(output_dims(m.parse({.height = 5, .width = 6})),
              (std::vector<int64_t>{1, 3, 5, 6}));  // a batch not given is 1
    EXPECT_EQ(output_dims(m.parse({.height = 5, .width = 6, .batch = 2})),
              (std::vector<int64_t>{2, 3, 5, 6}));
    EXPECT_EQ(output_dims(m.parse({.height = 5, .width = 6, .symbols = {{"H", 9}}})),
              (std::vector<int64_t>{1, 3, 9, 6}));  // a symbol wins
    EXPECT_EQ(m.error({.width = 6}),
              "net.onnx: input \"x\": dimension 3 of 4 is symbolic (\"H\"); expected --height");
    EXPECT_EQ(m.error({.height = 5}),
              "net.onnx: input \"x\": dimension 4 of 4 is symbolic (\"W\"); expected --width");
    EXPECT_EQ(m.error({.height = 0, .width = 6}),
              "net.onnx: input \"x\": dimension 3 of 4 is to be 0, expected at least 1");
    EXPECT_EQ(m.error({.height = 5, .width = 6, .symbols = {{"Q", 9}}}),
              "net.onnx: no input has a dimension named \"Q\"; there are \"H\", \"N\", \"W\"");
}

TEST(ReadSizes, FixedDimensionsStay) {
    ModelBuilder m({1, 3, 8, 8});
    m.node("Relu", {"x"}, "y");
    EXPECT_EQ(output_dims(m.parse({.height = 8})), (std::vector<int64_t>{1, 3, 8, 8}));
    EXPECT_EQ(m.error({.height = 9}),
              "net.onnx: input \"x\": dimension 3 of 4 is fixed to 8, it cannot be 9");
}

TEST(ReadSizes, AnOpenSizeIsOfTheInputsThatHaveIt) {
    ModelBuilder m({1, 3, 8, 8});
    m.symbols({"N", "3", "8", "8"});
    m.input("state", {2, 3, 8, 8});
    m.node("ReduceSum", {"state"}, "sum").integers("axes", {0});
    m.node("Add", {"x", "sum"}, "y");
    m.model.mutable_opset_import(0)->set_version(11);
    EXPECT_EQ(output_dims(m.parse({.batch = 5})), (std::vector<int64_t>{5, 3, 8, 8}));
}

TEST(ReadSizes, FeatureVectors) {
    ModelBuilder m({1, 1});
    m.symbols({"batch", "F"});
    m.weights("w", {2, 3});
    m.node("Gemm", {"x", "w"}, "y").integer("transB", 1);
    EXPECT_EQ(output_dims(m.parse({.symbols = {{"F", 3}}})), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(
        m.error(),
        "net.onnx: input \"x\": dimension 2 of 2 is symbolic (\"F\"); expected --dim F=NUMBER");
}

// Issue 26, 10. Names that grow by a character each time would have 200 million of them.
TEST(ReadGraph, ManyOutputsOfOneName) {
    ModelBuilder m({1, 1, 2, 2});
    m.node("Relu", {"x"}, "y");
    constexpr int count = 20000;
    for (int k = 1; k < count; ++k) m.model.mutable_graph()->add_output()->set_name("y");
    const Network network = m.parse();
    ASSERT_EQ(network.outputs.size(), size_t{count});
    EXPECT_EQ(network.tensor(network.outputs[1]).name, "y_output");
    EXPECT_LT(network.tensor(network.outputs.back()).name.size(), 20u);
}

}  // namespace
}  // namespace laminate
