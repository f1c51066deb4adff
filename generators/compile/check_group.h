// Generated code against the reference operators, before anybody uses it: the very function that
// will run, on random inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "generators/group_code.h"
#include "nets/network/network.h"
#include "runtime/compiled_network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct CheckOptions {
    uint64_t seed = 1;  ///< of the random inputs
    /// What the reference operators, which are slow, may do at most. A group with more work is run
    /// whole all the same, and compared in three bands of rows: at the top, around the middle, at
    /// the bottom; the rest must at least have been written with finite values.
    Macs reference_macs{100'000'000};
    /// Also NaN, infinities, 3e37 and 1e8 among ones, which minimal filtering spreads.
    bool specials = false;
};

/// Memory for the arrays of wrong_result: inputs, which it holds twice, and the output. Throws
/// nothing but overflow.
[[nodiscard]] Bytes check_bytes(const Network& network, const GroupSchedule& group);

/// Runs one image through the whole group, the second half of its strips first. Inputs and output
/// are not aligned; output and scratch are filled with NaN, and so is what lies around them, which
/// must stay as it is. Empty, or what is wrong in one line: an element that differs from the
/// reference by more than judged_rows() allows (1e-4 of the output's range; of groups that are
/// steep, the element's own bound), one never written, a write outside, and a group of which nothing can be
/// judged. With
/// specials an element must be NaN or infinite where the reference's is, and else within the bound
/// of docs/reliability.md, twice; whether a sum above 1e38 overflows is not judged.
/// `function` is `code` compiled; `group` is legal in `network`.
[[nodiscard]] std::string wrong_result(const Network& network, const GroupSchedule& group,
                                       const GroupCode& code, laminate_group_function function,
                                       const CheckOptions& options = {});

}  // namespace laminate
