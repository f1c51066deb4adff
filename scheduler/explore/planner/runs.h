// Layers among which the planner looks for groups.
#pragma once

#include <cstddef>
#include <vector>

#include "base/indexed.h"
#include "nets/network/network.h"

namespace laminate {

/// Chains of layers with weights (schedulable_chains()), and in their place, where a product,
/// quotient, difference, rearrangement, normalisation, largest channel, Pad, Resize, part of a
/// tensor, Concat or sum with constants is connected with them, everything schedulable that is connected
/// with it through tensors of the network's inside, but global means. Layers are in the network's
/// order.
[[nodiscard]] std::vector<std::vector<LayerId>> planned_runs(const Network& network);

/// By tensor, the layers that read it, in the network's order. Asking the network for the readers of
/// each tensor takes quadratic time.
using Readers = IndexVector<std::vector<LayerId>, TensorId>;
[[nodiscard]] Readers all_readers(const Network& network);

/// By layer of a run, the place in the run of the last layer that reads its output; the run's
/// length where something outside reads it too. Consecutive layers can be a group if no reader of
/// any but the last of them comes behind.
[[nodiscard]] std::vector<size_t> last_readers(const Network& network, const Readers& readers,
                                               const std::vector<LayerId>& run);

}  // namespace laminate
