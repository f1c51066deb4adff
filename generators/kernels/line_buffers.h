// Code of a group over line buffers: the loops, lifetimes and regions of its dataflow
// (generators/lowering/), with the kernel of each nest inside (nest_code.h). Weights are packed at
// compile time into the order in which a kernel reads them and used in place; nothing is allocated.
#pragma once

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// The array that rings in two parts lie in, by its name in the code: the scratch block.
inline constexpr const char* rows_of_steps = "rows.of.steps";

/// Every nest of the group has a kernel of KernelScope::nest. `open`: for code of any size.
[[nodiscard]] GroupCode line_buffer_code(const Network& network, const GroupSchedule& group,
                                         Events events, const TensorSizes* open = nullptr);

}  // namespace laminate
