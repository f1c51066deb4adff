#include "papers/depth_first/stack_run.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "papers/depth_first/stacks.h"

namespace laminate::depth_first {

namespace {

/// Halves the lanes of any array to one.
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
    for (const Operand operand : all_operands) hierarchies_[operand] = machine.hierarchy(operand);
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
        // In an endless map, tiles differ by their size and by whether there is one before.
        const bool caches = axis == Axis::x ? caches_columns() : caches_rows();
        std::map<std::pair<int64_t, bool>, Kind> made;
        for (size_t t = 0; t < tiles.size(); ++t) {
            // Without caches a first tile is like all others.
            const bool first = t == 0 && strategy_.overlap != Overlap::recompute;
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

/// The most bits of maps that are alive at once. A layer's inputs are as large as the layer needs
/// them; an output lives until its last reader is done.
int64_t StackRun::largest_alive(const AxisTile& x, const AxisTile& y) const {
    int64_t now = 0, largest = 0;
    std::vector<size_t> readers_left;
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const WorkloadLayer& layer = stack_.members[n].layer;
        const std::vector<size_t> sources = sorted_once(layer.sources);
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

StackRun::Demand StackRun::demand(const Kind& x, const Kind& y) const {
    Demand demand{.alive = largest_alive(x.actual, y.actual)};
    for (size_t n = 0; n < stack_.members.size(); ++n) {
        const WorkloadLayer& layer = stack_.members[n].layer;
        if (stack_.members[n].is_input) continue;
        demand.has_weights = demand.has_weights || layer.shape.type != LayerType::addition;
        demand.weights += layer.shape.weight_elements() * machine_.bits.weight;
        for (size_t operand = 0; operand < layer.sources.size(); ++operand) {
            const int64_t column = layer.source_channels[operand] * machine_.bits.input;
            const int64_t overlap_x = x.sizing.overlap[n][operand];
            const int64_t overlap_y = y.sizing.overlap[n][operand];
            // What the next tile shares is kept for that tile alone; what the next row (or column)
            // of tiles shares is kept along the whole map.
            const Sizes& map = stack_.members[layer.sources[operand]].layer.shape.sizes;
            const int64_t width = by_columns_        ? x.sizing.present[n][operand]
                                  : quirks_.unpadded ? layer.shape.input_width()
                                                     : map[Dim::ox];
            const int64_t height = !by_columns_       ? y.sizing.present[n][operand]
                                   : quirks_.unpadded ? layer.shape.input_height()
                                                      : map[Dim::oy];
            if (caches_columns()) demand.columns += column * overlap_x * height;
            if (caches_rows()) demand.rows += column * width * overlap_y;
            demand.both += column * overlap_x * overlap_y;
        }
    }
    return demand;
}

/// The caches are those for the next tile (`next`) and for the next line of tiles, a row or a
/// column (`line`).
StackRun::Levels StackRun::levels(const Kind& x, const Kind& y) const {
    const Demand demand = this->demand(x, y);
    const int64_t for_next = by_columns_ ? demand.rows : demand.columns;
    const int64_t for_line = by_columns_ ? demand.columns : demand.rows;
    // The first tile of a line makes the cache for the next tile layer by layer; later tiles find
    // all of it.
    const int64_t with_next = (by_columns_ ? y : x).first ? demand.alive : demand.alive + for_next;
    const int64_t with_all = with_next + for_line;
    const auto lowest = [&](const auto& bits_in) -> Level {
        for (const size_t memory : hierarchy(Operand::output)) {
            if (holds_inputs(memory) && capacity(memory) >= bits_in(memory)) return memory;
        }
        return std::nullopt;
    };
    Level next, line;
    const auto bits_of_all = [&](size_t memory) {
        return with_all - (memory == next ? demand.both : 0);
    };
    if (by_columns_ ? caches_rows() : caches_columns())
        next = lowest([&](size_t) { return with_next; });
    if (by_columns_ ? caches_columns() : caches_rows()) line = lowest(bits_of_all);
    Levels levels{.columns = by_columns_ ? line : next,
                  .rows = by_columns_ ? next : line,
                  .weights = std::nullopt,
                  .bits = with_all + demand.weights};
    if (demand.has_weights)
        levels.weights = weight_level(demand, next, with_next, line, line ? bits_of_all(*line) : 0);
    return levels;
}

/// The lowest memory that holds the stack's weights beside the maps and caches in it.
Level StackRun::weight_level(const Demand& demand, Level next, int64_t with_next, Level line,
                             int64_t with_line) const {
    // Every memory of the outputs up to the one that holds the maps has room for them.
    std::vector<size_t> with_maps;
    for (const size_t memory : hierarchy(Operand::output)) {
        with_maps.push_back(memory);
        if (holds_inputs(memory) && capacity(memory) >= demand.alive) break;
    }
    Level level;
    for (const size_t memory : hierarchy(Operand::weight)) {
        int64_t bits = demand.weights;
        if (std::ranges::count(with_maps, memory) > 0) bits = demand.weights + demand.alive;
        if (memory == next) bits = demand.weights + with_next;
        if (memory == line) bits = demand.weights + with_line;
        level = memory;
        if (capacity(memory) >= bits) break;
    }
    return level;
}

void StackRun::add_to(DepthFirstCost& total) {
    x_ = plan(Axis::x, strategy_.tile.x);
    y_ = plan(Axis::y, strategy_.tile.y);
    std::vector<std::vector<Levels>> found(x_->kinds.size());  // [x][y]
    Level rows;
    int64_t bits = 0;
    for (size_t x = 0; x < x_->kinds.size(); ++x) {
        for (size_t y = 0; y < y_->kinds.size(); ++y) {
            found[x].push_back(levels(x_->kinds[x], y_->kinds[y]));
            rows = higher(rows, found[x].back().rows);
            weights_ = higher(weights_, found[x].back().weights);
            bits = std::max(bits, found[x].back().bits);
        }
    }
    if (quirks_.last_cache_level_wins) {
        const auto last = [](const AxisPlan& plan) {
            return std::ranges::find_if(plan.positions,
                                        [](const auto& entry) { return !entry.first.after; })
                ->first.here;
        };
        rows = found[last(*x_)][last(*y_)].rows;
    }
    const std::map<TileKind, int64_t> kinds = tile_kinds(found, rows);
    total.on_chip_bits = std::max(total.on_chip_bits, bits);
    total.tile_kinds += static_cast<int64_t>(kinds.size());
    for (const auto& [kind, times] : kinds) add_tile(kind, times, total);
}

/// How often each kind of tile occurs. The first tile of the stack is a kind of its own, since it
/// fetches the weights. `found`: levels by kinds along x and y; `rows`: the level of the cache of
/// rows.
std::map<StackRun::TileKind, int64_t> StackRun::tile_kinds(
    const std::vector<std::vector<Levels>>& found, Level rows) const {
    // The level of the cache between two neighbours of a row.
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
    return kinds;
}

/// The lowest levels that hold the layer's inputs and its output.
StackRun::Mapped StackRun::lowest_levels(size_t n, const TileKind& kind) const {
    const AxisTile& x = x_->kinds[kind.x].actual;
    const AxisTile& y = y_->kinds[kind.y].actual;
    const WorkloadLayer& layer = stack_.members[n].layer;
    const std::vector<size_t>& inputs = hierarchy(Operand::input);
    const std::vector<size_t>& outputs = hierarchy(Operand::output);
    int64_t input = 0;
    for (size_t operand = 0; operand < layer.sources.size(); ++operand)
        input += input_bits(n, operand, x, y);
    const int64_t output = output_bits(n, x, y);
    Mapped mapped;
    mapped.shapes =
        executed_shapes(layer, {x.computed[n], x.phase[n]}, {y.computed[n], y.phase[n]});
    const auto holds = [&](size_t memory, int64_t bits) {
        return single(memory) && capacity(memory) >= bits;
    };
    size_t& in = mapped.input_level;
    size_t& out = mapped.output_level;
    while (in + 1 < inputs.size() && !holds(inputs[in], input)) ++in;
    const bool is_output = n + 1 == stack_.members.size();
    while (out + 1 < outputs.size() &&
           (is_output || !holds(outputs[out], output + (outputs[out] == inputs[in] ? input : 0))))
        ++out;
    return mapped;
}

/// Maps the layer's shapes with the levels in `mapped`, up to the first that does not fit.
void StackRun::make_mappings(size_t n, const TileKind& kind, int halvings, Mapped& mapped) const {
    const WorkloadLayer& layer = stack_.members[n].layer;
    mapped.tops = {mapped.output_level + 1};
    if (layer.shape.type != LayerType::addition) {
        const bool all = kind.weights_from_top || !weights_;
        mapped.tops.push_back(all ? hierarchy(Operand::weight).size()
                                  : place(*weights_, Operand::weight).level + 1);
    }
    mapped.tops.insert(mapped.tops.end(), static_cast<size_t>(layer.shape.input_operands()),
                       mapped.input_level + 1);
    mapped.mappings.clear();
    mapped.is_made = true;
    for (const LayerShape& shape : mapped.shapes) {
        mapped.mappings.push_back(
            map_(stack_.members[n].workload_layer, shape, mapped.tops, halvings));
        mapped.is_made = mapped.is_made && mapped.mappings.back();
        if (mapped.mappings.back() && !*mapped.mappings.back()) return;
    }
}

/// The layer at the lowest levels that hold its inputs and output. Where no mapping fits, the
/// output goes one level up, then the input instead, then both, and so on; after that lanes are
/// halved.
StackRun::Mapped StackRun::mapped(size_t n, const TileKind& kind) const {
    const size_t highest_input = hierarchy(Operand::input).size() - 1;
    const size_t highest_output = hierarchy(Operand::output).size() - 1;
    Mapped found = lowest_levels(n, kind);
    const size_t input_level = found.input_level, output_level = found.output_level;
    size_t more_output = 0, more_input = 0;
    int halvings = 0;
    while (true) {
        found.input_level = std::min(input_level + more_input, highest_input);
        found.output_level = std::min(output_level + more_output, highest_output);
        make_mappings(n, kind, halvings, found);
        if (!found.mappings.back() || *found.mappings.back()) return found;
        if (found.input_level == highest_input && found.output_level == highest_output) {
            // What all lanes work on at once is too much for a memory beside the array.
            if (quirks_.published_layers || halvings == most_halvings) {
                throw InfeasibleMapping(stack_.members[n].layer.name + ": a tile of " +
                                        std::to_string(x_->kinds[kind.x].actual.computed[n]) + "x" +
                                        std::to_string(y_->kinds[kind.y].actual.computed[n]) +
                                        " fits no memories of " + machine_.name);
            }
            ++halvings;
            more_output = more_input = 0;
        } else if (more_output > more_input) {
            ++more_input;
            --more_output;
        } else {
            ++more_output;
        }
    }
}

/// Copies into the layer's input memory: outputs of its sources, and what earlier tiles left in
/// caches.
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

/// Copies of what the layer leaves in caches. They run before the next layer.
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
    // Rows come first; the part that columns share with them is then on its way already.
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
            total.words[levels[m]][operand_of(all[r])] += cost.words[r][m] * often;
    }
}

/// One entry of DepthFirstCost::details for each shape; the copies belong to the first.
void StackRun::add_details(size_t n, const Mapped& mapped, int64_t times, CopyCost copies,
                           DepthFirstCost& total) const {
    for (size_t part = 0; part < mapped.shapes.size(); ++part) {
        LayerTileCost detail{.layer = stack_.members[n].workload_layer,
                             .shape = mapped.shapes[part],
                             .times = times,
                             .mapping = **mapped.mappings[part],
                             .copies = std::exchange(copies, {})};
        const std::vector<Role> all = roles(detail.shape.type);
        for (size_t r = 0; r < all.size(); ++r) {
            const std::vector<size_t>& levels = hierarchy(operand_of(all[r]));
            detail.hierarchies.emplace_back(
                levels.begin(), levels.begin() + static_cast<ptrdiff_t>(mapped.tops[r]));
        }
        total.details.push_back(std::move(detail));
    }
}

/// Fetches a stack's input from the highest memory to the lowest one that holds it.
StackRun::Stored StackRun::fetched(int64_t bits, std::vector<DataCopy>& bundle) const {
    const size_t highest = machine_.memories.size() - 1;
    size_t memory = highest;
    for (const size_t candidate : hierarchy(Operand::input)) {
        memory = candidate;
        if (single(candidate) && capacity(candidate) >= bits) break;
    }
    bundle.push_back({DataCopy::Reason::stack_input, bits, place(highest, Operand::input),
                      place(memory, Operand::input)});
    return {memory, bits, true};
}

/// The first tile also fetches the weights that only later tiles use.
void StackRun::add_weight_copy(size_t n, const Mapped& mapped,
                               std::vector<DataCopy>& bundle) const {
    if (!weights_) return;
    int64_t elements = stack_.members[n].layer.shape.weight_elements();
    for (const LayerShape& shape : mapped.shapes) elements -= shape.weight_elements();
    if (elements > 0)
        bundle.push_back({DataCopy::Reason::weights_of_later_tiles, elements * machine_.bits.weight,
                          place(machine_.memories.size() - 1, Operand::weight),
                          place(*weights_, Operand::weight)});
}

void StackRun::add_tile(const TileKind& kind, int64_t times, DepthFirstCost& total) const {
    const AxisTile& x = x_->kinds[kind.x].actual;
    const AxisTile& y = y_->kinds[kind.y].actual;
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
        const int64_t output = output_bits(n, x, y);
        if (output == 0) continue;
        std::vector<DataCopy> bundle = std::exchange(written, {});
        if (stack_.members[n].is_input) {
            stored[n] = fetched(output, bundle);
            charge(copy_cost(machine_, bundle), times, total);
            continue;
        }
        const Mapped& layer = mapped_members[n];
        add_input_copies(n, kind, layer.input_level, stored, bundle);
        if (kind.weights_from_top) add_weight_copy(n, layer, bundle);
        const size_t output_memory = hierarchy(Operand::output)[layer.output_level];
        stored[n] = {output_memory, output, false};
        written = cache_writes(n, kind, output_memory);
        CopyCost copies = copy_cost(machine_, bundle);
        charge(copies, times, total);
        for (size_t part = 0; part < layer.shapes.size(); ++part) {
            const LayerMapping& mapping = **layer.mappings[part];
            total.mapping_gap = std::max(total.mapping_gap, mapping.gap);
            charge(layer.shapes[part], mapping.cost, times, total);
        }
        if (with_details_) add_details(n, layer, times, std::move(copies), total);
    }
}

}  // namespace laminate::depth_first
