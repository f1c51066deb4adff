// Good schedules of a group that is too large to be searched to the end, by simulated annealing.
//
// A state is a structure and tiles for each layer (group_choice.h); tiles are any integers. A move
// changes tiles, or the structure of a layer to another one of its space. States cost what the
// model says, so every state is a schedule. A run looks for the fewest accesses within one memory:
// it starts from the best schedule known there, and memory beyond it is a penalty. The memory of
// each run is the one at which known costs lie farthest above what is bounded.
//
// The random numbers are the same in every run of the program. Nothing is proven by not finding.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/group_search.h"
#include "scheduler/explore/pareto.h"

namespace laminate::search {

struct Annealing {
    int64_t runs = 8;
    int64_t states_per_run = 500;
};

/// Points that no cost of `known` beats. `open` bounds everything that was not searched, by rising
/// memory. Tiles of `options` do not matter.
[[nodiscard]] std::vector<GroupSearch::Point> annealed(const std::vector<LayerProblem>& problems,
                                                       const GroupSearchOptions& options,
                                                       const std::vector<Cost>& known,
                                                       std::vector<Cost> open,
                                                       const Annealing& annealing = {});

}  // namespace laminate::search
