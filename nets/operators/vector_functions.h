// Functions of one value that loops compute in vectors: the compiler takes each comparison for a minimum,
// maximum or selection, as all of them have both sides at hand. row_functions.h says how exact they are.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#define LAMINATE_IN_VECTORS [[gnu::always_inline]] inline

namespace laminate {

/// c0 + c1 x + c2 x^2 + ..., pair by pair, so that half as many sums wait for one another as in Horner's
/// rule. `square` is x^2.
LAMINATE_IN_VECTORS float polynomial(float, float, float c0) { return c0; }
template <class... More>
LAMINATE_IN_VECTORS float polynomial(float x, float square, float c0, float c1, More... more) {
    const float pair = c1 * x + c0;
    if constexpr (sizeof...(more) == 0) return pair;
    else return polynomial(x, square, more...) * square + pair;
}

/// e^x = power (1 + r + square series), where power is a power of 2 and square is r^2.
struct Exponential {
    float power, r, square, series;
    /// e^x - 1 without the digits that the difference would lose; x below 88.
    [[nodiscard]] LAMINATE_IN_VECTORS float minus_one() const {
        return power * (series * square + r) + (power - 1);
    }
};

/// x lies between -88, where the power is 0, and 89, where it is infinite, or is NaN, which stays
/// in r. The polynomial is fitted for the least relative error of e^r, 3.2e-9.
LAMINATE_IN_VECTORS Exponential exponential_parts(float x) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    constexpr float to_whole = 0x1.8p23f;  // the sum's last bits are the nearest whole number
    const float shifted = x * std::numbers::log2e_v<float> + to_whole, k = shifted - to_whole;
    const float r = (x - k * ln2_high) - k * ln2_low, square = r * r;
    const float series = polynomial(r, square, 4.9999994e-1f, 1.6666521e-1f, 4.1668285e-2f,
                                    8.368695e-3f, 1.3819219e-3f);
    const uint32_t exponent =
        std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(to_whole) + 127;
    return {std::bit_cast<float>(exponent << 23), r, square, series};
}

LAMINATE_IN_VECTORS float between(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

LAMINATE_IN_VECTORS float exponential_of(float x) {
    const Exponential e = exponential_parts(between(x, -88, 89));
    return e.power * (e.series * e.square + (e.r + 1));
}

/// e^x - 1; infinite from 88 on.
LAMINATE_IN_VECTORS float exponential_minus_one_of(float x) {
    const float result = exponential_parts(between(x, -25, 88)).minus_one();  // e^-25 - 1 is -1
    return x > 88 ? std::numeric_limits<float>::infinity() : result;
}

LAMINATE_IN_VECTORS float tangent_of(float x) {
    const float minus_one = exponential_parts(between(2 * x, -25, 80)).minus_one();
    return minus_one / (minus_one + 2);
}

LAMINATE_IN_VECTORS float sigmoid_of(float x) { return 1 / (1 + exponential_of(-x)); }

/// x times what a normal distribution has below x: Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26.
LAMINATE_IN_VECTORS float gelu_of(float x) {
    const float z = std::abs(x) * (1 / std::numbers::sqrt2_v<float>);
    const float t = 1 / (1 + 0.3275911f * z);
    const float series = polynomial(t, t * t, 0.254829592f, -0.284496736f, 1.421413741f,
                                    -1.453152027f, 1.061405429f);
    const float tail = 0.5f * t * series * exponential_of(-z * z);
    return x * (x < 0 ? tail : 1 - tail);
}

/// x + x P(x^2) up to a limit; above it 1 - e^-(z + z Q(z)), z = |x|. Both polynomials are fitted for the
/// least relative error of the result, 1.6e-8 and 7.3e-10; from 3.925 on the result is 1.
LAMINATE_IN_VECTORS float error_function_of(float x) {
    constexpr float limit = 0.921875f, one_from = 3.925f;
    const float size = between(std::abs(x), 0, one_from), square = x * x;
    const float near = polynomial(square, square * square, 1.2837915e-1f, -3.7612495e-1f,
                                  1.1281816e-1f, -2.6766617e-2f, 4.9931803e-3f, -5.9908530e-4f) *
                           x + x;
    const float far = polynomial(size, size * size, 1.2864956e-1f, 6.3514698e-1f, 1.0624409e-1f,
                                 -2.3768280e-2f, 3.6454001e-3f, -3.2352746e-4f, 1.1303631e-5f) *
                          size + size;
    const float above = 1 - exponential_of(-far);
    const float result = std::abs(x) <= limit ? near : std::copysign(above, x);
    return x != x ? x : result;
}

/// The logarithm of a normal positive number minus `lowered` log 2. The polynomial is that of Cephes
/// (logf).
LAMINATE_IN_VECTORS float logarithm_of_normal(float x, float lowered) {
    // The mantissa lies between sqrt(1/2) and sqrt(2).
    const uint32_t bits = std::bit_cast<uint32_t>(x) - 0x3f3504f3U;
    const float exponent = static_cast<float>(static_cast<int32_t>(bits) >> 23) - lowered;
    const float m = std::bit_cast<float>((bits & 0x007fffffU) + 0x3f3504f3U) - 1, square = m * m;
    const float series =
        polynomial(m, square, 3.3333331174e-1f, -2.4999993993e-1f, 2.0000714765e-1f,
                   -1.6668057665e-1f, 1.4249322787e-1f, -1.2420140846e-1f, 1.1676998740e-1f,
                   -1.1514610310e-1f, 7.0376836292e-2f);
    const float low = series * m * square - 2.12194440e-4f * exponent - 0.5f * square;
    return m + low + 0.693359375f * exponent;
}

LAMINATE_IN_VECTORS float logarithm_of(float x) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const bool is_small = x < std::numeric_limits<float>::min();
    float result = logarithm_of_normal(is_small ? x * 0x1p23f : x, is_small ? 23.0f : 0.0f);
    result = x == infinity ? infinity : result;
    result = x == 0 ? -infinity : result;
    return x < 0 || x != x ? std::numeric_limits<float>::quiet_NaN() : result;
}

/// The logarithm of 1 + x, x from 0 to 1 or NaN. The quotient gives back what rounding takes from 1 + x.
LAMINATE_IN_VECTORS float logarithm_of_one_and(float x) {
    const float sum = 1 + x;
    return logarithm_of_normal(sum, 0) + (x - (sum - 1)) / sum;
}

LAMINATE_IN_VECTORS float softplus_of(float x) {
    const float above = x < 0 ? 0 : x;
    return above + logarithm_of_one_and(exponential_of(-std::abs(x)));
}

/// x tanh(log(1 + e^x)). With n = e^x (e^x + 2) that tangent is n / (n + 2), which is 1 above x = 20: the
/// largest x times the root of e^20 would be infinite. The root of e^x is still there where e^x is below
/// the least number.
LAMINATE_IN_VECTORS float mish_of(float x) {
    const float root = exponential_of(between(0.5f * x, -88, 10)), e = root * root, n = e * (e + 2);
    const float result = (x * root) * (root * (e + 2) / (n + 2));
    return x > 20 ? x : result;
}

/// x / 2 (1 + tanh(u)) is x / (1 + e^(-2u)).
LAMINATE_IN_VECTORS float gelu_by_tangent_of(float x) {
    constexpr float twice = 1.5957691216057308f;  // 2 sqrt(2 / pi)
    return x / (1 + exponential_of(-twice * (x + 0.044715f * x * x * x)));
}

}  // namespace laminate
