// The answer of this model as one ordinary schedule of the network, which compiles, runs and is
// counted.
//
// Replacement that looks ahead has no place in a schedule, whose buffers are managed
// (managed_schedule.h). So a group moves what docs/counting.md counts, not what the model predicts:
// padding never moves, images pass one after the other, and a tensor stays whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "papers/layer_optimum/fused_groups.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// How a group got its schedule.
enum class WrittenAs {
    /// The order of blocks of its optimum, or the schedule that gave its price. For a layer without
    /// weights, the schedule that moves least.
    found,
    /// A schedule cannot express that order. The one that moves least among the order with whole
    /// kernels and the schedules searched for groups (fused_groups.h).
    other,
    /// No schedule of all of its layers moves less than these layers alone, each found or other.
    apart,
    /// One layer whose schedules all need more than the buffer: the one that needs least.
    too_large,
};
[[nodiscard]] const char* to_string(WrittenAs means);

struct WrittenGroup {
    std::vector<LayerId> layers;  ///< ascending
    WrittenAs means = WrittenAs::found;
    int64_t group = 0;   ///< number among the groups given
    GroupCounts counts;  ///< of one image, by the closed form
    int64_t banks = 0;   ///< banks of its own for every buffer, or as managed_schedule() says
};

struct OptimumSchedule {
    Schedule schedule;
    std::vector<WrittenGroup> groups;  ///< parallel to the schedule's groups
};

/// `groups` come in an order in which they can be executed. Layers that no group has run on the
/// reference operators.
[[nodiscard]] OptimumSchedule optimum_schedule(const Network& network,
                                               const std::vector<OptimumGroup>& groups,
                                               const BankedBuffer& buffer,
                                               const FusionOptions& options = {});

/// Every schedulable layer alone, in their order. FusionOptions::known has the optima of all layers
/// with weights.
[[nodiscard]] std::vector<OptimumGroup> layers_alone(const Network& network,
                                                     const BankedBuffer& buffer,
                                                     const FusionOptions& options);

}  // namespace laminate
