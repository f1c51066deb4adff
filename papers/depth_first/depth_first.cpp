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
#include "papers/depth_first/published_layers.h"
#include "papers/depth_first/stack_run.h"

namespace laminate::depth_first {

namespace {

template <typename Value, size_t count>
Value parse_named(const std::array<Value, count>& values, const std::string& text,
                  const std::string& what) {
    std::string names;
    for (const Value value : values) {
        if (text == to_string(value)) return value;
        names += (names.empty() ? "" : ", ") + std::string(to_string(value));
    }
    throw InputError(what + ": found \"" + text + "\", expected one of " + names);
}

}  // namespace

const char* to_string(Overlap overlap) {
    switch (overlap) {
        case Overlap::recompute:
            return "recompute";
        case Overlap::h_cached:
            return "h-cached";
        case Overlap::fully_cached:
            return "fully-cached";
        case Overlap::v_cached:
            return "v-cached";
    }
    throw std::logic_error("to_string(Overlap)");
}

Overlap parse_overlap(const std::string& text) {
    return parse_named(
        std::array{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached, Overlap::v_cached},
        text, "overlap");
}

const char* to_string(Stacks stacks) {
    switch (stacks) {
        case Stacks::weights_fit:
            return "weights-fit";
        case Stacks::single_layer:
            return "single-layer";
        case Stacks::all:
            return "all";
    }
    throw std::logic_error("to_string(Stacks)");
}

Stacks parse_stacks(const std::string& text) {
    return parse_named(std::array{Stacks::weights_fit, Stacks::single_layer, Stacks::all}, text,
                       "stacks");
}

const std::vector<QuirkName>& quirk_names() {
    static const std::vector<QuirkName> names{
        {"unpadded", &Quirks::unpadded},
        {"left-over-tiles-first", &Quirks::left_over_tiles_first},
        {"last-cache-level-wins", &Quirks::last_cache_level_wins},
        {"column-cache-sized-with-cached-rows", &Quirks::column_cache_sized_with_cached_rows},
        {"first-cut-is-ignored", &Quirks::first_cut_is_ignored},
        {"published-layers", &Quirks::published_layers},
        {"no-off-load", &Quirks::no_off_load},
        {"macs-of-poolings-and-additions", &Quirks::macs_of_poolings_and_additions}};
    return names;
}

void add_quirk(Quirks& quirks, const std::string& name) {
    std::string known;
    for (const QuirkName& quirk : quirk_names()) {
        if (name == quirk.name) {
            quirks.*quirk.member = true;
            return;
        }
        known += (known.empty() ? "" : ", ") + std::string(quirk.name);
    }
    throw InputError("quirk: found \"" + name + "\", expected one of " + known);
}

bool Quirks::counts_macs_of(LayerType type) const {
    return type == LayerType::convolution || type == LayerType::depthwise ||
           macs_of_poolings_and_additions;
}

Quirks Quirks::as_published() {
    Quirks quirks;
    for (const QuirkName& quirk : quirk_names()) quirks.*quirk.member = true;
    return quirks;
}

Overlap Strategy::overlap_of(const std::string& map) const {
    const auto found = of_maps.find(map);
    return found != of_maps.end() ? found->second : overlap;
}

bool goes_by_columns(const Workload& workload, const std::vector<size_t>& layers,
                     const Strategy& strategy) {
    std::set<size_t> maps(layers.begin(), layers.end());
    for (const size_t layer : layers)
        maps.insert(workload.layers[layer].sources.begin(), workload.layers[layer].sources.end());
    maps.erase(layers.back());
    std::optional<size_t> along_rows, along_columns;
    for (const size_t map : maps) {
        if (strategy.overlap_of(workload.layers[map].name) == Overlap::h_cached) along_rows = map;
        if (strategy.overlap_of(workload.layers[map].name) == Overlap::v_cached)
            along_columns = map;
    }
    if (along_rows && along_columns) {
        throw InputError(
            "overlap: found h-cached for " + workload.layers[*along_rows].name +
            " and v-cached for " + workload.layers[*along_columns].name +
            " in one stack, expected one of the two: its tiles go row by row or column by column");
    }
    return along_columns.has_value();
}

struct DepthFirst::Parts {
    Machine machine;
    Workload workload;
    Fidelity fidelity;
    std::vector<Unrolling> unrollings;  ///< per layer of the workload

    struct MappingKey {
        Objective objective;
        LayerShape shape;
        Unrolling lanes;
        std::vector<size_t> tops;
        auto operator<=>(const MappingKey&) const = default;
        /// Rises with the work of a mapping.
        [[nodiscard]] int64_t size() const { return shape.macs(); }
    };
    using MappingPtr = std::shared_ptr<const std::optional<LayerMapping>>;
    using Missing = std::set<MappingKey>;
    /// Mappings by key; threads seldom meet in one of the shards.
    class Known {
    public:
        [[nodiscard]] MappingPtr find(const MappingKey& key) {
            Shard& shard = shard_of(key);
            const std::scoped_lock lock(shard.mutex);
            const auto found = shard.mappings.find(key);
            return found == shard.mappings.end() ? nullptr : found->second;
        }
        /// The first one stays.
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

    /// None to be had once no lanes are left to halve. With `missing` a mapping that is not known
    /// yet is put there and the answer is null.
    [[nodiscard]] MappingPtr mapping(Objective objective, size_t layer, const LayerShape& shape,
                                     const std::vector<size_t>& tops, int halvings,
                                     Missing* missing) const;
    MappingPtr make(const MappingKey& key) const;
    [[nodiscard]] std::vector<std::vector<size_t>> units() const;
    [[nodiscard]] std::vector<std::vector<size_t>> stacks(Stacks rule) const;
    void add_stack(const std::vector<size_t>& layers, const Strategy& strategy, bool with_details,
                   DepthFirstCost& total, Missing* missing = nullptr) const;
    [[nodiscard]] DepthFirstCost cost(const Strategy& strategy, bool with_details,
                                      Missing* missing) const;
    [[nodiscard]] StackCost stack_cost(const std::vector<size_t>& layers, const Strategy& strategy,
                                       Missing* missing) const;
    template <typename Cost, typename Evaluate>
    [[nodiscard]] std::vector<OneOfMany<Cost>> many(size_t count, const ManyOptions& options,
                                                    const Evaluate& evaluate) const;
    [[nodiscard]] Stack stack_of(const std::vector<size_t>& layers) const;
    [[nodiscard]] int64_t input_channels(size_t source, const std::vector<size_t>& layers,
                                         const std::vector<std::vector<size_t>>& readers) const;
};

DepthFirst::Parts::MappingPtr DepthFirst::Parts::mapping(Objective objective, size_t layer,
                                                         const LayerShape& shape,
                                                         const std::vector<size_t>& tops,
                                                         int halvings, Missing* missing) const {
    // Lanes beyond the tile are not used: tiles of layers that differ in nothing else are one.
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
    for (size_t dim = 0; dim < dim_count; ++dim) add(key.shape.sizes[static_cast<Dim>(dim)]);
    for (const Stride& stride : {key.shape.stride, key.shape.dilation})
        add(stride.x << 20 ^ stride.y);
    for (const int64_t lanes : key.lanes) add(lanes);
    for (const size_t top : key.tops) add(top);
    return static_cast<size_t>(hash);
}

/// Batch by batch: what the costs of a batch miss is made by all threads, until they miss nothing.
/// Were each cost to make its own mappings, threads that work on neighbouring tiles would make the
/// same ones at the same time.
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
                    // Mappings that are known decided that.
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

std::vector<std::vector<size_t>> DepthFirst::Parts::units() const {
    const std::vector<std::vector<size_t>> readers = workload.readers();
    std::vector<std::vector<size_t>> units{{0}};
    int64_t branches = 1;
    for (size_t n = 1; n < workload.layers.size(); ++n) {
        std::vector<size_t> sources = workload.layers[n].sources;
        std::ranges::sort(sources);
        sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
        branches -= static_cast<int64_t>(sources.size()) - 1;
        units.back().push_back(n);
        if (branches == 1) units.emplace_back();
        branches += static_cast<int64_t>(readers[n].size()) - 1;
    }
    if (units.back().empty()) units.pop_back();
    return units;
}

/// DeFiNES III, axis 3: units of layers between which only one map is alive, put together while
/// their weights fit.
std::vector<std::vector<size_t>> DepthFirst::Parts::stacks(Stacks rule) const {
    std::vector<size_t> cuts;  // last layers of stacks but the last one, or, by quirk, of all
    const size_t count = workload.layers.size();
    if (rule == Stacks::single_layer) {
        for (size_t n = 0; n + 1 < count; ++n) {
            if (!workload.layers[n].is_input()) cuts.push_back(n);
        }
    } else if (rule == Stacks::weights_fit) {
        const std::vector<size_t> levels = machine.hierarchy(Operand::weight);
        const int64_t capacity =
            machine.memories[levels.size() > 1 ? levels[levels.size() - 2] : levels[0]]
                .capacity_bits;
        int64_t sum = 0;
        std::optional<size_t> last;
        for (const std::vector<size_t>& unit : units()) {
            int64_t weights = 0;
            for (const size_t n : unit)
                weights += workload.layers[n].shape.weight_elements() *
                           (workload.layers[n].is_input() ? 0 : machine.bits.weight);
            if (weights > capacity) {
                if (last && (cuts.empty() || cuts.back() != *last)) cuts.push_back(*last);
                cuts.insert(cuts.end(), unit.begin(), unit.end());
                sum = 0;
            } else if (sum + weights > capacity) {
                cuts.push_back(*last);
                sum = weights;
            } else {
                sum += weights;
            }
            last = unit.back();
        }
    }
    const auto is_first_layer = [&](size_t n) {
        return !workload.layers[n].is_input() &&
               std::ranges::none_of(workload.layers.begin(),
                                    workload.layers.begin() + static_cast<ptrdiff_t>(n),
                                    [](const WorkloadLayer& layer) { return !layer.is_input(); });
    };
    const bool ignore_first = fidelity.quirks.first_cut_is_ignored && rule == Stacks::weights_fit;
    std::vector<std::vector<size_t>> result;
    for (size_t c = 0; c <= cuts.size(); ++c) {
        const auto counts = [&](size_t cut) { return !ignore_first || !is_first_layer(cut); };
        const size_t begin = c > 0 && counts(cuts[c - 1]) ? cuts[c - 1] + 1 : 0;
        const size_t last = c < cuts.size() && counts(cuts[c]) ? cuts[c] : count - 1;
        std::vector<size_t> layers;
        for (size_t n = begin; n <= last; ++n) {
            if (!workload.layers[n].is_input()) layers.push_back(n);
        }
        if (!layers.empty()) result.push_back(std::move(layers));
    }
    return result;
}

/// Channels of a map that a stack reads: as many as its readers want.
int64_t DepthFirst::Parts::input_channels(size_t source, const std::vector<size_t>& layers,
                                          const std::vector<std::vector<size_t>>& readers) const {
    // All that read the layer before the stack, also behind the stack (the artifact makes a stack's
    // inputs before it cuts off its end). By quirk channels under two names are two dimensions.
    std::array<int64_t, 2> channels{0, 0};
    for (const size_t reader : readers[source]) {
        const bool before_all = source + 1 == layers.front();
        if (!before_all && std::ranges::count(layers, reader) == 0) continue;
        int64_t& named = channels[workload.layers[reader].renames_input_channels ? 1 : 0];
        const int64_t wanted = workload.layers[reader].shape.input_channels();
        named = named == 0 ? wanted : std::min(named, wanted);
    }
    return std::max<int64_t>(1, channels[0]) * std::max<int64_t>(1, channels[1]);
}

Stack DepthFirst::Parts::stack_of(const std::vector<size_t>& layers) const {
    Stack stack;
    std::map<size_t, size_t> member;  // layer of the workload -> member
    const std::vector<std::vector<size_t>> all_readers = workload.readers();
    for (const size_t n : layers) {
        for (const size_t source : workload.layers[n].sources) {
            if (std::ranges::count(layers, source) > 0 || member.contains(source)) continue;
            WorkloadLayer input{.name = workload.layers[source].name};
            input.shape.sizes[Dim::k] = input_channels(source, layers, all_readers);
            input.shape.sizes[Dim::ox] = workload.layers[source].shape.sizes[Dim::ox];
            input.shape.sizes[Dim::oy] = workload.layers[source].shape.sizes[Dim::oy];
            member[source] = stack.members.size();
            stack.members.push_back({std::move(input), source, true});
        }
    }
    for (const size_t n : layers) {
        Stack::Member added{workload.layers[n], n, false};
        for (size_t& source : added.layer.sources) source = member.at(source);
        member[n] = stack.members.size();
        stack.members.push_back(std::move(added));
    }
    stack.readers.resize(stack.members.size());
    for (size_t n = 0; n < stack.members.size(); ++n) {
        for (const size_t source : stack.members[n].layer.sources) {
            if (std::ranges::count(stack.readers[source], n) == 0)
                stack.readers[source].push_back(n);
        }
    }
    return stack;
}

void DepthFirst::Parts::add_stack(const std::vector<size_t>& layers, const Strategy& strategy,
                                  bool with_details, DepthFirstCost& total,
                                  Missing* missing) const {
    const Stack stack = stack_of(layers);
    if (!strategy.of_maps.empty() && fidelity.quirks.unpadded)
        throw InputError(
            "overlap of single maps: found together with the quirk unpadded, where all tiles lie "
            "in an endless map; "
            "expected one overlap for all");
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
        Unrolling lanes;  // all; a tile uses as many as it has indices
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
    return parts_->stacks(rule);
}

DepthFirstCost DepthFirst::Parts::cost(const Strategy& strategy, bool with_details,
                                       Missing* missing) const {
    if (strategy.tile.x < 1 || strategy.tile.y < 1)
        throw InputError("tile: found 0 or less, expected at least 1x1");
    DepthFirstCost total;
    total.words.resize(machine.memories.size());
    total.copy_words.resize(machine.memories.size());
    total.stacks = stacks(strategy.stacks);
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
    for (const std::vector<size_t>& unit : parts_->units()) {
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
