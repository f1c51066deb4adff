// The space of DeFiNES over tile sizes and overlap modes, and its best points: as a whole, and with
// a choice of its own for each stack.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "papers/depth_first/depth_first.h"

namespace laminate::depth_first {

struct SweepOptions {
    // Sizes of tiles; one larger than a stack's output means all of it. The defaults are those of
    // the artifact's case study 1.
    std::vector<int64_t> columns{1, 4, 16, 60, 240, 960};
    std::vector<int64_t> rows{1, 4, 18, 72, 270, 540};
    std::vector<Overlap> overlaps{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached};
    Stacks stacks = Stacks::weights_fit;
    Objective objective = Objective::energy;
    /// Each point once with mappings that are best in each of these; none: in `objective`.
    std::vector<Objective> mappings{};
    int threads = 1;  ///< the result does not depend on it
    const std::atomic<bool>* stop = nullptr;
    std::function<void(size_t done, size_t total)> progress{};
};

struct SweepPoint {
    Strategy strategy;
    bool fits = false;  ///< otherwise a layer has no mapping, and there is no cost
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;
    int64_t macs = 0;
    double mapping_gap = 0;  ///< DepthFirstCost::mapping_gap
    std::vector<StackCost> stacks;
};

struct Sweep {
    std::vector<SweepPoint> points;  ///< objective of the mappings by objective, overlap by
                                     ///< overlap, row by row; sizes beyond the map left out
    std::optional<size_t> best;
    std::vector<size_t> front;  ///< of energy, latency and on-chip memory: no other point has less
                                ///< of one and no more of the others; by energy
    std::optional<SweepPoint> layer_by_layer;  ///< the whole map as tile: layers one after the
                                               ///< other, maps in the lowest memory that holds them
    std::optional<SweepPoint> single_layer;    ///< every map through the highest memory
    /// Each stack with its best point; none where a stack fits in none. Costs of stacks add.
    struct Combination {
        std::vector<size_t> points;
        double energy_pj = 0;
        int64_t latency_cycles = 0;
    };
    std::optional<Combination> combination;
    bool complete = true;  ///< false: stopped
};

/// A stack of its own, with the tile and overlap that are best for it.
struct ChosenStack {
    std::vector<size_t> layers;
    Strategy strategy;
    StackCost cost;
};
/// The network cut into stacks.
struct Cut {
    std::vector<ChosenStack> stacks;
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;  ///< the largest of the stacks
};

/// Of all cuts of the network between its units (DepthFirst::units()), each stack with any tile and
/// overlap of `options`, one of least objective: every run of units is costed with every tile and
/// overlap, and the best cut follows by dynamic programming (for energy x delay over the front of
/// both). `options.stacks` is not looked at. None: nothing fits, or stopped.
[[nodiscard]] std::optional<Cut> best_cut(const DepthFirst& model, const SweepOptions& options);

[[nodiscard]] Sweep sweep(const DepthFirst& model, const SweepOptions& options);

}  // namespace laminate::depth_first
