// Back-calculation along one axis (DeFiNES III, step 2): what each layer of a stack computes for
// one tile of the stack's output, and what of its inputs is already there. Rows and columns are
// independent of each other.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/depth_first/workload.h"

namespace laminate::depth_first {

/// Layers that run together. Inputs come first; an input is a map in the highest memory.
struct Stack {
    struct Member {
        WorkloadLayer layer;  ///< sources: members of the stack
        size_t workload_layer = 0;
        bool is_input = false;
    };
    std::vector<Member> members;  ///< in topological order; the last is the stack's output
    std::vector<std::vector<size_t>> readers;
};

enum class Axis { x, y };

/// What one tile means for each member of a stack along one axis.
struct AxisTile {
    std::vector<int64_t> computed;              ///< outputs along the axis; an input's are fetched
    std::vector<int64_t> phase;                 ///< OutputSpan::phase of them
    std::vector<std::vector<int64_t>> present;  ///< inputs under `computed`, by source
    std::vector<std::vector<int64_t>> overlap;  ///< of these, those left by the tile before
    std::vector<int64_t> cached;                ///< outputs that the next tile reads again
    auto operator<=>(const AxisTile&) const = default;
};

/// A tile in the middle of an endless map, as in DeFiNES' artifact. `use`: the overlap with the
/// tile before is in a cache.
[[nodiscard]] AxisTile endless_tile(const Stack& stack, Axis axis, int64_t tile, bool use);

/// All tiles of the stack's output one after the other, clipped to the maps: padding is neither
/// fetched nor computed. `kept` says for each member whether a tile finds what earlier tiles had of
/// its map.
[[nodiscard]] std::vector<AxisTile> clipped_tiles(const Stack& stack, Axis axis,
                                                  const std::vector<int64_t>& tiles,
                                                  const std::vector<bool>& kept);

}  // namespace laminate::depth_first
