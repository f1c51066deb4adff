// A point of a group's space: a structure and tiles for each layer, and the schedule that it stands
// for. Layers are indexed from 0, the first layer of the group.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::search {

/// Structures and tiles of all layers, by layer.
struct GroupChoice {
    std::vector<LayerStructure> structures;
    std::vector<PerDim<int64_t>> tiles;
};

/// The schedule of `choice`. `problems`: the layers of the group.
[[nodiscard]] GroupSchedule group_schedule(const std::vector<LayerProblem>& problems,
                                           const GroupChoice& choice);

}  // namespace laminate::search
