#include "instrumentation/first_reads.h"

#include <algorithm>

namespace laminate {

int64_t FirstReads::read(const std::array<int64_t, 6>& box) {
    if (box == last_) return 0;
    last_ = box;
    const auto [z_begin, z_end, y_begin, y_end, x_begin, x_end] = box;
    if (const auto size = static_cast<size_t>(z_end * rows_ * columns_); seen_.size() < size)
        seen_.resize(size);
    int64_t fresh = 0;
    for (int64_t z = z_begin; z < z_end; ++z) {
        for (int64_t y = y_begin; y < y_end; ++y) {
            const auto row = seen_.begin() + (z * rows_ + y) * columns_;
            for (auto at = row + x_begin; at != row + x_end; ++at) {
                if (*at != lifetime_) ++fresh;
                *at = lifetime_;
            }
        }
    }
    return fresh;
}

}  // namespace laminate
