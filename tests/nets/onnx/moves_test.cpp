// Nodes that move or copy elements: pixel shuffles in three nodes, and Expand before a product.
#include <gtest/gtest.h>

#include <numeric>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;

/// The result for 1, 2, 3, ...
std::vector<float> result_of_counting(const Network& network) {
    const size_t count =
        static_cast<size_t>(element_count(network.tensor(network.inputs.front()).dims));
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return run_reference_network(network, {values}, network.outputs, 1).front();
}

const std::vector<int64_t> of_blocks{2, 18, 3, 5}, of_pixels{2, 2, 9, 15};

/// Reshape, Transpose and Reshape of a map of 18 channels, whose blocks have 3 x 3 pixels.
Network shuffled(const std::vector<int64_t>& split, const std::vector<int64_t>& perm) {
    ModelBuilder m(of_blocks);
    m.integers("split", split).integers("joined", of_pixels);
    m.node("Reshape", {"x", "split"}, "apart", "apart");
    m.node("Transpose", {"apart"}, "moved", "moved").integers("perm", perm);
    m.node("Reshape", {"moved", "joined"}, "y", "shuffle");
    return m.parse();
}

TEST(Moves, PixelShuffleInThreeNodesIsDepthToSpace) {
    const std::vector<int64_t> as_pytorch{2, 2, 3, 3, 3, 5}, as_tensorflow{2, 3, 3, 2, 3, 5};
    for (const bool is_crd : {true, false}) {
        SCOPED_TRACE(is_crd);
        const Network network = is_crd ? shuffled(as_pytorch, {0, 1, 4, 2, 5, 3})
                                       : shuffled(as_tensorflow, {0, 3, 4, 1, 5, 2});
        ModelBuilder one(of_blocks);
        one.node("DepthToSpace", {"x"}, "y")
            .integer("blocksize", 3)
            .text("mode", is_crd ? "CRD" : "DCR");
        ASSERT_EQ(network.layers.size(), 1u);
        EXPECT_EQ(network.layers[0].kind, LayerKind::depth_to_space);
        EXPECT_EQ(network.layers[0].name, "shuffle");
        EXPECT_EQ(network.folded,
                  (std::vector<std::string>{"Transpose \"moved\" into Reshape \"shuffle\"",
                                            "Reshape \"apart\" into Reshape \"shuffle\""}));
        EXPECT_EQ(result_of_counting(network), result_of_counting(one.parse()));
    }
}

/// Rows and columns of a block change places.
TEST(Moves, OtherOrdersOfPixelsStay) {
    const Network network = shuffled({2, 2, 3, 3, 3, 5}, {0, 1, 4, 3, 5, 2});
    EXPECT_EQ(network.layers.size(), 3u);
}

TEST(Moves, OperatorsOfTwoReadWhatIsExpanded) {
    const std::vector<int64_t> map{1, 3, 4, 5};
    // 20 values one after the other lie around 10.5 of them.
    for (const auto& [op, expected] : {std::pair{"Sub", -9.5F}, {"Add", 11.5F}, {"Mul", 10.5F}}) {
        ModelBuilder m(map);
        m.node("GlobalAveragePool", {"x"}, "mean");
        m.integers("map", map).node("Expand", {"mean", "map"}, "means");
        m.node(op, {"x", "means"}, "y");
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 2u);
        EXPECT_EQ(network.layers[1].inputs,
                  (std::vector<TensorId>{network.inputs[0], network.layers[0].output}));
        EXPECT_EQ(result_of_counting(network)[0], expected);
    }
}

/// Squeeze and excitation with dense layers is that with convolutions of one pixel.
TEST(Moves, DenseLayersOfOnePixelAreConvolutions) {
    const auto excited = [](bool is_dense, bool comes_back) {
        ModelBuilder m({2, 3, 4, 5});
        m.weights("narrow", is_dense ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{2, 3, 1, 1},
                  {1, 0, -1, 0.5f, 1, 0.25f});
        m.weights("wide", is_dense ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{3, 2, 1, 1},
                  {1, 2, 0, 1, -1, 1});
        m.weights("bias", {2}, {1, -2});
        m.node("GlobalAveragePool", {"x"}, "mean");
        if (!is_dense) {
            m.node("Conv", {"mean", "narrow", "bias"}, "a");
            m.node("Relu", {"a"}, "b");
            m.node("Conv", {"b", "wide"}, "c");
            m.node("Mul", {"x", "c"}, "y");
            return m.parse();
        }
        m.node("Flatten", {"mean"}, "flat");
        m.node("Gemm", {"flat", "narrow", "bias"}, "a").integer("transB", 1);
        m.node("Relu", {"a"}, "b");
        m.node("Gemm", {"b", "wide"}, comes_back ? "c" : "y").integer("transB", 1);
        if (!comes_back) return m.parse();
        m.integers("two", {2}).integers("three", {3});
        m.node("Unsqueeze", {"c", "two"}, "row");
        m.node("Unsqueeze", {"row", "three"}, "factors");
        m.node("Mul", {"x", "factors"}, "y");
        return m.parse();
    };
    const Network network = excited(true, true), expected = excited(false, true);
    EXPECT_EQ(network.layers.size(), expected.layers.size());
    EXPECT_EQ(result_of_counting(network), result_of_counting(expected));
    EXPECT_EQ(excited(true, false).layers.back().kind, LayerKind::gemm);  // a classifier
}

/// Nothing but the Expand says how many rows the sum has.
TEST(Moves, DenseLayersOfOtherRowsStay) {
    // Channels become images, or several rows of one image.
    for (const std::vector<int64_t>& rows :
         {std::vector<int64_t>{1, 4}, std::vector<int64_t>{2, 2}, std::vector<int64_t>{4, 1}}) {
        const int64_t width = rows[1];
        ModelBuilder m({1, 4, 1, 2});
        m.integers("rows", rows).integers("images", {4, 1, 1, 1});
        std::vector<float> values(static_cast<size_t>(width * width), 0);
        for (int64_t n = 0; n < width; ++n) values[static_cast<size_t>(n * width + n)] = 2;
        m.weights("twice", {width, width}, values);
        m.node("GlobalAveragePool", {"x"}, "mean");
        m.node("Reshape", {"mean", "rows"}, "flat");
        m.node("Gemm", {"flat", "twice"}, "doubled");
        m.node("Reshape", {"doubled", "images"}, "y");
        const Network network = m.parse();
        EXPECT_EQ(network.tensors[static_cast<size_t>(network.outputs[0])].dims,
                  (std::vector<int64_t>{4, 1, 1, 1}));
        EXPECT_EQ(result_of_counting(network), (std::vector<float>{3, 7, 11, 15}));
    }
}

TEST(Moves, ExpandStaysWhereTheOtherOperandIsSmall) {
    ModelBuilder m({1, 3, 1, 5});
    m.integers("map", {1, 3, 4, 5}).node("Expand", {"x", "map"}, "rows");
    m.node("Sigmoid", {"x"}, "row");
    m.node("Mul", {"row", "rows"}, "y");
    EXPECT_EQ(m.parse().layers.size(), 3u);
}

/// The kinds of layers: what no group holds would be general and neither a product nor blocks.
std::vector<std::string> kinds_of(const Network& network) {
    std::vector<std::string> kinds;
    for (const Layer& layer : network.layers) kinds.push_back(operation_text(layer));
    return kinds;
}

/// As networks that add their input to each pixel of a block do it: three channels, three times.
TEST(RepeatedOperands, CopiesOfChannelsAreAConvolutionAndAShuffle) {
    for (const bool is_tile : {false, true}) {
        ModelBuilder m({2, 3, 2, 2});
        m.integers("repeats", {1, 3, 1, 1});
        if (is_tile) {
            m.node("Tile", {"x", "repeats"}, "y", "y");
        } else {
            m.node("Concat", {"x", "x", "x"}, "y", "y").integer("axis", 1);
        }
        const Network network = m.parse();
        EXPECT_EQ(kinds_of(network), (std::vector<std::string>{"conv", "blocks"}));
        EXPECT_EQ(network.layers.back().onnx_name, "y");
        const std::vector<float> y = result_of_counting(network);
        ASSERT_EQ(y.size(), 72u);
        for (size_t image = 0; image < 2; ++image) {
            for (size_t n = 0; n < 36; ++n)
                EXPECT_EQ(y[image * 36 + n], static_cast<float>(image * 12 + n % 12 + 1));
        }
    }
    ModelBuilder gray({1, 1, 2, 2});
    gray.node("Concat", {"x", "x"}, "y").integer("axis", 1);
    const Network network = gray.parse();
    EXPECT_EQ(kinds_of(network), (std::vector<std::string>{"conv"}));
    EXPECT_EQ(result_of_counting(network), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(RepeatedOperands, OtherJoinsReadCopies) {
    ModelBuilder joined({1, 1, 2, 2});
    joined.node("Relu", {"x"}, "r");
    joined.node("Concat", {"x", "r", "x"}, "y").integer("axis", 1);
    EXPECT_EQ(kinds_of(joined.parse()), (std::vector<std::string>{"activation", "conv", "concat"}));
    EXPECT_EQ(result_of_counting(joined.parse()),
              (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
    ModelBuilder zero({1, 1, 2, 2});
    zero.node("Sub", {"x", "x"}, "y");
    EXPECT_EQ(kinds_of(zero.parse()), (std::vector<std::string>{"conv", "subtract"}));
    EXPECT_EQ(result_of_counting(zero.parse()), (std::vector<float>{0, 0, 0, 0}));
    ModelBuilder tokens({1, 2, 2});
    tokens.node("Sub", {"x", "x"}, "y");
    EXPECT_EQ(kinds_of(tokens.parse()), (std::vector<std::string>{"subtract"}));
}

/// x + x doubles x: the convolution before takes the factor, or the one behind, or it is one.
TEST(RepeatedOperands, AMapAddedToItselfIsAFactor) {
    for (const std::string op : {"Add", "Sum"}) {
        ModelBuilder alone({1, 1, 2, 2});
        alone.node(op, {"x", "x"}, "y", "y");
        EXPECT_EQ(kinds_of(alone.parse()), (std::vector<std::string>{"conv"}));
        EXPECT_EQ(alone.parse().layers[0].onnx_name, "y");
        EXPECT_EQ(result_of_counting(alone.parse()), (std::vector<float>{2, 4, 6, 8}));
        ModelBuilder behind({1, 1, 2, 2});
        behind.weights("w", {1, 1, 1, 1}, {3}).weights("b", {1}, {-1});
        behind.node("Conv", {"x", "w", "b"}, "c");
        behind.node(op, {"c", "c"}, "y");
        EXPECT_EQ(kinds_of(behind.parse()), (std::vector<std::string>{"conv"}));
        EXPECT_EQ(result_of_counting(behind.parse()), (std::vector<float>{4, 10, 16, 22}));
    }
    ModelBuilder three({1, 1, 2, 2});
    three.node("Relu", {"x"}, "r");
    three.node("Sum", {"x", "x", "r"}, "y");
    EXPECT_EQ(kinds_of(three.parse()), (std::vector<std::string>{"activation", "conv", "add"}));
    EXPECT_EQ(result_of_counting(three.parse()), (std::vector<float>{3, 6, 9, 12}));
    ModelBuilder tokens({1, 2, 2});
    tokens.node("Add", {"x", "x"}, "y");
    EXPECT_EQ(kinds_of(tokens.parse()), (std::vector<std::string>{"add"}));
}

/// Rows 1, 2 of one channel and rows 3, 4 of what Relu makes of it.
TEST(JoinedRows, AreASumOfPaddedMaps) {
    for (const int64_t axis : {2, 3}) {
        ModelBuilder m({1, 1, 2, 2});
        m.node("Relu", {"x"}, "r");
        m.node("Concat", {"x", "r"}, "c", "join").integer("axis", axis);
        m.node("MaxPool", {"c"}, "y").integers("kernel_shape", {1, 1});
        const Network network = m.parse();
        EXPECT_EQ(kinds_of(network), (std::vector<std::string>{"activation", "resample", "resample",
                                                               "add", "max_pool"}));
        EXPECT_EQ(network.layers[3].name, "join");
        EXPECT_EQ(result_of_counting(network), axis == 2
                                                   ? (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4})
                                                   : (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
    }
}

TEST(JoinedRows, OfATileTooButNotOfOutputs) {
    ModelBuilder tile({1, 1, 2, 2});
    tile.integers("repeats", {1, 1, 1, 3});
    tile.node("Tile", {"x", "repeats"}, "t");
    tile.node("MaxPool", {"t"}, "y").integers("kernel_shape", {1, 1});
    EXPECT_EQ(kinds_of(tile.parse()),
              (std::vector<std::string>{"resample", "resample", "resample", "add", "add", "max_pool"}));
    EXPECT_EQ(result_of_counting(tile.parse()),
              (std::vector<float>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
    ModelBuilder output({1, 1, 2, 2});
    output.node("Relu", {"x"}, "r");
    output.node("Concat", {"x", "r"}, "y").integer("axis", 2);
    EXPECT_EQ(kinds_of(output.parse()), (std::vector<std::string>{"activation", "concat"}));
}

}  // namespace
}  // namespace laminate
