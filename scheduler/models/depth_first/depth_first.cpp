#include "scheduler/models/depth_first/depth_first.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/models/depth_first/published_layers.h"
#include "scheduler/models/depth_first/tiles.h"

namespace laminate::depth_first {

namespace {

template <typename Value, size_t count>
Value parse_named(const std::array<Value, count>& values, const std::string& text, const std::string& what) {
    std::string names;
    for (const Value value : values) {
        if (text == to_string(value)) return value;
        names += (names.empty() ? "" : ", ") + std::string(to_string(value));
    }
    throw InputError(what + ": found \"" + text + "\", expected one of " + names);
}

/// As often as the lanes of an array may be halved where tiles do not fit: to a single one of any.
constexpr int most_halvings = 16;

/// Index into Machine::memories; none: no cache, or no weights.
using Level = std::optional<size_t>;

Level higher(Level a, Level b) { return a && b ? std::max(*a, *b) : (a ? a : b); }

}  // namespace

const char* to_string(Overlap overlap) {
    switch (overlap) {
        case Overlap::recompute: return "recompute";
        case Overlap::h_cached: return "h-cached";
        case Overlap::fully_cached: return "fully-cached";
        case Overlap::v_cached: return "v-cached";
    }
    throw std::logic_error("to_string(Overlap)");
}

Overlap parse_overlap(const std::string& text) {
    return parse_named(std::array{Overlap::recompute, Overlap::h_cached, Overlap::fully_cached, Overlap::v_cached}, text, "overlap");
}

const char* to_string(Stacks stacks) {
    switch (stacks) {
        case Stacks::weights_fit: return "weights-fit";
        case Stacks::single_layer: return "single-layer";
        case Stacks::all: return "all";
    }
    throw std::logic_error("to_string(Stacks)");
}

Stacks parse_stacks(const std::string& text) {
    return parse_named(std::array{Stacks::weights_fit, Stacks::single_layer, Stacks::all}, text, "stacks");
}

const std::vector<QuirkName>& quirk_names() {
    static const std::vector<QuirkName> names{{"unpadded", &Quirks::unpadded},
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

Quirks Quirks::as_published() {
    Quirks quirks;
    for (const QuirkName& quirk : quirk_names()) quirks.*quirk.member = true;
    return quirks;
}

struct DepthFirst::Parts {
    Machine machine;
    Workload workload;
    Fidelity fidelity;
    std::vector<Unrolling> unrollings;  ///< per layer of the workload

    using MappingKey = std::tuple<LayerShape, Unrolling, std::vector<size_t>>;
    using MappingPtr = std::shared_ptr<const std::optional<LayerMapping>>;
    mutable std::mutex mutex;
    mutable std::map<MappingKey, MappingPtr> mappings;

    /// None to be had once no lanes are left to halve.
    [[nodiscard]] MappingPtr mapping(size_t layer, const LayerShape& shape, const std::vector<size_t>& tops, int halvings) const;
    [[nodiscard]] std::vector<std::vector<size_t>> units() const;
    [[nodiscard]] std::vector<std::vector<size_t>> stacks(Stacks rule) const;
    void add_stack(const std::vector<size_t>& layers, const Strategy& strategy, bool with_details, DepthFirstCost& total) const;
    [[nodiscard]] Stack stack_of(const std::vector<size_t>& layers) const;
    [[nodiscard]] int64_t input_channels(size_t source, const std::vector<size_t>& layers,
                                         const std::vector<std::vector<size_t>>& readers) const;
};

namespace {

/// One stack under one strategy.
class StackRun {
public:
    using Map = std::function<std::shared_ptr<const std::optional<LayerMapping>>(size_t layer, const LayerShape& shape,
                                                                                const std::vector<size_t>& tops, int halvings)>;
    StackRun(const Machine& machine, const Stack& stack, const Quirks& quirks, const Strategy& strategy, bool with_details, Map map)
        : machine_(machine), stack_(stack), quirks_(quirks), strategy_(strategy), with_details_(with_details), map_(std::move(map)) {
        for (const Operand operand : all_operands) hierarchies_[static_cast<size_t>(operand)] = machine.hierarchy(operand);
    }

    void add_to(DepthFirstCost& total);

private:
    /// Tiles along an axis that are alike.
    struct Kind {
        int64_t tile = 0;
        bool first = false;
        AxisTile actual;
        AxisTile sizing;  ///< what the levels of the caches are decided by; differs from `actual` by quirk
        std::vector<int64_t> written;  ///< outputs that are new to the cache
        auto operator<=>(const Kind&) const = default;
    };
    /// Tiles that also have the same neighbours: indices of kinds, none outside the map.
    struct Position {
        std::optional<size_t> before{};
        size_t here = 0;
        std::optional<size_t> after{};
        auto operator<=>(const Position&) const = default;
    };
    struct AxisPlan {
        std::vector<Kind> kinds;
        std::map<Position, int64_t> positions;  ///< how often each
        Position first;
    };
    struct Levels {
        Level columns, rows, weights;
        int64_t bits = 0;  ///< of all at once
    };
    /// What the cost of a tile depends on.
    struct TileKind {
        size_t x = 0, y = 0;  ///< kinds
        bool weights_from_top = false;
        Level make_columns{}, use_columns{}, make_rows{}, use_rows{};
        auto operator<=>(const TileKind&) const = default;
    };

    [[nodiscard]] bool caches_columns() const { return strategy_.overlap == Overlap::h_cached || strategy_.overlap == Overlap::fully_cached; }
    [[nodiscard]] bool caches_rows() const { return strategy_.overlap == Overlap::v_cached || strategy_.overlap == Overlap::fully_cached; }
    [[nodiscard]] const std::vector<size_t>& hierarchy(Operand operand) const { return hierarchies_[static_cast<size_t>(operand)]; }
    [[nodiscard]] bool single(size_t memory) const { return machine_.memories[memory].replicated_along.empty(); }
    [[nodiscard]] int64_t capacity(size_t memory) const { return machine_.memories[memory].capacity_bits; }

    [[nodiscard]] AxisPlan plan(Axis axis, int64_t tile) const;
    [[nodiscard]] LayerShape shape_of(size_t member, const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] int64_t input_bits(size_t member, size_t operand, const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] int64_t output_bits(size_t member, const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] int64_t largest_alive(const AxisTile& x, const AxisTile& y) const;
    [[nodiscard]] Levels levels(const Kind& x, const Kind& y) const;
    void add_tile(const TileKind& kind, int64_t times, DepthFirstCost& total) const;

    const Machine& machine_;
    const Stack& stack_;
    const Quirks& quirks_;
    const Strategy& strategy_;
    bool with_details_;
    Map map_;
    std::array<std::vector<size_t>, 3> hierarchies_;
    AxisPlan x_, y_;
    Level weights_;  ///< of all tiles but the first
};

StackRun::AxisPlan StackRun::plan(Axis axis, int64_t tile) const {
    const int64_t size = stack_.members.back().layer.shape.sizes[axis == Axis::x ? Dim::ox : Dim::oy];
    const bool caches = axis == Axis::x ? caches_columns() : caches_rows();
    tile = std::min(tile, size);
    std::vector<int64_t> tiles(static_cast<size_t>(size / tile), tile);
    if (size % tile != 0) tiles.insert(quirks_.left_over_tiles_first ? tiles.begin() : tiles.end(), size % tile);

    std::vector<Kind> all;
    if (quirks_.unpadded) {
        // An endless map: tiles differ by their size and by whether any is before.
        std::map<std::pair<int64_t, bool>, Kind> made;
        for (size_t t = 0; t < tiles.size(); ++t) {
            const bool first = t == 0 && strategy_.overlap != Overlap::recompute;  // without caches all are
            auto [entry, is_new] = made.try_emplace({tiles[t], first});
            Kind& kind = entry->second;
            if (is_new) {
                kind.tile = tiles[t];
                kind.first = first;
                kind.actual = endless_tile(stack_, axis, tiles[t], caches && !first);
                const bool sized_as_cached = caches || (axis == Axis::y && quirks_.column_cache_sized_with_cached_rows);
                kind.sizing = endless_tile(stack_, axis, tiles[t], sized_as_cached && !first);
            }
            all.push_back(kind);
        }
    } else {
        for (AxisTile& actual : clipped_tiles(stack_, axis, tiles, caches)) {
            const bool first = all.empty();
            all.push_back({tiles[all.size()], first, actual, actual, {}});
        }
    }
    AxisPlan plan;
    std::map<Kind, size_t> known;
    std::vector<size_t> kinds;
    for (Kind& kind : all) {
        kind.written = kind.sizing.cached;
        if (!kind.first || !quirks_.unpadded) {
            for (size_t n = 0; n < kind.written.size(); ++n) kind.written[n] = std::min(kind.written[n], kind.sizing.computed[n]);
        }
        const auto [entry, is_new] = known.try_emplace(kind, plan.kinds.size());
        if (is_new) plan.kinds.push_back(kind);
        kinds.push_back(entry->second);
    }
    for (size_t t = 0; t < kinds.size(); ++t) {
        Position position{.here = kinds[t]};
        if (t > 0) position.before = kinds[t - 1];
        if (t + 1 < kinds.size()) position.after = kinds[t + 1];
        if (t == 0) plan.first = position;
        ++plan.positions[position];
    }
    return plan;
}

LayerShape StackRun::shape_of(size_t member, const AxisTile& x, const AxisTile& y) const {
    return executed_shape(stack_.members[member].layer, x.computed[member], y.computed[member]);
}

int64_t StackRun::input_bits(size_t member, size_t operand, const AxisTile& x, const AxisTile& y) const {
    return stack_.members[member].layer.source_channels[operand] * x.present[member][operand] * y.present[member][operand] * machine_.bits.input;
}

int64_t StackRun::output_bits(size_t member, const AxisTile& x, const AxisTile& y) const {
    return stack_.members[member].layer.shape.output_channels() * x.computed[member] * y.computed[member] * machine_.bits.output;
}

/// Most bits of maps that are alive at once: each layer's inputs as large as it needs them, outputs until their last reader is done.
int64_t StackRun::largest_alive(const AxisTile& x, const AxisTile& y) const {
    int64_t now = 0, largest = 0;
    std::vector<size_t> readers_left;
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const WorkloadLayer& layer = stack_.members[n].layer;
        std::vector<size_t> sources = layer.sources;
        std::ranges::sort(sources);
        sources.erase(std::ranges::unique(sources).begin(), sources.end());
        int64_t produced = 0, read = 0;
        for (const size_t source : sources) produced += output_bits(source, x, y);
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) read += input_bits(n, operand, x, y);
        const int64_t output = output_bits(n, x, y);
        largest = std::max({largest, now - produced + read + output});
        now += output;
        largest = std::max(largest, now);
        for (const size_t source : sources) {
            if (--readers_left[source] == 0) now -= output_bits(source, x, y);
        }
        readers_left.push_back(stack_.readers[n].size());
    }
    return largest;
}

StackRun::Levels StackRun::levels(const Kind& x, const Kind& y) const {
    const int64_t alive = largest_alive(x.actual, y.actual);
    int64_t columns = 0, rows = 0, both = 0, weights = 0;
    bool weighted = false;
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const WorkloadLayer& layer = stack_.members[n].layer;
        if (stack_.members[n].is_input()) continue;
        weighted = weighted || layer.shape.type != LayerType::addition;
        weights += layer.shape.weight_elements() * machine_.bits.weight;
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
            const int64_t column = layer.source_channels[operand] * machine_.bits.input;
            const int64_t overlap_x = x.sizing.overlap[n][operand];
            const int64_t overlap_y = y.sizing.overlap[n][operand];
            // Rows are kept until the row of tiles below, or, where tiles go down column by column, for the next tile alone.
            const int64_t width = !caches_columns()     ? x.sizing.present[n][operand]
                                  : quirks_.unpadded ? layer.shape.input_width()
                                                     : stack_.members[layer.sources[operand]].layer.shape.sizes[Dim::ox];
            columns += column * overlap_x * y.sizing.present[n][operand];
            rows += column * width * overlap_y;
            both += column * overlap_x * overlap_y;
        }
    }
    const auto holds_inputs = [&](size_t memory) { return machine_.memories[memory].serves(Operand::input) && single(memory); };
    // A tile of the first column makes the caches of its row, layer by layer; the others find them all.
    const int64_t with_columns = x.first ? alive : alive + columns;
    const int64_t with_rows = with_columns + rows;
    Levels levels;
    levels.bits = with_rows + weights;
    if (caches_columns()) {
        for (const size_t memory : hierarchy(Operand::output)) {
            if (!holds_inputs(memory) || capacity(memory) < with_columns) continue;
            levels.columns = memory;
            break;
        }
    }
    if (caches_rows()) {
        for (const size_t memory : hierarchy(Operand::output)) {
            const int64_t bits = with_rows - (memory == levels.columns ? both : 0);
            if (!holds_inputs(memory) || capacity(memory) < bits) continue;
            levels.rows = memory;
            break;
        }
    }
    if (!weighted) return levels;
    // Maps are kept free in every memory of the outputs up to the one that holds them all.
    std::vector<size_t> reserved;
    for (const size_t memory : hierarchy(Operand::output)) {
        reserved.push_back(memory);
        if (holds_inputs(memory) && capacity(memory) >= alive) break;
    }
    for (const size_t memory : hierarchy(Operand::weight)) {
        int64_t bits = weights;
        if (std::ranges::count(reserved, memory) > 0) bits = weights + alive;
        if (memory == levels.columns) bits = weights + with_columns;
        if (memory == levels.rows) bits = weights + with_rows - (memory == levels.columns ? both : 0);
        levels.weights = memory;
        if (capacity(memory) >= bits) break;
    }
    return levels;
}

void StackRun::add_to(DepthFirstCost& total) {
    x_ = plan(Axis::x, strategy_.tile.x);
    y_ = plan(Axis::y, strategy_.tile.y);
    std::vector<std::vector<Levels>> found(x_.kinds.size());  // [x][y]
    Level rows, last_rows;
    int64_t bits = 0;
    for (size_t x = 0; x < x_.kinds.size(); ++x) {
        for (size_t y = 0; y < y_.kinds.size(); ++y) {
            found[x].push_back(levels(x_.kinds[x], y_.kinds[y]));
            rows = higher(rows, found[x].back().rows);
            weights_ = higher(weights_, found[x].back().weights);
            bits = std::max(bits, found[x].back().bits);
        }
    }
    const auto last = [](const AxisPlan& plan) {
        return std::ranges::find_if(plan.positions, [](const auto& entry) { return !entry.first.after; })->first.here;
    };
    last_rows = found[last(x_)][last(y_)].rows;
    if (quirks_.last_cache_level_wins) rows = last_rows;

    // The cache between two neighbours of a row.
    const auto columns = [&](size_t left, size_t right, size_t y) {
        return quirks_.last_cache_level_wins ? found[right][y].columns : higher(found[left][y].columns, found[right][y].columns);
    };
    std::map<TileKind, int64_t> kinds;
    for (const auto& [x, across] : x_.positions) {
        for (const auto& [y, down] : y_.positions) {
            TileKind kind{.x = x.here, .y = y.here};
            if (x.before) kind.use_columns = columns(*x.before, x.here, y.here);
            if (x.after) kind.make_columns = columns(x.here, *x.after, y.here);
            if (y.before) kind.use_rows = rows;
            if (y.after) kind.make_rows = rows;
            int64_t times = across * down;
            if (x == x_.first && y == y_.first) {
                kind.weights_from_top = true;
                ++kinds[kind];
                kind.weights_from_top = false;
                --times;
            }
            if (times > 0) kinds[kind] += times;
        }
    }
    total.on_chip_bits = std::max(total.on_chip_bits, bits);
    total.tile_kinds += static_cast<int64_t>(kinds.size());
    for (const auto& [kind, times] : kinds) add_tile(kind, times, total);
}

void StackRun::add_tile(const TileKind& kind, int64_t times, DepthFirstCost& total) const {
    const Kind& column = x_.kinds[kind.x];
    const Kind& row = y_.kinds[kind.y];
    const AxisTile& x = column.actual;
    const AxisTile& y = row.actual;
    const size_t highest = machine_.memories.size() - 1;
    struct Stored {
        size_t memory = 0;
        int64_t bits = 0;
        bool input = false;  ///< of the stack
    };
    std::vector<Stored> stored(stack_.members.size());
    const auto place = [&](size_t memory, Operand operand) {
        const std::vector<size_t>& levels = hierarchy(operand);
        const auto found = std::ranges::find(levels, memory);
        if (found == levels.end()) throw std::logic_error("place outside the hierarchy");
        return Place{operand, static_cast<size_t>(found - levels.begin())};
    };
    const auto charge = [&](const CopyCost& cost) {
        const auto n = static_cast<double>(times);
        total.energy_pj += n * cost.energy_pj;
        total.copy_pj += n * cost.energy_pj;
        total.latency_cycles += times * cost.latency_cycles;
        for (size_t memory = 0; memory < cost.words.size(); ++memory) total.copy_words[memory] += cost.words[memory] * n;
    };

    std::vector<DataCopy> written;  // to caches, in the bundle before the next layer
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const Stack::Member& member = stack_.members[n];
        const WorkloadLayer& layer = member.layer;
        const int64_t output = output_bits(n, x, y);
        if (output == 0) continue;
        if (member.is_input()) {
            size_t memory = highest;
            for (const size_t candidate : hierarchy(Operand::input)) {
                memory = candidate;
                if (single(candidate) && capacity(candidate) >= output) break;
            }
            stored[n] = {memory, output, true};
            std::vector<DataCopy> bundle = std::move(written);
            written.clear();
            bundle.push_back({DataCopy::Reason::stack_input, output, place(highest, Operand::input), place(memory, Operand::input)});
            charge(copy_cost(machine_, bundle));
            continue;
        }
        const LayerShape shape = shape_of(n, x, y);
        const std::vector<size_t>& inputs = hierarchy(Operand::input);
        const std::vector<size_t>& outputs = hierarchy(Operand::output);
        int64_t input = 0;
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) input += input_bits(n, operand, x, y);
        size_t input_top = 0;
        while (input_top + 1 < inputs.size() && !(single(inputs[input_top]) && capacity(inputs[input_top]) >= input)) ++input_top;
        const bool is_output = n + 1 == stack_.members.size();
        size_t output_top = 0;
        while (output_top + 1 < outputs.size() &&
               (is_output || !(single(outputs[output_top]) &&
                               capacity(outputs[output_top]) >= output + (outputs[output_top] == inputs[input_top] ? input : 0))))
            ++output_top;

        // Where no mapping fits: one level more for the output, then for the input instead, then for both, and so on.
        size_t more_output = 0, more_input = 0;
        int halvings = 0;
        while (true) {
            const size_t input_level = std::min(input_top + more_input, inputs.size() - 1);
            const size_t output_level = std::min(output_top + more_output, outputs.size() - 1);
            std::vector<size_t> tops{output_level + 1};
            if (shape.type != LayerType::addition) {
                const std::vector<size_t>& levels = hierarchy(Operand::weight);
                const bool all = kind.weights_from_top || !weights_;
                tops.push_back(all ? levels.size() : place(*weights_, Operand::weight).level + 1);
            }
            tops.resize(tops.size() + static_cast<size_t>(shape.input_operands()), input_level + 1);
            const auto mapping = map_(*member.workload_layer, shape, tops, halvings);
            if (!*mapping) {
                if (input_level + 1 == inputs.size() && output_level + 1 == outputs.size()) {
                    // What all lanes work on at once is too much for a memory beside the array: fewer lanes.
                    if (!quirks_.published_layers && halvings < most_halvings) {
                        ++halvings;
                        more_output = more_input = 0;
                        continue;
                    }
                    throw InfeasibleMapping(layer.name + ": a tile of " + std::to_string(x.computed[n]) + "x" + std::to_string(y.computed[n]) +
                                            " fits no memories of " + machine_.name);
                }
                if (more_output == more_input) {
                    ++more_output;
                } else if (more_output > more_input) {
                    ++more_input;
                    --more_output;
                } else {
                    ++more_output;
                }
                continue;
            }
            const size_t input_memory = inputs[input_level];
            const size_t output_memory = outputs[output_level];
            const Place here = place(input_memory, Operand::input);
            std::vector<DataCopy> bundle = std::move(written);
            written.clear();
            for (const size_t source : layer.sources) {
                const Stored& from = stored[source];
                if (from.bits == 0) continue;
                const bool reachable = from.input ? std::ranges::find(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(input_level) + 1,
                                                                      from.memory) != inputs.begin() + static_cast<ptrdiff_t>(input_level) + 1
                                                  : from.memory == input_memory;
                if (reachable) continue;
                const Operand operand = machine_.memories[from.memory].serves(Operand::output) ? Operand::output : Operand::input;
                bundle.push_back({DataCopy::Reason::output_to_input, from.bits, place(from.memory, operand), here});
            }
            for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
                const int64_t overlap = x.overlap[n][operand];
                if (kind.use_columns && *kind.use_columns != input_memory) {
                    const int64_t bits = layer.source_channels[operand] * machine_.bits.output * overlap * y.present[n][operand];
                    if (bits > 0) bundle.push_back({DataCopy::Reason::column_cache_read, bits, place(*kind.use_columns, Operand::input), here});
                }
            }
            for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
                if (kind.use_rows && *kind.use_rows != input_memory) {
                    const int64_t width = x.present[n][operand] - (kind.use_columns ? x.overlap[n][operand] : 0);
                    const int64_t bits = layer.source_channels[operand] * machine_.bits.output * width * y.overlap[n][operand];
                    if (bits > 0) bundle.push_back({DataCopy::Reason::row_cache_read, bits, place(*kind.use_rows, Operand::input), here});
                }
            }
            stored[n] = {output_memory, output, false};

            // Rows first: their part of the columns has passed the columns' memory then.
            const int64_t output_channel_bits = layer.shape.output_channels() * machine_.bits.output;
            const bool is_read = !stack_.readers[n].empty();
            int64_t rows_written = 0;
            if (is_read && kind.make_rows && *kind.make_rows != output_memory) {
                rows_written = row.written[n];
                const int64_t bits = output_channel_bits * x.computed[n] * rows_written;
                if (bits > 0)
                    written.push_back({DataCopy::Reason::row_cache_write, bits, place(output_memory, Operand::output),
                                       place(*kind.make_rows, Operand::output)});
            }
            if (is_read && kind.make_columns && *kind.make_columns != output_memory) {
                const int64_t bits = output_channel_bits * column.written[n] * (y.computed[n] - rows_written);
                if (bits > 0)
                    written.push_back({DataCopy::Reason::column_cache_write, bits, place(output_memory, Operand::output),
                                       place(*kind.make_columns, Operand::output)});
            }

            const CopyCost copies = copy_cost(machine_, bundle);
            charge(copies);
            const auto often = static_cast<double>(times);
            const LayerCost& cost = (*mapping)->cost;
            const bool multiplies = shape.type == LayerType::convolution || shape.type == LayerType::depthwise ||
                                    quirks_.macs_of_poolings_and_additions;
            total.energy_pj += often * (multiplies ? cost.energy_pj : cost.memory_pj);
            if (multiplies) total.mac_pj += often * cost.mac_pj;
            total.latency_cycles += times * (quirks_.no_off_load ? cost.latency.cycles() : cost.latency.cycles_with_off_load());
            total.macs += times * shape.macs();
            const std::vector<Role> all = roles(shape.type);
            for (size_t r = 0; r < all.size(); ++r) {
                const std::vector<size_t>& levels = hierarchy(operand_of(all[r]));
                for (size_t m = 0; m < tops[r]; ++m)
                    total.words[levels[m]][static_cast<size_t>(operand_of(all[r]))] += cost.words[r][m] * often;
            }
            if (with_details_) {
                LayerTileCost detail{.layer = *member.workload_layer, .shape = shape, .times = times, .mapping = **mapping, .copies = copies};
                for (size_t r = 0; r < all.size(); ++r) {
                    const std::vector<size_t>& levels = hierarchy(operand_of(all[r]));
                    detail.hierarchies.emplace_back(levels.begin(), levels.begin() + static_cast<ptrdiff_t>(tops[r]));
                }
                total.details.push_back(std::move(detail));
            }
            break;
        }
    }
}

}  // namespace

DepthFirst::Parts::MappingPtr DepthFirst::Parts::mapping(size_t layer, const LayerShape& shape, const std::vector<size_t>& tops, int halvings) const {
    // Lanes beyond the tile are not used: tiles of layers that differ in nothing else are one.
    Unrolling lanes = unrollings[layer];
    for (size_t axis = 0; axis < lanes.size(); ++axis) {
        if (machine.axes[axis].loop) lanes[axis] = std::min(lanes[axis], shape.sizes[dim_of_axis(machine.axes[axis], shape)]);
    }
    for (int n = 0; n < halvings; ++n) {
        int64_t& most = *std::ranges::max_element(lanes);
        most = ceil_div(most, 2);
    }
    MappingKey key(shape, lanes, tops);
    {
        const std::scoped_lock lock(mutex);
        const auto found = mappings.find(key);
        if (found != mappings.end()) return found->second;
    }
    const MappedLayer mapped(machine, shape, lanes, tops);
    auto made = std::make_shared<const std::optional<LayerMapping>>(
        fidelity.loop_limit > 0 ? best_limited_mapping(mapped, fidelity.loop_limit) : best_mapping(mapped));
    const std::scoped_lock lock(mutex);
    return mappings.try_emplace(std::move(key), std::move(made)).first->second;
}

std::vector<std::vector<size_t>> DepthFirst::Parts::units() const {
    const std::vector<std::vector<size_t>> readers = workload.readers();
    std::vector<std::vector<size_t>> units{{0}};
    int64_t branches = 1;
    for (size_t n = 1; n < workload.layers.size(); ++n) {
        std::vector<size_t> sources = workload.layers[n].sources;
        std::ranges::sort(sources);
        sources.erase(std::ranges::unique(sources).begin(), sources.end());
        branches -= static_cast<int64_t>(sources.size()) - 1;
        units.back().push_back(n);
        if (branches == 1) units.emplace_back();
        branches += static_cast<int64_t>(readers[n].size()) - 1;
    }
    if (units.back().empty()) units.pop_back();
    return units;
}

/// DeFiNES III, axis 3: units of layers between which only one map is alive, put together while their weights fit.
std::vector<std::vector<size_t>> DepthFirst::Parts::stacks(Stacks rule) const {
    std::vector<size_t> cuts;  // last layers of stacks but the last one, or, by quirk, of all
    const size_t count = workload.layers.size();
    if (rule == Stacks::single_layer) {
        for (size_t n = 0; n + 1 < count; ++n) {
            if (!workload.layers[n].is_input()) cuts.push_back(n);
        }
    } else if (rule == Stacks::weights_fit) {
        const std::vector<size_t> levels = machine.hierarchy(Operand::weight);
        const int64_t capacity = machine.memories[levels.size() > 1 ? levels[levels.size() - 2] : levels[0]].capacity_bits;
        int64_t sum = 0;
        std::optional<size_t> last;
        for (const std::vector<size_t>& unit : units()) {
            int64_t weights = 0;
            for (const size_t n : unit) weights += workload.layers[n].shape.weight_elements() * (workload.layers[n].is_input() ? 0 : machine.bits.weight);
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
               std::ranges::none_of(workload.layers.begin(), workload.layers.begin() + static_cast<ptrdiff_t>(n),
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
    // All that read the layer before the stack, also behind the stack (the artifact makes a stack's inputs before it cuts off its end).
    // By quirk channels under two names are two dimensions.
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
            stack.members.push_back({std::move(input), std::nullopt});
        }
    }
    for (const size_t n : layers) {
        Stack::Member added{workload.layers[n], n};
        for (size_t& source : added.layer.sources) source = member.at(source);
        member[n] = stack.members.size();
        stack.members.push_back(std::move(added));
    }
    stack.readers.resize(stack.members.size());
    for (size_t n = 0; n < stack.members.size(); ++n) {
        for (const size_t source : stack.members[n].layer.sources) {
            if (std::ranges::count(stack.readers[source], n) == 0) stack.readers[source].push_back(n);
        }
    }
    return stack;
}

void DepthFirst::Parts::add_stack(const std::vector<size_t>& layers, const Strategy& strategy, bool with_details, DepthFirstCost& total) const {
    const Stack stack = stack_of(layers);
    StackRun(machine, stack, fidelity.quirks, strategy, with_details,
             [&](size_t layer, const LayerShape& shape, const std::vector<size_t>& tops, int halvings) { return mapping(layer, shape, tops, halvings); })
        .add_to(total);
}

DepthFirst::DepthFirst(Machine machine, const Network& network, const Fidelity& fidelity) : parts_(std::make_unique<Parts>()) {
    for (const ArrayAxis& axis : machine.axes) {
        if (!axis.loop) throw InputError("machine " + machine.name + ": an axis of the array has no loop; the depth-first model needs one on each");
    }
    parts_->machine = std::move(machine);
    parts_->workload = workload_of(network, fidelity.quirks.unpadded);
    parts_->fidelity = fidelity;
    for (WorkloadLayer& layer : parts_->workload.layers) {
        Unrolling lanes =
            default_unrolling(parts_->machine, executed_shape(layer, layer.shape.sizes[Dim::ox], layer.shape.sizes[Dim::oy]));
        if (fidelity.quirks.published_layers) {
            apply_published_layer(parts_->machine, network.name, layer, lanes);
        } else {
            const Sizes& sizes = layer.shape.sizes;
            layer.shape.direct_input = sizes[Dim::fx] == 1 && sizes[Dim::fy] == 1 && layer.shape.stride == Stride{};
        }
        parts_->unrollings.push_back(std::move(lanes));
    }
}

DepthFirst::~DepthFirst() = default;
DepthFirst::DepthFirst(DepthFirst&&) noexcept = default;

const Workload& DepthFirst::workload() const { return parts_->workload; }
const Machine& DepthFirst::machine() const { return parts_->machine; }

std::vector<std::vector<size_t>> DepthFirst::stacks(Stacks rule) const { return parts_->stacks(rule); }

DepthFirstCost DepthFirst::cost(const Strategy& strategy, bool with_details) const {
    if (strategy.tile.x < 1 || strategy.tile.y < 1) throw InputError("tile: found 0 or less, expected at least 1x1");
    DepthFirstCost total;
    total.words.resize(parts_->machine.memories.size());
    total.copy_words.resize(parts_->machine.memories.size());
    total.stacks = parts_->stacks(strategy.stacks);
    for (const std::vector<size_t>& layers : total.stacks) {
        const StackCost before{total.energy_pj, total.latency_cycles, std::exchange(total.on_chip_bits, 0)};
        parts_->add_stack(layers, strategy, with_details, total);
        total.stack_costs.push_back({total.energy_pj - before.energy_pj, total.latency_cycles - before.latency_cycles, total.on_chip_bits});
        total.on_chip_bits = std::max(total.on_chip_bits, before.on_chip_bits);
    }
    return total;
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

StackCost DepthFirst::stack_cost(const std::vector<size_t>& layers, const Strategy& strategy) const {
    DepthFirstCost total;
    total.words.resize(parts_->machine.memories.size());
    total.copy_words.resize(parts_->machine.memories.size());
    parts_->add_stack(layers, strategy, false, total);
    return {total.energy_pj, total.latency_cycles, total.on_chip_bits};
}

}  // namespace laminate::depth_first
