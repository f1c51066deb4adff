// Parts of tensors as the walker sees them: intervals of coordinates, boxes of three, bounding
// boxes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace laminate::walking {

/// Coordinates begin, begin + 1, ..., end - 1; empty when end <= begin.
struct Interval {
    int64_t begin = 0;
    int64_t end = 0;
    [[nodiscard]] bool empty() const { return end <= begin; }
    [[nodiscard]] int64_t size() const { return empty() ? 0 : end - begin; }
    [[nodiscard]] Interval clipped_to(int64_t extent) const {
        return {std::max<int64_t>(begin, 0), std::min(end, extent)};
    }
    [[nodiscard]] bool meets(const Interval& other) const {
        return begin < other.end && other.begin < end;
    }
    friend bool operator==(const Interval&, const Interval&) = default;
};

/// A part of a tensor, by channel, row, column; of weights, by z, i and a single third coordinate.
using Box = std::array<Interval, 3>;
using Extents = std::array<int64_t, 3>;

[[nodiscard]] inline bool is_empty(const Box& box) {
    return box[0].empty() || box[1].empty() || box[2].empty();
}
[[nodiscard]] inline int64_t volume(const Box& box) {
    return box[0].size() * box[1].size() * box[2].size();
}

/// Grows into the bounding box of everything that is added to it.
class BoundingBox {
public:
    void add(const Box& box) {
        if (is_empty(box)) return;
        for (size_t d = 0; d < 3; ++d) {
            box_[d].begin = any_ ? std::min(box_[d].begin, box[d].begin) : box[d].begin;
            box_[d].end = any_ ? std::max(box_[d].end, box[d].end) : box[d].end;
        }
        any_ = true;
    }
    [[nodiscard]] bool empty() const { return !any_; }
    /// Empty intervals when nothing was added.
    [[nodiscard]] const Box& box() const { return box_; }

private:
    Box box_;
    bool any_ = false;
};

}  // namespace laminate::walking
