#include "papers/dag_groups/group_cost.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "papers/machine_view.h"

namespace laminate::dag_groups {

GroupMachine group_machine(const Machine& machine) {
    GroupMachine result;
    const int64_t bits = element_bits(machine);
    if (bits % 8 != 0)
        throw machine_error(machine,
                            "elements of " + std::to_string(bits) + " bits, expected whole bytes");
    result.entry_bytes = bits / 8;
    const auto buffer_of = [&](Operand operand) {
        const std::vector<size_t> levels = machine.hierarchy(operand);
        if (levels.size() < 2)
            throw machine_error(machine, "no memory between the array and external memory");
        return levels[levels.size() - 2];
    };
    const auto bytes = [&](size_t memory) {
        return machine.memories[memory].capacity_bits / 8 *
               machine.copies(machine.memories[memory]);
    };
    const size_t input = buffer_of(Operand::input);
    const size_t output = buffer_of(Operand::output);
    const size_t weight = buffer_of(Operand::weight);
    result.buffer_bytes = bytes(input) + (output == input ? 0 : bytes(output));
    if (weight != input && weight != output) result.weight_buffer_bytes = bytes(weight);
    for (const ArrayAxis& axis : machine.axes) {
        if (axis.loop == ArrayLoop::oy) result.lanes_height *= axis.lanes;
        if (axis.loop == ArrayLoop::ox) result.lanes_width *= axis.lanes;
        if (axis.loop == ArrayLoop::k) result.lanes_channels *= axis.lanes;
    }
    return result;
}

GroupRules rules_of(Reading reading, const GroupMachine& machine, int64_t images,
                    int64_t buffer_entries) {
    GroupRules rules;
    rules.images = images;
    const bool literal = reading == Reading::literal;
    rules.searches_width = rules.clips_maps = rules.exact_streams = rules.weights_may_stay =
        !literal;
    rules.batch_is_tile = reading == Reading::batch_as_tile;
    rules.buffer_entries = machine.buffer_bytes / (rules.batch_is_tile ? 1 : machine.entry_bytes);
    if (machine.weight_buffer_bytes)
        rules.weight_buffer_entries =
            *machine.weight_buffer_bytes / (rules.batch_is_tile ? 1 : machine.entry_bytes);
    if (buffer_entries > 0) rules.buffer_entries = buffer_entries;
    return rules;
}

GroupEvaluator::GroupEvaluator(const OperatorGraph& graph, const GroupMachine& machine,
                               const GroupRules& rules)
    : machine_(machine),
      rules_(rules),
      rows_(graph, machine.lanes_channels),
      node_of_map_(graph.maps.size(), -1) {}

int64_t GroupEvaluator::least_tile(MapAxis axis, int64_t size) const {
    if (axis == MapAxis::x && !rules_.searches_width) return size;
    return std::min(size, axis == MapAxis::y ? machine_.lanes_height : machine_.lanes_width);
}

void GroupEvaluator::collect(std::span<const int> operators) {
    for (const Node& node : nodes_) node_of_map_[static_cast<size_t>(node.map)] = -1;
    nodes_.clear();
    edges_.clear();
    largest_ = {1, 1};
    sorted_.assign(operators.begin(), operators.end());
    std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
    inside_ = sorted_.size();
    const auto add = [&](int map) {
        node_of_map_[static_cast<size_t>(map)] = static_cast<int>(nodes_.size());
        nodes_.push_back({map, 0, false});
    };
    for (const int op : sorted_) add(op);
    for (size_t n = 0; n < inside_; ++n) {
        for (const GraphRows::InputRow& input : rows_.inputs(sorted_[n])) {
            const int& node = node_of_map_[static_cast<size_t>(input.map)];
            if (node < 0) add(input.map);
            ++nodes_[static_cast<size_t>(node)].readers;
            edges_.push_back({static_cast<int>(n), node, &input.reach});
        }
    }
    for (size_t n = 0; n < inside_; ++n) {
        if (!is_sink(n)) continue;
        const PerAxis<int64_t>& size = row(nodes_[n]).size;
        for (const MapAxis axis : map_axes) largest_[axis] = std::max(largest_[axis], size[axis]);
    }
}

void GroupEvaluator::extents(MapAxis axis, int64_t tile, bool floors,
                             std::vector<int64_t>& result) const {
    result.assign(nodes_.size(), 0);
    for (size_t n = 0; n < inside_; ++n) {
        if (!is_sink(n)) continue;
        const int64_t size = row(nodes_[n]).size[axis];
        // Divisions would be most of the time of a search.
        result[n] = size == largest_[axis] ? tile : ceil_div(size * tile, largest_[axis]);
        if (floors) result[n] = std::max(result[n], least_tile(axis, size));
    }
    for (const Edge& edge : edges_) {
        const auto input = static_cast<size_t>(edge.input);
        int64_t needed = (*edge.reach)[axis].inputs(result[static_cast<size_t>(edge.reader)]);
        if (rules_.clips_maps) needed = std::min(needed, row(nodes_[input]).size[axis]);
        result[input] = std::max(result[input], needed);
    }
}

int64_t GroupEvaluator::entries(const std::vector<int64_t>& height,
                                const std::vector<int64_t>& width) const {
    int64_t sum = 0;
    for (size_t n = 0; n < held_.size(); ++n) sum += held_[n] * height[n] * width[n];
    return sum;
}

void GroupEvaluator::choose_streams() {
    extents(MapAxis::y, 1, false, height_);
    extents(MapAxis::x, 1, false, width_);
    area_.resize(nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n) area_[n] = height_[n] * width_[n];
    if (rules_.exact_streams)
        choose_streams_exactly();
    else
        choose_streams_greedily();
    held_.resize(nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n)
        held_[n] = nodes_[n].streams ? row(nodes_[n]).lanes : row(nodes_[n]).channels;
}

/// dp[l][1] = m_1(l) + sum of dp[c][0]; dp[l][0] = m_0(l) + sum of min(dp[c][0], dp[c][1]), over
/// the readers c (Algorithm 2). Sums that count a shared reader twice may grow without end; they
/// stop at a bound far above every buffer.
void GroupEvaluator::choose_streams_greedily() {
    constexpr int64_t endless = int64_t{1} << 50;
    std::vector<std::array<int64_t, 2>> dp(nodes_.size());
    for (size_t n = 0; n < nodes_.size(); ++n)
        dp[n] = {row(nodes_[n]).channels * area_[n], row(nodes_[n]).lanes * area_[n]};
    for (const Edge& edge : edges_) {
        const std::array<int64_t, 2> reader = dp[static_cast<size_t>(edge.reader)];
        std::array<int64_t, 2>& input = dp[static_cast<size_t>(edge.input)];
        input[1] = std::min(endless, input[1] + reader[0]);
        input[0] = std::min(endless, input[0] + std::min(reader[0], reader[1]));
    }
    for (Node& node : nodes_) node.streams = true;
    // Forwards: what is read is decided before its reader. Edges are in order of readers, so all
    // inputs of a reader come before it from the back.
    std::vector<bool> decided(nodes_.size(), false);
    const auto decide = [&](size_t n) {
        if (!decided[n]) nodes_[n].streams = nodes_[n].streams && dp[n][1] < dp[n][0];
        decided[n] = true;
    };
    for (size_t e = edges_.size(); e-- > 0;) {
        decide(static_cast<size_t>(edges_[e].input));
        if (nodes_[static_cast<size_t>(edges_[e].input)].streams)
            nodes_[static_cast<size_t>(edges_[e].reader)].streams = false;
    }
    for (size_t n = 0; n < nodes_.size(); ++n) decide(n);
}

/// Operators as they are; an input from outside after the last operator that reads it, so that few
/// nodes wait.
void GroupEvaluator::put_in_order() {
    StreamScratch& s = scratch_;
    s.last_reader.resize(nodes_.size());
    for (const Edge& edge : edges_) s.last_reader[static_cast<size_t>(edge.input)] = edge.reader;
    s.order.clear();
    s.position.resize(nodes_.size());
    const auto put = [&](int n) {
        s.position[static_cast<size_t>(n)] = static_cast<int>(s.order.size());
        s.order.push_back(n);
    };
    size_t e = 0;
    for (size_t n = 0; n < inside_; ++n) {
        put(static_cast<int>(n));
        const size_t first = s.order.size();
        for (; e < edges_.size() && edges_[e].reader == static_cast<int>(n); ++e) {
            const int input = edges_[e].input;
            if (static_cast<size_t>(input) >= inside_ &&
                s.last_reader[static_cast<size_t>(input)] == static_cast<int>(n))
                put(input);
        }
        if (s.order.size() - first < 2) continue;
        std::sort(s.order.begin() + static_cast<std::ptrdiff_t>(first), s.order.end());
        for (size_t p = first; p < s.order.size(); ++p)
            s.position[static_cast<size_t>(s.order[p])] = static_cast<int>(p);
    }
}

/// The heaviest set of maps of which none reads another, weighed by what streaming saves; node by
/// node, over the choices of nodes that have a neighbour still to come.
void GroupEvaluator::choose_streams_exactly() {
    StreamScratch& s = scratch_;
    const size_t count = nodes_.size();
    put_in_order();
    // A reader waits until the last of its inputs has had its turn.
    s.conflicts.assign(count, 0);
    s.gone.assign(count, 0);
    s.states.assign(1, {0, 0, -1, false});
    s.first_state.assign(1, 0);
    uint64_t free_slots = ~uint64_t{0};
    size_t e = 0;  // edges are by reader, and operators come in that order
    for (size_t p = 0; p < count; ++p) {
        const auto n = static_cast<size_t>(s.order[p]);
        const GraphRows::MapRow& map = row(nodes_[n]);
        const int64_t saving = (map.channels - map.lanes) * area_[n];
        const bool may_take = saving > 0;
        const size_t first_edge = e;
        int waits_until = -1;
        if (n < inside_) {
            for (; e < edges_.size() && edges_[e].reader == static_cast<int>(n); ++e)
                waits_until =
                    std::max(waits_until, s.position[static_cast<size_t>(edges_[e].input)]);
        }
        uint64_t own = 0;
        if (may_take && waits_until > static_cast<int>(p)) {
            if (free_slots == 0)
                throw InputError(
                    "a group with more than 64 maps that wait for one another; expected fewer");
            own = free_slots & -free_slots;
            free_slots &= ~own;
            s.gone[static_cast<size_t>(waits_until)] |= own;
            for (size_t edge = first_edge; edge < e; ++edge)
                s.conflicts[static_cast<size_t>(edges_[edge].input)] |= own;
        }
        const uint64_t conflicts = s.conflicts[n];
        const uint64_t gone = s.gone[p];
        free_slots |= gone;
        const int begin = s.first_state.back();
        const int end = static_cast<int>(s.states.size());
        const auto offer = [&](StreamScratch::State state) {
            for (size_t k = static_cast<size_t>(end); k < s.states.size(); ++k) {
                if (s.states[k].chosen != state.chosen) continue;
                if (state.saved > s.states[k].saved) s.states[k] = state;
                return;
            }
            s.states.push_back(state);
        };
        for (int k = begin; k < end; ++k) {
            const StreamScratch::State now = s.states[static_cast<size_t>(k)];
            const uint64_t kept = now.chosen & ~gone;
            if (may_take && (now.chosen & conflicts) == 0)
                offer({kept | own, now.saved + saving, k, true});
            offer({kept, now.saved, k, false});
        }
        s.first_state.push_back(end);
    }
    int at = s.first_state.back();
    for (int k = at + 1; k < static_cast<int>(s.states.size()); ++k) {
        if (s.states[static_cast<size_t>(k)].saved > s.states[static_cast<size_t>(at)].saved)
            at = k;
    }
    for (size_t p = count; p > 0; --p) {
        const StreamScratch::State& state = s.states[static_cast<size_t>(at)];
        nodes_[static_cast<size_t>(s.order[p - 1])].streams = state.takes;
        at = state.before;
    }
}

/// The fewest passes of the weights. For every number of columns of tiles and every number of
/// images together, the fewest rows of tiles: entries grow with the tile.
void GroupEvaluator::search_tile(GroupCost& cost, int64_t buffer_entries) {
    const int64_t rows = largest_[MapAxis::y];
    const int64_t columns = largest_[MapAxis::x];
    const int64_t least_height = least_tile(MapAxis::y, rows);
    const int64_t least_width = least_tile(MapAxis::x, columns);
    heights_.resize(std::max(heights_.size(), static_cast<size_t>(rows) + 1));
    has_height_.resize(heights_.size(), 0);
    ++searches_;
    const auto height_extents = [&](int64_t tile) -> const std::vector<int64_t>& {
        std::vector<int64_t>& result = heights_[static_cast<size_t>(tile)];
        if (std::exchange(has_height_[static_cast<size_t>(tile)], searches_) != searches_)
            extents(MapAxis::y, tile, true, result);
        return result;
    };
    cost.passes = std::numeric_limits<int64_t>::max();
    const int64_t most_columns = ceil_div(columns, least_width);
    const int64_t most_rows = ceil_div(rows, least_height);
    for (int64_t column_tiles = 1; column_tiles <= most_columns; ++column_tiles) {
        const int64_t width = std::max(least_width, ceil_div(columns, column_tiles));
        if (column_tiles >= cost.passes) break;
        if (ceil_div(columns, width) != column_tiles) continue;
        extents(MapAxis::x, width, true, width_);
        const int64_t most_images = rules_.batch_is_tile ? rules_.images : 1;
        for (int64_t batch_tiles = 1; batch_tiles <= most_images; ++batch_tiles) {
            const int64_t images = ceil_div(most_images, batch_tiles);
            if (ceil_div(most_images, images) != batch_tiles) continue;
            if (column_tiles * batch_tiles >= cost.passes) break;
            const int64_t room = buffer_entries / images;
            const auto fits = [&](int64_t row_tiles) {
                return entries(height_extents(std::max(least_height, ceil_div(rows, row_tiles))),
                               width_) <= room;
            };
            // Fewer row tiles than make it better than the best so far.
            int64_t high = most_rows;
            if (cost.passes != std::numeric_limits<int64_t>::max())
                high = std::min(high, (cost.passes - 1) / (column_tiles * batch_tiles));
            if (high < 1 || !fits(high)) continue;
            int64_t low = 0;
            while (high - low > 1) {
                const int64_t middle = (low + high) / 2;
                (fits(middle) ? high : low) = middle;
            }
            cost.tile_height = std::max(least_height, ceil_div(rows, high));
            cost.tile_width = width;
            cost.tile_images = images;
            cost.passes = ceil_div(rows, cost.tile_height) * column_tiles * batch_tiles;
            cost.buffer_entries = images * entries(height_extents(cost.tile_height), width_);
        }
    }
}

std::optional<GroupCost> GroupEvaluator::cost(std::span<const int> operators) {
    collect(operators);
    choose_streams();
    GroupCost cost;
    cost.tile_height = least_tile(MapAxis::y, largest_[MapAxis::y]);
    cost.tile_width = least_tile(MapAxis::x, largest_[MapAxis::x]);
    extents(MapAxis::y, cost.tile_height, true, height_);
    extents(MapAxis::x, cost.tile_width, true, width_);
    cost.buffer_entries = entries(height_, width_);
    if (cost.buffer_entries > rules_.buffer_entries) return std::nullopt;
    for (size_t n = 0; n < nodes_.size(); ++n) {
        const GraphRows::MapRow& map = row(nodes_[n]);
        const int64_t all_images = rules_.images * map.elements();
        if (n >= inside_) {
            cost.input_entries += all_images;
            continue;
        }
        cost.weight_entries += rows_.weights(nodes_[n].map);
        if (map.leaves_always || nodes_[n].readers < map.readers) cost.output_entries += all_images;
    }
    const int64_t room_for_weights =
        rules_.weight_buffer_entries.value_or(rules_.buffer_entries - cost.buffer_entries);
    const bool weights_stay = rules_.weights_may_stay && cost.weight_entries <= room_for_weights;
    if (!weights_stay && cost.weight_entries > 0) search_tile(cost, rules_.buffer_entries);
    return cost;
}

int64_t GroupEvaluator::least_entries(std::span<const int> operators) {
    collect(operators);
    choose_streams();
    extents(MapAxis::y, least_tile(MapAxis::y, largest_[MapAxis::y]), true, height_);
    extents(MapAxis::x, least_tile(MapAxis::x, largest_[MapAxis::x]), true, width_);
    return entries(height_, width_);
}

int64_t GroupEvaluator::quarter_tile_entries(std::span<const int> operators) {
    collect(operators);
    choose_streams();
    extents(MapAxis::y, ceil_div(largest_[MapAxis::y], 4), false, height_);
    extents(MapAxis::x, ceil_div(largest_[MapAxis::x], 4), false, width_);
    return entries(height_, width_);
}

std::vector<GroupEvaluator::Stream> GroupEvaluator::streams() const {
    std::vector<Stream> result;
    for (const Node& node : nodes_) result.push_back({node.map, node.streams});
    return result;
}

}  // namespace laminate::dag_groups
