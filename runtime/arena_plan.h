// Places the tensors between steps in the one array that a session allocates.
#pragma once

#include <cstdint>
#include <vector>

namespace laminate {

/// Everything in an arena starts on a cache line, which vector loads need too.
inline constexpr int64_t arena_alignment_bytes = 64;

[[nodiscard]] constexpr int64_t aligned(int64_t bytes) {
    return (bytes + arena_alignment_bytes - 1) / arena_alignment_bytes * arena_alignment_bytes;
}

/// A block of memory and the steps, first and last included, during which its contents matter.
struct Lifetime {
    int64_t bytes = 0;
    int first_step = 0;
    int last_step = 0;
};

struct ArenaPlan {
    std::vector<int64_t> offsets;  ///< bytes, a multiple of the alignment, one per lifetime
    int64_t bytes = 0;             ///< end of the last block
};

/// First fit, largest block first (ties in the order given): each block takes the lowest offset at
/// which it overlaps no block that lives at one of its steps.
[[nodiscard]] ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes);

/// The largest sum of blocks that live at one step. No plan can be smaller.
[[nodiscard]] int64_t arena_lower_bound(const std::vector<Lifetime>& lifetimes);

}  // namespace laminate
