#include "generators/activations.h"

#include <functional>
#include <initializer_list>
#include <numbers>
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

/// e^x - 1, near 0 as precise as elsewhere; for x above 80 what it is for 80. e^x = 2^k e^r, |r| <= ln 2 / 2, and the
/// series of e^r - 1.
Expr exponential_minus_one(const Expr& x) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    const auto clamped = Halide::min(Halide::max(x, like(x, -25)), like(x, 80));  // e^-25 - 1 is -1
    return with_value(clamped, [](const Expr& v) {
        const Expr nearest = Halide::floor(v * like(v, std::numbers::log2e_v<float>) + like(v, 0.5f));
        return with_value(nearest, [&](const Expr& k) {
            const Expr rest = (v - k * like(v, ln2_high)) - k * like(v, ln2_low);
            return with_value(rest, [&](const Expr& r) {
                const Expr series = polynomial(
                    r, {1, 1.0f / 2, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040, 1.0f / 40320});
                const Halide::Type integer = Halide::Int(32, v.type().lanes());
                const Expr exponent = (Halide::cast(integer, k) + make_const(integer, 127)) << make_const(integer, 23);
                return with_value(Halide::reinterpret(v.type(), exponent),
                                  [&](const Expr& power) { return power * (r * series) + (power - like(v, 1)); });
            });
        });
    });
}

Expr hyperbolic_tangent(const Expr& x) {
    return with_value(exponential_minus_one(x * like(x, 2)), [](const Expr& t) { return t / (t + like(t, 2)); });
}

}  // namespace

Expr activate(const Activation& activation, const Expr& value, const Expr& slope) {
    const auto constant = [&](float c) { return like(value, c); };
    switch (activation.kind) {
        case ActivationKind::none:
            return value;
        case ActivationKind::relu:
            return Halide::max(value, constant(0));
        case ActivationKind::leaky_relu:
            return Halide::select(value < constant(0), value * constant(activation.alpha), value);
        case ActivationKind::prelu:
            return Halide::select(value < constant(0), value * slope, value);
        case ActivationKind::clip:
            return Halide::min(Halide::max(value, constant(activation.low)), constant(activation.high));
        case ActivationKind::sigmoid:
            return constant(1) / (constant(1) + exponential(-value));
        case ActivationKind::tanh:
            return hyperbolic_tangent(value);
    }
    return value;
}

}  // namespace laminate::ir
