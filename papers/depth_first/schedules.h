// Depth-first execution as an ordinary Schedule. Each stack is a group whose last layer runs over
// the stack's tiles; the other layers hang in its tile loops. What tiles keep of a map for each
// other is the map's store level (docs/counting.md section 4): the body of a tile if they keep
// nothing, the body of the outer tile loop if they keep what neighbours along the inner loop share,
// the root if they keep all.
#pragma once

#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/depth_first.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::depth_first {

/// A stack of a workload and how it is executed. `strategy.stacks` has no meaning here.
struct ScheduledStack {
    std::vector<size_t> layers;
    Strategy strategy;
};

/// `stacks` are in the order of execution. Activations and other layers that the model leaves out
/// join the group of the layer that they follow, if groups may hold them. Throws InputError if a
/// stack is no group: it has a layer without loop nest (is_schedulable), or one that is read
/// outside.
[[nodiscard]] Schedule schedule_of(const Network& network, const Workload& workload,
                                   const std::vector<ScheduledStack>& stacks);

}  // namespace laminate::depth_first
