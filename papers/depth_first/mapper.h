// The best mapping of a layer among all orders of all its prime factors and all allocations of them
// to memories. The result equals that of exhaustive search for each objective
// (tests/papers/depth_first/mapper_test.cpp); shortest paths and bounds find it faster.
#pragma once

#include <cstddef>
#include <optional>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// The best mapping by `goal`; of mappings with the same latency, the one of least energy. nullopt
/// if nothing fits. Energy is always exact. Latency and energy x latency are exact if
/// LayerMapping::gap is 0; otherwise the mapping is the best that `most_paths` beginnings of
/// mappings led to. Throws InputError if operands compete for more than six memories.
[[nodiscard]] std::optional<LayerMapping> best_mapping(const MappedLayer& layer,
                                                       const MappingGoal& goal = {},
                                                       size_t most_paths = 150'000);

}  // namespace laminate::depth_first
