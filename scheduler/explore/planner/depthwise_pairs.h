// Groups of a depthwise layer and the 1x1 layer behind it, whose map kernels hand on bands of rows, or of
// a 1x1 layer and the depthwise layer behind it, whose map kernels hand on blocks of channels.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct PairOptions {
    VectorUnit unit;
    int threads = 1;
    Bytes second_level_cache;
};
/// The group of the layers with its kernels, in the bands that the busiest thread computes soonest; none
/// if the layers are neither a depthwise pair nor a pointwise pair (kernel_legality.h) or it does not pay.
[[nodiscard]] std::optional<GroupSchedule> depthwise_pair_group(const Network& network,
                                                                const std::vector<LayerId>& layers,
                                                                const PairOptions& options);

}  // namespace laminate
