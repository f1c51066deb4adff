#include "papers/depth_first/depth_first.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"
#include "papers/depth_first/limited_orders.h"
#include "papers/depth_first/mapper.h"
#include "papers/depth_first/published_layers.h"
#include "papers/depth_first/stack_run.h"
#include "papers/depth_first/stacks.h"

namespace laminate::depth_first {

struct DepthFirst::Parts {
    Machine machine;
    Workload workload;
    Fidelity fidelity;
    std::vector<Unrolling> unrollings;  ///< by layer of the workload

    struct MappingKey {
        Objective objective;
        LayerShape shape;
        Unrolling lanes;
        std::vector<size_t> tops;
        auto operator<=>(const MappingKey&) const = default;
        /// Grows with the time that the mapping takes.
        [[nodiscard]] int64_t size() const { return shape.macs(); }
    };
    using MappingPtr = std::shared_ptr<const std::optional<LayerMapping>>;
    using Missing = std::set<MappingKey>;
    /// Mappings by key, in shards so that threads seldom wait for each other.
    class Known {
    public:
        [[nodiscard]] MappingPtr find(const MappingKey& key) {
            Shard& shard = shard_of(key);
            const std::scoped_lock lock(shard.mutex);
            const auto found = shard.mappings.find(key);
            return found == shard.mappings.end() ? nullptr : found->second;
        }
        /// Keeps the first mapping of a key.
        MappingPtr add(const MappingKey& key, MappingPtr mapping) {
            Shard& shard = shard_of(key);
            const std::scoped_lock lock(shard.mutex);
            return shard.mappings.try_emplace(key, std::move(mapping)).first->second;
        }

    private:
        struct Hash {
            size_t operator()(const MappingKey& key) const;
        };
        struct Shard {
            std::mutex mutex;
            std::unordered_map<MappingKey, MappingPtr, Hash> mappings;
        };
        Shard& shard_of(const MappingKey& key) { return shards_[Hash{}(key) >> 7 & 63]; }
        std::array<Shard, 64> shards_;
    };
    mutable Known mappings;
    mutable AxisPlans plans;

    /// The mapping of a layer in this shape; makes it unless it is known. With `missing`, adds the
    /// key of an unknown mapping there and returns null instead.
    [[nodiscard]] MappingPtr mapping(Objective objective, size_t layer, const LayerShape& shape,
                                     const std::vector<size_t>& tops, int halvings,
                                     Missing* missing) const;
    MappingPtr make(const MappingKey& key) const;
    void add_stack(const std::vector<size_t>& layers, const Strategy& strategy, bool with_details,
                   DepthFirstCost& total, Missing* missing = nullptr) const;
    [[nodiscard]] DepthFirstCost cost(const Strategy& strategy, bool with_details,
                                      Missing* missing) const;
    [[nodiscard]] StackCost stack_cost(const std::vector<size_t>& layers, const Strategy& strategy,
                                       Missing* missing) const;
    template <typename Cost, typename Evaluate>
    [[nodiscard]] std::vector<OneOfMany<Cost>> many(size_t count, const ManyOptions& options,
                                                    const Evaluate& evaluate) const;
};

DepthFirst::Parts::MappingPtr DepthFirst::Parts::mapping(Objective objective, size_t layer,
                                                         const LayerShape& shape,
                                                         const std::vector<size_t>& tops,
                                                         int halvings, Missing* missing) const {
    // Lanes beyond the tile are not used. Cutting them off gives layers that differ in nothing else
    // the same key.
    Unrolling lanes = unrollings[layer];
    for (size_t axis = 0; axis < lanes.size(); ++axis) {
        if (machine.axes[axis].loop)
            lanes[axis] =
                std::min(lanes[axis], shape.sizes[dim_of_axis(machine.axes[axis], shape)]);
    }
    for (int n = 0; n < halvings; ++n) {
        int64_t& most = *std::ranges::max_element(lanes);
        most = ceil_div(most, 2);
    }
    MappingKey key{objective, shape, std::move(lanes), tops};
    if (MappingPtr found = mappings.find(key)) return found;
    if (missing == nullptr) return make(key);
    missing->insert(std::move(key));
    return nullptr;
}

DepthFirst::Parts::MappingPtr DepthFirst::Parts::make(const MappingKey& key) const {
    const MappedLayer mapped(machine, key.shape, key.lanes, key.tops);
    const MappingGoal goal{.objective = key.objective,
                           .counts_macs = fidelity.quirks.counts_macs_of(key.shape.type),
                           .counts_off_load = !fidelity.quirks.no_off_load};
    auto made = std::make_shared<const std::optional<LayerMapping>>(
        fidelity.loop_limit > 0 ? best_limited_mapping(mapped, fidelity.loop_limit, goal)
                                : best_mapping(mapped, goal));
    return mappings.add(key, std::move(made));
}

size_t DepthFirst::Parts::Known::Hash::operator()(const MappingKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.objective) << 8 |
                    static_cast<uint64_t>(key.shape.type) << 1 | uint64_t{key.shape.direct_input};
    const auto add = [&](auto value) {
        hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
    };
    for (const Dim dim : all_dims) add(key.shape.sizes[dim]);
    for (const Stride& stride : {key.shape.stride, key.shape.dilation})
        add(stride.x << 20 ^ stride.y);
    for (const int64_t lanes : key.lanes) add(lanes);
    for (const size_t top : key.tops) add(top);
    return static_cast<size_t>(hash);
}

/// Evaluates costs in batches. All threads make the mappings that a batch misses, until it misses
/// none. If each cost made its own mappings, threads on neighbouring tiles would make the same ones
/// at the same time.
template <typename Cost, typename Evaluate>
std::vector<OneOfMany<Cost>> DepthFirst::Parts::many(size_t count, const ManyOptions& options,
                                                     const Evaluate& evaluate) const {
    constexpr size_t batch = 32;
    std::vector<OneOfMany<Cost>> result(count);
    const auto is_stopped = [&] { return options.stop != nullptr && options.stop->load(); };
    for (size_t begin = 0; begin < count && !is_stopped(); begin += batch) {
        std::vector<size_t> open(std::min(batch, count - begin));
        std::iota(open.begin(), open.end(), begin);
        while (!open.empty()) {
            std::vector<Missing> missing(open.size());
            in_parallel(open.size(), options.threads, [&](size_t n) {
                try {
                    Cost cost = evaluate(open[n], &missing[n]);
                    if (missing[n].empty()) result[open[n]] = {true, std::move(cost)};
                } catch (const InfeasibleMapping&) {
                    // Known mappings are enough to tell.
                    missing[n].clear();
                    result[open[n]] = {true, std::nullopt};
                }
            });
            Missing all;
            for (Missing& some : missing) all.merge(some);
            std::vector<const MappingKey*> keys;
            for (const MappingKey& key : all) keys.push_back(&key);
            std::ranges::stable_sort(keys, std::greater<>(),
                                     [](const MappingKey* key) { return key->size(); });
            in_parallel(keys.size(), options.threads, [&](size_t n) {
                if (!is_stopped()) make(*keys[n]);
            });
            if (is_stopped()) return result;
            std::erase_if(open, [&](size_t n) { return result[n].is_done; });
        }
        if (options.progress) options.progress(std::min(begin + batch, count), count);
    }
    return result;
}

void DepthFirst::Parts::add_stack(const std::vector<size_t>& layers, const Strategy& strategy,
                                  bool with_details, DepthFirstCost& total,
                                  Missing* missing) const {
    const Stack stack = stack_of(workload, layers);
    if (!strategy.of_maps.empty() && fidelity.quirks.unpadded)
        throw InputError(
            "overlap of single maps: found together with the quirk unpadded, where all tiles lie "
            "in an endless map; expected one overlap for all");
    StackRun(
        machine, stack, fidelity.quirks, strategy, goes_by_columns(workload, layers, strategy),
        with_details, plans,
        [&](size_t layer, const LayerShape& shape, const std::vector<size_t>& tops, int halvings) {
            return mapping(strategy.mappings, layer, shape, tops, halvings, missing);
        })
        .add_to(total);
}

DepthFirst::DepthFirst(Machine machine, const Network& network, const Fidelity& fidelity)
    : parts_(std::make_unique<Parts>()) {
    for (const ArrayAxis& axis : machine.axes) {
        if (!axis.loop)
            throw InputError(
                "machine " + machine.name +
                ": an axis of the array has no loop; the depth-first model needs one on each");
    }
    parts_->machine = std::move(machine);
    parts_->workload = workload_of(network, fidelity.quirks.unpadded);
    parts_->fidelity = fidelity;
    for (WorkloadLayer& layer : parts_->workload.layers) {
        Unrolling lanes;  // all lanes; mapping() cuts them to the tile
        for (const ArrayAxis& axis : parts_->machine.axes) lanes.push_back(axis.lanes);
        if (fidelity.quirks.published_layers) {
            apply_published_layer(parts_->machine, network.name, layer, lanes);
        } else {
            const Sizes& sizes = layer.shape.sizes;
            layer.shape.direct_input =
                sizes[Dim::fx] == 1 && sizes[Dim::fy] == 1 && layer.shape.stride == Stride{};
        }
        parts_->unrollings.push_back(std::move(lanes));
    }
}

DepthFirst::~DepthFirst() = default;
DepthFirst::DepthFirst(DepthFirst&&) noexcept = default;

const Workload& DepthFirst::workload() const { return parts_->workload; }
const Machine& DepthFirst::machine() const { return parts_->machine; }

std::vector<std::vector<size_t>> DepthFirst::stacks(Stacks rule) const {
    return stacks_of(parts_->workload, parts_->machine, parts_->fidelity.quirks, rule);
}

DepthFirstCost DepthFirst::Parts::cost(const Strategy& strategy, bool with_details,
                                       Missing* missing) const {
    if (strategy.tile.x < 1 || strategy.tile.y < 1)
        throw InputError("tile: found 0 or less, expected at least 1x1");
    DepthFirstCost total;
    total.words.resize(machine.memories.size());
    total.copy_words.resize(machine.memories.size());
    total.stacks = stacks_of(workload, machine, fidelity.quirks, strategy.stacks);
    for (const std::vector<size_t>& layers : total.stacks) {
        const StackCost before{total.energy_pj, total.latency_cycles,
                               std::exchange(total.on_chip_bits, 0)};
        add_stack(layers, strategy, with_details, total, missing);
        total.stack_costs.push_back({total.energy_pj - before.energy_pj,
                                     total.latency_cycles - before.latency_cycles,
                                     total.on_chip_bits});
        total.on_chip_bits = std::max(total.on_chip_bits, before.on_chip_bits);
    }
    return total;
}

StackCost DepthFirst::Parts::stack_cost(const std::vector<size_t>& layers, const Strategy& strategy,
                                        Missing* missing) const {
    DepthFirstCost total;
    total.words.resize(machine.memories.size());
    total.copy_words.resize(machine.memories.size());
    add_stack(layers, strategy, false, total, missing);
    return {total.energy_pj, total.latency_cycles, total.on_chip_bits};
}

DepthFirstCost DepthFirst::cost(const Strategy& strategy, bool with_details) const {
    return parts_->cost(strategy, with_details, nullptr);
}

std::vector<std::vector<size_t>> DepthFirst::units() const {
    std::vector<std::vector<size_t>> result;
    for (const std::vector<size_t>& unit : units_of(parts_->workload)) {
        std::vector<size_t> layers;
        for (const size_t n : unit) {
            if (!parts_->workload.layers[n].is_input()) layers.push_back(n);
        }
        if (!layers.empty()) result.push_back(std::move(layers));
    }
    return result;
}

StackCost DepthFirst::stack_cost(const std::vector<size_t>& layers,
                                 const Strategy& strategy) const {
    return parts_->stack_cost(layers, strategy, nullptr);
}

std::vector<OneOfMany<DepthFirstCost>> DepthFirst::costs(const std::vector<Strategy>& strategies,
                                                         const ManyOptions& options) const {
    return parts_->many<DepthFirstCost>(strategies.size(), options,
                                        [&](size_t n, Parts::Missing* missing) {
                                            return parts_->cost(strategies[n], false, missing);
                                        });
}

std::vector<OneOfMany<StackCost>> DepthFirst::stack_costs(const std::vector<StackChoice>& choices,
                                                          const ManyOptions& options) const {
    return parts_->many<StackCost>(choices.size(), options, [&](size_t n, Parts::Missing* missing) {
        return parts_->stack_cost(choices[n].layers, choices[n].strategy, missing);
    });
}

}  // namespace laminate::depth_first
