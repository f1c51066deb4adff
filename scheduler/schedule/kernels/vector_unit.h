// What the choice of a kernel has to know of the processor.
#pragma once

#include <algorithm>
#include <cstdint>

namespace laminate {

struct VectorUnit {
    int64_t lanes = 16;  ///< 32-bit floats in a vector register
    /// Vector registers that a kernel may use for sums. The rest, a quarter of all, hold loaded
    /// values.
    int64_t accumulators = 24;
    /// Whether the processor executes each instruction as two on half a register, as Zen 4 does
    /// with 512 bits.
    bool has_halves = false;
    /// Whether sums of 512 bits take the units of products, as on Intel's processors. Zen 5 has others.
    bool adds_in_multipliers = false;
    [[nodiscard]] int64_t registers() const { return accumulators * 4 / 3; }
    /// How many values a kernel multiplies with each of `vectors` loaded vectors at once. The sums,
    /// the vectors and one value must be in registers together, or the innermost loop puts some of
    /// them on the stack and runs at half its speed.
    [[nodiscard]] int64_t sums_per_vector(int64_t vectors) const {
        return std::min(accumulators, registers() - vectors - 1) / vectors;
    }
    /// Sums that must be under way for the multipliers never to wait for one, as products that
    /// start one after the other. Units of 512 bits are taken to start one a cycle, narrower ones
    /// two.
    [[nodiscard]] int64_t latency() const { return lanes >= 16 ? 4 : 8; }
};

}  // namespace laminate
