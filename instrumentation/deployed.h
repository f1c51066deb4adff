// The fourth witness: what the code that runs does, counted on that code's own statements. The
// counting pass (count_pass.h) adds counters to the vector code of a group's kernels; loop_sums.h
// runs them without compiling. It knows neither the schedule's boxes nor any closed form.
#pragma once

#include "nets/network/network.h"
#include "scheduler/counts/done.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Lanes of products added to sums count, by the layer whose name the sum bears; lanes loaded from
/// inputs that are copied, and of Y, where no predicate leaves them out. Every nest of the group has
/// a kernel. `scheduled` of the result is the model's: the code has no boxes to count.
[[nodiscard]] DoneCounts deployed_counts(const Network& network, const GroupSchedule& group,
                                         const DoneCounts& model);

}  // namespace laminate
