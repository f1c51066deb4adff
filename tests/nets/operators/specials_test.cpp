// NaN and infinities through the reference operators (issue 26, 2): as IEEE 754 and ONNX say, and
// as onnxruntime has them except for the maxima that it makes order-dependent.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "nets/operators/general_operators.h"
#include "nets/operators/reference_operators.h"

namespace laminate {
namespace {

using Values = std::vector<float>;
using Function = GeneralFunction;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Specials, EveryActivationKeepsNaN) {
    for (const auto kind : {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::clip,
                            ActivationKind::sigmoid, ActivationKind::tanh}) {
        const Activation activation{.kind = kind, .alpha = 0.1f, .low = 0, .high = 6};
        EXPECT_TRUE(std::isnan(apply_activation(activation, nan, 0))) << to_string(kind);
    }
    for (int k = 0; k < general_function_count; ++k) {
        const auto function = static_cast<Function>(k);
        // These compare NaN with a bound.
        const bool is_gate = function == Function::thresholded_relu || function == Function::shrink;
        if (is_gate || !is_activation(function, 2, 1)) continue;
        EXPECT_TRUE(std::isnan(apply_unary(function, nan, 2, 1))) << to_string(function);
    }
}

// Generated code computes e^x - 1 for x up to 80 only, more than activations need that do not grow
// towards -infinity.
TEST(Specials, CeluOfANegativeAlphaIsNotFused) {
    EXPECT_TRUE(is_activation(Function::celu, 0.5f, 0));
    EXPECT_FALSE(is_activation(Function::celu, -1, 0));
    EXPECT_EQ(apply_unary(Function::celu, -infinity, -1, 0), -infinity);
    EXPECT_LT(apply_unary(Function::celu, -85, -1, 0), -8e36f);
}

TEST(Specials, ActivationsOfInfinities) {
    const auto of = [](Function function, float x) { return apply_unary(function, x, 1, 1); };
    EXPECT_EQ(of(Function::hard_sigmoid, infinity), 1);
    EXPECT_EQ(of(Function::hard_sigmoid, -infinity), 0);
    EXPECT_EQ(of(Function::softplus, infinity), infinity);
    EXPECT_EQ(of(Function::softplus, -infinity), 0);
    EXPECT_EQ(of(Function::elu, -infinity), -1);
    EXPECT_TRUE(std::isnan(of(Function::hard_swish, -infinity)));  // -inf * 0
    EXPECT_TRUE(std::isnan(of(Function::swish, -infinity)));       // -inf / inf
}

Values outputs_of(Layer layer, const std::vector<std::vector<int64_t>>& dims,
                  const std::vector<Values>& inputs) {
    layer.name = "layer";
    const auto out = infer_output_dims(layer, dims);
    std::vector<const float*> arrays;
    for (const Values& values : inputs) arrays.push_back(values.data());
    Values result(static_cast<size_t>(element_count(out)));
    run_reference_layer(layer, dims, arrays, out, result.data(), 1);
    return result;
}

TEST(Specials, MaximaAndMinimaKeepNaNWhereverItStands) {
    for (const Function function : {Function::maximum, Function::minimum}) {
        Layer layer{.kind = LayerKind::general};
        layer.general = {.kind = GeneralKind::binary, .function = function};
        const Values found = outputs_of(layer, {{2}, {2}}, {{nan, 1}, {1, nan}});
        EXPECT_TRUE(std::isnan(found[0]) && std::isnan(found[1])) << to_string(function);
    }
    for (const Function function : {Function::largest, Function::smallest, Function::log_sum_exp}) {
        Layer layer{.kind = LayerKind::general};
        layer.general = {.kind = GeneralKind::reduce, .function = function, .axes = {1}};
        for (const Values& row : {Values{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}})
            EXPECT_TRUE(std::isnan(outputs_of(layer, {{1, 3}}, {row})[0])) << to_string(function);
    }
}

TEST(Specials, PoolingKeepsNaNInItsWindowsAlone) {
    Layer picture{.kind = LayerKind::max_pool};
    picture.window.kernel = {1, 2};
    Layer general{.kind = LayerKind::general};
    general.general = {.kind = GeneralKind::max_pool,
                       .kernel = {1, 2},
                       .stride = {1, 1},
                       .dilation = {1, 1},
                       .pad_begin = {0, 0},
                       .pad_end = {0, 0}};
    for (const Layer& layer : {picture, general}) {
        const Values found = outputs_of(layer, {{1, 1, 1, 5}}, {{1, 2, nan, -infinity, -infinity}});
        EXPECT_EQ(found[0], 2);
        EXPECT_TRUE(std::isnan(found[1]) && std::isnan(found[2]));
        EXPECT_EQ(found[3], -infinity);
    }
}

TEST(Specials, AConvolutionSpreadsThemToItsWindowsAlone) {
    Layer layer{.kind = LayerKind::conv};
    layer.window.kernel = {1, 2};
    layer.weights = std::make_shared<const Constant>(Constant{{1, 1, 1, 2}, {1, 0}});
    const Values found = outputs_of(layer, {{1, 1, 1, 5}}, {{1, infinity, 2, 3, 4}});
    EXPECT_TRUE(std::isnan(found[0]));  // 1 * 1 + 0 * inf
    EXPECT_EQ(found[1], infinity);
    EXPECT_EQ(found[2], 2);
    EXPECT_EQ(found[3], 3);
}

}  // namespace
}  // namespace laminate
