// Counts generated code in a second way, by Halide's trace hooks. Every load, store and allocation
// of a named array raises a halide_trace event in the running code, and a handler adds the events
// up. It is slow (about 30 ns per event) and simple, and checks the counting pass (count_pass.h) on
// small networks.
#pragma once

#include <vector>

#include "generators/group_code.h"
#include "instrumentation/replacement_memory.h"
#include "scheduler/counts/counts.h"

namespace laminate {

/// Runs the instrumented code of a group (generators/instrumented.h) with events, and returns their
/// sums. `inputs` (in the order of group_tensors()) and `output` are the group's external tensors,
/// planar CHW. MACs are counted as reads of weights from their buffer, one per multiply-accumulate.
[[nodiscard]] GroupCounts traced_counts(const GroupCode& code, const GroupSchedule& group,
                                        const std::vector<std::vector<float>>& inputs,
                                        std::vector<float>& output);

/// The elements (planar CHW; weights as stored) of an external array that the code of a single
/// layer reads or writes in each lifetime of its buffer, in order of execution. A memory that
/// manages itself (replacement_memory.h) would see these requests. `array` is external_input,
/// external_weights or external_output. If store and compute level are the same loop, each lifetime
/// requests everything that its body needs.
[[nodiscard]] BlockStream traced_blocks(const GroupCode& code, ArrayRole array,
                                        const std::vector<std::vector<float>>& inputs,
                                        std::vector<float>& output);

}  // namespace laminate
