// A box of elements in memory: some axes of a row-major tensor, each with its extent and step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace laminate {

inline constexpr size_t most_axes = 8;  // general_output_dims() refuses more
using Coordinates = std::array<int64_t, most_axes>;

struct Box {
    size_t rank = 0;
    Coordinates extents{};
    Coordinates steps{};

    void add(int64_t extent, int64_t step) {
        extents[rank] = extent;
        steps[rank++] = step;
    }
    [[nodiscard]] int64_t count() const {
        int64_t product = 1;
        for (size_t d = 0; d < rank; ++d) product *= extents[d];
        return product;
    }
    /// Offset of element `index` in row-major order.
    [[nodiscard]] int64_t offset(int64_t index) const {
        if (rank == 0) return 0;
        int64_t sum = 0;
        for (size_t d = rank; d-- > 1;) {
            sum += index % extents[d] * steps[d];
            index /= extents[d];
        }
        return sum + index * steps[0];
    }
    /// Calls body(offset) for every element in row-major order.
    template <class Body>
    void for_each(const Body& body) const {
        Coordinates at{};
        int64_t offset = 0;
        for (;;) {
            body(offset);
            size_t d = rank;
            for (; d > 0; --d) {
                offset += steps[d - 1];
                if (++at[d - 1] < extents[d - 1]) break;
                offset -= extents[d - 1] * steps[d - 1];
                at[d - 1] = 0;
            }
            if (d == 0) return;
        }
    }
};

}  // namespace laminate
