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
#include "generators/kernels/vector_unit.h"

namespace laminate {

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
