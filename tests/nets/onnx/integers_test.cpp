// Constant integers on the way to shapes and grids, and integers that a network computes (issue 26,
// 8).
#include <gtest/gtest.h>

#include <limits>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::ModelBuilder;
using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

/// The sum of zeros of shape `dims` and the integers that `write` leaves in "list".
template <class Write>
Values values_of(const Dims& dims, const Write& write) {
    ModelBuilder m(dims);
    write(m);
    m.node("Cast", {"list"}, "floats").integer("to", test::proto::TensorProto::FLOAT);
    m.node("Add", {"x", "floats"}, "y");
    const Network network = m.parse();
    return run_reference_network(network,
                                 {Values(static_cast<size_t>(element_count(dims)), 0.0f)})[0];
}

// PyTorch exports F.pad with amounts that are computed as a list in pairs, reversed,
// transposed and flattened: {3, 1, 2, 0} to {2, 3, 0, 1}.
TEST(ConstantIntegers, SlicesAndTransposesOfTwoAxes) {
    ModelBuilder m({1, 1});
    constexpr int64_t before_all = -std::numeric_limits<int64_t>::max();
    m.integers("amounts", {3, 1, 2, 0}).integers("pairs", {-1, 2}).integers("flat", {-1});
    m.integers("last", {-1}).integers("end", {before_all}).integers("axis", {0});
    m.node("Reshape", {"amounts", "pairs"}, "a");
    m.node("Slice", {"a", "last", "end", "axis", "last"}, "b");
    m.node("Transpose", {"b"}, "c").integers("perm", {1, 0});
    m.node("Reshape", {"c", "flat"}, "d");
    m.node("Pad", {"x", "d"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(network.tensor(network.outputs[0]).dims, (Dims{1 + 2 + 0, 1 + 3 + 1}));
}

TEST(ConstantIntegers, ExpandAndTileRepeatLists) {
    EXPECT_EQ(values_of({2, 3},
                        [](ModelBuilder& m) {
                            m.integers("one", {4, 5, 6}).integers("shape", {2, 3});
                            m.node("Expand", {"one", "shape"}, "list");
                        }),
              (Values{4, 5, 6, 4, 5, 6}));
    EXPECT_EQ(values_of({4},
                        [](ModelBuilder& m) {
                            m.integers("one", {4, 5}).integers("times", {2});
                            m.node("Tile", {"one", "times"}, "list");
                        }),
              (Values{4, 5, 4, 5}));
}

TEST(ConstantIntegers, ArithmeticBroadcasts) {
    // A column of 10 and 20 and a row of 1, 2, 3.
    EXPECT_EQ(values_of({2, 3},
                        [](ModelBuilder& m) {
                            m.integers("tens", {10, 20}).integers("ones", {1, 2, 3});
                            m.integers("column", {2, 1});
                            m.node("Reshape", {"tens", "column"}, "left");
                            m.node("Add", {"left", "ones"}, "list");
                        }),
              (Values{11, 12, 13, 21, 22, 23}));
}

TEST(ConstantIntegers, ModHasTheSignOfTheDivisorUnlessFmod) {
    for (const int64_t fmod : {0, 1}) {
        const Values expected = fmod == 0 ? Values{2, -2, 1} : Values{-1, 1, 1};
        EXPECT_EQ(values_of({3},
                            [&](ModelBuilder& m) {
                                m.integers("a", {-7, 7, 7}).integers("b", {3, -3, 3});
                                m.node("Mod", {"a", "b"}, "list").integer("fmod", fmod);
                            }),
                  expected);
    }
}

TEST(ConstantIntegers, CumSumAndScatterND) {
    EXPECT_EQ(values_of({4},
                        [](ModelBuilder& m) {
                            m.integers("a", {1, 2, 3, 4}).integers("axis", {0});
                            m.node("CumSum", {"a", "axis"}, "list").integer("reverse", 1);
                        }),
              (Values{10, 9, 7, 4}));
    EXPECT_EQ(values_of({4},
                        [](ModelBuilder& m) {
                            m.integers("a", {1, 2, 3, 4}).integers("places", {3, 0});
                            m.integers("rows", {2, 1}).integers("new", {7, 8});
                            m.node("Reshape", {"places", "rows"}, "indices");
                            m.node("ScatterND", {"a", "indices", "new"}, "list");
                        }),
              (Values{8, 2, 3, 7}));
}

TEST(ConstantIntegers, RangeOfFloats) {
    const auto range = [](float start, float limit, float delta, int64_t count) {
        ModelBuilder m({count});
        m.weights("start", {}, {start}).weights("limit", {}, {limit}).weights("delta", {}, {delta});
        m.node("Range", {"start", "limit", "delta"}, "list");
        m.node("Add", {"x", "list"}, "y");
        return run_reference_network(m.parse(), {Values(static_cast<size_t>(count), 0.0f)})[0];
    };
    EXPECT_EQ(range(0, 2.5f, 1, 3), (Values{0, 1, 2}));  // ceil(2.5 / 1) values
    EXPECT_EQ(range(1, -1, -0.5f, 4), (Values{1, 0.5f, 0, -0.5f}));
    ModelBuilder endless({1});
    endless.weights("start", {}, {0}).weights("limit", {}, {1}).weights("delta", {}, {0});
    endless.node("Range", {"start", "limit", "delta"}, "list");
    endless.node("Add", {"x", "list"}, "y");
    expect_contains(endless.error(), "makes inf values");
}

TEST(ComputedIntegers, ArgMaxLeavesTheNetworkAsFloats) {
    ModelBuilder m({1, 3, 2});
    m.node("ArgMax", {"x"}, "y").integer("axis", 1).integer("keepdims", 0);
    m.model.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(test::proto::TensorProto::INT64);
    const Network network = m.parse();
    EXPECT_EQ(network.tensor(network.outputs[0]).dims, (Dims{1, 2}));
    EXPECT_EQ(network.folded.back(),
              "output \"y\" is INT64 in the file: given as float32, which holds its integers");
    // Columns (1, 7, 3) and (5, 2, 5): the first of equals.
    EXPECT_EQ(run_reference_network(network, {{1, 5, 7, 2, 3, 5}})[0], (Values{1, 0}));
}

/// x reshaped to the list of integers that is the second input.
ModelBuilder reshaped_by_input(const std::vector<std::string>& extent) {
    ModelBuilder m({2, 6});
    auto* shape = m.input("shape", {});
    for (const std::string& e : extent) shape->add_dim()->set_dim_value(std::stoll(e));
    m.model.mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(
        test::proto::TensorProto::INT64);
    m.node("Reshape", {"x", "shape"}, "y", "r");
    return m;
}

TEST(IntegerInputs, GivenValuesAreConstants) {
    const ModelBuilder m = reshaped_by_input({"3"});
    const Network network = m.parse({.integers = {{"shape", {3, -1, 2}}}});
    EXPECT_EQ(network.inputs.size(), 1U);
    EXPECT_EQ(network.tensor(network.outputs[0]).dims, (Dims{3, 2, 2}));
    EXPECT_EQ(network.folded[0], "input \"shape\" removed: its values were given");
}

TEST(IntegerInputs, ShapesNeedTheirValues) {
    const ModelBuilder m = reshaped_by_input({"3"});
    EXPECT_EQ(m.error(),
              "net.onnx: node \"r\" (Reshape): input \"shape\" is not known before the run, "
              "expected constant integers; --integers NAME=N,... gives those of input \"shape\"");
    EXPECT_EQ(m.error({.integers = {{"shape", {3, 4}}}}),
              "net.onnx: input \"shape\" is to be 2 integers, expected 3");
    EXPECT_EQ(m.error({.integers = {{"x", {1}}}}),
              "net.onnx: no input of integers is called \"x\"");
}

TEST(ComputedIntegers, SumsAreExactDivisionIsRefused) {
    const auto model = [](const char* op) {
        ModelBuilder m({1, 3});
        m.integers("two", {2});
        m.node("ArgMin", {"x"}, "place").integer("axis", 1);
        m.node(op, {"place", "two"}, "sum", "op");
        m.node("Cast", {"sum"}, "y").integer("to", test::proto::TensorProto::FLOAT);
        return m;
    };
    EXPECT_EQ(run_reference_network(model("Add").parse(), {{4, 3, 5}})[0], (Values{1 + 2}));
    expect_contains(model("Div").error(),
                    "node \"op\" (Div): input \"place\" has integers that are computed when the "
                    "network runs");
}

TEST(ComputedIntegers, TopKGivesValuesAndPlaces) {
    ModelBuilder m({1, 4});
    m.integers("two", {2});
    m.node("TopK", {"x", "two"}, "best").integer("axis", 1);
    m.model.mutable_graph()->mutable_node(0)->add_output("places");
    m.node("Cast", {"places"}, "floats").integer("to", test::proto::TensorProto::FLOAT);
    m.node("Concat", {"best", "floats"}, "y").integer("axis", 1);
    EXPECT_EQ(run_reference_network(m.parse(), {{3, 9, 1, 9}})[0], (Values{9, 9, 1, 3}));
}

}  // namespace
}  // namespace laminate
