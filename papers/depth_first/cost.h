// The costs of depth-first execution: of a tile, a stack and a network.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "papers/depth_first/data_copy.h"
#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

/// One layer in one kind of tile.
struct LayerTileCost {
    size_t layer = 0;  ///< of the workload
    LayerShape shape;
    int64_t times = 0;
    LayerMapping mapping;
    CopyCost copies{};                               ///< the bundle before the layer
    std::vector<std::vector<size_t>> hierarchies{};  ///< by role, indices into Machine::memories
};

struct StackCost {
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    /// The memory that holds everything of a tile at once: live maps, caches and the weights of the
    /// stack. Of the largest kind of tile.
    int64_t on_chip_bits = 0;
};

struct DepthFirstCost {
    double energy_pj = 0;
    double mac_pj = 0;
    double copy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;  ///< of the largest stack
    int64_t macs = 0;
    /// Words that layers move, by memory of the machine and operand. Second inputs count as inputs.
    std::vector<PerOperand<WordCounts>> words;
    std::vector<WordCounts> copy_words;       ///< words that copies move, by memory
    std::vector<std::vector<size_t>> stacks;  ///< layers of each, in the order of execution
    std::vector<StackCost> stack_costs;       ///< parallel to `stacks`
    int64_t tile_kinds = 0;
    double mapping_gap = 0;  ///< the largest LayerMapping::gap; 0: every mapping is proven best
    /// One entry per stack, kind of tile and layer; empty unless asked for.
    std::vector<LayerTileCost> details;
};

/// No mapping of a layer fits the machine. what() names layer and machine.
class InfeasibleMapping : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace laminate::depth_first
