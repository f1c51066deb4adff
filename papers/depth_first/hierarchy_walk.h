// The walker of one layer on a hierarchy of memories, the witness of
// papers/depth_first/single_layer.h. It executes the loops of a mapping one iteration after the
// other on sets of elements, and counts what crosses each boundary of an operand's hierarchy. A
// memory holds what the loops at or below it touch. It takes in a tile (or gives up a tile of
// outputs) whenever a loop above it that indexes the operand advances. The walker knows no product
// of trips and no formula of windows.
//
// The array has one lane on each axis, so one element moves at a time. The walk takes time
// proportional to the cycles of the layer times its largest tile, so it suits layers of some 10^4
// operations.
//
//   const HierarchyWalk walk(layer, mapping.order);
//   // Words between the lowest memory of the weights and the next:
//   walk.boundary(Role::weight, mapping.allocation[r][0]).elements
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
        int64_t elements = 0;     ///< of all tiles
        bool comes_back = false;  ///< some tile crosses more than once
    };

    /// Keeps references to both arguments.
    HierarchyWalk(const depth_first::LayerShape& layer, const depth_first::LoopOrder& order);

    /// The boundary above the innermost `loops` loops of the order, an entry of
    /// depth_first::Allocation. nullopt: the boundary of the array, which holds nothing from one
    /// cycle to the next.
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
