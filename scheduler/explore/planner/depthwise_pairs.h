// Groups of a depthwise layer and the 1x1 layer behind it, whose map kernels hand on bands of rows.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "nets/network/network.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct BandOptions {
    VectorUnit unit;
    int threads = 1;
    Bytes second_level_cache;
};
/// The group of the layers with its kernels, in the bands that the busiest thread computes soonest; none
/// if the layers are no depthwise pair (is_depthwise_pair, kernel_legality.h) or map kernels do not pay.
[[nodiscard]] std::optional<GroupSchedule> depthwise_pair_group(const Network& network,
                                                                const std::vector<LayerId>& layers,
                                                                const BandOptions& options);

}  // namespace laminate
