// Sums, products and the like of a map and one of constants: layers of two maps.
#include "nets/onnx/constant_maps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nets/network/picture_views.h"
#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;
using Values = std::vector<float>;

/// Two channels of 1 x 2.
ModelBuilder two_channels() { return ModelBuilder({1, 2, 1, 2}); }

Values result(const Network& network, const Values& x) {
    return run_reference_network(network, {x}, network.outputs, 1).front();
}

/// The shape of the only constant, which the other layer of the network reads.
std::vector<int64_t> constant_of(const Network& network) {
    EXPECT_EQ(network.layers.size(), 2U);
    EXPECT_TRUE(is_constant(network.layers.at(0)));
    EXPECT_EQ(network.layers.at(1).inputs.size(), 2U);
    return network.tensor(network.layers.at(0).output).dims;
}

TEST(ConstantMaps, AreOperandsOfSumsAndProducts) {
    struct Case {
        const char* op;
        bool is_first;
        Values result;  ///< of 1, 2, 3, 4 and 2, 4, 8, 16
    };
    for (const Case& c :
         {Case{"Add", false, {3, 6, 11, 20}}, Case{"Add", true, {3, 6, 11, 20}},
          Case{"Sub", false, {-1, -2, -5, -12}}, Case{"Sub", true, {1, 2, 5, 12}},
          Case{"Mul", false, {2, 8, 24, 64}}, Case{"Div", false, {0.5F, 0.5F, 0.375F, 0.25F}},
          Case{"Div", true, {2, 2, 8.0F / 3, 4}}, Case{"Max", false, {2, 4, 8, 16}},
          Case{"Min", true, {1, 2, 3, 4}}, Case{"Pow", false, {1, 16, 6561, 4294967296}},
          Case{"Pow", true, {2, 16, 512, 65536}}, Case{"PRelu", false, {1, 2, 3, 4}}}) {
        SCOPED_TRACE(c.op);
        ModelBuilder m = two_channels();
        m.weights("c", {2, 1, 2}, {2, 4, 8, 16});
        if (c.is_first) {
            m.node(c.op, {"c", "x"}, "y");
        } else {
            m.node(c.op, {"x", "c"}, "y");
        }
        const Network network = m.parse();
        EXPECT_EQ(constant_of(network), (std::vector<int64_t>{1, 2, 1, 2}));
        EXPECT_EQ(result(network, {1, 2, 3, 4}), c.result);
    }
}

TEST(ConstantMaps, HaveOneChannelOrOnePixelWhereTheyRepeat) {
    ModelBuilder plane = two_channels();
    plane.weights("c", {1, 2}, {10, 20});
    plane.node("Mul", {"x", "c"}, "y");
    EXPECT_EQ(constant_of(plane.parse()), (std::vector<int64_t>{1, 1, 1, 2}));
    EXPECT_EQ(result(plane.parse(), {1, 2, 3, 4}), (Values{10, 40, 30, 80}));
    ModelBuilder pixel = two_channels();
    pixel.weights("c", {2, 1, 1}, {2, 3});
    pixel.node("Max", {"x", "c"}, "y");
    EXPECT_EQ(constant_of(pixel.parse()), (std::vector<int64_t>{1, 2, 1, 1}));
    EXPECT_EQ(result(pixel.parse(), {1, 2, 3, 4}), (Values{2, 2, 3, 4}));
}

TEST(ConstantMaps, OneValueRaisedToAMapIsAPixelOfOneChannel) {
    ModelBuilder m = two_channels();
    m.weights("c", {}, {2});
    m.node("Pow", {"c", "x"}, "y");
    EXPECT_EQ(constant_of(m.parse()), (std::vector<int64_t>{1, 1, 1, 1}));
    EXPECT_EQ(result(m.parse(), {1, 2, -1, 0.5F}), (Values{2, 4, 0.5F, std::sqrt(2.0F)}));
}

TEST(ConstantMaps, SlopesOfPReluAreOfWhatIsBelowZero) {
    ModelBuilder m = two_channels();
    m.weights("c", {2, 1, 2}, {2, 4, 8, 16});
    m.node("PRelu", {"x", "c"}, "y");
    EXPECT_EQ(constant_of(m.parse()), (std::vector<int64_t>{1, 2, 1, 2}));
    EXPECT_EQ(result(m.parse(), {1, -2, -3, 0}), (Values{1, -8, -24, 0}));
}

/// A row of constants for each of two rows, and both again for the second image.
TEST(ConstantMaps, HaveAllRowsAndImages) {
    ModelBuilder m({2, 1, 2, 2});
    m.weights("c", {1, 1, 2, 1}, {10, 20});
    m.node("Add", {"x", "c"}, "y");
    EXPECT_EQ(constant_of(m.parse()), (std::vector<int64_t>{2, 1, 2, 2}));
    EXPECT_EQ(result(m.parse(), {1, 2, 3, 4, 5, 6, 7, 8}),
              (Values{11, 12, 23, 24, 15, 16, 27, 28}));
}

TEST(ConstantMaps, LayersThatShareAConstantShareItsMap) {
    ModelBuilder m = two_channels();
    m.weights("c", {2, 1, 2}, {2, 4, 8, 16});
    m.node("Mul", {"x", "c"}, "a");
    m.node("Mul", {"a", "c"}, "y");
    const Network network = m.parse();
    EXPECT_EQ(network.layers.size(), 3U);
    EXPECT_EQ(result(network, {1, 2, 3, 4}), (Values{4, 32, 192, 1024}));
}

}  // namespace
}  // namespace laminate
