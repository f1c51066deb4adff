// What a planned stack costs on a machine: energy, latency with the array divided in time or in
// space, ratio of computation to communication. fusion_search.h counts; this prices.
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
    /// What is really kept. The same as footprint_bytes for joins and for single layers by Eq. 2.
    int64_t exact_footprint_bytes = 0;
    double ctc = 0;
    double communication_cycles = 0;
    /// Bytes moved in whole bursts (bursts.h), if the length of a burst was given; ctc and
    /// communication_cycles then count these.
    std::optional<int64_t> burst_volume_bytes;
    std::optional<double> energy_pj;  ///< none if the machine does not price MACs of this width
    /// Layers take turns on the whole array. None if a kernel is taller than the array is wide. A
    /// join takes no cycles.
    std::optional<TemporalPartition> temporal;
    /// Sub-arrays side by side; none for a single layer.
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
