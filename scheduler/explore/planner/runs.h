// Layers among which the planner looks for groups.
#pragma once

#include <vector>

#include "nets/network/network.h"

namespace laminate {

/// Chains of layers with weights (schedulable_chains()), and in their place, where a product,
/// difference, rearrangement or part of a tensor lies beside them, everything
/// schedulable that is connected with it through tensors of the network's inside. Layers are in the
/// network's order.
[[nodiscard]] std::vector<std::vector<LayerId>> planned_runs(const Network& network);

/// Whether the layers can be a group: only the last one's output is read outside.
[[nodiscard]] bool is_closed(const Network& network, const std::vector<LayerId>& layers);

}  // namespace laminate
