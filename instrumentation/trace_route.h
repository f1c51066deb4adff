// The second way to count generated code: Halide's trace hooks. Every load, store and allocation of
// a named array raises a halide_trace event from the running code; a handler adds them up. Slow
// (some 30 ns per event) and simple: it checks the counting pass (count_pass.h) on small networks.
#pragma once

#include <vector>

#include "generators/group_code.h"
#include "instrumentation/replacement_memory.h"
#include "scheduler/counts/counts.h"

namespace laminate {

/// Runs the instrumented code of a group (generators/instrumented.h) with events and returns what
/// they add up to. `inputs` (in the order of group_tensors()) and `output` are the group's external
/// tensors, planar CHW. One multiply-accumulate reads one weight from its internal buffer: that is
/// how MACs are counted here.
[[nodiscard]] GroupCounts traced_counts(const GroupCode& code, const GroupSchedule& group,
                                        const std::vector<std::vector<float>>& inputs,
                                        std::vector<float>& output);

/// The elements (planar CHW; weights as stored) of an external array of a single layer that the
/// same code brings in, or writes, within each lifetime of its buffer, in the order of execution:
/// what a memory that manages itself would be asked for (replacement_memory.h). `array`:
/// external_input, external_weights or external_output. Where store and compute level are the same
/// loop, each lifetime asks for all that its body needs.
[[nodiscard]] BlockStream traced_blocks(const GroupCode& code, ArrayRole array,
                                        const std::vector<std::vector<float>>& inputs,
                                        std::vector<float>& output);

}  // namespace laminate
