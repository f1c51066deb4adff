// Depth-first execution as an ordinary Schedule: each stack a group, whose last layer runs over the
// stack's tiles and whose other layers hang in its tile loops. What tiles keep of a map for each
// other is its store level (docs/counting.md section 4): in the body of a tile nothing, in the body
// of the outer tile loop what neighbours along the inner one share, outside of both all.
#pragma once

#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/depth_first.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::depth_first {

/// Layers of a workload in one stack, and how they are executed; `strategy.stacks` is not looked
/// at.
struct ScheduledStack {
    std::vector<size_t> layers;
    Strategy strategy;
};

/// `stacks` in the order of execution. Activations and other layers that the model leaves out are
/// in the group of the layer that they follow where groups may hold them. Throws InputError where a
/// stack is no group: a layer without loop nest (is_schedulable), or one that is read outside.
[[nodiscard]] Schedule schedule_of(const Network& network, const Workload& workload,
                                   const std::vector<ScheduledStack>& stacks);

}  // namespace laminate::depth_first
