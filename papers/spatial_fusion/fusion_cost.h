// What a planned stack costs on a machine: energy, latency in time and in space, communication
// ratio. Counts first (fusion_search.h), prices here.
#pragma once

#include <cstdint>
#include <optional>

#include "nets/network/network.h"
#include "papers/spatial_fusion/array_mapping.h"
#include "papers/spatial_fusion/fusion_search.h"

namespace laminate::spatial_fusion {

struct StackCost {
    int64_t volume_bytes = 0;
    int64_t footprint_bytes = 0;
    int64_t exact_footprint_bytes = 0;  ///< what is really kept; of a single layer by Eq. 2 and of
                                        ///< a join the same as footprint_bytes
    double ctc = 0;
    double communication_cycles = 0;
    /// Bytes that cross in whole bursts, where their length was given: then ctc and
    /// communication_cycles are of them (bursts.h).
    std::optional<int64_t> burst_volume_bytes;
    std::optional<double> energy_pj;  ///< none where the machine does not price MACs of this width
    /// Layers take turns on the whole array. None where a kernel is taller than the array is wide.
    /// A join takes no cycles.
    std::optional<TemporalPartition> temporal;
    /// Sub-arrays side by side, of stacks; a single layer has none.
    std::optional<SpatialPartition> serial;
    std::optional<SpatialPartition> parallel;

    [[nodiscard]] std::optional<Latency> temporal_latency() const;
};

/// How external memory is read and written.
struct Communication {
    Reading reading = Reading::exact;         ///< of the plan
    std::optional<int64_t> burst_bytes = {};  ///< none: every byte costs the same
};

[[nodiscard]] StackCost stack_cost(const Network& network, const PlannedStack& stack,
                                   const ArrayMachine& machine,
                                   const Communication& communication = {});

}  // namespace laminate::spatial_fusion
