// The cache lines that deployed code (generators/kernels/group_kernels.h) touches, in order, scratch
// and constants included. Replayed in a memory that manages itself (replacement_memory.h), they say
// how many lines a cache of a given size must fetch. This checks the claim that a group's traffic
// beyond the cache is what its schedule moves.
#pragma once

#include <cstdint>
#include <vector>

#include "generators/group_code.h"
#include "instrumentation/replacement_memory.h"

namespace laminate {

inline constexpr int64_t cache_line_bytes = 64;

/// Runs groups one after the other and records addresses.
class LineTrace {
public:
    /// Runs all strips of a group. `inputs` are in the order of group_tensors().
    void run(const GroupCode& code, const std::vector<const float*>& inputs, float* output,
             const float* constants, void* scratch);

    /// Lines that a fully associative cache of `bytes` fetches, if it evicts the least recently
    /// used first. Written lines count too, because a store fetches its line.
    [[nodiscard]] int64_t misses(int64_t bytes) const;
    /// Number of different lines, which a cache without evictions would fetch.
    [[nodiscard]] int64_t distinct() const;

private:
    std::vector<int64_t> lines_;  ///< a line touched twice in a row is recorded once
};

}  // namespace laminate
