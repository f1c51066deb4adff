// The front of peak memory and MACs over all ways to fuse a network by patches.
//
// A schedule cuts the layers, in the network's order, into blocks. Between blocks maps are held
// whole. A block is one segment (segment.h) or several; between two segments of a block one map is
// held in a ring of rows: the rows that the next strip reads, with those kept from the strip
// before, so none is computed twice. Whenever a strip lacks rows of the ring, strips of the segment
// before run; each segment makes all rows of its output.
//
// Bytes that a block holds at once: all maps made before it and read in it or later, its output,
// its rings, and the windows of the segment that holds the most, because windows end with their
// strip. Weights, and inputs and outputs of the network, do not count.
//
// Strips of a segment are as even as whole rows allow: for every number of strips, the fewest rows
// that make so many.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "papers/patch_fusion/segment.h"

namespace laminate::patch_fusion {

struct PatchBlock {
    std::vector<Segment> segments;  ///< the first one's first layer to the last one's last
    int64_t bytes = 0;
    int64_t macs = 0;
};

struct PatchPoint {
    int64_t bytes = 0;  ///< the most of any block
    int64_t macs = 0;
    std::vector<PatchBlock> blocks;
};

struct PatchFront {
    std::vector<PatchPoint> points;  ///< by rising bytes, falling MACs
    bool is_complete = true;         ///< false: stopped, and other schedules may be better
};

/// Maps that are whole while the block of these layers runs.
[[nodiscard]] int64_t whole_bytes(const PatchGraph& graph, int first, int last);
/// The ring of map `before.last` between two segments of a block, whose costs are given.
[[nodiscard]] int64_t ring_bytes(const PatchGraph& graph, const Segment& before,
                                 const SegmentCost& after);
/// Whether a block that begins with layer `first` may hold only some rows of the map of layer `at`.
[[nodiscard]] bool can_be_ring(const PatchGraph& graph, int first, int at);

/// All points, each with one of its schedules. `stop` ends the search early with what it has found.
[[nodiscard]] PatchFront patch_front(const PatchGraph& graph,
                                     const std::atomic<bool>* stop = nullptr);

}  // namespace laminate::patch_fusion
