// Floating-point numbers of 16 bits as files hold them. Everything is computed in 32 bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace laminate {

/// IEEE 754 binary16: sign, 5 bits of exponent, 10 of mantissa. Exact.
[[nodiscard]] inline float from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float magnitude =
        exponent == 31  ? (mantissa == 0 ? std::numeric_limits<float>::infinity()
                                         : std::numeric_limits<float>::quiet_NaN())
        : exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                        : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

/// The upper half of a float.
[[nodiscard]] inline float from_bfloat16(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace laminate
