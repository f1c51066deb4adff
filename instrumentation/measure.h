// The third witness in one call: generate the instrumented code of a group, run it, and read its
// counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// What the generated code counts, for one image: its lowered loops without their arithmetic
/// (CountMode::count_only), not compiled but summed (loop_sums.h), in milliseconds for most groups
/// at any size; nothing is computed.
[[nodiscard]] GroupCounts measure(const Network& network, const GroupSchedule& group);

struct CheckedMeasurement {
    GroupCounts counts;
    std::string wrong_result;  ///< empty, or where the computed output differs from the reference
                               ///< operators', one line
};

/// The code is compiled into this process and computes as well (CountMode::execute), on random
/// inputs of `seed`, into an output filled with NaN; its result must equal the reference operators'
/// within 1e-4 of the output's range. The check for groups of up to some 10^8 MACs.
[[nodiscard]] CheckedMeasurement measure_and_check(const Network& network,
                                                   const GroupSchedule& group, uint64_t seed);

/// Empty, or the first element that differs by more than 1e-4 of the range of `expected`.
[[nodiscard]] std::string first_difference(const std::vector<float>& found,
                                           const std::vector<float>& expected);

}  // namespace laminate
