// The best mapping of a layer among all orders of all prime factors and all allocations of them to
// the memories. Exact: the result equals that of trying them all
// (tests/papers/depth_first/mapper_test.cpp), for each objective, found by shortest paths and
// bounds instead.
#pragma once

#include <cstddef>
#include <optional>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// Best by `goal`; of mappings with the same latency, the one of least energy. None: nothing fits.
/// Energy is always exact; latency and energy x latency are where LayerMapping::gap is 0, and above
/// it the mapping is the best that was found on `most_paths` beginnings of mappings. Throws
/// InputError where operands compete for more than six memories.
[[nodiscard]] std::optional<LayerMapping> best_mapping(const MappedLayer& layer,
                                                       const MappingGoal& goal = {},
                                                       size_t most_paths = 150'000);

}  // namespace laminate::depth_first
