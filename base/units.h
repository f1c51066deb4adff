// Exact counts with their unit in the type. A count is a checked, signed 64-bit integer: overflow
// throws instead of wrapping, adding elements to MACs does not compile, and only to_bytes() turns
// elements into bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>

namespace laminate {

[[nodiscard]] inline int64_t checked_add(int64_t a, int64_t b) {
    int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("count overflows 64 bits");
    return r;
}

[[nodiscard]] inline int64_t checked_multiply(int64_t a, int64_t b) {
    int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("count overflows 64 bits");
    return r;
}

/// a / b rounded up, for a >= 0 and b > 0.
[[nodiscard]] constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// The least multiple of `step` that is not below n; n >= 0.
[[nodiscard]] constexpr int64_t round_up(int64_t n, int64_t step) {
    return ceil_div(n, step) * step;
}

/// a / b rounded towards minus infinity, for b > 0.
[[nodiscard]] constexpr int64_t floor_div(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -ceil_div(-a, b);
}

template <class Unit>
class Count {
public:
    constexpr Count() = default;
    explicit constexpr Count(int64_t value) : value_(value) {}
    [[nodiscard]] constexpr int64_t value() const { return value_; }

    Count& operator+=(Count other) {
        value_ = checked_add(value_, other.value_);
        return *this;
    }
    [[nodiscard]] friend Count operator+(Count a, Count b) { return a += b; }
    [[nodiscard]] friend Count operator*(Count a, int64_t n) {
        return Count(checked_multiply(a.value_, n));
    }
    [[nodiscard]] friend Count operator*(int64_t n, Count a) { return a * n; }
    friend constexpr auto operator<=>(Count, Count) = default;

private:
    int64_t value_ = 0;
};

using Elements = Count<struct ElementUnit>;
using Bytes = Count<struct ByteUnit>;
using Macs = Count<struct MacUnit>;

/// Every tensor is 32-bit floating point for now.
inline constexpr int64_t bytes_per_element = 4;
[[nodiscard]] inline Bytes to_bytes(Elements n) {
    return Bytes(checked_multiply(n.value(), bytes_per_element));
}

}  // namespace laminate
