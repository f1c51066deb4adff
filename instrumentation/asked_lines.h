// The lines that deployed code (generators/kernels/group_kernels.h) asks for before it needs them
// (ir::prefetch), and how many of them lie outside of its arrays. Such a line costs no fault, but where its
// page was never touched the processor looks for the page each time, in vain.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "generators/group_code.h"

namespace laminate {

/// Requests, repeated ones included.
struct AskedLines {
    int64_t all = 0;
    int64_t outside = 0;  ///< of every array of the call
};

/// Runs all strips of a group on arrays of its own. The result is by the name of the array in the code.
/// `input_elements`: of each external input, in the order of group_tensors().
[[nodiscard]] std::map<std::string, AskedLines> asked_lines(
    const GroupCode& code, const std::vector<int64_t>& input_elements, int64_t output_elements);

}  // namespace laminate
