#include "generators/ir/activations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "generators/lowering/group_lowering.h"

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

/// The same pair by pair, so that half as many sums wait for one another. `square` is x^2.
Expr polynomial_of_pairs(const Expr& x, const Expr& square,
                         std::initializer_list<float> coefficients) {
    auto c = std::end(coefficients);
    Expr sum;
    if (coefficients.size() % 2 == 1) sum = like(x, *--c);
    for (; c != std::begin(coefficients); c -= 2) {
        const Expr pair = x * like(x, *std::prev(c)) + like(x, *std::prev(c, 2));
        sum = sum.defined() ? sum * square + pair : pair;
    }
    return sum;
}

// Halide lets LLVM assume that there is neither NaN nor infinity, except in operations marked by
// strict_float, which in turn are not contracted to fused multiply-additions. Comparisons are
// strict, because LLVM would decide for itself what a comparison with NaN yields, and so are the
// last operations, lest LLVM join them with what follows. Polynomials are not: their arguments are
// bounded, and a NaN passes through sums and products of any kind.

/// The larger of x and a number; NaN stays NaN.
Expr at_least(const Expr& x, float bound) {
    return with_value(x, [&](const Expr& v) {
        const Expr least = like(x, bound);
        return Halide::strict_float(Halide::select(v < least, least, v));
    });
}

/// The smaller of x and a number; NaN stays NaN.
Expr at_most(const Expr& x, float bound) {
    return with_value(x, [&](const Expr& v) {
        const Expr most = like(x, bound);
        return Halide::strict_float(Halide::select(most < v, most, v));
    });
}

/// e^x = power (1 + r + square series), where power is a power of 2 and square is r^2.
struct Exponential {
    Expr power, r, square, series;
};

/// `make` of the parts of e^x. x lies between -88, where the power is 0, and 89, where it is
/// infinite, or is NaN, which stays in r. The polynomial is that of
/// nets/operators/vector_functions.h.
Expr with_exponential(const Expr& x, const std::function<Expr(const Exponential&)>& make) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    // The sum's last bits are the nearest whole number and the bias of exponents. Halide::floor() would
    // halve vectors of AVX-512.
    constexpr float to_biased = 0x1.8p23f + 127;
    return with_value(x, [&](const Expr& v) {
        const auto c = [&](float value) { return like(v, value); };
        const Expr sum =
            Halide::strict_float(v * c(std::numbers::log2e_v<float>) + c(to_biased));
        return with_value(sum, [&](const Expr& shifted) {
            const Halide::Type integer = Halide::Int(32, v.type().lanes());
            const Expr exponent = Halide::reinterpret(integer, shifted) << make_const(integer, 23);
            const Expr power = Halide::reinterpret(v.type(), exponent);
            return with_value(Halide::strict_float(shifted - c(to_biased)), [&](const Expr& k) {
                const Expr rest = (v - k * c(ln2_high)) - k * c(ln2_low);
                return with_value(rest, [&](const Expr& r) {
                    return with_value(r * r, [&](const Expr& square) {
                        const Expr series =
                            polynomial_of_pairs(r, square,
                                                {4.9999994e-1f, 1.6666521e-1f, 4.1668285e-2f,
                                                 8.368695e-3f, 1.3819219e-3f});
                        return make({power, r, square, series});
                    });
                });
            });
        });
    });
}

/// Makes x one that with_exponential() takes: below -88, e^x is 0 as it is there; above 89, infinite.
Expr within_exponents(const Expr& x) { return at_least(at_most(x, 89), -88); }

}  // namespace

Expr square_root(const Expr& x) {
    return Call::make(x.type(), "sqrt_f32", {x}, Call::PureExtern);
}

/// Infinity from 88.4 on.
Expr exponential(const Expr& x) {
    return with_exponential(within_exponents(x), [&](const Exponential& e) {
        return with_value(e.series * e.square + (e.r + like(x, 1)), [&](const Expr& rest) {
            return Halide::strict_float(e.power * rest);
        });
    });
}

namespace {

/// e^x - 1, near 0 as precise as elsewhere; for x above 80 what it is for 80.
Expr exponential_minus_one(const Expr& x) {
    return with_exponential(at_most(at_least(x, -25), 80),  // e^-25 - 1 is -1
                            [&](const Exponential& e) {
                                return e.power * (e.series * e.square + e.r) +
                                       (e.power - like(x, 1));
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

/// x P(x^2) / Q(x^2), fitted for the least relative error, 2.1e-8, on |x| <= 9.02, from where on the
/// tangent is 1. Rounding of P and Q would put some results above 1.
Expr hyperbolic_tangent(const Expr& argument) {
    return with_value(at_least(at_most(argument, 9.02f), -9.02f), [](const Expr& x) {
        return with_value(x * x, [&](const Expr& square) {
            const Expr p = polynomial(square, {1, 0.13379718f, 3.4940357e-3f, 2.0583499e-5f,
                                               1.3319094e-8f});
            const Expr q = polynomial(square, {1, 0.46713033f, 2.5871078e-2f, 3.2830946e-4f,
                                               7.762029e-7f});
            return with_value(p, [&](const Expr& over) {
                return with_value(q, [&](const Expr& under) {
                    return at_least(at_most(Halide::strict_float(x * over / under), 1), -1);
                });
            });
        });
    });
}

/// x / (1 + e^y)
Expr over_one_plus_exponential(const Expr& x, const Expr& y) {
    return with_exponential(within_exponents(y), [&](const Exponential& e) {
        const Expr one = like(x, 1);
        const Expr sum = e.power * (e.series * e.square + (e.r + one)) + one;
        return with_value(sum, [&](const Expr& s) { return Halide::strict_float(x / s); });
    });
}

/// What a normal distribution has below x, to 1.8e-7: 1/2 + x P(x^2) / Q(x^2), fitted so that it
/// does not fall short of 1 at 5.5, from where on 1 is what it rounds to.
Expr normal_probability(const Expr& argument) {
    return with_value(at_least(at_most(argument, 5.5f), -5.5f), [](const Expr& x) {
        return with_value(x * x, [&](const Expr& square) {
            return with_value(square * square, [&](const Expr& fourth) {
                const Expr p = polynomial_of_pairs(
                    square, fourth,
                    {0.39894223f, 3.5085734e-2f, 4.4535794e-3f, 1.6125893e-4f, 3.1232919e-6f,
                     -2.1804960e-8f, 1.1200846e-10f});
                const Expr q = polynomial_of_pairs(
                    square, fourth,
                    {1, 0.2546125f, 2.860135e-2f, 1.7795525e-3f, 5.9110997e-5f});
                return with_value(p, [&](const Expr& over) {
                    return with_value(q, [&](const Expr& under) {
                        const Expr half = Halide::strict_float(x * over / under);
                        return Halide::strict_float(at_least(at_most(half, 0.5f), -0.5f) +
                                                    like(x, 0.5f));
                    });
                });
            });
        });
    });
}

/// The bits of a number as a whole one: those of negative numbers are negative, and grow with the magnitude.
Expr bits_of(const Expr& x) {
    return Halide::reinterpret(Halide::Int(32, x.type().lanes()), x);
}
/// Those of -infinity, behind which are negative NaN.
constexpr int32_t bits_of_minus_infinity = -0x00800000;

// LLVM takes a sum that an activation is given for finite and decides comparisons with infinities, and of x
// with itself, by that. So these are told by their bits, or pass through strict operations.

/// Is 0 for finite numbers, and infinities and NaN are themselves.
Expr rest_beyond_finite(const Expr& x) {
    const float most = std::numeric_limits<float>::max();
    return Halide::strict_float(at_least(x, most) - like(x, most));
}

}  // namespace

/// The polynomial is that of Cephes (logf).
Expr logarithm(const Expr& argument) {
    constexpr float infinity = std::numeric_limits<float>::infinity(),
                    nan = std::numeric_limits<float>::quiet_NaN();
    constexpr int32_t root_of_half = 0x3f3504f3, mantissa = 0x007fffff;
    const Halide::Type integer = Halide::Int(32, argument.type().lanes());
    const auto whole = [&](int32_t value) { return make_const(integer, value); };
    return with_value(argument, [&](const Expr& x) {
        const auto c = [&](float value) { return like(x, value); };
        const Expr is_small = x < c(std::numeric_limits<float>::min());
        const Expr normal = Halide::select(is_small, x * c(0x1p23F), x);
        const Expr shifted = bits_of(normal) - whole(root_of_half);
        return with_value(shifted, [&](const Expr& bits) {
            const Expr exponent = Halide::cast(x.type(), bits >> whole(23)) -
                                  Halide::select(is_small, c(23), c(0));
            const Expr near_one = Halide::reinterpret(
                x.type(), (bits & whole(mantissa)) + whole(root_of_half));
            return with_value(exponent, [&](const Expr& e) {
                return with_value(near_one - c(1), [&](const Expr& m) {
                    const Expr series = polynomial(
                        m, {3.3333331174e-1F, -2.4999993993e-1F, 2.0000714765e-1F,
                            -1.6668057665e-1F, 1.4249322787e-1F, -1.2420140846e-1F,
                            1.1676998740e-1F, -1.1514610310e-1F, 7.0376836292e-2F});
                    const Expr square = m * m;
                    const Expr low =
                        series * m * square - c(2.12194440e-4F) * e - c(0.5F) * square;
                    const Expr result = Halide::strict_float(m + low + c(0.693359375F) * e);
                    return Halide::strict_float(
                        Halide::select(x < c(0), c(nan), x == c(0), c(-infinity), result) +
                        rest_beyond_finite(x));
                });
            });
        });
    });
}

namespace {

/// Computes what error_function_of() of the reference operators does.
Expr error_function(const Expr& argument) {
    constexpr float limit = 0.921875F, one_from = 3.925F;
    return with_value(argument, [&](const Expr& x) {
        const auto c = [&](float value) { return like(x, value); };
        const Expr near = x + x * polynomial(x * x, {1.2837915e-1F, -3.7612495e-1F, 1.1281816e-1F,
                                                     -2.6766617e-2F, 4.9931803e-3F,
                                                     -5.9908530e-4F});
        return with_value(at_most(Halide::abs(x), one_from), [&](const Expr& size) {
            const Expr far =
                size + size * polynomial(size, {1.2864956e-1F, 6.3514698e-1F, 1.0624409e-1F,
                                                -2.3768280e-2F, 3.6454001e-3F, -3.2352746e-4F,
                                                1.1303631e-5F});
            return with_value(c(1) - exponential(-far), [&](const Expr& above) {
                return Halide::strict_float(Halide::select(
                    size <= c(limit), near, Halide::select(x < c(0), -above, above)));
            });
        });
    });
}

/// How many right angles x is, less a multiple of four: from -16 to 16, NaN of infinities. Its
/// error is below 2^-47 for every finite x. The product of x and a piece of 2 / pi has 48 bits, so a
/// double holds it, and what is left of it without multiples of four, too.
Expr right_angles(const Expr& x) {
    constexpr int32_t pieces[] = {0xA2F983, 0x6E4E44, 0x1529FC, 0x2757D1,
                                  0xF534DD, 0xC0DB62, 0x95993C, 0x439041};  // 24 bits each
    const Halide::Type wide = Halide::Float(64, x.type().lanes());
    return with_value(Halide::cast(wide, x), [&](const Expr& v) {
        Expr sum = make_zero(wide);
        for (int n = static_cast<int>(std::size(pieces)); n-- > 0;) {
            const double piece = std::ldexp(pieces[n], -24 * (n + 1));
            const Expr product = Halide::strict_float(v * make_const(wide, piece));
            sum = Halide::strict_float(sum + with_value(product, [&](const Expr& p) {
                      const Expr fours = Halide::round(p * make_const(wide, 0.25));
                      return Halide::strict_float(p - make_const(wide, 4.0) * fours);
                  }));
        }
        return sum;
    });
}

/// `make` of the sine and cosine of the part of x that is beyond `quarter` right angles, which are
/// whole, from 0 to 3. The polynomials are those of Cephes (sinf, cosf), for |y| <= pi / 4.
Expr with_sine_and_cosine(
    const Expr& x, const std::function<Expr(const Expr& sine, const Expr& cosine,
                                            const Expr& quarter)>& make) {
    const auto number = [](const Expr& as, double value) { return make_const(as.type(), value); };
    return with_value(right_angles(x), [&](const Expr& all) {
        return with_value(Halide::round(all), [&](const Expr& whole) {
            const Expr rest =
                Halide::strict_float((all - whole) * number(all, std::numbers::pi / 2));
            const Expr turns = Halide::floor(whole * number(all, 0.25));
            const Expr quarter =
                Halide::cast(x.type(), Halide::strict_float(whole - turns * number(all, 4)));
            return with_value(Halide::cast(x.type(), rest), [&](const Expr& y) {
                return with_value(y * y, [&](const Expr& square) {
                    const Expr sine =
                        y + y * square * polynomial(square, {-1.6666654611e-1F, 8.3321608736e-3F,
                                                             -1.9515295891e-4F});
                    const Expr cosine =
                        polynomial(square, {1, -0.5F, 4.166664568298827e-2F,
                                            -1.388731625493765e-3F, 2.443315711809948e-5F});
                    return with_value(quarter, [&](const Expr& q) {
                        return with_value(sine, [&](const Expr& s) {
                            return with_value(cosine,
                                              [&](const Expr& c) { return make(s, c, q); });
                        });
                    });
                });
            });
        });
    });
}

Expr is_odd(const Expr& quarter) {
    return quarter == like(quarter, 1) || quarter == like(quarter, 3);
}

Expr sine_or_cosine(const Expr& x, bool is_sine) {
    return with_sine_and_cosine(x, [&](const Expr& sine, const Expr& cosine, const Expr& quarter) {
        const Expr value = is_sine ? Halide::select(is_odd(quarter), cosine, sine)
                                   : Halide::select(is_odd(quarter), sine, cosine);
        // The sine is negative in the second half of a turn, the cosine between its quarters.
        const Expr turns = is_sine ? quarter >= like(x, 2)
                                   : quarter == like(x, 1) || quarter == like(x, 2);
        return Halide::strict_float(Halide::select(turns, -value, value));
    });
}

Expr tangent(const Expr& x) {
    return with_sine_and_cosine(x, [](const Expr& sine, const Expr& cosine, const Expr& quarter) {
        return with_value(is_odd(quarter), [&](const Expr& turned) {
            return Halide::strict_float(Halide::select(turned, -cosine, sine) /
                                        Halide::select(turned, sine, cosine));
        });
    });
}

/// x^n, n from 1 on.
Expr raised(const Expr& base, int n) {
    return with_value(base, [&](const Expr& x) {
        if (n == 1) return x;
        const Expr square = raised(Halide::strict_float(x * x), n / 2);
        return n % 2 == 0 ? square : Halide::strict_float(square * x);
    });
}

/// x^exponent as std::pow() has it: a product or root if the exponent allows it, else e^(exponent log x).
Expr power(const Expr& argument, float exponent) {
    return with_value(argument, [&](const Expr& x) {
        if (exponent == std::floor(exponent)) {
            const Expr base = exponent < 0 ? Halide::strict_float(like(x, 1) / x) : x;
            return raised(base, static_cast<int>(std::abs(exponent)));
        }
        const auto whole = [&](int32_t bits) {
            return make_const(Halide::Int(32, x.type().lanes()), bits);
        };
        const Expr bits = bits_of(x);
        if (std::abs(exponent) == 0.5F) {  // infinite at -infinity, 0 at -0
            const Expr turns = bits < whole(0) && bits >= whole(bits_of_minus_infinity);
            const Expr root = Halide::strict_float(
                square_root(Halide::select(turns, -x, x)) + like(x, 0));
            return exponent > 0 ? root : Halide::strict_float(like(x, 1) / root);
        }
        const Expr product = logarithm(Halide::abs(x)) * like(x, exponent);
        return with_value(exponential(Halide::strict_float(product)), [&](const Expr& result) {
            const Expr is_negative = bits > whole(std::numeric_limits<int32_t>::min()) &&
                                     bits < whole(bits_of_minus_infinity);
            return Halide::strict_float(
                Halide::select(is_negative, like(x, std::numeric_limits<float>::quiet_NaN()), result));
        });
    });
}

/// x times a number. LLVM, which takes sums for finite, makes 0 of 0 times one; x - x is 0 or NaN
/// as IEEE 754 has the product, but for the sign of the zero.
Expr times(const Expr& x, float factor) {
    if (factor != 0) return x * like(x, factor);
    return with_value(x, [](const Expr& v) { return Halide::strict_float(v - v); });
}

/// factor x + summand
Expr line(const Expr& x, float factor, float summand) {
    const Expr sum = times(x, factor) + like(x, summand);
    return factor != 0 ? sum : Halide::strict_float(sum);
}

/// A slope that makes what it multiplies neither larger in magnitude nor another sign: max(x, slope
/// x) is then x, or slope x where x < 0, infinities and zeros included.
bool flattens(float slope) { return slope > 0 && slope <= 1; }

/// `product`: of a value and its slope.
Expr rectified(const Expr& value, const std::function<Expr(const Expr&)>& product, bool flattens) {
    return with_value(value, [&](const Expr& x) {
        return Halide::strict_float(flattens ? Halide::max(x, product(x))
                                             : Halide::select(x < like(x, 0), product(x), x));
    });
}

/// Functions that jump; undefined for others.
Expr step_function(GeneralFunction function, const Expr& x, float alpha, float beta) {
    const auto c = [&](float value) { return like(x, value); };
    switch (function) {
        case GeneralFunction::floor:
            return Halide::floor(x);
        case GeneralFunction::ceil:
            return Halide::ceil(x);
        case GeneralFunction::round_to_even:
            return Halide::round(x);
        case GeneralFunction::sign:
            return Halide::select(x > c(0), c(1), x < c(0), c(-1), x);
        case GeneralFunction::thresholded_relu:
            return Halide::select(x > c(alpha), x, c(0));
        case GeneralFunction::shrink:
            return Halide::select(x < c(-alpha), x + c(beta), x > c(alpha), x - c(beta), c(0));
        default:
            return {};
    }
}

/// As apply_unary() of the reference operators, in forms that lose fewer digits or need fewer
/// functions where it says so.
Expr unary(GeneralFunction function, const Expr& x, float alpha, float beta) {
    const auto c = [&](float value) { return like(x, value); };
    const Expr zero = c(0), one = c(1);
    const auto strict = [](const Expr& e) { return Halide::strict_float(e); };
    const auto product_with_x = [&](const Expr& factor) {
        return with_value(factor, [&](const Expr& f) { return strict(x * f); });
    };
    if (const Expr step = step_function(function, x, alpha, beta); step.defined())
        return strict(step);
    switch (function) {
        case GeneralFunction::absolute:
            return Halide::abs(x);
        case GeneralFunction::negative:
            return -x;
        case GeneralFunction::exponential:
            return exponential(x);
        case GeneralFunction::logarithm:
            return logarithm(x);
        case GeneralFunction::square_root:
            return strict(square_root(x));
        case GeneralFunction::reciprocal:
            return strict(one / x);
        case GeneralFunction::power:
            return power(x, alpha);
        case GeneralFunction::error_function:
            return error_function(x);
        case GeneralFunction::sine:
            return sine_or_cosine(x, true);
        case GeneralFunction::cosine:
            return sine_or_cosine(x, false);
        case GeneralFunction::tangent:
            return tangent(x);
        case GeneralFunction::elu:
            return with_value(c(alpha) * exponential_minus_one(x), [&](const Expr& below) {
                return strict(Halide::select(x < zero, below, x));
            });
        case GeneralFunction::selu:
            return with_value(times(exponential_minus_one(x), alpha), [&](const Expr& below) {
                return strict(times(Halide::select(zero < x, x, below), beta));
            });
        case GeneralFunction::celu:
            return with_value(c(alpha) * exponential_minus_one(x / c(alpha)), [&](const Expr& e) {
                return with_value(at_most(e, 0), [&](const Expr& below) {
                    return with_value(at_least(x, 0),
                                      [&](const Expr& above) { return strict(above + below); });
                });
            });
        case GeneralFunction::softplus:
            return with_value(
                logarithm_of_one_plus(exponential(-Halide::abs(x))), [&](const Expr& rest) {
                    return with_value(at_least(x, 0),
                                      [&](const Expr& above) { return strict(above + rest); });
                });
        case GeneralFunction::softsign:
            return strict(x / (one + Halide::abs(x)));
        case GeneralFunction::hard_sigmoid:
            return at_least(at_most(line(x, alpha, beta), 1), 0);
        case GeneralFunction::hard_swish:
            return product_with_x(at_least(at_most(x * c(1.0f / 6) + c(0.5f), 1), 0));
        case GeneralFunction::mish:
            // tanh(log(1 + e)) = n / (n + 2), where n = (1 + e)^2 - 1; from e^20 on it is 1.
            return with_value(exponential(at_most(x, 20)), [&](const Expr& e) {
                return with_value(e * (e + c(2)),
                                  [&](const Expr& n) { return product_with_x(n / (n + c(2))); });
            });
        case GeneralFunction::swish:
            return over_one_plus_exponential(x, times(x, -alpha));
        case GeneralFunction::gelu:
            return product_with_x(normal_probability(x));
        case GeneralFunction::gelu_tanh: {
            // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
            const float slope =
                2 * std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>;
            return over_one_plus_exponential(x, c(-slope) * x * (one + c(0.044715f) * x * x));
        }
        default:
            break;
    }
    throw std::logic_error(std::string(to_string(function)) + " is no activation");
}

/// The largest of `before` and of elements n, n + 1, ...; NaN where the condition holds. The
/// maximum of x86 is its second operand where either is NaN, so the last element's NaN stays by
/// itself, and one comparison finds those of two others.
Expr largest_behind(const Expr& before, const Expr& has_nan, const std::vector<Expr>& elements,
                    size_t n) {
    if (n == elements.size()) {
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        return Halide::select(has_nan, like(before, nan), before);
    }
    const auto is_nan = [](const Expr& e) { return Halide::strict_float(e != e); };
    const Expr with_first = n == 1 ? is_nan(before) : has_nan;
    return with_value(elements[n], [&](const Expr& x) {
        const Expr larger = Halide::strict_float(Halide::select(x < before, before, x));
        const bool is_last = n + 1 == elements.size();
        return with_value(larger, [&](const Expr& most) {
            return largest_behind(most, is_last ? with_first : with_first || is_nan(x), elements,
                                  n + 1);
        });
    });
}

}  // namespace

bool is_maximum(const Activation& activation) {
    if (activation.kind == ActivationKind::leaky_relu) return flattens(activation.alpha);
    return activation.kind == ActivationKind::prelu && activation.slope &&
           std::ranges::all_of(activation.slope->values, flattens);
}

bool takes_registers(const Activation& activation) {
    using enum GeneralFunction;
    if (activation.kind != ActivationKind::unary)
        return activation.kind == ActivationKind::sigmoid ||
               activation.kind == ActivationKind::tanh;
    constexpr std::array few_steps{absolute,     negative,   reciprocal,    square_root, softsign,
                                   hard_sigmoid, hard_swish, floor,         ceil,        round_to_even,
                                   sign,         shrink,     thresholded_relu};
    return std::ranges::find(few_steps, activation.function) == few_steps.end();
}

// A core sees few instructions ahead, those of a long function for two or three vectors. Written for several
// vectors at once, they come in an order in which none waits for the one before.
Stmt activate_waiting(const Activation& activation, const Accumulators& waiting, const Expr& first,
                      int64_t count, const std::function<Stmt(int64_t n, const Expr& value)>& use) {
    const int64_t lanes = waiting.lanes;
    std::vector<Stmt> all;
    int64_t number = activated_together;
    for (int64_t begin = 0; begin < count; begin += number) {
        while (number > count - begin) number /= 2;
        const Expr index = lanes_from(simplify((first + size(begin)) * size(lanes)), number * lanes);
        const Expr value = activate(activation, load(waiting.name, index), Expr());
        all.push_back(with_values("activated", {value}, [&](const std::vector<Expr>& values) {
            std::vector<Stmt> uses;
            for (int64_t n = 0; n < number; ++n)
                uses.push_back(
                    use(begin + n, Shuffle::make_slice(values.front(), static_cast<int>(n * lanes),
                                                       1, static_cast<int>(lanes))));
            return sequence(uses);
        }));
    }
    return sequence(all);
}

Stmt activate_waiting(const Activation& activation, const Accumulators& waiting, int64_t count) {
    const auto from = [&](const Expr& first, int64_t number) {
        return activate_waiting(activation, waiting, first, number, [&](int64_t n, const Expr& value) {
            return store(waiting.name, value, waiting.index(simplify(first + size(n))));
        });
    };
    const int64_t whole = count / activated_together;
    return sequence({GroupLowering::for_each("activated", {0, size(whole)},
                                             [&](const Expr& n) {
                                                 return from(n * size(activated_together),
                                                             activated_together);
                                             }),
                     from(size(whole * activated_together), count % activated_together)});
}

Expr activate(const Activation& activation, const Expr& value, const Expr& slope) {
    switch (activation.kind) {
        case ActivationKind::none:
            return value;
        case ActivationKind::relu:
            return at_least(value, 0);
        case ActivationKind::leaky_relu:
            return rectified(
                value, [&](const Expr& x) { return times(x, activation.alpha); },
                is_maximum(activation));
        case ActivationKind::prelu:
            return rectified(
                value, [&](const Expr& x) { return x * slope; }, is_maximum(activation));
        case ActivationKind::clip:
            return at_most(at_least(value, activation.low), activation.high);
        case ActivationKind::sigmoid:
            return over_one_plus_exponential(like(value, 1), -value);
        case ActivationKind::tanh:
            return hyperbolic_tangent(value);
        case ActivationKind::unary:
            return with_value(value, [&](const Expr& x) {
                return unary(activation.function, x, activation.alpha, activation.beta);
            });
    }
    return value;
}

Expr power(const Expr& base, const Expr& exponent) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                    infinity = std::numeric_limits<float>::infinity();
    const auto strict = [](const Expr& e) { return Halide::strict_float(e); };
    return with_value(base, [&](const Expr& x) {
        return with_value(exponent, [&](const Expr& y) {
            const auto c = [&](float value) { return like(x, value); };
            const auto whole = [&](int32_t bits) {
                return make_const(Halide::Int(32, x.type().lanes()), bits);
            };
            // 1 to any power and anything to the power of 0 are 1, NaN and infinities included.
            const Expr is_zero = strict(y == c(0) || Halide::abs(x) == c(1));
            const Expr scaled = strict(y * logarithm(Halide::abs(x)));
            const Expr product = strict(Halide::select(is_zero, c(0), scaled));
            return with_value(exponential(product), [&](const Expr& size) {
                const Expr half = strict(y * c(0.5F));
                const Expr is_whole = strict(Halide::floor(y) == y);
                const Expr is_odd = is_whole && strict(Halide::floor(half) < half);
                const Expr sign =
                    bits_of(x) &
                    Halide::select(is_odd, whole(std::numeric_limits<int32_t>::min()), whole(0));
                const Expr is_root = strict(x < c(0)) && strict(c(-infinity) < x) && !is_whole;
                return strict(Halide::select(is_root, c(nan),
                                             Halide::reinterpret(x.type(), bits_of(size) | sign)));
            });
        });
    });
}

Expr largest(const std::vector<Expr>& elements) {
    return with_value(elements.front(), [&](const Expr& x) {
        return largest_behind(x, Halide::Internal::const_false(x.type().lanes()), elements, 1);
    });
}

}  // namespace laminate::ir
