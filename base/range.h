// Half-open ranges of integer coordinates along one axis.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace laminate {

/// Coordinates begin, begin + 1, ..., end - 1; empty if end <= begin.
struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    [[nodiscard]] constexpr bool empty() const { return end <= begin; }
    [[nodiscard]] constexpr int64_t size() const { return empty() ? 0 : end - begin; }
    /// The part inside [0, extent).
    [[nodiscard]] constexpr Range clipped_to(int64_t extent) const {
        return {std::max<int64_t>(begin, 0), std::min(end, extent)};
    }
    /// Whether two non-empty ranges share a coordinate.
    [[nodiscard]] constexpr bool meets(Range other) const {
        return begin < other.end && other.begin < end;
    }
    /// Becomes the smallest range that covers both.
    constexpr void extend(Range other) {
        if (other.empty()) return;
        if (empty()) {
            *this = other;
            return;
        }
        begin = std::min(begin, other.begin);
        end = std::max(end, other.end);
    }
    friend auto operator<=>(const Range&, const Range&) = default;
};

}  // namespace laminate
