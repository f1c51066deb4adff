// The code that runs: a group's schedule, both halves of it, as Halide IR. What the code does is
// decided by the schedule alone; nothing here or below it chooses.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <vector>

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "nets/network/network.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// Every nest of the group has a kernel. Throws InfeasibleError where an image's tensor or the
/// scratch block has more than 2^31 - 1 elements. With events, GroupCode::arrays also names what
/// they tell of: behind the external inputs and Y, for each nest its weights (external_weights,
/// never told of if there are none) and its output as it is computed (output_buffer).
[[nodiscard]] GroupCode group_code(const Network& network, const GroupSchedule& group,
                                   Events events = Events::none);
/// The same for any size (scheduler/schedule/open_group.h); `sizes` is of the network. Throws
/// InputError naming a layer that has none.
[[nodiscard]] GroupCode open_group_code(const Network& network, const GroupSchedule& group,
                                        const TensorSizes& sizes);

/// Code of any size with the numbers of another size. `group`: the schedule there (group_at()).
[[nodiscard]] GroupCode code_at(const GroupCode& code, const GroupSchedule& group,
                                const std::vector<LayerProblem>& problems, const SizeValues& size);

/// The group as it is computed unless its schedule says (with_default_kernels).
[[nodiscard]] GroupCode default_code(const Network& network, const GroupSchedule& group,
                                     const VectorUnit& unit, const KernelOptions& options = {});

/// The vector unit of a processor that code is generated for.
[[nodiscard]] VectorUnit vector_unit(const Halide::Target& target);

}  // namespace laminate
