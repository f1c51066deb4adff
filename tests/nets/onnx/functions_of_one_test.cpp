// Squares, powers, roots, reciprocals and the like: activations, however files spell them.
#include "nets/onnx/functions_of_one.h"

#include <gtest/gtest.h>

#include <numeric>

#include "nets/operators/reference_operators.h"
#include "tests/nets/onnx/builder.h"

namespace laminate {
namespace {

using test::ModelBuilder;
using Function = GeneralFunction;
using Values = std::vector<float>;

/// The only layer of a network of two channels of 1 x 2, and its result for 1, 2, 3, 4.
struct OneLayer {
    Layer layer;
    Values result;
};
OneLayer only_layer(const ModelBuilder& m) {
    const Network network = m.parse();
    EXPECT_EQ(network.layers.size(), 1U);
    return {network.layers.at(0),
            run_reference_network(network, {{1, 2, 3, 4}}, network.outputs, 1).front()};
}
ModelBuilder two_maps() { return ModelBuilder({1, 2, 1, 2}); }

void expect_function(const OneLayer& found, LayerKind kind, Function function, float alpha) {
    EXPECT_EQ(found.layer.kind, kind);
    EXPECT_EQ(found.layer.activation.kind, ActivationKind::unary);
    EXPECT_EQ(found.layer.activation.function, function);
    EXPECT_EQ(found.layer.activation.alpha, alpha);
}

TEST(FunctionsOfOne, SquaresArePowersHoweverTheyAreSpelled) {
    for (const bool is_product : {true, false}) {
        ModelBuilder m = two_maps();
        m.weights("two", {}, {2});
        if (is_product) {
            m.node("Mul", {"x", "x"}, "y");
        } else {
            m.node("Pow", {"x", "two"}, "y");
        }
        const OneLayer square = only_layer(m);
        expect_function(square, LayerKind::activation, Function::power, 2);
        EXPECT_EQ(square.result, (Values{1, 4, 9, 16}));
    }
}

TEST(FunctionsOfOne, PowersOfOneNumberAreActivations) {
    const auto with_exponent = [](float exponent) {
        ModelBuilder m = two_maps();
        m.weights("exponent", {1}, {exponent});
        m.node("Pow", {"x", "exponent"}, "y");
        return only_layer(m);
    };
    expect_function(with_exponent(0.5F), LayerKind::activation, Function::power, 0.5F);
    expect_function(with_exponent(-1), LayerKind::activation, Function::reciprocal, 0);
    const OneLayer inverse_square = with_exponent(-2);
    expect_function(inverse_square, LayerKind::activation, Function::power, -2);
    EXPECT_EQ(inverse_square.result, (Values{1, 0.25F, 1.0F / 9, 0.0625F}));
}

/// Too many products, and an exponent for each channel: powers of two maps.
TEST(FunctionsOfOne, OtherPowersAreNoActivations) {
    for (const Values& exponents : {Values{17}, Values{2, 3}}) {
        ModelBuilder m = two_maps();
        m.weights("exponents", {std::ssize(exponents), 1, 1}, exponents);
        m.node("Pow", {"x", "exponents"}, "y");
        const Network network = m.parse();
        ASSERT_EQ(network.layers.size(), 2U);
        EXPECT_EQ(network.layers[1].kind, LayerKind::general);
        EXPECT_EQ(network.layers[1].general.function, Function::power);
    }
}

TEST(FunctionsOfOne, ADividedConstantIsAReciprocalAndAScale) {
    ModelBuilder one = two_maps();
    one.weights("one", {}, {1});
    one.node("Div", {"one", "x"}, "y");
    expect_function(only_layer(one), LayerKind::activation, Function::reciprocal, 0);
    ModelBuilder m = two_maps();
    m.weights("c", {2, 1, 1}, {4, 12});
    m.node("Div", {"c", "x"}, "y", "quotient");
    const Network network = m.parse();
    ASSERT_EQ(network.layers.size(), 2U);
    EXPECT_EQ(network.layers[0].activation.function, Function::reciprocal);
    EXPECT_EQ(network.layers[1].kind, LayerKind::conv);
    EXPECT_EQ(network.layers[1].onnx_name, "quotient");
    const Values result = run_reference_network(network, {{1, 2, 4, 8}}, network.outputs, 1)[0];
    EXPECT_EQ(result, (Values{4, 2, 3, 1.5F}));
    ModelBuilder map = two_maps();
    map.weights("c", {2, 1, 2});
    map.node("Div", {"c", "x"}, "y");
    const Network of_map = map.parse();
    EXPECT_EQ(run_reference_network(of_map, {{1, 2, 3, 4}}, of_map.outputs, 1)[0],
              (Values{1, 1, 1, 1}));
}

}  // namespace
}  // namespace laminate
