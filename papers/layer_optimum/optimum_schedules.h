// What this model finds, as one ordinary schedule of the network, so that it can be compiled, run
// and counted.
//
// Replacement that looks ahead has no place in a schedule; its buffers are managed
// (managed_schedule.h). So a group moves what docs/counting.md counts, not what the model predicts:
// padding never moves, images pass one after the other, and a tensor stays as a whole or not at
// all.
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
    found,  ///< the order of blocks of its optimum, the schedule that it was priced as, or of a
            ///< layer without weights what moves least
    other,  ///< a schedule cannot say that order: what moves least, of the order with whole kernels
            ///< and of those searched for groups (fused_groups.h)
    apart,  ///< nor does another one of all of its layers move less than these layers alone, each
            ///< of them found or other
    too_large,  ///< one layer whose schedules all need more than the buffer: the one that needs
                ///< least
};
[[nodiscard]] const char* to_string(WrittenAs means);

struct WrittenGroup {
    std::vector<LayerId> layers;  ///< ascending
    WrittenAs means = WrittenAs::found;
    int64_t group = 0;   ///< of those given
    GroupCounts counts;  ///< of one image, by the closed form
    int64_t banks = 0;   ///< every buffer in banks of its own, or as managed_schedule() says
};

struct OptimumSchedule {
    Schedule schedule;
    std::vector<WrittenGroup> groups;  ///< one by one those of the schedule
};

/// `groups` in an order in which they can be executed. Layers that no group has run on the
/// reference operators.
[[nodiscard]] OptimumSchedule optimum_schedule(const Network& network,
                                               const std::vector<OptimumGroup>& groups,
                                               const BankedBuffer& buffer,
                                               const FusionOptions& options = {});

/// Every schedulable layer alone, in their order; `optima` by to_text() of their problems
/// (FusionOptions::known), for all layers with weights.
[[nodiscard]] std::vector<OptimumGroup> layers_alone(const Network& network,
                                                     const BankedBuffer& buffer,
                                                     const FusionOptions& options);

}  // namespace laminate
