// A point of a group's space: a structure and tiles for each layer, and its schedule. Layers are
// indexed from 0, the first layer of the group.
#pragma once

#include <cstdint>
#include <vector>

#include "base/indexed.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::search {

/// Structures and tiles of all layers, by layer.
struct GroupChoice {
    IndexVector<LayerStructure, int> structures;
    IndexVector<PerDim<int64_t>, int> tiles;
};

/// The schedule of `choice`. `problems`: the layers of the group.
[[nodiscard]] GroupSchedule group_schedule(const std::vector<LayerProblem>& problems,
                                           const GroupChoice& choice);

}  // namespace laminate::search
