// Counting by the generated code itself: a pass over the final statement that adds counters,
// hoisted out of every loop in which the count of an iteration does not change. It looks at loads,
// stores and allocations only; it knows neither the schedule nor any formula of the model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "scheduler/counts/counts.h"

namespace laminate {

enum class CountMode {
    execute,     ///< the code computes and counts
    count_only,  ///< the same loops with copies and arithmetic dropped: counts without results;
                 ///< loop_sums.h runs it without compiling it
};

/// Per array of GroupCode::arrays four counters, then two for all buffers together. Only what
/// counts_of() reads is counted: loads and stores of external arrays, multiply-accumulates into
/// output buffers, sizes of buffers; the others stay 0.
struct CounterLayout {
    size_t arrays = 0;
    [[nodiscard]] size_t loads(size_t array) const { return 4 * array; }
    [[nodiscard]] size_t stores(size_t array) const { return 4 * array + 1; }
    [[nodiscard]] size_t macs(size_t array) const { return 4 * array + 2; }
    [[nodiscard]] size_t peak(size_t array) const {
        return 4 * array + 3;
    }  ///< largest allocation, elements
    [[nodiscard]] size_t live() const { return 4 * arrays; }
    [[nodiscard]] size_t live_peak() const { return 4 * arrays + 1; }
    [[nodiscard]] size_t size() const { return 4 * arrays + 2; }
};

/// Further names of arrays, by their index in GroupCode::arrays.
using ArrayNames = std::map<std::string, size_t>;

/// The body with counters; run it with `CounterLayout::size()` zeroed counters.
[[nodiscard]] Halide::Internal::Stmt with_counters(const GroupCode& code, CountMode mode,
                                                   const ArrayNames& names = {});

/// What the counters say in the vocabulary of the model.
[[nodiscard]] GroupCounts counts_of(const GroupCode& code, const GroupSchedule& group,
                                    const std::vector<int64_t>& counters);

}  // namespace laminate
