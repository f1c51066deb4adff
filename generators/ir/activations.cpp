#include "generators/ir/activations.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numbers>
#include <stdexcept>
#include <string>

namespace laminate::ir {

using namespace Halide::Internal;
using Halide::Expr;

namespace {

Expr like(const Expr& x, float c) { return make_const(x.type(), c); }

/// `make` of a name for the value: what is used several times is computed once.
Expr with_value(const Expr& value, const std::function<Expr(const Expr&)>& make) {
    const std::string name = unique_name("activation");
    return Let::make(name, value, make(Variable::make(value.type(), name)));
}

/// c0 + x (c1 + x (c2 + ...))
Expr polynomial(const Expr& x, std::initializer_list<float> coefficients) {
    Expr sum;
    for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c)
        sum = sum.defined() ? sum * x + like(x, *c) : like(x, *c);
    return sum;
}

/// e^x to the last bit or two, 0 and infinity where a float ends. Halide::exp() is for scalars.
Expr exponential(const Expr& x) { return halide_exp(x); }

/// e^x - 1, near 0 as precise as elsewhere; for x above 80 what it is for 80. e^x = 2^k e^r, |r| <=
/// ln 2 / 2, and the series of e^r - 1.
Expr exponential_minus_one(const Expr& x) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    const auto clamped = Halide::min(Halide::max(x, like(x, -25)), like(x, 80));  // e^-25 - 1 is -1
    return with_value(clamped, [](const Expr& v) {
        const Expr nearest =
            Halide::floor(v * like(v, std::numbers::log2e_v<float>) + like(v, 0.5f));
        return with_value(nearest, [&](const Expr& k) {
            const Expr rest = (v - k * like(v, ln2_high)) - k * like(v, ln2_low);
            return with_value(rest, [&](const Expr& r) {
                const Expr series = polynomial(r, {1, 1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120,
                                                   1.0f / 720, 1.0f / 5040, 1.0f / 40320});
                const Halide::Type integer = Halide::Int(32, v.type().lanes());
                const Expr exponent = (Halide::cast(integer, k) + make_const(integer, 127))
                                      << make_const(integer, 23);
                return with_value(Halide::reinterpret(v.type(), exponent), [&](const Expr& power) {
                    return power * (r * series) + (power - like(v, 1));
                });
            });
        });
    });
}

/// log(1 + t) for 0 <= t <= 1: 2 artanh(t / (t + 2)), whose series ends soon, as its argument is at
/// most 1/3.
Expr logarithm_of_one_plus(const Expr& t) {
    return with_value(t, [](const Expr& v) {
        return with_value(v / (v + like(v, 2)), [](const Expr& s) {
            const Expr series = polynomial(s * s, {2, 2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9,
                                                   2.0f / 11, 2.0f / 13, 2.0f / 15});
            return s * series;
        });
    });
}

Expr hyperbolic_tangent(const Expr& x) {
    return with_value(exponential_minus_one(x * like(x, 2)),
                      [](const Expr& t) { return t / (t + like(t, 2)); });
}

/// x / (1 + e^-y); e^87 is finite.
Expr times_sigmoid(const Expr& x, const Expr& y) {
    return x / (like(x, 1) + exponential(Halide::min(-y, like(x, 87))));
}

/// What a normal distribution has below x, to 1e-7 of the smaller side: (1 - erf(|x| / sqrt 2)) / 2
/// or the rest to 1, by Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
Expr normal_probability(const Expr& x) {
    const Expr distance = Halide::abs(x) * like(x, 1 / std::numbers::sqrt2_v<float>);
    return with_value(distance, [&](const Expr& z) {
        return with_value(like(x, 1) / (like(x, 1) + like(x, 0.3275911f) * z), [&](const Expr& t) {
            const Expr series = polynomial(
                t, {0.254829592f, -0.284496736f, 1.421413741f, -1.453152027f, 1.061405429f});
            const Expr tail = like(x, 0.5f) * t * series * exponential(-z * z);
            return with_value(tail, [&](const Expr& p) {
                return Halide::select(x < like(x, 0), p, like(x, 1) - p);
            });
        });
    });
}

/// A slope that makes what it multiplies neither larger in magnitude nor another sign: max(x, slope
/// x) is then x, or slope x where x < 0, infinities and zeros included.
bool flattens(float slope) { return slope > 0 && slope <= 1; }

Expr rectified(const Expr& value, const Expr& slope, bool flattens) {
    return with_value(value, [&](const Expr& x) {
        return flattens ? Halide::max(x, x * slope) : Halide::select(x < like(x, 0), x * slope, x);
    });
}

/// As apply_unary() of the reference operators, in forms that lose fewer digits or need fewer
/// functions where it says so.
Expr unary(GeneralFunction function, const Expr& x, float alpha, float beta) {
    const auto c = [&](float value) { return like(x, value); };
    const Expr zero = c(0), one = c(1);
    const auto between_0_and_1 = [&](const Expr& v) {
        return Halide::max(zero, Halide::min(one, v));
    };
    switch (function) {
        case GeneralFunction::absolute:
            return Halide::abs(x);
        case GeneralFunction::negative:
            return -x;
        case GeneralFunction::elu:
            return Halide::select(x < zero, c(alpha) * exponential_minus_one(x), x);
        case GeneralFunction::selu:
            return c(beta) * Halide::select(x > zero, x, c(alpha) * exponential_minus_one(x));
        case GeneralFunction::celu:
            return Halide::max(x, zero) +
                   Halide::min(zero, c(alpha) * exponential_minus_one(x / c(alpha)));
        case GeneralFunction::softplus:
            return Halide::max(x, zero) + logarithm_of_one_plus(exponential(-Halide::abs(x)));
        case GeneralFunction::softsign:
            return x / (one + Halide::abs(x));
        case GeneralFunction::hard_sigmoid:
            return between_0_and_1(c(alpha) * x + c(beta));
        case GeneralFunction::hard_swish:
            return x * between_0_and_1(x / c(6) + c(0.5f));
        case GeneralFunction::mish:
            // tanh(log(1 + e)) = n / (n + 2), where n = (1 + e)^2 - 1; from e^20 on it is 1.
            return with_value(exponential(Halide::min(x, c(20))), [&](const Expr& e) {
                return with_value(e * (e + c(2)),
                                  [&](const Expr& n) { return x * (n / (n + c(2))); });
            });
        case GeneralFunction::swish:
            return times_sigmoid(x, c(alpha) * x);
        case GeneralFunction::gelu:
            return x * normal_probability(x);
        case GeneralFunction::gelu_tanh: {
            // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
            const float slope =
                2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
            return times_sigmoid(x, c(slope) * x * (one + c(0.044715f) * x * x));
        }
        default:
            break;
    }
    throw std::logic_error(std::string(to_string(function)) + " is no activation");
}

}  // namespace

bool is_maximum(const Activation& activation) {
    if (activation.kind == ActivationKind::leaky_relu) return flattens(activation.alpha);
    return activation.kind == ActivationKind::prelu && activation.slope &&
           std::ranges::all_of(activation.slope->values, flattens);
}

Expr activate(const Activation& activation, const Expr& value, const Expr& slope) {
    const auto constant = [&](float c) { return like(value, c); };
    switch (activation.kind) {
        case ActivationKind::none:
            return value;
        case ActivationKind::relu:
            return Halide::max(value, constant(0));
        case ActivationKind::leaky_relu:
            return rectified(value, constant(activation.alpha), is_maximum(activation));
        case ActivationKind::prelu:
            return rectified(value, slope, is_maximum(activation));
        case ActivationKind::clip:
            return Halide::min(Halide::max(value, constant(activation.low)),
                               constant(activation.high));
        case ActivationKind::sigmoid:
            return constant(1) / (constant(1) + exponential(-value));
        case ActivationKind::tanh:
            return hyperbolic_tangent(value);
        case ActivationKind::unary:
            return with_value(value, [&](const Expr& x) {
                return unary(activation.function, x, activation.alpha, activation.beta);
            });
    }
    return value;
}

}  // namespace laminate::ir
