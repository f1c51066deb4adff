#include "papers/spatial_fusion/fusion_cost.h"

#include <algorithm>

#include "papers/spatial_fusion/bursts.h"

namespace laminate::spatial_fusion {

std::optional<Latency> StackCost::temporal_latency() const {
    if (!temporal) return {};
    return Latency{temporal->cycles, communication_cycles};
}

StackCost stack_cost(const Network& network, const PlannedStack& stack, const ArrayMachine& machine,
                     const Communication& communication) {
    const Stack problems = layer_problems(network, stack.layers);
    StackCost cost;
    cost.volume_bytes = stack.volume * machine.element_bytes();
    cost.footprint_bytes = stack.footprint * machine.element_bytes();
    cost.exact_footprint_bytes =
        stack.keeps_halos
            ? exact_stack_footprint(problems, stack.tile).total() * machine.element_bytes()
            : cost.footprint_bytes;
    int64_t crossing = stack.volume;
    if (communication.burst_bytes) {
        crossing = volume_in_bursts(
            problems, stack, communication.reading,
            std::max<int64_t>(1, *communication.burst_bytes / machine.element_bytes()));
        cost.burst_volume_bytes = crossing * machine.element_bytes();
    }
    cost.ctc = ctc_ratio(stack.operations, crossing, machine);
    cost.communication_cycles = communication_cycles(crossing, machine);
    cost.energy_pj = energy_pj(stack.operations, stack.volume, machine);
    if (stack.is_join) {
        cost.temporal = TemporalPartition{{}, machine.register_bytes, machine.register_sections, 0};
        return cost;
    }
    cost.temporal = temporal_partition(problems, stack.tile.y, machine);
    if (stack.is_fused()) {
        cost.serial = spatial_partition(problems, stack.tile.y, machine, Together::serial);
        cost.parallel = spatial_partition(problems, stack.tile.y, machine, Together::parallel);
    }
    return cost;
}

}  // namespace laminate::spatial_fusion
