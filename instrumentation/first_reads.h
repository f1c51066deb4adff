// Which elements of an array come up for the first time in a lifetime: a memory without a limit
// that keeps what was read until it is told to forget it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace laminate {

class FirstReads {
public:
    /// Rows and columns of the array, at least as many as any box has. Planes grow as needed.
    FirstReads(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}

    void begin_lifetime() {
        ++lifetime_;
        last_ = {};
    }
    /// Begin and end along z, y and x. Returns how many elements are new, and keeps them.
    int64_t read(const std::array<int64_t, 6>& box);
    /// One element.
    bool read(int64_t z, int64_t y, int64_t x) { return read({z, z + 1, y, y + 1, x, x + 1}) > 0; }
    [[nodiscard]] bool has(int64_t z, int64_t y, int64_t x) const {
        const auto at = static_cast<size_t>((z * rows_ + y) * columns_ + x);
        return at < seen_.size() && seen_[at] == lifetime_;
    }

private:
    int64_t rows_, columns_;
    uint32_t lifetime_ = 1;
    std::vector<uint32_t> seen_;     ///< the lifetime in which an element was read last
    std::array<int64_t, 6> last_{};  ///< all of it is present
};

}  // namespace laminate
