// What a core does when it executes a group, as amounts that its time is a sum of.
//
//   time of a group = sum over terms of amount * time of one, scheduler/machine/cpu_speed.h
//
// Terms of kernels are "rows.products", "rows.outputs", ... (KernelRow::work), summed over the
// boxes that the loops of the schedule ask for. "lines.copies" are vectors of external inputs that
// are brought into line buffers. "lines.shifted" are those of boxes of which nothing is kept and
// which a kernel reads at other columns at once: it waits until the stores have reached the cache.
// "lines.third" and "lines.main" are vectors of short pieces of rows of a map that lies in the
// third-level cache or in main memory; "lines.ahead" those from main memory that code asks for ahead
// (line_plan.h).
// "memory.second" and "memory.third" are external tensors and weights that come from or go to the
// second- or third-level cache. "memory.main" come from main memory because they are larger than the
// levels below: weights, which most kernels ask for while they multiply, and external tensors, of
// which a part may still be in a cache. "memory.maps" are external tensors too large for that, for
// which kernels wait. These and the copies are in vectors of 16 elements. "groups.begun" is 1: code and
// constants of a group are cold when it is its turn.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Amounts by name.
using WorkTerms = std::map<std::string, double>;

/// Of one core.
struct CoreCaches {
    Bytes second{1 << 20};
    Bytes third{32 << 20};
};

/// Every nest of the group has a kernel. `other_weights`: of the network's other groups; between
/// two uses of a weight all of them pass through the caches. `loops`: the group's, if known.
[[nodiscard]] WorkTerms group_work(const GroupSchedule& group,
                                   const std::vector<LayerProblem>& problems,
                                   const CoreCaches& caches, Bytes other_weights = {},
                                   GroupLoops* loops = nullptr);

}  // namespace laminate
