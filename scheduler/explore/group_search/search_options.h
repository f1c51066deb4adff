// What a search of one group looks at and how long it may take, and how much work it did.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/indexed.h"
#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/group_search/layer_structures.h"
#include "scheduler/explore/pareto.h"

namespace laminate::search {

struct GroupSearchOptions {
    Tiles tiles = Tiles::divisors;
    StructureLimits structures;
    bool live = true;  ///< whether memory is the largest live sum, not the sum of all buffers
    bool macs_is_axis = true;
    bool recompute = true;  ///< false: only schedules with the least possible MACs
    std::optional<double> memory;
    /// The search is limited to structures that differ from one of these in at most one layer.
    /// Null: no limit.
    const std::vector<IndexVector<LayerStructure, int>>* near = nullptr;
    /// Every schedule of these layers costs at least as much as one of these, by rising memory.
    /// Memory in which known costs beat them is not searched. Null: no bound.
    const std::vector<Cost>* bound = nullptr;
    /// Combinations of tiles that are evaluated without bounding parts of them first.
    int64_t most_in_a_grid = 256;
    /// Bounds, and rows of schedules, to evaluate before completeness is given up.
    int64_t max_steps = INT64_MAX;
    const std::atomic<bool>* stop = nullptr;
};

struct SearchWork {
    int64_t steps = 0;      ///< bounds, and rows of schedules, evaluated
    int64_t evaluated = 0;  ///< schedules evaluated
    /// Schedules that the bounds stood for: all tiles of all structures looked at or dropped.
    double covered = 0;
};

}  // namespace laminate::search
