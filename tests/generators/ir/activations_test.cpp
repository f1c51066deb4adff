// Activations in generated code against the reference operators, value by value.
#include "generators/ir/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/aligned.h"
#include "base/rng.h"
#include "generators/compile/executable.h"
#include "generators/ir/arrays.h"
#include "generators/lowering/group_lowering.h"
#include "nets/operators/reference_operators.h"

namespace laminate {
namespace {

/// What differences are measured in: units in the last place of the larger of the result and this.
enum class Scale { result, one, argument };

struct Bound {
    Activation activation;
    double units;  ///< most that code and reference may differ by; 0: the same to the bit
    Scale scale = Scale::result;
};

Activation unary(GeneralFunction function, float alpha = 0, float beta = 0) {
    return {.kind = ActivationKind::unary, .function = function, .alpha = alpha, .beta = beta};
}

/// A slope for each channel.
Activation with_slopes(const std::vector<float>& slopes) {
    const std::vector<int64_t> dims{std::ssize(slopes)};
    return {.kind = ActivationKind::prelu,
            .slope = std::make_shared<const Constant>(Constant{dims, slopes})};
}

std::vector<Bound> bounds() {
    using enum GeneralFunction;
    return {{{.kind = ActivationKind::relu}, 0},
            {{.kind = ActivationKind::leaky_relu, .alpha = 0.01f}, 0},
            {{.kind = ActivationKind::leaky_relu, .alpha = 1}, 0},
            {{.kind = ActivationKind::leaky_relu, .alpha = 1.5f}, 0},
            {{.kind = ActivationKind::leaky_relu, .alpha = -0.5f}, 0},
            {{.kind = ActivationKind::leaky_relu, .alpha = 0}, 0},
            {with_slopes({0.25f}), 0},
            {with_slopes({0.25f, 1, 1e-30f}), 0},
            {with_slopes({0.25f, -0.5f}), 0},
            {with_slopes({0.25f, 2}), 0},
            {{.kind = ActivationKind::clip, .low = 0, .high = 6}, 0},
            {{.kind = ActivationKind::sigmoid}, 8},
            {{.kind = ActivationKind::tanh}, 8},
            {unary(absolute), 0},
            {unary(negative), 0},
            {unary(exponential), 8},
            {unary(logarithm), 8, Scale::one},
            {unary(square_root), 0},
            {unary(reciprocal), 0},
            {unary(floor), 0},
            {unary(ceil), 0},
            {unary(round_to_even), 0},
            {unary(sign), 0},
            {unary(error_function), 8},
            {unary(sine), 4},
            {unary(cosine), 4},
            {unary(tangent), 8},
            {unary(thresholded_relu, 0.5f), 0},
            {unary(shrink, 0.5f, 0.25f), 0},
            {unary(power, 2), 1},
            {unary(power, 3), 1},
            {unary(power, -2), 2},
            {unary(power, 0.5f), 1},
            {unary(power, -0.5f), 2},
            {unary(power, 2.2f), 80},
            {unary(power, -1 / 2.4f), 32},
            {unary(elu, 1), 8},
            {unary(elu, 0.3f), 8},
            {unary(selu, 1.67326319f, 1.05070102f), 8},
            {unary(celu, 1), 8},
            {unary(celu, 0.7f), 8},
            {unary(softplus), 8},
            {unary(softsign), 1},
            {unary(hard_sigmoid, 0.2f, 0.5f), 1, Scale::one},
            {unary(hard_sigmoid, 1.0f / 6, 0.5f), 1, Scale::one},
            {unary(hard_swish), 1, Scale::argument},
            {unary(mish), 8},
            {unary(swish, 1), 8},
            {unary(swish, 1.702f), 8},
            {unary(gelu), 8, Scale::argument},
            {unary(gelu_tanh), 8, Scale::argument}};
}

/// Magnitudes of every order up to 1e4, more of those where activations bend, and the ends of the
/// pieces.
std::vector<float> arguments() {
    std::vector<float> values{0, -0.0f, 3, -3, 6, -6, 20, 88, -88, 104, -104, 1e4f, -1e4f};
    Rng rng(7);
    const auto random_float = [&](double low, double high) {
        return static_cast<float>(low + (high - low) * static_cast<double>(rng.below(1 << 30)) /
                                            (1 << 30));
    };
    for (int n = 0; n < 100'000; ++n) {
        const float sign = rng.chance(1, 2) ? 1.0f : -1.0f;
        values.push_back(sign * static_cast<float>(std::exp2(random_float(-40, 13))));
        values.push_back(random_float(-25, 25));
        values.push_back(random_float(-2, 2));
    }
    values.resize(values.size() / 16 * 16);
    return values;
}

/// What `make` is given: an element of X, or X[n] * 1 + 0, where the compiler sees a sum of
/// products, as an activation gets it, and knows neither number.
enum class Value { element, sum };

/// Y[n] = make(value, slope), `lanes` at a time. Code reads slopes as the slope is here: the
/// compiler does not know it.
std::vector<float> computed(
    const std::function<Halide::Expr(const Halide::Expr& value, const Halide::Expr& slope)>& make,
    const std::vector<float>& x, int64_t lanes, Value value = Value::sum, float slope = 0) {
    using namespace Halide::Internal;
    const Halide::Expr n = Variable::make(Halide::Int(32), "n");
    const Halide::Expr index = ir::lanes_from(n * ir::size(lanes), lanes);
    const auto number = [&](int32_t at) { return ir::broadcast(ir::load("numbers", at), lanes); };
    const Halide::Expr element = ir::load("X", index, ir::Alignment::element);
    const Halide::Expr given = value == Value::sum ? element * number(0) + number(1) : element;
    const Stmt one = ir::store("Y", make(given, number(2)), index, ir::Alignment::element);
    Stmt body = For::make("n", 0, ir::size(std::ssize(x) / lanes), ForType::Serial,
                          Halide::Partition::Auto, Halide::DeviceAPI::None, one);
    body = ir::with_pointer("X", argument::inputs, 0,
                            ir::with_pointer("Y", argument::outputs, 0, body));
    const JitGroup jit(ir::with_array("numbers", argument::constants, 0, body), false);
    std::vector<float> y(x.size(), std::numeric_limits<float>::quiet_NaN());
    const float* in = x.data();
    float* out = y.data();
    const AlignedFloats numbers(std::vector<float>{1, -0.0F, slope});
    EXPECT_EQ(jit.function()(&in, &out, numbers.data(), nullptr, 0, 1), 0);
    return y;
}

/// Y[n] = activation(X[n]) of a channel.
std::vector<float> computed(const Activation& activation, const std::vector<float>& x,
                            int64_t lanes, size_t channel = 0) {
    const float slope = activation.slope ? activation.slope->values[channel] : 0;
    return computed([&](const Halide::Expr& sum,
                        const Halide::Expr& given) { return ir::activate(activation, sum, given); },
                    x, lanes, Value::sum, slope);
}

double unit(double value) {
    // Below 2^-80 code may round to zero.
    return std::exp2(std::max(std::ilogb(value == 0 ? 1e-300 : value), -80) - 23);
}

size_t channels_of(const Activation& activation) {
    return activation.slope ? activation.slope->values.size() : 1;
}

void expect_within(const Bound& bound, const std::vector<float>& x, size_t channel) {
    const std::vector<float> y = computed(bound.activation, x, 16, channel);
    const std::string name = activation_text(bound.activation);
    double worst = 0;
    size_t at = 0;
    for (size_t n = 0; n < x.size(); ++n) {
        const float expected =
            apply_activation(bound.activation, x[n], static_cast<int64_t>(channel));
        double scale = std::abs(expected);
        if (bound.scale == Scale::one) scale = std::max(scale, 1.0);
        if (bound.scale == Scale::argument) scale = std::max(scale, std::abs(double{x[n]}));
        // e^x of code is infinite from 88.4 on.
        const bool overflows = std::isinf(y[n]) && expected > 2e38F;
        const bool is_same =
            overflows || y[n] == expected || (std::isnan(y[n]) && std::isnan(expected));
        const double units =
            is_same ? 0 : std::abs(double{y[n]} - double{expected}) / unit(scale);
        if (!(units <= worst)) {
            worst = units;
            at = n;
        }
    }
    EXPECT_LE(worst, bound.units) << name << " of " << x[at] << " is " << y[at] << ", expected "
                                  << apply_activation(bound.activation, x[at],
                                                      static_cast<int64_t>(channel));
}

TEST(Activations, AreWithinTheirBounds) {
    const std::vector<float> x = arguments();
    for (const Bound& bound : bounds()) {
        for (size_t channel = 0; channel < channels_of(bound.activation); ++channel)
            expect_within(bound, x, channel);
    }
}

/// Where a product with the slope is not finite, and where a zero has a sign.
TEST(Activations, RectifiersKeepInfinitiesAndZeros) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{infinity, -infinity, 0.0f, -0.0f, 3e38f, -3e38f, 1e-45f, -1e-45f};
    for (const float slope : {0.25f, 1.0f, 0.01f, -0.5f, 2.0f}) {
        for (const Activation& activation :
             {with_slopes({slope}),
              Activation{.kind = ActivationKind::leaky_relu, .alpha = slope}}) {
            const std::vector<float> y = computed(activation, x, 8);
            for (size_t n = 0; n < x.size(); ++n) {
                const float expected = apply_activation(activation, x[n], 0);
                EXPECT_EQ(std::bit_cast<uint32_t>(y[n]), std::bit_cast<uint32_t>(expected))
                    << activation_text(activation) << " of " << x[n] << " is " << y[n]
                    << ", expected " << expected;
            }
        }
    }
    const std::vector<float> flat = computed(with_slopes({0.0f}), x, 8);
    EXPECT_EQ(flat[0], infinity) << "0 times infinity is not asked for";
}

/// The same class as the reference's value: NaN, an infinity of the same sign, or finite and near.
void expect_like_reference(const Activation& activation, const std::vector<float>& x,
                           int64_t lanes) {
    const std::vector<float> y = computed(activation, x, lanes);
    for (size_t n = 0; n < x.size(); ++n) {
        const float expected = apply_activation(activation, x[n], 0);
        const bool is_right = std::isnan(expected) ? std::isnan(y[n])
                              : std::isinf(expected)
                                  ? y[n] == expected
                                  : std::abs(y[n] - expected) <= 1e-5F * std::abs(expected) + 1e-6F;
        EXPECT_TRUE(is_right) << activation_text(activation) << " of " << x[n] << " is " << y[n]
                              << ", expected " << expected << ", " << lanes << " lanes";
    }
}

// Issue 26, 2.
TEST(Activations, SpecialsBecomeWhatTheReferenceOperatorsMakeOfThem) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{nan,    -nan,  infinity, -infinity, 3e37F, -3e37F, 1e8F,   -1e8F,
                               1e-40F, -1.0F, 0.0F,     1.0F,      89.0F, -89.0F, 1e-30F, 20.0F};
    std::vector<Bound> all = bounds();
    all.push_back({{.kind = ActivationKind::clip, .low = -infinity, .high = infinity}, 0});
    // Factors of 0, whose product with an infinity is NaN.
    using enum GeneralFunction;
    for (const Activation& flat :
         {Activation{.kind = ActivationKind::leaky_relu, .alpha = -0.0F}, with_slopes({0}),
          unary(elu, 0), unary(selu, 0, 1), unary(selu, 1, 0), unary(hard_sigmoid, 0, 0.5F),
          unary(hard_sigmoid, 0, 0), unary(swish, 0)})
        all.push_back({flat, 0});
    for (const Bound& bound : all) {
        for (const int64_t lanes : {1, 8, 16}) expect_like_reference(bound.activation, x, lanes);
    }
}

/// The exponent is read, so that the compiler does not know it either.
TEST(Activations, PowersOfTwoOperandsAreThoseOfTheReference) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const auto power = [](const Halide::Expr& x, const Halide::Expr& y) { return ir::power(x, y); };
    const std::vector<float> x{nan,   -nan, infinity, -infinity, 0.0F,  -0.0F,  1.0F,   -1.0F,
                               0.25F, -4,   1.5F,     -1.5F,     1e30F, -1e30F, 1e-40F, 0.999F};
    for (const float y : {0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -2.0F, 3.0F, -3.0F, 0.5F, -0.5F, 2.5F,
                          1e8F, 16777215.0F, infinity, -infinity, nan}) {
        for (const int64_t lanes : {1, 8, 16}) {
            const std::vector<float> result = computed(power, x, lanes, Value::element, y);
            for (size_t n = 0; n < x.size(); ++n) {
                const float expected = std::pow(x[n], y);
                const bool is_class =
                    std::isnan(expected) ? std::isnan(result[n])
                    : std::isinf(expected) || expected == 0
                        ? std::bit_cast<uint32_t>(result[n]) == std::bit_cast<uint32_t>(expected)
                        : std::abs(result[n] - expected) <= 1e-5F * std::abs(expected) + 0x1p-80F;
                EXPECT_TRUE(is_class) << x[n] << " ^ " << y << " is " << result[n] << ", expected "
                                      << expected << ", " << lanes << " lanes";
            }
        }
    }
}

/// The product with the exponent enlarges the error of the logarithm.
TEST(Activations, PowersOfTwoOperandsLoseTheDigitsOfTheLogarithm) {
    Rng rng(3);
    std::vector<float> x;
    for (int n = 0; n < 16'384; ++n)
        x.push_back(std::exp2(static_cast<float>(rng.between(-1 << 20, 1 << 20)) / (1 << 17)));
    for (const float y : {1.0F, -1.25F, 2.2F, 7.0F}) {
        const std::vector<float> result =
            computed([](const Halide::Expr& of,
                        const Halide::Expr& exponent) { return ir::power(of, exponent); },
                     x, 16, Value::element, y);
        for (size_t n = 0; n < x.size(); ++n) {
            const double expected = std::pow(double{x[n]}, double{y});
            const double most = 4 + 2 * std::abs(y * std::log(x[n]));
            ASSERT_LE(std::abs(result[n] - expected), most * unit(expected)) << x[n] << " ^ " << y;
        }
    }
}

TEST(Activations, SlopesOfTwoOperandsAreOfWhatIsBelowZero) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{infinity, -infinity, 0.0F, -0.0F, 3e38F, -3, nan, 1e-45F};
    for (const float slope : {0.25F, 2.0F, -0.5F, infinity, nan}) {
        for (const int64_t lanes : {1, 8}) {
            const std::vector<float> y = computed(
                [](const Halide::Expr& of, const Halide::Expr& by) {
                    return ir::combined(Operation::prelu, of, by);
                },
                x, lanes, Value::element, slope);
            for (size_t n = 0; n < x.size(); ++n) {
                const float expected = x[n] < 0 ? x[n] * slope : x[n];
                EXPECT_TRUE(y[n] == expected || (std::isnan(y[n]) && std::isnan(expected)))
                    << x[n] << " with the slope " << slope << " is " << y[n];
            }
        }
    }
}

TEST(Activations, TheLargestIsNaNIfAnyIs) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{nan, -nan, infinity, -infinity, 2, -2, 0, 1};
    for (const int64_t lanes : {1, 8}) {
        for (size_t others = 0; others < 4; ++others) {
            for (size_t place = 0; place <= others; ++place) {
                const std::vector<float> y = computed(
                    [&](const Halide::Expr& sum, const Halide::Expr&) {
                        std::vector<Halide::Expr> all(others, ir::broadcast(1.0F, lanes));
                        all.insert(all.begin() + static_cast<std::ptrdiff_t>(place), sum);
                        return ir::largest(all);
                    },
                    x, lanes, Value::element);
                EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]))
                    << y[0] << ", " << y[1] << ", element " << place << " of " << others + 1;
                for (size_t n = 2; n < x.size(); ++n)
                    EXPECT_EQ(y[n], others == 0 ? x[n] : std::max(1.0F, x[n])) << place;
            }
        }
    }
}

/// What one vector computes and what is left at the end of a row must not differ: pictures are cut
/// anywhere.
TEST(Activations, AreTheSameInEveryLane) {
    std::vector<float> x = arguments();
    x.resize(4096);
    const auto is_same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (const Bound& bound : bounds()) {
        const std::vector<float> wide = computed(bound.activation, x, 16);
        for (const int64_t lanes : {8, 1}) {
            const std::vector<float> narrow = computed(bound.activation, x, lanes);
            EXPECT_TRUE(std::ranges::equal(narrow, wide, is_same))
                << activation_text(bound.activation) << ", " << lanes << " lanes";
        }
    }
}

}  // namespace
}  // namespace laminate
