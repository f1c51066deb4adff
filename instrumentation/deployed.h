// The fourth witness: what the code that runs does, counted on that code's own statements. The
// counting pass (count_pass.h) adds counters to the vector code of a group's kernels, made with
// events (generators/lowering/events.h); loop_sums.h runs them without compiling. It knows neither
// the schedule's boxes nor any closed form.
#pragma once

#include <cstdint>
#include <string>

#include "nets/network/network.h"
#include "scheduler/counts/done.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Every nest of the group has a kernel.
/// Scheduled: elements of the boxes that events announce as fetched, computed, written and read
/// back. Multiplications of `scheduled` are the model's: no event has taps.
/// Done: lanes of products added to sums, by the layer whose name the sum bears; lanes loaded from
/// inputs that are copied, and of Y, where no predicate leaves them out; of arrays that kernels
/// read in place, what their events announce for the first time in a lifetime. That those events
/// are true, touched_counts() (touched.h) finds out on the loads themselves.
[[nodiscard]] DoneCounts deployed_counts(const Network& network, const GroupSchedule& group,
                                         const DoneCounts& model);

struct CheckedDone {
    DoneCounts counts;
    std::string wrong_result;  ///< the first element that differs from the reference, or empty
};
/// The same by compiling the code and running it on random inputs: counters count while it
/// computes.
[[nodiscard]] CheckedDone executed_counts(const Network& network, const GroupSchedule& group,
                                          const DoneCounts& model, uint64_t seed);

}  // namespace laminate
