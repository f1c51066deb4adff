// Back-calculation along one axis: what each layer of a stack computes for one tile of the stack's
// output, and what of its inputs is already there (DeFiNES III, step 2). Rows and columns do not
// depend on each other.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/depth_first/workload.h"

namespace laminate::depth_first {

/// Layers that are executed together, inputs first. An input is a map that comes from the highest
/// memory.
struct Stack {
    struct Member {
        WorkloadLayer layer;  ///< sources: members of the stack
        size_t workload_layer = 0;
        bool is_input = false;
    };
    std::vector<Member> members;  ///< topological order; the last one is the stack's output
    std::vector<std::vector<size_t>> readers;
};

enum class Axis { x, y };

/// Per member of a stack.
struct AxisTile {
    std::vector<int64_t> computed;  ///< outputs along the axis; of an input: fetched
    std::vector<int64_t> phase;     ///< OutputSpan::phase of them
    std::vector<std::vector<int64_t>>
        present;  ///< inputs along the axis under `computed`, per source
    std::vector<std::vector<int64_t>> overlap;  ///< of these, left by the tile before
    std::vector<int64_t> cached;                ///< outputs that the next tile reads again
    auto operator<=>(const AxisTile&) const = default;
};

/// DeFiNES' artifact: a tile in the middle of an endless map. `use`: overlap with the tile before
/// is in a cache.
[[nodiscard]] AxisTile endless_tile(const Stack& stack, Axis axis, int64_t tile, bool use);

/// All tiles of the stack's output one after the other, clipped to the maps: nothing is fetched or
/// computed of padding. `kept`, per member: each tile finds what tiles before it had of this map.
[[nodiscard]] std::vector<AxisTile> clipped_tiles(const Stack& stack, Axis axis,
                                                  const std::vector<int64_t>& tiles,
                                                  const std::vector<bool>& kept);

}  // namespace laminate::depth_first
