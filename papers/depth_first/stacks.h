// The cut of a workload into stacks (DeFiNES section III, axis 3).
//
// A unit is a run of layers that no cut separates, because more than one map is alive between
// them. A stack is a run of units.
#pragma once

#include <cstddef>
#include <vector>

#include "papers/depth_first/quirks.h"
#include "papers/depth_first/strategy.h"
#include "papers/depth_first/tiles.h"
#include "papers/depth_first/workload.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// Layers of each unit in the order of execution, network inputs included.
[[nodiscard]] std::vector<std::vector<size_t>> units_of(const Workload& workload);
/// Layers of each stack in the order of execution, without network inputs; by quirk some layers
/// are in two stacks.
[[nodiscard]] std::vector<std::vector<size_t>> stacks_of(const Workload& workload,
                                                         const Machine& machine,
                                                         const Quirks& quirks, Stacks rule);
/// These layers of the workload as one stack, with the maps that they read as its inputs.
[[nodiscard]] Stack stack_of(const Workload& workload, const std::vector<size_t>& layers);

/// The elements in ascending order, each once.
[[nodiscard]] std::vector<size_t> sorted_once(std::vector<size_t> elements);

}  // namespace laminate::depth_first
