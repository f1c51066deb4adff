// A block order as an ordinary Schedule: the same blocks in the same order, with buffers that the
// schedule manages instead of Belady's replacement. Its accesses are those of docs/counting.md
// (padding never moves, one image), by closed form, walker and generated code alike.
#pragma once

#include <optional>
#include <vector>

#include "nets/network/network.h"
#include "papers/layer_optimum/bank_division.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct ManagedSchedule {
    GroupSchedule group;
    GroupCounts counts;  ///< by the closed form (scheduler/counts/two_level)
    /// Every tensor has banks of its own. The layers after the first share those of its output,
    /// which they replace.
    int64_t banks = 0;
};

/// The order of a layer with weights, or of such a layer and what follows it window by window
/// (finished blocks, fused_groups.h). `layers` begins with that layer; its blocks are whole windows
/// of the others.
///
/// Every tensor gets the store and compute levels, between the loops over blocks or within a block,
/// that together move the fewest elements, then take the fewest banks. The banks are divided anew.
/// The images of a batch pass one after the other, so a loop over them is left out; the groups of a
/// grouped layer turn outermost.
///
/// Nothing where no such levels fit, and for what schedules cannot express: blocks of kernel
/// positions; blocks of columns or rows of a transposed convolution (a schedule's are of its
/// output, an order's of its input); for a grouped layer, blocks of input channels, and blocks of
/// output channels that are not outermost or do not divide a group's. Throws InputError where the
/// first layer is no convolution_problem().
[[nodiscard]] std::optional<ManagedSchedule> managed_schedule(const Network& network,
                                                              const std::vector<LayerId>& layers,
                                                              const BlockOrder& order,
                                                              const BankedBuffer& buffer);

/// Banks of a group's buffers when each has banks of its own.
[[nodiscard]] int64_t banks_of(const GroupCounts& counts, const BankedBuffer& buffer);

}  // namespace laminate
