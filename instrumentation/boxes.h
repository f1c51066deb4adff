// Parts of tensors as the walker sees them: boxes of three ranges, and bounding boxes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/range.h"

namespace laminate::walking {

/// A part of a tensor by channel, row and column; of weights by z, i and a third coordinate of
/// extent 1.
using Box = std::array<Range, 3>;
using Extents = std::array<int64_t, 3>;

[[nodiscard]] inline bool is_empty(const Box& box) {
    return box[0].empty() || box[1].empty() || box[2].empty();
}
[[nodiscard]] inline int64_t volume(const Box& box) {
    return box[0].size() * box[1].size() * box[2].size();
}

/// Whether all of `part` lies in `whole`.
[[nodiscard]] inline bool contains(const Box& whole, const Box& part) {
    for (size_t d = 0; d < 3; ++d) {
        if (part[d].begin < whole[d].begin || part[d].end > whole[d].end) return false;
    }
    return true;
}

/// The bounding box of everything that is added to it.
class BoundingBox {
public:
    void add(const Box& box) {
        if (is_empty(box)) return;
        for (size_t d = 0; d < 3; ++d) box_[d].extend(box[d]);
    }
    [[nodiscard]] bool empty() const { return is_empty(box_); }
    /// Has empty ranges if nothing was added.
    [[nodiscard]] const Box& box() const { return box_; }

private:
    Box box_;
};

}  // namespace laminate::walking
