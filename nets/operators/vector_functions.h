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

/// e^x = power (rest + 1), where power is a power of 2.
struct PowerAndRest {
    float power, rest;
};

/// x lies between -88, where the power is 0, and 89, where it is infinite, or is NaN, which stays
/// in the rest. The polynomial is that of Cephes (expf).
LAMINATE_IN_VECTORS PowerAndRest power_and_rest(float x) {
    constexpr float ln2_high = 0.693359375f;  // few digits: its product with k is exact
    constexpr float ln2_low = -2.12194440e-4f;
    constexpr float to_whole = 0x1.8p23f;  // the sum's last bits are the nearest whole number
    const float shifted = x * std::numbers::log2e_v<float> + to_whole, k = shifted - to_whole;
    const float r = (x - k * ln2_high) - k * ln2_low;
    float series = 1.9875691500e-4f;
    series = series * r + 1.3981999507e-3f;
    series = series * r + 8.3334519073e-3f;
    series = series * r + 4.1665795894e-2f;
    series = series * r + 1.6666665459e-1f;
    series = series * r + 5.0000001201e-1f;
    const uint32_t exponent =
        std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(to_whole) + 127;
    return {std::bit_cast<float>(exponent << 23), series * r * r + r};
}

LAMINATE_IN_VECTORS float between(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

LAMINATE_IN_VECTORS float exponential_of(float x) {
    const auto [power, rest] = power_and_rest(between(x, -88, 89));
    return power * (rest + 1);
}

LAMINATE_IN_VECTORS float tangent_of(float x) {
    const auto [power, rest] = power_and_rest(between(2 * x, -25, 80));  // e^-25 - 1 is -1
    const float minus_one = power * rest + (power - 1);
    return minus_one / (minus_one + 2);
}

LAMINATE_IN_VECTORS float sigmoid_of(float x) { return 1 / (1 + exponential_of(-x)); }

/// x times what a normal distribution has below x: Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26.
LAMINATE_IN_VECTORS float gelu_of(float x) {
    const float z = std::abs(x) * (1 / std::numbers::sqrt2_v<float>);
    const float t = 1 / (1 + 0.3275911f * z);
    float series = 1.061405429f;
    series = series * t - 1.453152027f;
    series = series * t + 1.421413741f;
    series = series * t - 0.284496736f;
    series = series * t + 0.254829592f;
    const float tail = 0.5f * t * series * exponential_of(-z * z);
    return x * (x < 0 ? tail : 1 - tail);
}

/// x + x P(x^2) up to a limit; above it 1 - e^-(z + z Q(z)), z = |x|. Both polynomials are fitted for the
/// least relative error of the result, 1.6e-8 and 7.3e-10; from 3.925 on the result is 1.
LAMINATE_IN_VECTORS float error_function_of(float x) {
    constexpr float limit = 0.921875f, one_from = 3.925f;
    const float size = between(std::abs(x), 0, one_from), square = x * x;
    float near = -5.9908530e-4f;
    near = near * square + 4.9931803e-3f;
    near = near * square - 2.6766617e-2f;
    near = near * square + 1.1281816e-1f;
    near = near * square - 3.7612495e-1f;
    near = near * square + 1.2837915e-1f;
    near = near * x + x;
    float far = 1.1303631e-5f;
    far = far * size - 3.2352746e-4f;
    far = far * size + 3.6454001e-3f;
    far = far * size - 2.3768280e-2f;
    far = far * size + 1.0624409e-1f;
    far = far * size + 6.3514698e-1f;
    far = far * size + 1.2864956e-1f;
    far = far * size + size;
    const float above = 1 - exponential_of(-far);
    const float result = std::abs(x) <= limit ? near : std::copysign(above, x);
    return x != x ? x : result;
}

/// The polynomial is that of Cephes (logf).
LAMINATE_IN_VECTORS float logarithm_of(float x) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const bool is_small = x < std::numeric_limits<float>::min();
    const float scaled = is_small ? x * 0x1p23f : x;
    // The mantissa lies between sqrt(1/2) and sqrt(2).
    const uint32_t bits = std::bit_cast<uint32_t>(scaled) - 0x3f3504f3U;
    const float exponent =
        static_cast<float>(static_cast<int32_t>(bits) >> 23) - (is_small ? 23.0f : 0.0f);
    const float m = std::bit_cast<float>((bits & 0x007fffffU) + 0x3f3504f3U) - 1, square = m * m;
    float series = 7.0376836292e-2f;
    series = series * m - 1.1514610310e-1f;
    series = series * m + 1.1676998740e-1f;
    series = series * m - 1.2420140846e-1f;
    series = series * m + 1.4249322787e-1f;
    series = series * m - 1.6668057665e-1f;
    series = series * m + 2.0000714765e-1f;
    series = series * m - 2.4999993993e-1f;
    series = series * m + 3.3333331174e-1f;
    const float low = series * m * square - 2.12194440e-4f * exponent - 0.5f * square;
    float result = m + low + 0.693359375f * exponent;
    result = x == infinity ? infinity : result;
    result = x == 0 ? -infinity : result;
    return x < 0 || x != x ? std::numeric_limits<float>::quiet_NaN() : result;
}

}  // namespace laminate
