// The vector unit of a processor, as kernels and their layouts see it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace laminate {

/// What the code generator has to know of the processor.
struct VectorUnit {
    int64_t lanes = 16;         ///< 32-bit floats in a vector register
    int64_t accumulators = 24;  ///< vector registers a kernel may use for sums; the rest, a quarter
                                ///< of all, hold loaded values
    [[nodiscard]] int64_t registers() const { return accumulators * 4 / 3; }
    /// Of how many values at once a kernel sums the products with each of `vectors` loaded vectors:
    /// the sums, the vectors and the value must be in registers together, or the innermost loop
    /// puts some on the stack and runs at half its speed.
    [[nodiscard]] int64_t sums_per_vector(int64_t vectors) const {
        return std::min(accumulators, registers() - vectors - 1) / vectors;
    }
    /// Sums that must be on their way for the multipliers never to wait for one, in products that
    /// start one after the other: units of 512 bits are taken to start one a cycle, narrower ones
    /// two.
    [[nodiscard]] int64_t latency() const { return lanes >= 16 ? 4 : 8; }
};

}  // namespace laminate
