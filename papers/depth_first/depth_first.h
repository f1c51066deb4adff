// Energy and latency of a network executed depth first on a machine of many memories. DeFiNES (Mei,
// Goetschalckx, Symons, Verhelst; HPCA 2023), section III, and its public artifact.
//
// The network is cut into stacks; maps between stacks go through the highest memory. A stack's
// output is computed tile by tile. For each tile, every layer computes what the tile needs and no
// earlier tile left in a cache. The model goes through these steps for each distinct kind of tile:
//
//   1. calculate backwards from the tile what each layer computes (tiles.h)
//   2. find the lowest memory that holds each kind of data (stack_run.h)
//   3. copy data between memories (data_copy.h)
//   4. map each layer (mapper.h, single_layer.h)
//
// Layers, copies and tiles follow each other; nothing overlaps.
//
//   DepthFirst model(machine, network, fidelity);
//   const DepthFirstCost cost = model.cost({.tile = {60, 72}, .overlap = Overlap::fully_cached});
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nets/network/network.h"
#include "papers/depth_first/cost.h"
#include "papers/depth_first/quirks.h"
#include "papers/depth_first/strategy.h"
#include "papers/depth_first/workload.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// A stack under a strategy.
struct StackChoice {
    std::vector<size_t> layers;
    Strategy strategy;
};

/// One of many costs that were asked for together.
template <typename Cost>
struct OneOfMany {
    bool is_done = false;      ///< false: stopped before
    std::optional<Cost> cost;  ///< none: it does not fit
};

struct ManyOptions {
    int threads = 1;  ///< the result does not depend on it
    const std::atomic<bool>* stop = nullptr;
    std::function<void(size_t done, size_t total)> progress{};
};

/// A network on a machine. Remembers mappings between calls: layers of equal shape with equal
/// hierarchies are mapped once. May be called from several threads.
class DepthFirst {
public:
    /// Throws InputError for what workload_of() refuses and for a machine with an axis without
    /// loop.
    DepthFirst(Machine machine, const Network& network, const Fidelity& fidelity);
    ~DepthFirst();
    DepthFirst(DepthFirst&&) noexcept;

    [[nodiscard]] const Workload& workload() const;
    [[nodiscard]] const Machine& machine() const;
    /// stacks_of() the workload.
    [[nodiscard]] std::vector<std::vector<size_t>> stacks(Stacks rule) const;
    /// units_of() the workload, without network inputs.
    [[nodiscard]] std::vector<std::vector<size_t>> units() const;
    /// The cost of these layers as one stack, whatever `strategy.stacks` says. Throws
    /// InfeasibleMapping.
    [[nodiscard]] StackCost stack_cost(const std::vector<size_t>& layers,
                                       const Strategy& strategy) const;
    /// Throws InfeasibleMapping. `with_details` fills DepthFirstCost::details, which takes most of
    /// the time where there are many tiles.
    [[nodiscard]] DepthFirstCost cost(const Strategy& strategy, bool with_details = true) const;

    /// cost() without details, and stack_cost(), of many strategies. All threads make mappings,
    /// each of them once.
    [[nodiscard]] std::vector<OneOfMany<DepthFirstCost>> costs(
        const std::vector<Strategy>& strategies, const ManyOptions& options) const;
    [[nodiscard]] std::vector<OneOfMany<StackCost>> stack_costs(
        const std::vector<StackChoice>& choices, const ManyOptions& options) const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace laminate::depth_first
