#include "scheduler/models/dag_groups/grouping.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/units.h"
#include "scheduler/search/order_ideals.h"

namespace laminate::dag_groups {

namespace {

using search::OrderIdeals;

std::vector<std::vector<int>> needs_of(const OperatorGraph& graph) {
    std::vector<std::vector<int>> needs(graph.operators.size());
    for (size_t op = 0; op < needs.size(); ++op) {
        for (const OperatorInput& input : graph.operators[op].inputs) {
            if (input.map < graph.size()) needs[op].push_back(input.map);
        }
    }
    return needs;
}

/// MemoryCost first, then the number of groups.
struct Total {
    int64_t entries = std::numeric_limits<int64_t>::max();
    int groups = 0;
    friend auto operator<=>(const Total&, const Total&) = default;
};

/// Costs of groups, looked up by shape: groups that are shifts of one another, in the numbers of the operators, cost the same.
class CostsByShape {
public:
    CostsByShape(const OperatorGraph& graph, GroupEvaluator& evaluator) : evaluator_(evaluator) {
        std::map<std::vector<int64_t>, int> numbers;
        power_.push_back(1);
        inverse_power_.push_back(1);
        for (int op = 0; op < graph.size(); ++op) {
            signature_.push_back(numbers.emplace(signature(graph, op), static_cast<int>(numbers.size())).first->second);
            power_.push_back(power_.back() * ratio);
            inverse_power_.push_back(inverse_power_.back() * inverse(ratio));
            const auto number = static_cast<uint64_t>(signature_.back() + 1);
            term_.push_back((number * 0x9e3779b97f4a7c15u ^ (number << 29)) * power_[static_cast<size_t>(op)]);
        }
    }

    /// To be summed over a group.
    [[nodiscard]] uint64_t term(int op) const { return term_[static_cast<size_t>(op)]; }

    /// `sum` of the terms of `operators`, `least` their smallest number. None: it does not fit.
    const std::optional<GroupCost>& cost(const std::vector<int>& operators, uint64_t sum, int least) {
        std::vector<Known>& alike = known_[sum * inverse_power_[static_cast<size_t>(least)] + operators.size()];
        for (const Known& known : alike) {
            if (is_shift(known.operators, operators)) return known.cost;
        }
        ++looked_for;
        alike.push_back({operators, evaluator_.cost(operators)});
        return alike.back().cost;
    }

    int64_t looked_for = 0;

private:
    static constexpr uint64_t ratio = 0xd1342543de82ef95u;  // odd, so that it has an inverse modulo 2^64
    static constexpr uint64_t inverse(uint64_t odd) {
        uint64_t x = odd;
        for (int n = 0; n < 5; ++n) x *= 2 - odd * x;
        return x;
    }

    struct Known {
        std::vector<int> operators;
        std::optional<GroupCost> cost;
    };

    /// All that the cost of a group depends on at this operator; neighbours by their distance.
    static std::vector<int64_t> signature(const OperatorGraph& graph, int op) {
        const Operator& o = graph.operators[static_cast<size_t>(op)];
        std::vector<int64_t> key;
        key.push_back(o.weights);
        const auto add_map = [&](const Map& map) {
            for (const int64_t number : {map.channels, map.height, map.width}) key.push_back(number);
        };
        const Map& own = graph.maps[static_cast<size_t>(op)];
        add_map(own);
        key.push_back(own.is_output ? 1 : 0);
        for (const int reader : own.readers) key.push_back(reader - op);
        for (const OperatorInput& input : o.inputs) {
            // Distances are positive; network inputs do not shift.
            key.push_back(input.map < graph.size() ? op - input.map : -input.map);
            add_map(graph.maps[static_cast<size_t>(input.map)]);
            for (const Reach& reach : input.reach) {
                for (const int64_t number : {reach.kernel, reach.stride, reach.upscale}) key.push_back(number);
            }
        }
        return key;
    }

    [[nodiscard]] bool is_shift(const std::vector<int>& a, const std::vector<int>& b) const {
        if (a.size() != b.size()) return false;
        const int distance = b.front() - a.front();
        for (size_t n = 0; n < a.size(); ++n) {
            if (b[n] - a[n] != distance || signature_[static_cast<size_t>(a[n])] != signature_[static_cast<size_t>(b[n])]) return false;
        }
        return true;
    }

    GroupEvaluator& evaluator_;
    std::vector<int> signature_;
    std::vector<uint64_t> power_, inverse_power_, term_;
    std::unordered_map<uint64_t, std::vector<Known>> known_;
};

class Search {
public:
    Search(const OperatorGraph& graph, const GroupMachine& machine, const GroupingOptions& options)
        : graph_(graph), machine_(machine), options_(options), rules_(rules_of(options.reading, machine, options.images, options.buffer_entries)),
          evaluator_(graph, machine, rules_), costs_(graph, evaluator_), readers_inside_(graph.maps.size(), 0), extent_(graph.maps.size()), covered_(graph.maps.size()),
          is_inside_(graph.operators.size(), false), is_matched_(graph.maps.size(), false) {}

    Grouping run() {
        std::vector<int> order(graph_.operators.size());
        std::iota(order.begin(), order.end(), 0);
        Grouping result;
        std::optional<OrderIdeals> ideals = OrderIdeals::of(needs_of(graph_), options_.most_ideals);
        if (options_.online) {
            const std::vector<int64_t> table = quarter_tile_table(graph_, machine_, options_);
            size_t longest = 0;
            while (longest < table.size() && table[longest] <= rules_.buffer_entries) ++longest;
            if (!table.empty()) result.size_limit = std::max<int64_t>(1, static_cast<int64_t>(longest));
            size_limit_ = static_cast<size_t>(result.size_limit.value_or(std::numeric_limits<int64_t>::max()));
        }
        result.is_exact = ideals.has_value() && solve(*ideals, order);
        if (!result.is_exact) {
            std::vector<std::vector<int>> one_after_the_other(graph_.operators.size());
            for (size_t n = 1; n < order.size(); ++n) one_after_the_other[n] = {static_cast<int>(n) - 1};
            ideals = OrderIdeals::of(one_after_the_other, order.size() + 1);
            const std::vector<int> other_order = depth_first_order();
            (void)solve(*ideals, order, true);
            const Total as_given = best_.back();
            (void)solve(*ideals, other_order, true);
            if (as_given < best_.back()) (void)solve(*ideals, order, true);
        }
        result.ideals = ideals->size();
        result.groups_costed = costs_.looked_for;
        result.groups_visited = visited_groups_;
        for (int at = ideals->size() - 1; at > 0; at = before_[static_cast<size_t>(at)]) {
            Group& group = result.groups.emplace_back();
            group.operators = last_group_[static_cast<size_t>(at)];
            std::sort(group.operators.begin(), group.operators.end());
            group.cost = evaluator_.cost(group.operators);
            if (is_asked(group.operators.size())) group.other_entries = other_entries(group.operators);
            group.entries = *cheaper(group.cost, group.other_entries);
            result.entries = checked_add(result.entries, group.entries);
        }
        std::reverse(result.groups.begin(), result.groups.end());
        result.lower_bound_entries = result.is_exact ? result.entries : compulsory_entries();
        return result;
    }

private:
    /// False when it was stopped; not with `to_the_end`.
    bool solve(const OrderIdeals& ideals, const std::vector<int>& order, bool to_the_end = false) {
        const auto count = static_cast<size_t>(ideals.size());
        best_.assign(count, {});
        best_.front() = {0, 0};
        last_group_.assign(count, {});
        before_.assign(count, 0);
        seen_.assign(count, 0);
        reached_by_.assign(count, {});
        for (int target = 1; target < ideals.size(); ++target) {
            if (!to_the_end && options_.stop != nullptr && options_.stop->load()) return false;
            candidates_.clear();
            grow(ideals, order, target, target);
            choose(target);
            if (best_[static_cast<size_t>(target)].groups > 0) continue;
            // A group refused to grow; every single operator would have to fit, or else nothing does.
            for (const OrderIdeals::Step& step : ideals.steps(target)) refuse_if_alone_too_large(order[static_cast<size_t>(step.vertex)]);
            throw InputError("no grouping fits in a buffer of " + std::to_string(rules_.buffer_entries) + " entries");
        }
        return true;
    }

    void refuse_if_alone_too_large(int op) {
        const std::vector<int> alone{op};
        if (evaluator_.cost(alone) || options_.only_other) return;
        throw InputError("operator " + graph_.operators[static_cast<size_t>(op)].name + ": its least tile does not fit in a buffer of " +
                         std::to_string(rules_.buffer_entries) + " entries");
    }

    /// A group that may end `target`, and what the whole costs with it at least.
    struct Candidate {
        Total least;
        int rest = 0;
        uint64_t shape_sum = 0;
        int least_operator = 0;
    };

    [[nodiscard]] bool is_asked(size_t operators) const { return options_.other && operators <= options_.other_operators; }
    [[nodiscard]] std::optional<int64_t> other_entries(const std::vector<int>& group) const { return options_.other(group); }
    [[nodiscard]] std::optional<int64_t> cheaper(const std::optional<GroupCost>& cost, const std::optional<int64_t>& other) const {
        if (options_.only_other || !cost) return other;
        return std::min(cost->entries(), other.value_or(std::numeric_limits<int64_t>::max()));
    }

    /// All groups that end `target` and hold what is in the group now.
    void grow(const OrderIdeals& ideals, const std::vector<int>& order, int target, int rest) {
        for (const OrderIdeals::Step& step : ideals.steps(rest)) {
            const auto next = static_cast<size_t>(step.ideal);
            if (seen_[next] == target) continue;
            seen_[next] = target;
            const int op = order[static_cast<size_t>(step.vertex)];
            reached_by_[next] = {op, rest};
            const Undo undo = push(op);
            if (may_grow_) {
                ++visited_groups_;
                if (!options_.online || !has_lonely_operator()) {
                    const Total& before = best_[next];
                    // Our own schedules may leave rows of an input unread; the least of the other cost is what leaves the group.
                    const int64_t least =
                        before.entries + (is_asked(group_.size()) ? rules_.images * outputs_ : rules_.images * (inputs_ + outputs_) + least_passes() * weights_);
                    candidates_.push_back({{least, before.groups + 1}, step.ideal, shape_sum_, least_});
                }
                grow(ideals, order, target, step.ideal);
            }
            pop(op, undo);
        }
    }

    /// The best candidate; those with the least bounds first, until no bound is below the best.
    void choose(int target) {
        std::sort(candidates_.begin(), candidates_.end(),
                  [](const Candidate& a, const Candidate& b) { return std::tie(a.least, a.rest) < std::tie(b.least, b.rest); });
        Total& best = best_[static_cast<size_t>(target)];
        std::vector<int> group;
        for (const Candidate& candidate : candidates_) {
            if (best <= candidate.least) break;
            group.clear();
            for (int at = candidate.rest; at != target; at = reached_by_[static_cast<size_t>(at)].ideal) group.push_back(reached_by_[static_cast<size_t>(at)].vertex);
            const std::optional<GroupCost>& cost = costs_.cost(group, candidate.shape_sum, candidate.least_operator);
            const std::optional<int64_t> entries = cheaper(cost, is_asked(group.size()) ? other_entries(group) : std::nullopt);
            if (!entries) continue;
            const Total& before = best_[static_cast<size_t>(candidate.rest)];
            const Total total{before.entries + *entries, before.groups + 1};
            if (best <= total) continue;
            best = total;
            last_group_[static_cast<size_t>(target)] = group;
            before_[static_cast<size_t>(target)] = candidate.rest;
        }
    }

    /// Passes of the weights are as many as tiles, and all tiles together hold every map at least once: passes * buffer >= B * volume.
    [[nodiscard]] int64_t least_passes() const {
        if (rules_.weights_may_stay && weights_ <= rules_.weight_buffer_entries.value_or(rules_.buffer_entries - least_entries_)) return 1;
        return std::max<int64_t>(1, ceil_div((rules_.batch_is_tile ? rules_.images : 1) * volume_, rules_.buffer_entries));
    }

    struct Undo {
        int64_t inputs, outputs, weights, least_entries, volume;
        size_t enlarged;
        int sinks;
        int least;
        int matched = -1;
    };

    [[nodiscard]] int64_t floor_of(size_t axis, int64_t size) const {
        if (axis == 1 && !rules_.searches_width) return size;
        return std::min(size, axis == 0 ? machine_.lanes_height : machine_.lanes_width);
    }

    /// Puts an operator into the group; its readers are in it or after it. may_grow_: whether the group, or one that holds it and ends alike, may be valid.
    Undo push(int op) {
        const auto n = static_cast<size_t>(op);
        const Operator& o = graph_.operators[n];
        const Map& map = graph_.maps[n];
        Undo undo{inputs_, outputs_, weights_, least_entries_, volume_, enlarged_.size(), sinks_, least_};
        const int inside = readers_inside_[n];
        const bool leaves = map.is_output || inside < static_cast<int>(map.readers.size()) || map.readers.empty();
        may_grow_ = true;
        if (options_.online && inside > 0 && inside < static_cast<int>(map.readers.size())) may_grow_ = false;
        if (options_.one_sink) {
            if (leaves && ++sinks_ > 1) may_grow_ = false;
            if (leaves && inside > 0) may_grow_ = false;
        }
        if (leaves) outputs_ += map.elements();
        if (inside > 0) inputs_ -= map.elements();
        for (const OperatorInput& input : o.inputs) {
            if (readers_inside_[static_cast<size_t>(input.map)]++ == 0) inputs_ += graph_.maps[static_cast<size_t>(input.map)].elements();
        }
        weights_ += o.weights;
        group_.push_back(op);
        is_inside_[n] = true;
        shape_sum_ += costs_.term(op);
        least_ = std::min(least_, op);
        if (group_.size() > size_limit_) may_grow_ = false;

        if (options_.one_sink && inside > 0) {
            for (const int reader : map.readers) {
                if (!is_inside_[static_cast<size_t>(reader)]) continue;
                const std::vector<OperatorInput>& inputs = graph_.operators[static_cast<size_t>(reader)].inputs;
                may_grow_ = may_grow_ && std::find_if(inputs.begin(), inputs.end(), [&](const OperatorInput& i) { return i.map == op; })->is_direct;
            }
        }
        // What its maps take at least, at the least tile of every sink. Extents only grow with more readers, and its own are final.
        if (inside == 0) {
            const std::array<int64_t, 2> size{map.height, map.width};
            enlarge(op, {floor_of(0, size[0]), floor_of(1, size[1])}, size);
        }
        for (const OperatorInput& input : o.inputs) {
            const Map& read = graph_.maps[static_cast<size_t>(input.map)];
            const std::array<int64_t, 2> size{read.height, read.width};
            std::array<int64_t, 2> extent{};
            std::array<int64_t, 2> covered{};
            for (size_t axis = 0; axis < 2; ++axis) {
                const int64_t needed = input.reach[axis].inputs(extent_[n][axis]);
                extent[axis] = rules_.clips_maps ? std::min(needed, size[axis]) : needed;
                covered[axis] = std::min(size[axis], covered_by(input.reach[axis], covered_[n][axis]));
            }
            enlarge(input.map, extent, covered);
        }
        // Of two maps of which one is read for the other only one streams: the smaller saving is lost. Pairs share no map, so losses add up.
        if (!is_matched_[n]) {
            int partner = -1;
            for (const OperatorInput& input : o.inputs) {
                if (is_matched_[static_cast<size_t>(input.map)]) continue;
                if (partner < 0 || saving(input.map, extent_) > saving(partner, extent_)) partner = input.map;
            }
            if (partner >= 0) {
                least_entries_ += std::min(saving(partner, extent_), saving(op, extent_));
                volume_ += std::min(saving(partner, covered_), saving(op, covered_));
                is_matched_[static_cast<size_t>(partner)] = is_matched_[n] = true;
                undo.matched = partner;
            }
        }
        if (least_entries_ > rules_.buffer_entries && group_.size() >= (options_.other ? options_.other_operators + 1 : 0)) may_grow_ = false;
        if (options_.only_other && group_.size() > options_.other_operators) may_grow_ = false;
        return undo;
    }

    void pop(int op, const Undo& undo) {
        const auto n = static_cast<size_t>(op);
        while (enlarged_.size() > undo.enlarged) {
            const Enlarged& last = enlarged_.back();
            extent_[static_cast<size_t>(last.map)] = last.extent;
            covered_[static_cast<size_t>(last.map)] = last.covered;
            enlarged_.pop_back();
        }
        if (undo.matched >= 0) is_matched_[static_cast<size_t>(undo.matched)] = is_matched_[n] = false;
        for (const OperatorInput& input : graph_.operators[n].inputs) --readers_inside_[static_cast<size_t>(input.map)];
        inputs_ = undo.inputs;
        outputs_ = undo.outputs;
        weights_ = undo.weights;
        least_entries_ = undo.least_entries;
        volume_ = undo.volume;
        sinks_ = undo.sinks;
        least_ = undo.least;
        shape_sum_ -= costs_.term(op);
        is_inside_[n] = false;
        group_.pop_back();
    }

    [[nodiscard]] int64_t streaming_lanes(const Map& map) const { return std::min(machine_.lanes_channels, map.channels); }
    /// Rows of an input that n tiles hold together, when they hold `outputs` rows of what is computed from it. With K >= S each of n tiles needs r S + K - S,
    /// together outputs S + K - S or more; else r S + K - S >= r K.
    [[nodiscard]] static int64_t covered_by(const Reach& reach, int64_t outputs) {
        if (reach.upscale > 1) return ceil_div(outputs, reach.upscale);
        return reach.kernel >= reach.stride ? reach.inputs(outputs) : outputs * reach.kernel;
    }
    /// Extents of a map, at least these; its streaming entries are counted.
    void enlarge(int map, const std::array<int64_t, 2>& extent, const std::array<int64_t, 2>& covered) {
        const auto m = static_cast<size_t>(map);
        enlarged_.push_back({map, extent_[m], covered_[m]});
        const int64_t lanes = streaming_lanes(graph_.maps[m]);
        const auto grow_to = [](std::array<int64_t, 2>& to, const std::array<int64_t, 2>& least) {
            const int64_t before = to[0] * to[1];
            for (size_t axis = 0; axis < 2; ++axis) to[axis] = std::max(to[axis], least[axis]);
            return to[0] * to[1] - before;
        };
        least_entries_ += lanes * grow_to(extent_[m], extent);
        volume_ += lanes * grow_to(covered_[m], covered);
    }
    /// What streaming saves of a map of these extents.
    [[nodiscard]] int64_t saving(int id, const std::vector<std::array<int64_t, 2>>& extents) const {
        const Map& map = graph_.maps[static_cast<size_t>(id)];
        const std::array<int64_t, 2>& extent = extents[static_cast<size_t>(id)];
        return (map.channels - streaming_lanes(map)) * extent[0] * extent[1];
    }

    /// It neither feeds, nor is fed by, nor shares an input with another one of the group.
    [[nodiscard]] bool has_lonely_operator() const {
        if (group_.size() == 1) return false;
        return std::any_of(group_.begin(), group_.end(), [&](int op) {
            if (readers_inside_[static_cast<size_t>(op)] > 0) return false;
            const Operator& o = graph_.operators[static_cast<size_t>(op)];
            return std::none_of(o.inputs.begin(), o.inputs.end(), [&](const OperatorInput& input) {
                return readers_inside_[static_cast<size_t>(input.map)] > 1 || (input.map < graph_.size() && is_inside_[static_cast<size_t>(input.map)]);
            });
        });
    }

    /// Operators such that each follows what it needs as closely as a walk in depth allows.
    [[nodiscard]] std::vector<int> depth_first_order() const {
        std::vector<int> order;
        std::vector<bool> done(graph_.operators.size(), false);
        const auto is_ready = [&](int op) {
            const std::vector<OperatorInput>& inputs = graph_.operators[static_cast<size_t>(op)].inputs;
            return std::all_of(inputs.begin(), inputs.end(),
                               [&](const OperatorInput& i) { return i.map >= graph_.size() || done[static_cast<size_t>(i.map)]; });
        };
        for (int start = 0; start < graph_.size(); ++start) {
            std::vector<int> stack{start};
            while (!stack.empty()) {
                const int op = stack.back();
                stack.pop_back();
                if (done[static_cast<size_t>(op)] || !is_ready(op)) continue;
                done[static_cast<size_t>(op)] = true;
                order.push_back(op);
                const std::vector<int>& readers = graph_.maps[static_cast<size_t>(op)].readers;
                stack.insert(stack.end(), readers.rbegin(), readers.rend());
            }
        }
        return order;
    }

    /// What every grouping moves: the network's inputs (our own schedules may leave rows unread) and outputs, and every weight once.
    [[nodiscard]] int64_t compulsory_entries() const {
        int64_t maps = 0;
        int64_t weights = 0;
        for (size_t m = 0; m < graph_.maps.size(); ++m) {
            const Map& map = graph_.maps[m];
            const bool is_input = m >= graph_.operators.size();
            if (is_input ? !map.readers.empty() && !options_.other : map.is_output || map.readers.empty()) maps += map.elements();
            if (!is_input) weights += graph_.operators[m].weights;
        }
        return rules_.images * maps + weights;
    }

    const OperatorGraph& graph_;
    GroupMachine machine_;
    GroupingOptions options_;
    GroupRules rules_;
    GroupEvaluator evaluator_;
    CostsByShape costs_;
    size_t size_limit_ = std::numeric_limits<size_t>::max();

    std::vector<Total> best_;                   ///< by ideal
    std::vector<std::vector<int>> last_group_;  ///< by ideal
    std::vector<int> before_;                   ///< by ideal: without its last group
    std::vector<int> seen_;                     ///< by ideal: the last target from which it was reached
    std::vector<OrderIdeals::Step> reached_by_;  ///< by ideal: the operator taken away, and from which ideal
    std::vector<Candidate> candidates_;
    int64_t visited_groups_ = 0;

    // The group at hand.
    std::vector<int> group_;
    std::vector<int> readers_inside_;  ///< by map
    struct Enlarged {
        int map;
        std::array<int64_t, 2> extent, covered;  ///< before
    };
    std::vector<Enlarged> enlarged_;
    std::vector<std::array<int64_t, 2>> extent_;  ///< rows and columns of a map at the least tile, 0 where the group does not touch it
    std::vector<std::array<int64_t, 2>> covered_;  ///< rows and columns that all tiles hold together at least
    std::vector<bool> is_inside_;
    std::vector<bool> is_matched_;
    bool may_grow_ = true;
    int64_t inputs_ = 0;   ///< elements of one image from outside
    int64_t outputs_ = 0;  ///< that leave
    int64_t weights_ = 0;
    int64_t least_entries_ = 0;  ///< of the buffer, a lower bound
    int64_t volume_ = 0;         ///< entries that all tiles of an image hold together, a lower bound
    int sinks_ = 0;              ///< counted with one_sink
    uint64_t shape_sum_ = 0;
    int least_ = std::numeric_limits<int>::max();
};

}  // namespace

Grouping best_grouping(const OperatorGraph& graph, const GroupMachine& machine, const GroupingOptions& options) {
    return Search(graph, machine, options).run();
}

Grouping single_operators(const OperatorGraph& graph, const GroupMachine& machine, const GroupingOptions& options) {
    const GroupRules rules = rules_of(options.reading, machine, options.images, options.buffer_entries);
    GroupEvaluator evaluator(graph, machine, rules);
    Grouping result;
    for (int op = 0; op < graph.size(); ++op) {
        const std::vector<int> alone{op};
        const std::optional<GroupCost> cost = evaluator.cost(alone);
        if (!cost) {
            throw InputError("operator " + graph.operators[static_cast<size_t>(op)].name + ": its least tile does not fit in a buffer of " +
                             std::to_string(rules.buffer_entries) + " entries");
        }
        result.groups.push_back({alone, *cost, {}, cost->entries()});
        result.entries = checked_add(result.entries, cost->entries());
    }
    result.lower_bound_entries = result.entries;
    result.groups_costed = result.groups_visited = graph.size();
    return result;
}

int64_t least_buffer_entries(const OperatorGraph& graph, const GroupMachine& machine, Reading reading) {
    GroupEvaluator evaluator(graph, machine, rules_of(reading, machine, 1));
    int64_t least = 0;
    for (int op = 0; op < graph.size(); ++op) {
        const std::vector<int> alone{op};
        least = std::max(least, evaluator.least_entries(alone));
    }
    return least;
}

std::optional<int64_t> convex_groups(const OperatorGraph& graph) { return search::convex_set_count(needs_of(graph)); }

std::vector<int64_t> quarter_tile_table(const OperatorGraph& graph, const GroupMachine& machine, const GroupingOptions& options, int64_t longest) {
    const std::optional<OrderIdeals> ideals = OrderIdeals::of(needs_of(graph), options.most_ideals);
    if (!ideals) return {};
    const GroupRules rules = rules_of(options.reading, machine, options.images, options.buffer_entries);
    GroupEvaluator evaluator(graph, machine, rules);
    longest = std::min<int64_t>(longest, graph.size());
    std::vector<int64_t> table(static_cast<size_t>(longest), std::numeric_limits<int64_t>::max());
    std::vector<int> seen(static_cast<size_t>(ideals->size()), 0);
    std::vector<int> group;
    const auto grow = [&](const auto& self, int target, int rest) -> void {
        for (const OrderIdeals::Step& step : ideals->steps(rest)) {
            int& mark = seen[static_cast<size_t>(step.ideal)];
            if (mark == target) continue;
            mark = target;
            group.push_back(step.vertex);
            int64_t& least = table[group.size() - 1];
            least = std::min(least, evaluator.quarter_tile_entries(group));
            if (static_cast<int64_t>(group.size()) < longest) self(self, target, step.ideal);
            group.pop_back();
        }
    };
    for (int target = 1; target < ideals->size(); ++target) grow(grow, target, target);
    for (size_t n = 0; n < table.size(); ++n) {
        if (table[n] > rules.buffer_entries) table.resize(n + 1);
    }
    return table;
}

}  // namespace laminate::dag_groups
