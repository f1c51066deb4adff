// Which layers of a network to execute as stacks, and with which tiles: the least volume between
// external and on-chip memory. HW-Flow-Fusion section 4.4.
//
// Stacks lie on chains: each layer feeds the next one and nothing else. A fork, a join (addition,
// concatenation) or a network output ends a stack; a join moves each of its tensors once. What is
// not schedulable (scheduler/schedule/problem.h) is not counted.
//
//   const auto found = plan_fusion(network, {.capacity = machine.capacity()});
//   if (const auto* plan = std::get_if<FusionPlan>(&found)) ...
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nets/network/network.h"
#include "papers/spatial_fusion/volume.h"
#include "scheduler/explore/options.h"

namespace laminate::spatial_fusion {

enum class Growth {
    optimal,  ///< the best cut of each chain into contiguous stacks, by dynamic programming: no cut
              ///< has less volume
    /// stacks are grown from two layers on while they fit, the next one from the first layer that
    /// did not: only prefixes of what was grown compete
    paper,
};
[[nodiscard]] const char* to_string(Growth growth);  ///< "optimal", "paper"

struct FusionOptions {
    int64_t capacity = 0;  ///< elements on chip
    Reading reading = Reading::exact;
    Growth growth = Growth::optimal;
    TileSizes tiles = TileSizes::all;
    bool full_rows = false;  ///< tiles as wide as the map, as the tables of the paper have them
    ReuseModel reuse = ReuseModel::own;
    size_t max_layers = 0;  ///< in a stack; 0: any number
    std::function<void(const std::string& line)> progress = {};
    const std::atomic<bool>* stop =
        nullptr;  ///< set: what is left is not fused, FusionPlan::is_complete is false
};

/// Layers executed together, or one alone.
struct PlannedStack {
    std::vector<LayerId> layers;  ///< in order of execution
    bool keeps_halos = false;     ///< a stack, or a single layer as a stack of one; false: Eq. 2
    bool is_join = false;         ///< an addition or concatenation, element by element
    Tile tile;
    int64_t volume = 0;     ///< elements between external and on-chip memory
    int64_t footprint = 0;  ///< elements, Eq. 1 or Eq. 5 + 8; decides what fits
    int64_t operations = 0;
    [[nodiscard]] bool is_fused() const { return layers.size() > 1; }
};

struct FusionPlan {
    std::vector<PlannedStack> stacks;   ///< every schedulable layer once, in order of execution
    std::vector<PlannedStack> singles;  ///< every schedulable layer by itself at its best, in the
                                        ///< same order: the baseline
    bool is_complete = true;
    [[nodiscard]] int64_t volume() const;
    [[nodiscard]] int64_t single_volume() const;
    /// Sum of the singles of these layers.
    [[nodiscard]] int64_t single_volume(const std::vector<LayerId>& layers) const;
};

/// The tile of least (volume, footprint, x, y, channels) that fits; nothing where none does. Exact:
/// tiles are left out only where a smaller one fetches no more in no more tiles.
[[nodiscard]] std::optional<PlannedStack> best_stack(const Network& network,
                                                     const std::vector<LayerId>& layers,
                                                     const FusionOptions& options);
/// The same for a layer alone, by Eq. 2; with Reading::exact also as a stack of one, which keeps
/// its halos.
[[nodiscard]] std::optional<PlannedStack> best_single(const Network& network, LayerId layer,
                                                      const FusionOptions& options);

/// Chains that stacks lie on; every schedulable layer is in exactly one. Throws InputError for a
/// transposed convolution, which the model does not know.
[[nodiscard]] std::vector<std::vector<LayerId>> stackable_chains(const Network& network);

/// Infeasible: some layer does not fit by itself in the smallest tiles; `demand` is what all of
/// them fit in.
[[nodiscard]] std::variant<FusionPlan, Infeasible> plan_fusion(const Network& network,
                                                               const FusionOptions& options);

}  // namespace laminate::spatial_fusion
