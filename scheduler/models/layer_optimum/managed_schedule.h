// A block order as an ordinary Schedule: the same blocks in the same order, with buffers that the schedule manages instead of Belady's
// replacement. What it moves is counted by docs/counting.md (padding never moves, one image), by closed form, walker and generated code alike.
#pragma once

#include <optional>

#include "nets/network.h"
#include "scheduler/counts.h"
#include "scheduler/models/layer_optimum/bank_division.h"
#include "scheduler/schedule.h"

namespace laminate {

struct ManagedSchedule {
    GroupSchedule group;
    GroupCounts counts;  ///< by the closed form (models/two_level)
};

/// For each tensor the store and compute levels between the loops over blocks that move the fewest elements within its banks. Nothing where no such levels
/// fit, and where the schedule language has no such loops: blocks of kernel positions, of the batch (a schedule is of one image), and of grouped
/// layers. Throws InputError for a layer that is no convolution_problem().
[[nodiscard]] std::optional<ManagedSchedule> managed_schedule(const Network& network, LayerId layer, const BlockOrder& order,
                                                              const PerOperand& banks, const BankedBuffer& buffer);

}  // namespace laminate
