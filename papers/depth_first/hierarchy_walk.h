// The walker of one layer on a hierarchy of memories: the witness of
// papers/depth_first/single_layer.h, as walker.h is that of the two-level model. It executes the
// loops of a mapping one iteration after the other, on sets of elements, and counts what crosses
// each boundary of an operand's hierarchy: a memory holds what the loops at or below it touch, and
// takes in (or, of outputs, gives up) a tile whenever a loop above it that indexes the operand goes
// on. No product of trips, no formula of windows.
//
// One element at a time: the array has one lane on each axis. Time: cycles of the layer times the
// largest tile, for layers of some 10^4 operations.
//
//   const HierarchyWalk walk(layer, mapping.order);
//   walk.boundary(Role::weight, mapping.allocation[r][0]).elements    // words between the lowest
//   memory of the weights and the next
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "papers/depth_first/single_layer.h"

namespace laminate {

class HierarchyWalk {
public:
    struct Boundary {
        int64_t elements = 0;     ///< of all tiles together
        bool comes_back = false;  ///< a tile was there before
    };

    /// Keeps references to both.
    HierarchyWalk(const depth_first::LayerShape& layer, const depth_first::LoopOrder& order);

    /// The boundary above the innermost `loops` loops of the order, an entry of
    /// depth_first::Allocation; none: that of the array, which holds nothing from one cycle to the
    /// next.
    [[nodiscard]] Boundary boundary(depth_first::Role role, std::optional<size_t> loops) const;

private:
    [[nodiscard]] bool next(std::vector<int64_t>& at) const;
    [[nodiscard]] int64_t tile_elements(depth_first::Role role, std::vector<int64_t> at,
                                        size_t loops) const;

    const depth_first::LayerShape& layer_;
    const depth_first::LoopOrder& order_;
    std::vector<int64_t> trips_, steps_;
};

}  // namespace laminate
