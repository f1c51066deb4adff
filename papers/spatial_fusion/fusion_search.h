// Which layers of a network to execute as stacks, and with which tiles, for the least volume
// between external and on-chip memory. HW-Flow-Fusion section 4.4.
//
// Stacks lie on chains, where each layer feeds only the next one. A fork, a join (addition or
// concatenation) or a network output ends a stack. A join moves each of its tensors once. Layers
// that are not schedulable (scheduler/schedule/problem.h) are not counted.
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
    optimal,  ///< the cut of each chain into contiguous stacks of least volume, by dynamic
              ///< programming
    /// A stack grows from two layers on while it fits; the next one starts at the layer that did
    /// not fit. Only prefixes of these stacks compete.
    paper,
};
[[nodiscard]] const char* to_string(Growth growth);  ///< "optimal", "paper"

struct FusionOptions {
    int64_t capacity = 0;  ///< elements on chip
    Reading reading = Reading::exact;
    Growth growth = Growth::optimal;
    TileSizes tiles = TileSizes::all;
    bool full_rows = false;  ///< tiles as wide as the map, as in the paper's tables
    ReuseModel reuse = ReuseModel::own;
    size_t max_layers = 0;  ///< of a stack; 0: any number
    std::function<void(const std::string& line)> progress = {};
    /// Once set, no more layers are fused and FusionPlan::is_complete is false.
    const std::atomic<bool>* stop = nullptr;
};

/// Layers executed together, or one layer alone.
struct PlannedStack {
    std::vector<LayerId> layers;  ///< in order of execution
    bool keeps_halos = false;     ///< a stack, be it of one layer; false: a single layer by Eq. 2
    bool is_join = false;         ///< an addition or concatenation, element by element
    Tile tile;
    int64_t volume = 0;     ///< elements between external and on-chip memory
    int64_t footprint = 0;  ///< elements on chip, Eq. 1 or Eq. 5 + 8; decides what fits
    int64_t operations = 0;
    [[nodiscard]] bool is_fused() const { return layers.size() > 1; }
};

struct FusionPlan {
    /// In order of execution; together they have every schedulable layer once.
    std::vector<PlannedStack> stacks;
    /// The baseline: every schedulable layer alone at its best, in order of execution.
    std::vector<PlannedStack> singles;
    bool is_complete = true;
    [[nodiscard]] int64_t volume() const;
    [[nodiscard]] int64_t single_volume() const;
    /// The sum over these layers only.
    [[nodiscard]] int64_t single_volume(const std::vector<LayerId>& layers) const;
};

/// These layers with the tile of least (volume, footprint, x, y, channels) that fits; nullopt if
/// none does. Exact: the search skips a tile only if a smaller one fetches no more in no more
/// tiles.
[[nodiscard]] std::optional<PlannedStack> best_stack(const Network& network,
                                                     const std::vector<LayerId>& layers,
                                                     const FusionOptions& options);
/// The same for a layer alone by Eq. 2. With Reading::exact a stack of one, which keeps its halos,
/// competes too.
[[nodiscard]] std::optional<PlannedStack> best_single(const Network& network, LayerId layer,
                                                      const FusionOptions& options);

/// The chains that stacks lie on; every schedulable layer is in exactly one. Throws InputError for
/// a transposed convolution, which the model does not know.
[[nodiscard]] std::vector<std::vector<LayerId>> stackable_chains(const Network& network);

/// Infeasible if some layer does not fit alone in the smallest tiles; `demand` is the capacity that
/// every layer fits in.
[[nodiscard]] std::variant<FusionPlan, Infeasible> plan_fusion(const Network& network,
                                                               const FusionOptions& options);

}  // namespace laminate::spatial_fusion
