// The cache lines that deployed code (generators/kernels/group_kernels.h) touches, in order: what a
// real memory hierarchy is asked for, scratch and constants included. Replayed in a memory that
// manages itself (replacement_memory.h) it says how many lines come in from beyond a cache of a
// given size: the third kind of witness, of the claim that a group's traffic beyond the cache is
// what its schedule moves.
#pragma once

#include <cstdint>
#include <vector>

#include "generators/group_code.h"
#include "instrumentation/replacement_memory.h"

namespace laminate {

inline constexpr int64_t cache_line_bytes = 64;

/// Runs groups one after the other and notes addresses.
class LineTrace {
public:
    /// Runs all strips of a group; `inputs` in the order of group_tensors().
    void run(const GroupCode& code, const std::vector<const float*>& inputs, float* output,
             const float* constants, void* scratch);

    /// Lines that come into a cache of `bytes`, least recently used out first, any line in any
    /// place; written ones too, because a store brings its line in.
    [[nodiscard]] int64_t misses(int64_t bytes) const;
    /// Different lines: what comes in when nothing ever goes.
    [[nodiscard]] int64_t distinct() const;

private:
    std::vector<int64_t> lines_;  ///< a line touched twice in a row is there once
};

}  // namespace laminate
