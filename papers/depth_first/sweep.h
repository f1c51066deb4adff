// Sweeps over tile sizes and overlap modes (DeFiNES section V): all points, the best one, the best
// one for each stack, and the best cut of the network into stacks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "papers/depth_first/depth_first.h"

namespace laminate::depth_first {

struct SweepOptions {
    // Sizes of tiles. A size larger than a stack's output means all of it. The defaults are those
    // of the artifact's case study 1.
    std::vector<int64_t> columns{1, 4, 16, 60, 240, 960};
    std::vector<int64_t> rows{1, 4, 18, 72, 270, 540};
    std::vector<Overlap> overlaps{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached};
    Stacks stacks = Stacks::weights_fit;
    Objective objective = Objective::energy;
    /// Each point occurs once for each of these objectives of its mappings. Empty: `objective`.
    std::vector<Objective> mappings{};
    int threads = 1;  ///< the result does not depend on it
    const std::atomic<bool>* stop = nullptr;
    std::function<void(size_t done, size_t total)> progress{};
};

struct SweepPoint {
    Strategy strategy;
    bool fits = false;  ///< false: a layer has no mapping, and the costs below are 0
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;
    int64_t macs = 0;
    double mapping_gap = 0;  ///< DepthFirstCost::mapping_gap
    std::vector<StackCost> stacks;
};

struct Sweep {
    /// By objective of the mappings, then by overlap, then row by row. Sizes beyond the map are
    /// left out.
    std::vector<SweepPoint> points;
    std::optional<size_t> best;
    /// The points that no other dominates in energy, latency and on-chip memory, by energy.
    std::vector<size_t> front;
    /// Layers one after the other: the tile is the whole map, and maps go to the lowest memory that
    /// holds them.
    std::optional<SweepPoint> layer_by_layer;
    std::optional<SweepPoint> single_layer;  ///< every map goes through the highest memory
    /// Each stack with its best point. The costs of stacks add up.
    struct Combination {
        std::vector<size_t> points;
        double energy_pj = 0;
        int64_t latency_cycles = 0;
    };
    std::optional<Combination> combination;  ///< none where no point fits
    bool complete = true;                    ///< false: stopped
};

/// A stack with the tile and overlap that are best for it.
struct ChosenStack {
    std::vector<size_t> layers;
    Strategy strategy;
    StackCost cost;
};
struct Cut {
    std::vector<ChosenStack> stacks;
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    int64_t on_chip_bits = 0;  ///< the largest of the stacks
};

/// The best of all cuts of the network between its units (stacks.h), where each stack may have any
/// tile and overlap of `options`. Every run of units is costed with every tile and overlap, and the
/// best cut follows by dynamic programming; for energy x delay it carries the front of both along.
/// Ignores `options.stacks`. nullopt if nothing fits or the search was stopped.
[[nodiscard]] std::optional<Cut> best_cut(const DepthFirst& model, const SweepOptions& options);

[[nodiscard]] Sweep sweep(const DepthFirst& model, const SweepOptions& options);

}  // namespace laminate::depth_first
