// The best mapping of a layer among all orders of all prime factors and all allocations of them to the memories. Exact: the result equals
// that of trying them all (tests/scheduler/models/depth_first/mapper_test.cpp), found by a shortest path instead.
#pragma once

#include <optional>

#include "scheduler/models/depth_first/single_layer.h"

namespace laminate::depth_first {

/// Least energy. None: nothing fits. Throws InputError where operands compete for more than six memories.
[[nodiscard]] std::optional<LayerMapping> best_mapping(const MappedLayer& layer);

}  // namespace laminate::depth_first
