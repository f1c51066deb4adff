// Operators that become general layers, or constants.
#include <gtest/gtest.h>

#include <cmath>

#include <limits>
#include <tuple>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::expect_contains;
using test::ModelBuilder;
using Dims = std::vector<int64_t>;
using Values = std::vector<float>;

Dims output_dims(const Network& network) { return network.tensor(network.outputs[0]).dims; }

TEST(GeneralLayers, AnInputThatIsTransposedBackKeepsItsName) {
    ModelBuilder m({1, 3, 4, 5});
    m.node("Transpose", {"x"}, "last").integers("perm", {0, 2, 3, 1});
    m.node("Transpose", {"last"}, "first").integers("perm", {0, 3, 1, 2});
    m.node("Relu", {"first"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.tensor(network.inputs[0]).name, "x");
}

TEST(GeneralLayers, TransposesOfATransposeVanish) {
    ModelBuilder m({1, 4, 4, 2});
    m.weights("w", {2, 2, 1, 1});
    m.node("Transpose", {"x"}, "a").integers("perm", {0, 3, 1, 2});
    m.node("Conv", {"a", "w"}, "b", "first");
    m.node("Transpose", {"b"}, "c").integers("perm", {0, 2, 3, 1});
    m.node("Transpose", {"c"}, "d").integers("perm", {0, 3, 1, 2});
    m.node("Conv", {"d", "w"}, "e", "second");
    m.node("Transpose", {"e"}, "y").integers("perm", {0, 2, 3, 1});
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 4u);
    EXPECT_EQ(network.layers[0].general.kind, GeneralKind::view);
    EXPECT_EQ(network.layers[1].name, "first");
    EXPECT_EQ(network.layers[2].inputs[0], network.layers[1].output);
    EXPECT_EQ(output_dims(network), (Dims{1, 4, 4, 2}));
}

TEST(GeneralLayers, GatherNDPicksWhatRowsOfIndicesName) {
    const auto picked = [](const Dims& index_dims, const Dims& indices, int64_t batch_dims) {
        ModelBuilder m({2, 2, 3});
        m.integers("flat", indices).integers("dims", index_dims);
        m.node("Reshape", {"flat", "dims"}, "indices");
        m.node("GatherND", {"x", "indices"}, "y").integer("batch_dims", batch_dims);
        const Network network = m.parse();
        Values x(12);
        for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k);
        return std::pair{output_dims(network), run_reference_network(network, {x})[0]};
    };
    EXPECT_EQ(picked({2, 2}, {1, 0, -2, 1}, 0), std::pair(Dims{2, 3}, Values{6, 7, 8, 3, 4, 5}));
    EXPECT_EQ(picked({2, 3}, {1, 1, 2, 0, 1, -3}, 0), std::pair(Dims{2}, Values{11, 3}));
    EXPECT_EQ(picked({2, 1, 2}, {1, 2, 0, 1}, 1), std::pair(Dims{2, 1}, Values{5, 7}));
    expect_contains(test::message_of([&] { (void)picked({2, 4}, Dims(8), 0); }),
                    "indices are 2x4 for data of 2x2x3");
}

TEST(GeneralLayers, AxesOfExtentOneMoveWithoutACopy) {
    ModelBuilder m({1, 1, 4, 5});
    m.node("Transpose", {"x"}, "y").integers("perm", {0, 2, 3, 1});
    EXPECT_EQ(m.parse().layers[0].general.kind, GeneralKind::reshape);
}

TEST(GeneralLayers, ChannelShuffle) {
    ModelBuilder m({1, 4, 1, 1});
    m.integers("split", {1, 2, 2, 1, 1}).integers("join", {0, -1, 1, 1});
    m.node("Reshape", {"x", "split"}, "a");
    m.node("Transpose", {"a"}, "b").integers("perm", {0, 2, 1, 3, 4});
    m.node("Reshape", {"b", "join"}, "y");
    EXPECT_EQ(run_reference_network(m.parse(), {{1, 2, 3, 4}})[0], (Values{1, 3, 2, 4}));
}

TEST(GeneralLayers, SplitGivesEachPieceAName) {
    ModelBuilder m({1, 5});
    m.node("Split", {"x"}, "a").integer("axis", 1).integer("num_outputs", 2);
    m.model.mutable_graph()->mutable_node(0)->add_output("b");
    m.node("Concat", {"b", "a"}, "y").integer("axis", 1);
    // 5 in 2: 3 and 2.
    EXPECT_EQ(run_reference_network(m.parse(), {{1, 2, 3, 4, 5}})[0], (Values{4, 5, 1, 2, 3}));
}

TEST(GeneralLayers, AConstantOperandOfConcatIsALayerWithoutInputs) {
    ModelBuilder m({1, 2});
    m.weights("w", {1, 1}, {7});
    m.node("Concat", {"x", "w"}, "y").integer("axis", 1);
    const Network network = m.parse();
    EXPECT_TRUE(network.layers[0].inputs.empty());
    EXPECT_EQ(run_reference_network(network, {{1, 2}})[0], (Values{1, 2, 7}));
}

TEST(GeneralLayers, BroadcastOfTwoLiveTensors) {
    ModelBuilder m({2, 1});
    m.input("z", {3});
    m.node("Sub", {"x", "z"}, "y");
    EXPECT_EQ(run_reference_network(m.parse(), {{10, 20}, {1, 2, 3}})[0],
              (Values{9, 8, 7, 19, 18, 17}));
}

TEST(GeneralLayers, CannotBeWritten) {
    ModelBuilder m({2, 2});
    m.node("Hardmax", {"x"}, "y", "e");
    const test::Scratch scratch;
    expect_contains(test::message_of([&] { save_onnx(m.parse(), scratch / "net.onnx"); }),
                    "e: a general layer (hardmax) cannot be written as ONNX");
}

TEST(GeneralLayers, HashesDifferByTheirFields) {
    const auto hash = [](float alpha) {
        ModelBuilder m({2, 2});
        m.node("ThresholdedRelu", {"x"}, "y", "e").real("alpha", alpha);
        return network_hash(m.parse());
    };
    EXPECT_EQ(hash(1), hash(1));
    EXPECT_NE(hash(1), hash(2));
}

// Issue 26, 8.
TEST(GeneralLayers, CeilModeKeepsAWindowLargerThanItsMap) {
    for (const auto& [op, expected] : {std::pair{"MaxPool", 4.0f}, {"AveragePool", 2.5f}}) {
        ModelBuilder m({1, 1, 2, 2});
        m.node(op, {"x"}, "y")
            .integers("kernel_shape", {3, 3})
            .integers("strides", {2, 2})
            .integer("ceil_mode", 1);
        EXPECT_EQ(run_reference_network(m.parse(), {{1, 2, 3, 4}})[0], (Values{expected})) << op;
    }
    ModelBuilder m({1, 1, 2, 2});  // misses a whole stride
    m.node("MaxPool", {"x"}, "y").integers("kernel_shape", {3, 3}).integer("ceil_mode", 1);
    expect_contains(m.error(), "window spans 3 along y, the padded input only 2");
}

// Issue 26, 8.
TEST(GeneralLayers, GridSampleReadsBetweenElements) {
    // The point (x, y) = (0, 0) lies between the two elements of one row.
    ModelBuilder m({1, 1, 1, 2}, 20);
    m.weights("grid", {1, 1, 2, 2}, {0, 0, -1, 0});
    m.node("GridSample", {"x", "grid"}, "y").integer("align_corners", 1);
    EXPECT_EQ(run_reference_network(m.parse(), {{10, 20}})[0], (Values{15, 10}));
    ModelBuilder edges({1, 1, 1, 2}, 20);
    edges.weights("grid", {1, 1, 2, 2}, {0, 0, -1, 0});
    // -1 is the outer edge of element 0: half of it, and half of a zero.
    edges.node("GridSample", {"x", "grid"}, "y");
    EXPECT_EQ(run_reference_network(edges.parse(), {{10, 20}})[0], (Values{15, 5}));
}

/// (3, 4) has the length 5 and the sum of magnitudes 7. A norm of 0 leaves zeros.
TEST(GeneralLayers, LpNormalizationDividesByTheNorm) {
    const auto result = [](int64_t axis, int64_t p) {
        ModelBuilder m({2, 2});
        m.node("LpNormalization", {"x"}, "y").integer("axis", axis).integer("p", p);
        return run_reference_network(m.parse(), {{3, -4, 0, 0}})[0];
    };
    EXPECT_EQ(result(1, 2), (Values{3.0F / 5, -4.0F / 5, 0, 0}));
    EXPECT_EQ(result(1, 1), (Values{3.0F / 7, -4.0F / 7, 0, 0}));
    EXPECT_EQ(result(0, 2), (Values{1, -1, 0, 0}));
    ModelBuilder last({2, 1});
    last.node("LpNormalization", {"x"}, "y");
    EXPECT_EQ(run_reference_network(last.parse(), {{-2, 0}})[0], (Values{-1, 0}));
    ModelBuilder cubes({2, 2});
    cubes.node("LpNormalization", {"x"}, "y").integer("p", 3);
    expect_contains(cubes.error(), "p is 3, expected 1 or 2");
}

// Issue 26, 8.
TEST(GeneralLayers, EinsumIsAMatrixProduct) {
    ModelBuilder m({1, 2, 3});
    m.weights("w", {2, 3}, {1, 0, 0, 0, 1, 1});
    m.node("Einsum", {"x", "w"}, "y").text("equation", "bij,kj->bki");
    const Network network = m.parse();
    // Rows (1, 2, 3) and (4, 5, 6): their first elements, and the sums of the others.
    EXPECT_EQ(run_reference_network(network, {{1, 2, 3, 4, 5, 6}})[0], (Values{1, 4, 5, 11}));
    EXPECT_EQ(output_dims(network), (Dims{1, 2, 2}));
    ModelBuilder diagonal({2, 2});
    diagonal.node("Einsum", {"x"}, "y").text("equation", "ii->i");
    expect_contains(diagonal.error(), "expected different letters for the axes");
}

TEST(GeneralLayers, EinsumTakesEllipsesAndMoreOperands) {
    // Rows (1, 2) and (3, 4) times the columns of w, under an axis that only x has.
    ModelBuilder m({1, 2, 2});
    m.weights("w", {2, 2}, {1, 10, 0, 1});
    m.node("Einsum", {"x", "w"}, "y").text("equation", "...ij, ...jk -> ...ik");
    const Network network = m.parse();
    EXPECT_EQ(run_reference_network(network, {{1, 2, 3, 4}})[0], (Values{1, 12, 3, 34}));
    EXPECT_EQ(output_dims(network), (Dims{1, 2, 2}));
    // x' A x of x = (1, 2) and A = (1, 10; 0, 1): 1 + 20 + 4.
    ModelBuilder form({2});
    form.weights("w", {2, 2}, {1, 10, 0, 1});
    form.node("Einsum", {"x", "w", "x"}, "y").text("equation", "i,ij,j->");
    EXPECT_EQ(run_reference_network(form.parse(), {{1, 2}})[0], (Values{25}));
    // An axis of extent 1 broadcasts.
    ModelBuilder broad({2, 3});
    broad.weights("w", {1, 3}, {1, 10, 100});
    broad.node("Einsum", {"x", "w"}, "y").text("equation", "ij,ij->i");
    EXPECT_EQ(run_reference_network(broad.parse(), {{1, 2, 3, 4, 5, 6}})[0], (Values{321, 654}));
    ModelBuilder extra({2, 2});
    extra.node("Einsum", {"x"}, "y").text("equation", "...i->...j");
    expect_contains(extra.error(), "whose result has a letter of no operand");
}

// Issue 26, 10. Loops over the taps or over the padding of such windows would take minutes.
TEST(GeneralLayers, WindowsAreClippedToTheMap) {
    constexpr int64_t far = int64_t{1} << 30;
    Values map(64);
    for (size_t k = 0; k < map.size(); ++k) map[k] = static_cast<float>(k);
    ModelBuilder conv({1, 1, 8, 8});
    conv.weights("w", {1, 1, 3, 3});
    conv.node("Conv", {"x", "w"}, "y")
        .integers("dilations", {far, far})
        .integers("pads", {far, far, far, far});
    Values expected = map;
    for (float& value : expected) value *= 5;  // the middle weight alone reads the map
    EXPECT_EQ(run_reference_network(conv.parse(), {map})[0], expected);

    // Strides that leave one window: elements 0 to 2 of rows 0 to 2 are 0 to 2, 8 to 10, 16 to 18.
    ModelBuilder strided({1, 1, 8, 8});
    strided.weights("w", {1, 1, 3, 3}, Values(9, 1.0f));
    strided.node("Conv", {"x", "w"}, "y").integers("strides", {far, far});
    EXPECT_EQ(run_reference_network(strided.parse(), {map})[0], (Values{3 + 27 + 51}));
    ModelBuilder transposed({1, 1, 1, 1});
    transposed.weights("w", {1, 1, 3, 3}, Values(9, 1.0f));
    transposed.node("ConvTranspose", {"x", "w"}, "y").integers("strides", {far, far});
    EXPECT_EQ(run_reference_network(transposed.parse(), {{2}})[0], Values(9, 2.0f));

    constexpr int64_t wide = 2000000000;
    ModelBuilder pool({1, 1, 8, 8});
    pool.node("AveragePool", {"x"}, "y")
        .integers("kernel_shape", {1, wide})
        .integers("pads", {0, wide / 2 - 4, 0, wide / 2 - 4});
    EXPECT_EQ(run_reference_network(pool.parse(), {map})[0],
              (Values{3.5f, 11.5f, 19.5f, 27.5f, 35.5f, 43.5f, 51.5f, 59.5f}));

    // 2^90 places, of which eight are ones: their number passes 64 bits, their mean is exact.
    ModelBuilder cube({1, 1, 2, 2, 2});
    cube.node("AveragePool", {"x"}, "y")
        .integers("kernel_shape", {far, far, far})
        .integers("pads", Dims(6, far / 2))
        .integer("count_include_pad", 1);
    EXPECT_EQ(run_reference_network(cube.parse(), {Values(8, 1.0f)})[0],
              Values(27, std::ldexp(1.0f, -87)));
}

// Taps further apart than the map is wide: the middle ones lie on the map, or none does.
TEST(GeneralLayers, DilatedPoolingMayReachBeyondTheMap) {
    for (const char* pool : {"MaxPool", "LpPool"}) {
        ModelBuilder m({1, 1, 6}, 18);
        m.node(pool, {"x"}, "y")
            .integers("kernel_shape", {3})
            .integers("dilations", {8})
            .integers("pads", {8, 8});
        const Values x{1, 2, 3, 4, 5, 6};
        EXPECT_EQ(run_reference_network(m.parse(), {x})[0], x) << pool;
    }
    ModelBuilder passed({1, 1, 6});
    passed.node("MaxPool", {"x"}, "y")
        .integers("kernel_shape", {2})
        .integers("dilations", {8})
        .integers("pads", {2, 2});
    expect_contains(passed.error(), "lies wholly in the padding");
}

TEST(FoldConstants, ArithmeticOfConstantsLeavesNoLayer) {
    ModelBuilder m({1, 1, 2, 2});
    m.weights("w", {2, 1, 1, 1}, {1, 2}).weights("s", {}, {16}).integers("axes", {0});
    m.node("Sqrt", {"s"}, "root");
    m.node("Unsqueeze", {"root", "axes"}, "list");  // a scalar stays one: {} becomes {1}
    m.node("Mul", {"w", "list"}, "scaled");
    m.node("Conv", {"x", "scaled"}, "y");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 1u);
    EXPECT_EQ(network.layers[0].weights->values, (Values{4, 8}));
}

TEST(FoldConstants, AShapeWithAFallback) {
    // PyTorch exports x.expand(-1, 3) with Where, which replaces -1 by 1; 1 broadcasts.
    ModelBuilder m({2, 1});
    m.integers("wish", {-1, 3}).integers("two", {2}).integers("minus", {-1});
    m.node("ConstantOfShape", {"two"}, "ones");
    auto* one = m.model.mutable_graph()->mutable_node(0)->add_attribute();
    one->set_name("value");
    one->set_type(test::proto::AttributeProto::TENSOR);
    one->mutable_t()->add_dims(1);
    one->mutable_t()->set_data_type(test::proto::TensorProto::INT64);
    one->mutable_t()->add_int64_data(1);
    m.node("Mul", {"ones", "minus"}, "minuses");
    m.node("Equal", {"wish", "minuses"}, "open");
    m.node("Where", {"open", "ones", "wish"}, "shape");
    m.node("Expand", {"x", "shape"}, "y");
    EXPECT_EQ(run_reference_network(m.parse(), {{5, 6}})[0], (Values{5, 5, 5, 6, 6, 6}));
}

/// An initializer of 8 or 16 bits.
void add_small(ModelBuilder& m, const std::string& name, test::proto::TensorProto::DataType type,
               const Dims& dims, const std::string& raw) {
    auto* t = m.model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    for (const int64_t d : dims) t->add_dims(d);
    t->set_raw_data(raw);
}

TEST(SmallIntegers, ACastMakesThemWeights) {
    using Type = test::proto::TensorProto;
    const std::vector<std::tuple<Type::DataType, std::string, float>> cases{
        {Type::INT8, "\xfe", -2.0f},
        {Type::UINT8, "\xfe", 254.0f},
        {Type::INT16, "\xfe\xff", -2.0f},
        {Type::UINT16, "\xfe\xff", 65534.0f}};
    for (const auto& [type, raw, value] : cases) {
        ModelBuilder m({1, 1, 1, 1});
        add_small(m, "small", type, {1, 1, 1, 1}, raw);
        m.node("Cast", {"small"}, "w").integer("to", Type::FLOAT);
        m.node("Conv", {"x", "w"}, "y");
        EXPECT_EQ(run_reference_network(m.parse(), {{3}})[0], (Values{3 * value}));
    }
    // The limit on integers of shapes does not apply to weights, which come in thousands.
    ModelBuilder many({1, 100, 1, 1});
    add_small(many, "small", Type::INT8, {100, 100, 1, 1}, std::string(10000, '\x01'));
    many.node("Cast", {"small"}, "w").integer("to", Type::FLOAT);
    many.node("Conv", {"x", "w"}, "y");
    EXPECT_EQ(run_reference_network(many.parse(), {Values(100, 2.0f)})[0], Values(100, 200.0f));
}

TEST(SmallIntegers, DequantizeLinearMakesThemWeights) {
    using Type = test::proto::TensorProto;
    const std::string raw("\x01\x02\xff\x80", 4);  // 1, 2, -1, -128
    ModelBuilder one({1, 2, 1, 1});
    add_small(one, "q", Type::INT8, {2, 2, 1, 1}, raw);
    add_small(one, "zero", Type::INT8, {}, "\x01");
    one.weights("scale", {}, {0.5});
    one.node("DequantizeLinear", {"q", "scale", "zero"}, "w");
    one.node("Conv", {"x", "w"}, "y");
    EXPECT_EQ(one.parse().layers.at(0).weights->values, (Values{0, 0.5, -1, -64.5}));

    for (const int64_t axis :
         {0, 1, -4}) {  // one scale for each output channel, or for each input channel
        ModelBuilder m({1, 2, 1, 1}, 13);
        add_small(m, "q", Type::INT8, {2, 2, 1, 1}, raw);
        m.weights("scale", {2}, {2, 10});
        m.node("DequantizeLinear", {"q", "scale"}, "w").integer("axis", axis);
        m.node("Conv", {"x", "w"}, "y");
        EXPECT_EQ(m.parse().layers.at(0).weights->values,
                  axis == 1 ? (Values{2, 20, -2, -1280}) : (Values{2, 4, -10, -1280}));
    }

    ModelBuilder bias({1, 1, 1, 1});  // biases are INT32
    bias.weights("w", {2, 1, 1, 1}).integers("q", {1000, -1}).weights("scale", {}, {0.25});
    bias.node("DequantizeLinear", {"q", "scale"}, "b");
    bias.node("Conv", {"x", "w", "b"}, "y");
    EXPECT_EQ(bias.parse().layers.at(0).bias->values, (Values{250, -0.25}));

    ModelBuilder wrong({1, 2, 1, 1});
    add_small(wrong, "q", Type::INT8, {2, 2, 1, 1}, raw);
    wrong.weights("scale", {3});
    wrong.node("DequantizeLinear", {"q", "scale"}, "w", "d");
    wrong.node("Conv", {"x", "w"}, "y");
    EXPECT_EQ(
        wrong.error(),
        "net.onnx: node \"d\" (DequantizeLinear): has 3 scales and 0 zero points, expected 2");

    ModelBuilder live({1, 1});
    live.weights("scale", {}, {0.25});
    live.node("DequantizeLinear", {"x", "scale"}, "y", "d");
    expect_contains(live.error(),
                    "input \"x\" is computed when the network runs, expected constant integers");
}

TEST(SmallIntegers, NothingElseComputesWithThem) {
    using Type = test::proto::TensorProto;
    ModelBuilder m({1, 2});
    add_small(m, "small", Type::UINT8, {2}, "\xff\x01");
    m.node("Add", {"small", "small"}, "sum", "a");  // wraps around: 254 and 2
    m.node("Cast", {"sum"}, "b").integer("to", Type::FLOAT);
    m.node("Add", {"x", "b"}, "y");
    EXPECT_EQ(m.error(),
              "net.onnx: node \"a\" (Add): input \"small\" has integers of 8 or 16 bits, expected "
              "a FLOAT tensor; Cast and "
              "DequantizeLinear make it that");
}

TEST(Bytes, AnInputOfThemIsMarkedAndComesBackFromAFile) {
    using Type = test::proto::TensorProto;
    for (const auto& [declared, type] :
         {std::pair{Type::UINT8, ElementType::uint8}, std::pair{Type::INT8, ElementType::int8}}) {
        ModelBuilder m({1, 1, 2, 2});
        m.model.mutable_graph()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->set_elem_type(declared);
        m.weights("w", {1, 1, 1, 1}, {3});
        m.node("Cast", {"x"}, "f").integer("to", Type::FLOAT);
        m.node("Conv", {"f", "w"}, "y");
        const Network network = m.parse();
        EXPECT_EQ(network.tensor(network.inputs[0]).type, type);
        EXPECT_EQ(network.tensor(network.outputs[0]).type, ElementType::float32);
        EXPECT_EQ(run_reference_network(network, {{1, 2, 3, 4}})[0], (Values{3, 6, 9, 12}));

        Network floats = network;
        floats.tensors[static_cast<size_t>(floats.inputs[0])].type = ElementType::float32;
        EXPECT_NE(network_hash(floats), network_hash(network));
        EXPECT_EQ(structure_hash(floats), structure_hash(network));

        const test::Scratch scratch;
        save_onnx(network, scratch / "n.onnx");
        const Network read = load_onnx(scratch / "n.onnx");
        EXPECT_EQ(network_hash(read), network_hash(network));
        EXPECT_EQ(read.tensor(read.inputs[0]).name, "x");
        EXPECT_EQ(read.tensor(read.outputs[0]).name, "y");
    }
}

TEST(Bytes, AnOutputOfThemCutsFractionsOff) {
    using Type = test::proto::TensorProto;
    ModelBuilder m({1, 6});
    m.node("Cast", {"x"}, "y").integer("to", Type::UINT8);
    m.model.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(Type::UINT8);
    const Network network = m.parse();
    EXPECT_EQ(network.tensor(network.outputs[0]).type, ElementType::uint8);
    EXPECT_EQ(run_reference_network(network, {{0, 0.99f, 1, 254.5f, 255.9f, -0.5f}})[0],
              (Values{0, 0, 1, 254, 255, 0}));

    m.model.mutable_graph()
        ->mutable_output(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(Type::FLOAT);
    EXPECT_EQ(m.error(), "net.onnx: output \"y\" is UINT8 where it is written, expected FLOAT");
}

TEST(Bytes, ArithmeticOnThemIsRefused) {
    using Type = test::proto::TensorProto;
    const auto model = [] {
        ModelBuilder m({1, 4});
        m.model.mutable_graph()
            ->mutable_input(0)
            ->mutable_type()
            ->mutable_tensor_type()
            ->set_elem_type(Type::UINT8);
        return m;
    };
    ModelBuilder relu = model();
    relu.node("Transpose", {"x"}, "t").integers("perm", {1, 0});
    relu.node("Relu", {"t"}, "y", "r");
    EXPECT_EQ(relu.error(),
              "net.onnx: node \"r\" (Relu): input \"t\" is UINT8 when the network runs, expected "
              "FLOAT, which a Cast "
              "makes of it");
    ModelBuilder joined = model();
    joined.node("Cast", {"x"}, "f").integer("to", Type::FLOAT);
    joined.node("Concat", {"x", "f"}, "y", "c").integer("axis", 1);
    EXPECT_EQ(joined.error(),
              "net.onnx: node \"c\" (Concat): input \"f\" is FLOAT, expected UINT8 as the first");
    ModelBuilder other = model();
    other.model.mutable_graph()
        ->mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->set_elem_type(Type::INT16);
    other.node("Relu", {"x"}, "y");
    EXPECT_EQ(other.error(),
              "net.onnx: input \"x\" is INT16, expected FLOAT, FLOAT16, BFLOAT16, DOUBLE, UINT8, "
              "INT8, INT64, INT32 or BOOL");
}

TEST(Types, EveryWidthOfFloatsIsTakenAndGivenAsFloat32) {
    using Type = test::proto::TensorProto;
    for (const auto& [type, name] : {std::pair{Type::FLOAT16, "FLOAT16"},
                                     std::pair{Type::BFLOAT16, "BFLOAT16"},
                                     std::pair{Type::DOUBLE, "DOUBLE"}}) {
        ModelBuilder m({1, 2});
        auto& graph = *m.model.mutable_graph();
        graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(type);
        graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(type);
        m.node("Relu", {"x"}, "a");
        m.node("Cast", {"a"}, "y").integer("to", type);
        const Network network = m.parse();
        EXPECT_EQ(network.tensor(network.inputs[0]).type, ElementType::float32);
        EXPECT_EQ(network.folded[0], std::string("input \"x\" is ") + name +
                                         " in the file: taken as float32, in which all is computed");
        EXPECT_EQ(run_reference_network(network, {{-1, 2}})[0], (Values{0, 2}));
    }
}

TEST(Outputs, ATensorMayBeAnOutputTwice) {
    ModelBuilder m({1, 2});
    m.node("Relu", {"x"}, "y");
    m.model.mutable_graph()->add_output()->set_name("y");
    m.model.mutable_graph()->add_output()->set_name("x");
    m.weights("c", {1}, {7});
    m.model.mutable_graph()->add_output()->set_name("c");
    m.model.mutable_graph()->add_output()->set_name("c");
    const Network network = m.parse();
    std::vector<std::string> names;
    for (const TensorId id : network.outputs) names.push_back(network.tensor(id).name);
    EXPECT_EQ(names, (std::vector<std::string>{"y", "y_output", "x_output", "c", "c_output"}));
    const auto results = run_reference_network(network, {{-1, 2}});
    EXPECT_EQ(results, (std::vector<Values>{{0, 2}, {0, 2}, {-1, 2}, {7}, {7}}));
    EXPECT_EQ(network.folded.at(0),
              "output \"y\" is called \"y_output\": the first name is another tensor's");
}

TEST(Clip, BoundsMayBeComputed) {
    ModelBuilder m({1, 4});
    m.input("low", {});
    m.weights("high", {}, {3});
    m.node("Clip", {"x", "low", "high"}, "y");
    EXPECT_EQ(run_reference_network(m.parse(), {{-5, 0, 2, 9}, {-1}})[0], (Values{-1, 0, 2, 3}));
    EXPECT_EQ(run_reference_network(m.parse(), {{-5, 0, 2, 9}, {4}})[0],
              (Values{3, 3, 3, 3}));  // crossed: the upper one

    ModelBuilder upper({1, 4});
    upper.input("high", {1});
    upper.node("Clip", {"x", "", "high"}, "y");
    EXPECT_EQ(run_reference_network(upper.parse(), {{-5, 0, 2, 9}, {1}})[0], (Values{-5, 0, 1, 1}));

    ModelBuilder many({1, 4});
    many.input("low", {4});
    many.node("Clip", {"x", "low"}, "y", "k");
    EXPECT_EQ(many.error(), "net.onnx: node \"k\" (Clip): input \"low\" is 4, expected one value");
}

TEST(Limits, SmallFilesCannotAskForMuch) {
    ModelBuilder filled({1, 2});
    filled.integers("shape", {1 << 20, 1 << 10});
    filled.node("ConstantOfShape", {"shape"}, "c");
    filled.node("Add", {"x", "c"}, "y");
    expect_contains(filled.error(),
                    "ConstantOfShape nodes make 1073741824 values, expected at most 268435456");

    ModelBuilder padded({1, 2});
    padded.integers("pads", {0, 0, 0, int64_t{1} << 31});
    padded.node("Pad", {"x", "pads"}, "y", "p");
    expect_contains(padded.error(), "node \"p\" (Pad): pads contains 2147483648");

    ModelBuilder tiled({1, 2});
    tiled.integers("repeats", {1, int64_t{1} << 40});
    tiled.node("Tile", {"x", "repeats"}, "y", "t");
    expect_contains(tiled.error(), "node \"t\" (Tile): repeats axis 1 1099511627776 times");

    ModelBuilder product({1, 2});
    product.integers("shape", {8192, 8192});
    product.node("ConstantOfShape", {"shape"}, "a");
    product.node("MatMul", {"a", "a"}, "b", "m");
    product.node("MatMul", {"x", "b"}, "y");
    expect_contains(
        product.error(),
        "node \"m\" (MatMul): of constants takes too long to evaluate: makes 8192x8192");

    ModelBuilder grouped({1, 2, 4, 4});
    grouped.weights("w", {2, 1, 1, 1});
    grouped.node("Conv", {"x", "w"}, "y", "c")
        .integer("group", std::numeric_limits<int64_t>::max());
    expect_contains(grouped.error(),
                    "node \"c\" (conv): 9223372036854775807 groups do not divide 2 input channels");
}

}  // namespace
}  // namespace laminate
