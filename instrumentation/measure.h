// The third witness in one call: generates the instrumented code of a group, runs it, and reads its
// counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The counts of the generated code for one image. Its loops without arithmetic
/// (CountMode::count_only) are summed (loop_sums.h) instead of compiled, which takes milliseconds
/// for most groups of any size. Nothing is computed.
[[nodiscard]] GroupCounts measure(const Network& network, const GroupSchedule& group);

struct CheckedMeasurement {
    GroupCounts counts;
    /// Empty, or one line that says where the output differs from the reference operators'.
    std::string wrong_result;
};

enum class RunBy {
    as_quick,     ///< interpreted (interpreted_code.h) up to some ten million instructions
    compiled,     ///< always compiled
    interpreted,  ///< never compiled; std::logic_error where the interpreter lacks an operation
};

/// Lets the code compute too (CountMode::execute), in this process, on random inputs of `seed`,
/// into an output filled with NaN. The result must equal the reference operators' as far as
/// judged_rows() asks. Meant for groups of up to about 10^8 MACs.
[[nodiscard]] CheckedMeasurement measure_and_check(const Network& network,
                                                   const GroupSchedule& group, uint64_t seed,
                                                   RunBy by = RunBy::as_quick);

/// Empty, or the first element that differs from the reference operators' by more than judged_rows()
/// allows.
[[nodiscard]] std::string first_difference(const Network& network,
                                           const std::vector<LayerProblem>& problems,
                                           const std::vector<std::vector<float>>& inputs,
                                           const std::vector<float>& found);

}  // namespace laminate
