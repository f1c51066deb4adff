// The optimised kind of code: the same loops, lifetimes and regions as the instrumented kind
// (generators/lowering/), with vector kernels inside. The kernel half of a schedule: it never
// changes what the group moves to and from external memory.
//
// Layout of an intermediate tensor or of X: [row slot][channel][column], a ring of rows; columns
// carry the zero padding that the consumer's window reads, so kernels have no border cases along a
// row, and rows outside the picture are skipped. Weights are packed at compile time into the order
// in which a kernel reads them and used in place; nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "generators/group_code.h"

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
[[nodiscard]] VectorUnit vector_unit(const Halide::Target& target);

struct KernelOptions {
    bool winograd =
        true;  ///< minimal filtering where it pays (winograd.h); sums then differ by rounding
    /// Of a thread: groups whose transformed patches would need more are computed directly, pixels
    /// whose panel would (whole_map.h) are read in place.
    std::optional<Bytes> scratch{};
};

/// Throws InfeasibleError where an image's tensor or the scratch has more than 2^31 - 1 elements.
[[nodiscard]] GroupCode optimised_code(const Network& network, const GroupSchedule& group,
                                       const VectorUnit& unit, const KernelOptions& kernels = {});

}  // namespace laminate
