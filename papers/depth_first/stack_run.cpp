#include "papers/depth_first/stack_run.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"

namespace laminate::depth_first {

namespace {

/// As often as the lanes of an array may be halved where tiles do not fit: to a single one of any.
constexpr int most_halvings = 16;

Level higher(Level a, Level b) { return a && b ? std::max(*a, *b) : (a ? a : b); }

}  // namespace

StackRun::StackRun(const Machine& machine, const Stack& stack, const Quirks& quirks,
                   const Strategy& strategy, bool by_columns, bool with_details, AxisPlans& plans,
                   Map map)
    : machine_(machine),
      stack_(stack),
      quirks_(quirks),
      strategy_(strategy),
      by_columns_(by_columns),
      with_details_(with_details),
      map_(std::move(map)),
      plans_(plans) {
    for (const Operand operand : all_operands)
        hierarchies_[static_cast<size_t>(operand)] = machine.hierarchy(operand);
    for (const Stack::Member& member : stack.members) {
        const Overlap overlap = strategy.overlap_of(member.layer.name);
        keeps_columns_.push_back(overlap == Overlap::h_cached || overlap == Overlap::fully_cached);
        keeps_rows_.push_back(overlap == Overlap::v_cached || overlap == Overlap::fully_cached);
    }
}

Place StackRun::place(size_t memory, Operand operand) const {
    const std::vector<size_t>& levels = hierarchy(operand);
    const auto found = std::ranges::find(levels, memory);
    if (found == levels.end()) throw std::logic_error("place outside the hierarchy");
    return {operand, static_cast<size_t>(found - levels.begin())};
}

std::shared_ptr<const AxisPlan> AxisPlans::get(const Key& key,
                                               const std::function<AxisPlan()>& make) {
    {
        const std::scoped_lock lock(mutex_);
        const auto found = plans_.find(key);
        if (found != plans_.end()) return found->second;
    }
    auto made = std::make_shared<const AxisPlan>(make());
    const std::scoped_lock lock(mutex_);
    return plans_.try_emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const AxisPlan> StackRun::plan(Axis axis, int64_t tile) const {
    AxisPlans::Key key{.layers = {},
                       .axis = axis,
                       .tile = std::min(tile, size_along(axis)),
                       .keeps = axis == Axis::x ? keeps_columns_ : keeps_rows_,
                       .keeps_nothing = strategy_.overlap == Overlap::recompute};
    for (const Stack::Member& member : stack_.members) {
        if (!member.is_input) key.layers.push_back(member.workload_layer);
    }
    return plans_.get(key, [&] { return make_plan(axis, key.tile); });
}

AxisPlan StackRun::make_plan(Axis axis, int64_t tile) const {
    using Position = AxisPlan::Position;
    const int64_t size = size_along(axis);
    std::vector<int64_t> tiles(static_cast<size_t>(size / tile), tile);
    if (size % tile != 0)
        tiles.insert(quirks_.left_over_tiles_first ? tiles.begin() : tiles.end(), size % tile);

    std::vector<Kind> all;
    if (quirks_.unpadded) {
        // An endless map: tiles differ by their size and by whether any is before.
        const bool caches = axis == Axis::x ? caches_columns() : caches_rows();
        std::map<std::pair<int64_t, bool>, Kind> made;
        for (size_t t = 0; t < tiles.size(); ++t) {
            const bool first =
                t == 0 && strategy_.overlap != Overlap::recompute;  // without caches all are
            auto [entry, is_new] = made.try_emplace({tiles[t], first});
            Kind& kind = entry->second;
            if (is_new) {
                kind.tile = tiles[t];
                kind.first = first;
                kind.actual = endless_tile(stack_, axis, tiles[t], caches && !first);
                const bool sized_as_cached =
                    caches || (axis == Axis::y && quirks_.column_cache_sized_with_cached_rows);
                kind.sizing = endless_tile(stack_, axis, tiles[t], sized_as_cached && !first);
            }
            all.push_back(kind);
        }
    } else {
        for (AxisTile& actual :
             clipped_tiles(stack_, axis, tiles, axis == Axis::x ? keeps_columns_ : keeps_rows_)) {
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
            for (size_t n = 0; n < kind.written.size(); ++n)
                kind.written[n] = std::min(kind.written[n], kind.sizing.computed[n]);
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

int64_t StackRun::input_bits(size_t member, size_t operand, const AxisTile& x,
                             const AxisTile& y) const {
    return stack_.members[member].layer.source_channels[operand] * x.present[member][operand] *
           y.present[member][operand] * machine_.bits.input;
}

int64_t StackRun::output_bits(size_t member, const AxisTile& x, const AxisTile& y) const {
    return stack_.members[member].layer.shape.output_channels() * x.computed[member] *
           y.computed[member] * machine_.bits.output;
}

/// Most bits of maps that are alive at once: each layer's inputs as large as it needs them, outputs
/// until their last reader is done.
int64_t StackRun::largest_alive(const AxisTile& x, const AxisTile& y) const {
    int64_t now = 0, largest = 0;
    std::vector<size_t> readers_left;
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const WorkloadLayer& layer = stack_.members[n].layer;
        std::vector<size_t> sources = layer.sources;
        std::ranges::sort(sources);
        sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
        int64_t produced = 0, read = 0;
        for (const size_t source : sources) produced += output_bits(source, x, y);
        for (size_t operand = 0; operand < layer.sources.size(); ++operand)
            read += input_bits(n, operand, x, y);
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
        if (stack_.members[n].is_input) continue;
        weighted = weighted || layer.shape.type != LayerType::addition;
        weights += layer.shape.weight_elements() * machine_.bits.weight;
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
            const int64_t column = layer.source_channels[operand] * machine_.bits.input;
            const int64_t overlap_x = x.sizing.overlap[n][operand];
            const int64_t overlap_y = y.sizing.overlap[n][operand];
            // What the next tile shares is kept for it alone; what the next row (or column) of
            // tiles shares, along the whole map.
            const Sizes& map = stack_.members[layer.sources[operand]].layer.shape.sizes;
            const int64_t width = by_columns_        ? x.sizing.present[n][operand]
                                  : quirks_.unpadded ? layer.shape.input_width()
                                                     : map[Dim::ox];
            const int64_t height = !by_columns_       ? y.sizing.present[n][operand]
                                   : quirks_.unpadded ? layer.shape.input_height()
                                                      : map[Dim::oy];
            if (caches_columns()) columns += column * overlap_x * height;
            if (caches_rows()) rows += column * width * overlap_y;
            both += column * overlap_x * overlap_y;
        }
    }
    const auto holds_inputs = [&](size_t memory) {
        return machine_.memories[memory].serves(Operand::input) && single(memory);
    };
    // The first tile of a row (or column) of tiles makes the caches for the next tile, layer by
    // layer; the others find them all.
    const int64_t with_next =
        (by_columns_ ? y : x).first ? alive : alive + (by_columns_ ? rows : columns);
    const int64_t with_all = with_next + (by_columns_ ? columns : rows);
    Level next, line;
    const auto bits_of_all = [&](size_t memory) { return with_all - (memory == next ? both : 0); };
    const auto lowest = [&](const auto& bits_in) -> Level {
        for (const size_t memory : hierarchy(Operand::output)) {
            if (holds_inputs(memory) && capacity(memory) >= bits_in(memory)) return memory;
        }
        return std::nullopt;
    };
    if (by_columns_ ? caches_rows() : caches_columns())
        next = lowest([&](size_t) { return with_next; });
    if (by_columns_ ? caches_columns() : caches_rows()) line = lowest(bits_of_all);
    Levels levels{.columns = by_columns_ ? line : next,
                  .rows = by_columns_ ? next : line,
                  .weights = std::nullopt,
                  .bits = with_all + weights};
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
        if (memory == next) bits = weights + with_next;
        if (memory == line) bits = weights + bits_of_all(memory);
        levels.weights = memory;
        if (capacity(memory) >= bits) break;
    }
    return levels;
}

void StackRun::add_to(DepthFirstCost& total) {
    x_ = plan(Axis::x, strategy_.tile.x);
    y_ = plan(Axis::y, strategy_.tile.y);
    std::vector<std::vector<Levels>> found(x_->kinds.size());  // [x][y]
    Level rows, last_rows;
    int64_t bits = 0;
    for (size_t x = 0; x < x_->kinds.size(); ++x) {
        for (size_t y = 0; y < y_->kinds.size(); ++y) {
            found[x].push_back(levels(x_->kinds[x], y_->kinds[y]));
            rows = higher(rows, found[x].back().rows);
            weights_ = higher(weights_, found[x].back().weights);
            bits = std::max(bits, found[x].back().bits);
        }
    }
    const auto last = [](const AxisPlan& plan) {
        return std::ranges::find_if(plan.positions,
                                    [](const auto& entry) { return !entry.first.after; })
            ->first.here;
    };
    last_rows = found[last(*x_)][last(*y_)].rows;
    if (quirks_.last_cache_level_wins) rows = last_rows;

    // The cache between two neighbours of a row.
    const auto columns = [&](size_t left, size_t right, size_t y) {
        return quirks_.last_cache_level_wins
                   ? found[right][y].columns
                   : higher(found[left][y].columns, found[right][y].columns);
    };
    std::map<TileKind, int64_t> kinds;
    for (const auto& [x, across] : x_->positions) {
        for (const auto& [y, down] : y_->positions) {
            TileKind kind{.x = x.here, .y = y.here};
            if (x.before) kind.use_columns = columns(*x.before, x.here, y.here);
            if (x.after) kind.make_columns = columns(x.here, *x.after, y.here);
            if (y.before) kind.use_rows = rows;
            if (y.after) kind.make_rows = rows;
            int64_t times = across * down;
            if (x == x_->first && y == y_->first) {
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

/// The layer in the levels of inputs and outputs that hold it, or, where no mapping fits: one level
/// more for the output, then for the input instead, then for both, and so on; then with fewer
/// lanes.
StackRun::Mapped StackRun::mapped(size_t n, const TileKind& kind) const {
    const AxisTile& x = x_->kinds[kind.x].actual;
    const AxisTile& y = y_->kinds[kind.y].actual;
    const WorkloadLayer& layer = stack_.members[n].layer;
    const std::vector<size_t>& inputs = hierarchy(Operand::input);
    const std::vector<size_t>& outputs = hierarchy(Operand::output);
    int64_t input = 0;
    for (size_t operand = 0; operand < layer.sources.size(); ++operand)
        input += input_bits(n, operand, x, y);
    const int64_t output = output_bits(n, x, y);
    size_t input_top = 0, output_top = 0;
    while (input_top + 1 < inputs.size() &&
           !(single(inputs[input_top]) && capacity(inputs[input_top]) >= input))
        ++input_top;
    const bool is_output = n + 1 == stack_.members.size();
    while (output_top + 1 < outputs.size() &&
           (is_output || !(single(outputs[output_top]) &&
                           capacity(outputs[output_top]) >=
                               output + (outputs[output_top] == inputs[input_top] ? input : 0))))
        ++output_top;

    Mapped found;
    found.shapes = executed_shapes(layer, {x.computed[n], x.phase[n]}, {y.computed[n], y.phase[n]});
    size_t more_output = 0, more_input = 0;
    int halvings = 0;
    while (true) {
        found.input_level = std::min(input_top + more_input, inputs.size() - 1);
        found.output_level = std::min(output_top + more_output, outputs.size() - 1);
        found.tops = {found.output_level + 1};
        if (layer.shape.type != LayerType::addition) {
            const bool all = kind.weights_from_top || !weights_;
            found.tops.push_back(all ? hierarchy(Operand::weight).size()
                                     : place(*weights_, Operand::weight).level + 1);
        }
        found.tops.resize(found.tops.size() + static_cast<size_t>(layer.shape.input_operands()),
                          found.input_level + 1);
        found.mappings.clear();
        for (const LayerShape& shape : found.shapes) {
            found.mappings.push_back(
                map_(stack_.members[n].workload_layer, shape, found.tops, halvings));
            found.is_made = found.is_made && found.mappings.back();
            if (found.mappings.back() && !*found.mappings.back()) break;
        }
        if (!found.mappings.back() || *found.mappings.back()) return found;
        found.is_made = true;
        if (found.input_level + 1 == inputs.size() && found.output_level + 1 == outputs.size()) {
            // What all lanes work on at once is too much for a memory beside the array.
            if (quirks_.published_layers || halvings == most_halvings) {
                throw InfeasibleMapping(
                    layer.name + ": a tile of " + std::to_string(x.computed[n]) + "x" +
                    std::to_string(y.computed[n]) + " fits no memories of " + machine_.name);
            }
            ++halvings;
            more_output = more_input = 0;
        } else if (more_output == more_input) {
            ++more_output;
        } else if (more_output > more_input) {
            ++more_input;
            --more_output;
        } else {
            ++more_output;
        }
    }
}

/// What has to lie in the layer's input memory before it runs: outputs of its sources, and what
/// earlier tiles left in caches.
void StackRun::add_input_copies(size_t n, const TileKind& kind, size_t input_level,
                                const std::vector<Stored>& stored,
                                std::vector<DataCopy>& bundle) const {
    const AxisTile& x = x_->kinds[kind.x].actual;
    const AxisTile& y = y_->kinds[kind.y].actual;
    const WorkloadLayer& layer = stack_.members[n].layer;
    const std::vector<size_t>& inputs = hierarchy(Operand::input);
    const size_t memory = inputs[input_level];
    const Place here = place(memory, Operand::input);
    for (const size_t source : layer.sources) {
        const Stored& from = stored[source];
        if (from.bits == 0) continue;
        const auto end = inputs.begin() + static_cast<ptrdiff_t>(input_level) + 1;
        const bool reachable =
            from.input ? std::find(inputs.begin(), end, from.memory) != end : from.memory == memory;
        if (reachable) continue;
        const Operand operand = machine_.memories[from.memory].serves(Operand::output)
                                    ? Operand::output
                                    : Operand::input;
        bundle.push_back(
            {DataCopy::Reason::output_to_input, from.bits, place(from.memory, operand), here});
    }
    const auto read_cache = [&](DataCopy::Reason reason, Level cache, const auto& elements) {
        if (!cache || *cache == memory) return;
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
            const int64_t bits =
                layer.source_channels[operand] * machine_.bits.output * elements(operand);
            if (bits > 0) bundle.push_back({reason, bits, place(*cache, Operand::input), here});
        }
    };
    read_cache(DataCopy::Reason::column_cache_read, kind.use_columns,
               [&](size_t operand) { return x.overlap[n][operand] * y.present[n][operand]; });
    read_cache(DataCopy::Reason::row_cache_read, kind.use_rows, [&](size_t operand) {
        return (x.present[n][operand] - (kind.use_columns ? x.overlap[n][operand] : 0)) *
               y.overlap[n][operand];
    });
}

/// What the layer leaves in caches, copied before the next layer runs.
std::vector<DataCopy> StackRun::cache_writes(size_t n, const TileKind& kind, size_t memory) const {
    const Kind& column = x_->kinds[kind.x];
    const Kind& row = y_->kinds[kind.y];
    std::vector<DataCopy> copies;
    if (stack_.readers[n].empty()) return copies;
    const int64_t channel_bits =
        stack_.members[n].layer.shape.output_channels() * machine_.bits.output;
    const auto write = [&](DataCopy::Reason reason, Level cache, int64_t elements) {
        if (channel_bits * elements > 0)
            copies.push_back({reason, channel_bits * elements, place(memory, Operand::output),
                              place(*cache, Operand::output)});
    };
    // Rows first: their part of the columns has passed the columns' memory then.
    int64_t rows = 0;
    if (kind.make_rows && *kind.make_rows != memory) {
        rows = row.written[n];
        write(DataCopy::Reason::row_cache_write, kind.make_rows, column.actual.computed[n] * rows);
    }
    if (kind.make_columns && *kind.make_columns != memory)
        write(DataCopy::Reason::column_cache_write, kind.make_columns,
              column.written[n] * (row.actual.computed[n] - rows));
    return copies;
}

void StackRun::charge(const CopyCost& cost, int64_t times, DepthFirstCost& total) const {
    const auto often = static_cast<double>(times);
    total.energy_pj += often * cost.energy_pj;
    total.copy_pj += often * cost.energy_pj;
    total.latency_cycles += times * cost.latency_cycles;
    for (size_t memory = 0; memory < cost.words.size(); ++memory)
        total.copy_words[memory] += cost.words[memory] * often;
}

void StackRun::charge(const LayerShape& shape, const LayerCost& cost, int64_t times,
                      DepthFirstCost& total) const {
    const auto often = static_cast<double>(times);
    const bool multiplies = quirks_.counts_macs_of(shape.type);
    total.energy_pj += often * (multiplies ? cost.energy_pj : cost.memory_pj);
    if (multiplies) total.mac_pj += often * cost.mac_pj;
    total.latency_cycles +=
        times * (quirks_.no_off_load ? cost.latency.cycles() : cost.latency.cycles_with_off_load());
    total.macs += times * shape.macs();
    const std::vector<Role> all = roles(shape.type);
    for (size_t r = 0; r < all.size(); ++r) {
        const std::vector<size_t>& levels = hierarchy(operand_of(all[r]));
        for (size_t m = 0; m < cost.words[r].size(); ++m)
            total.words[levels[m]][static_cast<size_t>(operand_of(all[r]))] +=
                cost.words[r][m] * often;
    }
}

void StackRun::add_tile(const TileKind& kind, int64_t times, DepthFirstCost& total) const {
    const AxisTile& x = x_->kinds[kind.x].actual;
    const AxisTile& y = y_->kinds[kind.y].actual;
    const size_t highest = machine_.memories.size() - 1;
    std::vector<Mapped> mapped_members(stack_.members.size());
    bool is_made = true;
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        if (stack_.members[n].is_input || output_bits(n, x, y) == 0) continue;
        mapped_members[n] = mapped(n, kind);
        is_made = is_made && mapped_members[n].is_made;
    }
    if (!is_made) return;
    std::vector<Stored> stored(stack_.members.size());
    std::vector<DataCopy> written;  // to caches, in the bundle before the next layer
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const Stack::Member& member = stack_.members[n];
        const int64_t output = output_bits(n, x, y);
        if (output == 0) continue;
        std::vector<DataCopy> bundle = std::exchange(written, {});
        if (member.is_input) {
            size_t memory = highest;
            for (const size_t candidate : hierarchy(Operand::input)) {
                memory = candidate;
                if (single(candidate) && capacity(candidate) >= output) break;
            }
            stored[n] = {memory, output, true};
            bundle.push_back({DataCopy::Reason::stack_input, output, place(highest, Operand::input),
                              place(memory, Operand::input)});
            charge(copy_cost(machine_, bundle), times, total);
            continue;
        }
        const Mapped& layer = mapped_members[n];
        add_input_copies(n, kind, layer.input_level, stored, bundle);
        if (kind.weights_from_top && weights_) {
            int64_t elements = member.layer.shape.weight_elements();
            for (const LayerShape& shape : layer.shapes) elements -= shape.weight_elements();
            if (elements > 0)
                bundle.push_back({DataCopy::Reason::weights_of_later_tiles,
                                  elements * machine_.bits.weight, place(highest, Operand::weight),
                                  place(*weights_, Operand::weight)});
        }
        const size_t output_memory = hierarchy(Operand::output)[layer.output_level];
        stored[n] = {output_memory, output, false};
        written = cache_writes(n, kind, output_memory);
        CopyCost copies = copy_cost(machine_, bundle);
        charge(copies, times, total);
        for (size_t part = 0; part < layer.shapes.size(); ++part) {
            const LayerMapping& mapping = **layer.mappings[part];
            total.mapping_gap = std::max(total.mapping_gap, mapping.gap);
            charge(layer.shapes[part], mapping.cost, times, total);
            if (!with_details_) continue;
            LayerTileCost detail{.layer = member.workload_layer,
                                 .shape = layer.shapes[part],
                                 .times = times,
                                 .mapping = mapping,
                                 .copies = std::exchange(copies, {})};
            const std::vector<Role> all = roles(detail.shape.type);
            for (size_t r = 0; r < all.size(); ++r) {
                const std::vector<size_t>& levels = hierarchy(operand_of(all[r]));
                detail.hierarchies.emplace_back(
                    levels.begin(), levels.begin() + static_cast<ptrdiff_t>(layer.tops[r]));
            }
            total.details.push_back(std::move(detail));
        }
    }
}

}  // namespace laminate::depth_first
