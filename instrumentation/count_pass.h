// Makes generated code count: a pass over the final statement that adds counters, hoisted out of
// every loop in which the count of an iteration does not change. It sees only loads, stores and
// allocations; it knows neither the schedule nor any formula of the model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "scheduler/counts/counts.h"

namespace laminate {

enum class CountMode {
    execute,  ///< the code computes and counts
    /// ^ the same loops without copies and arithmetic, for counts without results; loop_sums.h runs
    /// it without compiling
    count_only,
};

/// Four counters per array of GroupCode::arrays, then two for all buffers together, then for each
/// array the elements of the boxes that its events announce, by kind. The code counts
/// only what counts_of() reads: loads and stores of external arrays, multiply-accumulates into
/// output buffers, and sizes of buffers. Other counters stay 0.
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
    [[nodiscard]] size_t event(size_t array, EventKind kind) const {
        return 4 * arrays + 2 + event_kinds * array + static_cast<size_t>(kind);
    }
    [[nodiscard]] size_t size() const { return event(arrays, EventKind{}); }
};

/// Further names of arrays, by their index in GroupCode::arrays.
using ArrayNames = std::map<std::string, size_t>;

/// The body with counters; run it with `CounterLayout::size()` zeroed counters.
[[nodiscard]] Halide::Internal::Stmt with_counters(const GroupCode& code, CountMode mode,
                                                   const ArrayNames& names = {});

/// The counters as GroupCounts.
[[nodiscard]] GroupCounts counts_of(const GroupCode& code, const GroupSchedule& group,
                                    const std::vector<int64_t>& counters);

}  // namespace laminate
