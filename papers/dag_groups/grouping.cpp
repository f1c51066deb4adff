#include "papers/dag_groups/grouping.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "papers/dag_groups/bound_by_parts.h"
#include "papers/dag_groups/costs_by_shape.h"
#include "papers/dag_groups/growing_group.h"
#include "scheduler/explore/dag/order_ideals.h"

namespace laminate::dag_groups {

namespace {

using search::OrderIdeals;

/// Compares MemoryCost first, then the number of groups.
struct Total {
    int64_t entries = std::numeric_limits<int64_t>::max();
    int groups = 0;
    friend auto operator<=>(const Total&, const Total&) = default;
};

class Search {
public:
    /// Groups visited before large groups are bounded by compulsory traffic alone.
    static constexpr int64_t most_bounded_groups = 3'000'000;
    /// For a graph with too many ideals.
    static constexpr size_t most_ideals_along = 1'000;
    static constexpr size_t most_places_ahead = 12;

    Search(const OperatorGraph& graph, const GroupMachine& machine, const GroupingOptions& options)
        : graph_(graph),
          machine_(machine),
          options_(options),
          rules_(rules_of(options.reading, machine, options.images, options.buffer_entries)),
          evaluator_(graph, machine, rules_),
          costs_(graph, evaluator_),
          group_(graph, machine, rules_) {}

    Grouping run() {
        std::vector<int> order(graph_.operators.size());
        std::iota(order.begin(), order.end(), 0);
        Grouping result;
        std::optional<OrderIdeals> ideals = OrderIdeals::of(graph_.needs(), options_.most_ideals);
        if (options_.online) {
            result.size_limit = options_.size_limit ? options_.size_limit
                                                    : online_size_limit(graph_, machine_, options_);
            if (result.size_limit) size_limit_ = static_cast<size_t>(*result.size_limit);
        }
        result.is_complete = ideals.has_value() && solve(*ideals, order);
        if (!result.is_complete) {
            const std::vector<int> other_order = depth_first_order();
            ideals = ideals_along(order);
            (void)solve(*ideals, order, true);
            const Total as_given = best_.back();
            ideals = ideals_along(other_order);
            (void)solve(*ideals, other_order, true);
            if (as_given < best_.back()) {
                ideals = ideals_along(order);
                (void)solve(*ideals, order, true);
            }
        }
        result.ideals = ideals->size();
        result.groups_costed = costs_.looked_for;
        result.groups = groups_of(*ideals);
        for (const Group& group : result.groups)
            result.entries = checked_add(result.entries, group.entries);
        result.groups_visited = visited_groups_;
        result.lower_bound_entries = result.is_complete
                                         ? least_with_large_groups(*ideals, order, result.entries)
                                         : least_entries_of_any();
        result.is_exact = result.lower_bound_entries == result.entries;
        return result;
    }

private:
    /// The ideals, in numbers of places in an order of the operators, in which no operator is more
    /// than so many places ahead of a missing one; as many places as `most_ideals_along` allow.
    [[nodiscard]] OrderIdeals ideals_along(const std::vector<int>& order) const {
        std::vector<int> place(order.size());
        for (size_t p = 0; p < order.size(); ++p)
            place[static_cast<size_t>(order[p])] = static_cast<int>(p);
        std::vector<std::vector<int>> needs(order.size());
        const std::vector<std::vector<int>> needs_of_operators = graph_.needs();
        for (size_t p = 0; p < order.size(); ++p) {
            for (const int need : needs_of_operators[static_cast<size_t>(order[p])])
                needs[p].push_back(place[static_cast<size_t>(need)]);
        }
        for (size_t ahead = most_places_ahead; ahead > 1; --ahead) {
            std::vector<std::vector<int>> bounded = needs;
            for (size_t p = ahead; p < order.size(); ++p)
                bounded[p].push_back(static_cast<int>(p - ahead));
            if (std::optional<OrderIdeals> ideals =
                    OrderIdeals::of(bounded, std::max(most_ideals_along, order.size() + 1)))
                return std::move(*ideals);
        }
        std::vector<std::vector<int>> one_after_the_other(order.size());
        for (size_t p = 1; p < order.size(); ++p)
            one_after_the_other[p] = {static_cast<int>(p) - 1};
        return *OrderIdeals::of(one_after_the_other, order.size() + 1);
    }

    /// The groups of the last solve().
    [[nodiscard]] std::vector<Group> groups_of(const OrderIdeals& ideals) {
        std::vector<Group> groups;
        for (int at = ideals.size() - 1; at > 0; at = before_[static_cast<size_t>(at)]) {
            Group& group = groups.emplace_back();
            const LastGroup& last = last_group_[static_cast<size_t>(at)];
            const auto begin = last_operators_.begin() + static_cast<std::ptrdiff_t>(last.begin);
            group.operators.assign(begin, begin + static_cast<std::ptrdiff_t>(last.size));
            // The search looked the cost up in the order in which the operators came.
            uint64_t shape_sum = 0;
            for (const int op : group.operators) shape_sum += costs_.term(op);
            const int least = *std::min_element(group.operators.begin(), group.operators.end());
            group.cost = costs_.cost(group.operators, shape_sum, least);
            std::sort(group.operators.begin(), group.operators.end());
            if (is_asked(group.operators.size()))
                group.other_entries = options_.other(group.operators);
            group.entries = *cheaper(group.cost, group.other_entries);
        }
        std::reverse(groups.begin(), groups.end());
        return groups;
    }

    /// The least total when groups that are too large for the other cost have the bound on it
    /// instead.
    [[nodiscard]] int64_t least_with_large_groups(const OrderIdeals& ideals,
                                                  const std::vector<int>& order, int64_t found) {
        if (!options_.other || !options_.other_least) return found;
        bounds_large_groups_ = true;
        visited_groups_ = 0;
        const bool is_complete = solve(ideals, order);
        bounds_large_groups_ = false;
        return is_complete ? std::min(found, best_.back().entries) : compulsory_entries();
    }

    /// The bound for a search that was cut along one order. Our own schedules may leave rows
    /// unread, which bounds of parts charge.
    [[nodiscard]] int64_t least_entries_of_any() const {
        const int64_t compulsory = compulsory_entries();
        return options_.other ? compulsory
                              : std::max(compulsory, bound_by_parts(graph_, machine_, rules_));
    }

    /// False when it was stopped, which `to_the_end` prevents.
    bool solve(const OrderIdeals& ideals, const std::vector<int>& order, bool to_the_end = false) {
        const auto count = static_cast<size_t>(ideals.size());
        best_.assign(count, {});
        best_.front() = {0, 0};
        last_group_.assign(count, {});
        last_operators_.clear();
        before_.assign(count, 0);
        seen_.assign(count, 0);
        reached_by_.assign(count, {});
        for (int target = 1; target < ideals.size(); ++target) {
            if (!to_the_end && options_.stop != nullptr && options_.stop->load()) return false;
            if (bounds_large_groups_ && visited_groups_ > most_bounded_groups) return false;
            candidates_.clear();
            grow(ideals, order, target, target);
            choose(target);
        }
        if (best_.back().groups > 0) return true;
        for (int op = 0; op < graph_.size(); ++op) refuse_if_alone_too_large(op);
        throw NoGrouping("no grouping fits in a buffer of " +
                         std::to_string(rules_.buffer_entries) + " entries");
    }

    /// For the message when no grouping fits. While one does, an operator may be too large alone,
    /// because other maps stream in a group.
    void refuse_if_alone_too_large(int op) {
        const std::vector<int> alone{op};
        if (evaluator_.cost(alone) || options_.only_other) return;
        throw NoGrouping("operator " + graph_.operators[static_cast<size_t>(op)].name +
                         ": its least tile does not fit in a buffer of " +
                         std::to_string(rules_.buffer_entries) + " entries");
    }

    /// A group that may end `target`, and the least total with it.
    struct Candidate {
        Total least;
        int rest = 0;
        uint64_t shape_sum = 0;
        int least_operator = 0;
    };

    [[nodiscard]] bool is_asked(size_t operators) const {
        return options_.other && operators <= options_.other_operators;
    }
    /// The cost besides Eq. 3. For a group that is too large to ask for it, the bound, if that is
    /// wanted.
    [[nodiscard]] std::optional<int64_t> other_entries(const std::vector<int>& group) const {
        if (is_asked(group.size())) return options_.other(group);
        if (bounds_large_groups_) return options_.other_least(group);
        return std::nullopt;
    }
    [[nodiscard]] std::optional<int64_t> cheaper(const std::optional<GroupCost>& cost,
                                                 const std::optional<int64_t>& other) const {
        if (options_.only_other || !cost) return other;
        return std::min(cost->entries(), other.value_or(std::numeric_limits<int64_t>::max()));
    }

    /// Visits all groups that end `target` and hold the group as it is now.
    void grow(const OrderIdeals& ideals, const std::vector<int>& order, int target, int rest) {
        for (const OrderIdeals::Step& step : ideals.steps(rest)) {
            const auto next = static_cast<size_t>(step.ideal);
            if (seen_[next] == target) continue;
            seen_[next] = target;
            const int op = order[static_cast<size_t>(step.vertex)];
            if (!may_join(op)) continue;
            reached_by_[next] = {op, rest};
            const int least_before = push(op);
            if (may_fit()) {
                ++visited_groups_;
                const Total& before = best_[next];
                const bool is_reachable = step.ideal == 0 || before.groups > 0;
                if (is_reachable && (!options_.online || !group_.has_lonely_operator())) {
                    const bool has_other =
                        is_asked(group_.operators().size()) || bounds_large_groups_;
                    const int64_t least =
                        before.entries + (has_other ? least_other_cost() : group_.least_cost());
                    candidates_.push_back(
                        {{least, before.groups + 1}, step.ideal, shape_sum_, least_operator_});
                }
                grow(ideals, order, target, step.ideal);
            }
            pop(least_before);
        }
    }

    /// Our own schedules may leave rows of an input unread, and load weights for every image.
    [[nodiscard]] int64_t least_other_cost() const {
        return rules_.images * group_.outputs() +
               (options_.only_other ? rules_.images : 1) * group_.weights();
    }

    /// Takes the best candidate: those with the least bounds first, until no bound is below the
    /// best.
    void choose(int target) {
        const auto key = [](const Candidate& candidate) {
            return std::tie(candidate.least, candidate.rest);
        };
        Total& best = best_[static_cast<size_t>(target)];
        while (!candidates_.empty()) {
            // Few are costed before the bounds of the rest are above the best.
            size_t first = 0;
            for (size_t n = 1; n < candidates_.size(); ++n) {
                if (key(candidates_[n]) < key(candidates_[first])) first = n;
            }
            const Candidate candidate = candidates_[first];
            if (best <= candidate.least) break;
            candidates_[first] = candidates_.back();
            candidates_.pop_back();
            chosen_.clear();
            for (int at = candidate.rest; at != target;
                 at = reached_by_[static_cast<size_t>(at)].ideal)
                chosen_.push_back(reached_by_[static_cast<size_t>(at)].vertex);
            std::optional<GroupCost> cost;
            if (!options_.only_other)
                cost = costs_.cost(chosen_, candidate.shape_sum, candidate.least_operator);
            const std::optional<int64_t> entries = cheaper(cost, other_entries(chosen_));
            if (!entries) continue;
            const Total& before = best_[static_cast<size_t>(candidate.rest)];
            const Total total{before.entries + *entries, before.groups + 1};
            if (best <= total) continue;
            best = total;
            last_group_[static_cast<size_t>(target)] = {last_operators_.size(), chosen_.size()};
            last_operators_.insert(last_operators_.end(), chosen_.begin(), chosen_.end());
            before_[static_cast<size_t>(target)] = candidate.rest;
        }
    }

    /// Whether the rules of the search allow the operator into the group next, or into one that
    /// ends alike, before anything is counted.
    [[nodiscard]] bool may_join(int op) const {
        if (group_.operators().size() >= size_limit_) return false;
        if (options_.online && group_.is_read_in_part(op)) return false;
        return !options_.one_sink ||
               may_be_fed_by(op, group_.readers_inside(op) > 0, group_.leaves(op));
    }

    /// Puts an operator into the group; its readers are in it or after it. Returns the least
    /// operator before.
    int push(int op) {
        group_.push(op);
        shape_sum_ += costs_.term(op);
        return std::exchange(least_operator_, std::min(least_operator_, op));
    }

    /// Whether the group, or one that holds it and ends alike, may have a tile. Only Eq. 3 knows
    /// the least tile.
    [[nodiscard]] bool may_fit() const {
        const bool has_other =
            options_.other &&
            (group_.operators().size() <= options_.other_operators || bounds_large_groups_);
        return has_other ||
               (!options_.only_other && group_.least_entries() <= rules_.buffer_entries);
    }

    void pop(int least_before) {
        shape_sum_ -= costs_.term(group_.operators().back());
        least_operator_ = least_before;
        group_.pop();
    }

    /// The one sink is the operator that came first. The map of another operator is read in the
    /// group alone, by operators that read it directly.
    [[nodiscard]] bool may_be_fed_by(int op, bool is_read_inside, bool leaves) const {
        if (!is_read_inside) return group_.operators().empty();
        if (leaves) return false;
        const std::vector<int>& readers = graph_.maps[static_cast<size_t>(op)].readers;
        return std::all_of(readers.begin(), readers.end(), [&](int reader) {
            const std::vector<OperatorInput>& inputs =
                graph_.operators[static_cast<size_t>(reader)].inputs;
            return std::find_if(inputs.begin(), inputs.end(),
                                [&](const OperatorInput& i) { return i.map == op; })
                ->is_direct;
        });
    }

    /// The operators in a depth-first order: each follows what it needs as closely as possible.
    [[nodiscard]] std::vector<int> depth_first_order() const {
        std::vector<int> order;
        std::vector<bool> done(graph_.operators.size(), false);
        const auto is_ready = [&](int op) {
            const std::vector<OperatorInput>& inputs =
                graph_.operators[static_cast<size_t>(op)].inputs;
            return std::all_of(inputs.begin(), inputs.end(), [&](const OperatorInput& i) {
                return i.map >= graph_.size() || done[static_cast<size_t>(i.map)];
            });
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

    /// Entries that every grouping moves: the network's inputs (but our own schedules may leave
    /// rows unread) and outputs, and every weight once.
    [[nodiscard]] int64_t compulsory_entries() const {
        int64_t maps = 0;
        int64_t weights = 0;
        for (size_t m = 0; m < graph_.maps.size(); ++m) {
            const bool is_input = m >= graph_.operators.size();
            if (graph_.always_moves(m) && !(is_input && options_.other))
                maps += graph_.maps[m].elements();
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

    std::vector<Total> best_;  ///< by ideal
    struct LastGroup {
        size_t begin = 0, size = 0;  ///< of its operators, in last_operators_
    };
    std::vector<LastGroup> last_group_;  ///< by ideal
    std::vector<int> last_operators_;    ///< as they came
    std::vector<int> before_;            ///< by ideal: without its last group
    std::vector<int> seen_;              ///< by ideal: the last target from which it was reached
    std::vector<OrderIdeals::Step>
        reached_by_;  ///< by ideal: the operator taken away, and from which ideal
    std::vector<Candidate> candidates_;
    std::vector<int> chosen_;
    int64_t visited_groups_ = 0;

    GrowingGroup group_;
    uint64_t shape_sum_ = 0;
    int least_operator_ = std::numeric_limits<int>::max();
    bool bounds_large_groups_ = false;
};

}  // namespace

Grouping best_grouping(const OperatorGraph& graph, const GroupMachine& machine,
                       const GroupingOptions& options) {
    return Search(graph, machine, options).run();
}

std::optional<Grouping> single_operators(const OperatorGraph& graph, const GroupMachine& machine,
                                         const GroupingOptions& options) {
    const GroupRules rules =
        rules_of(options.reading, machine, options.images, options.buffer_entries);
    GroupEvaluator evaluator(graph, machine, rules);
    Grouping result;
    for (int op = 0; op < graph.size(); ++op) {
        const std::vector<int> alone{op};
        const std::optional<GroupCost> cost = evaluator.cost(alone);
        if (!cost) return std::nullopt;
        result.groups.push_back({alone, *cost, {}, cost->entries()});
        result.entries = checked_add(result.entries, cost->entries());
    }
    result.lower_bound_entries = result.entries;
    result.groups_costed = result.groups_visited = graph.size();
    return result;
}

int64_t least_buffer_entries(const OperatorGraph& graph, const GroupMachine& machine,
                             const GroupingOptions& options) {
    GroupingOptions with_buffer = options;
    with_buffer.other = nullptr;
    with_buffer.other_least = nullptr;
    with_buffer.only_other = false;
    with_buffer.size_limit.reset();
    const auto has_grouping = [&](int64_t entries) {
        with_buffer.buffer_entries = entries;
        try {
            (void)best_grouping(graph, machine, with_buffer);
            return true;
        } catch (const NoGrouping&) {
            return false;
        }
    };
    // In the largest least tile of any operator alone, every operator fits. A group that fits in a
    // buffer fits in every larger one.
    GroupEvaluator evaluator(graph, machine, rules_of(options.reading, machine, 1));
    int64_t fits = 1;
    for (int op = 0; op < graph.size(); ++op) {
        const std::vector<int> alone{op};
        fits = std::max(fits, evaluator.least_entries(alone));
    }
    int64_t too_small = 0;
    while (fits - too_small > 1) {
        const int64_t middle = too_small + (fits - too_small) / 2;
        (has_grouping(middle) ? fits : too_small) = middle;
    }
    return fits;
}

std::optional<int64_t> convex_groups(const OperatorGraph& graph) {
    return search::convex_set_count(graph.needs());
}

std::vector<int64_t> quarter_tile_table(const OperatorGraph& graph, const GroupMachine& machine,
                                        const GroupingOptions& options, int64_t longest) {
    const std::optional<OrderIdeals> ideals = OrderIdeals::of(graph.needs(), options.most_ideals);
    if (!ideals) return {};
    const GroupRules rules =
        rules_of(options.reading, machine, options.images, options.buffer_entries);
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

std::optional<int64_t> online_size_limit(const OperatorGraph& graph, const GroupMachine& machine,
                                         const GroupingOptions& options) {
    const std::vector<int64_t> table = quarter_tile_table(graph, machine, options);
    if (table.empty()) return std::nullopt;
    const int64_t buffer =
        rules_of(options.reading, machine, options.images, options.buffer_entries).buffer_entries;
    const auto too_large =
        std::find_if(table.begin(), table.end(), [&](int64_t entries) { return entries > buffer; });
    return std::max<int64_t>(1, too_large - table.begin());
}

}  // namespace laminate::dag_groups
