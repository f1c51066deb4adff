#include "papers/dag_groups/bound_by_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "papers/dag_groups/costs_by_shape.h"
#include "papers/dag_groups/growing_group.h"
#include "scheduler/explore/dag/order_ideals.h"

namespace laminate::dag_groups {

namespace {

using search::OrderIdeals;

/// The cheapest grouping of one part, by least costs of groups.
class PartSearch {
public:
    PartSearch(const OrderIdeals& ideals, GrowingGroup& group, int first, const GroupRules& rules,
               int64_t most_groups)
        : ideals_(ideals),
          group_(group),
          first_(first),
          buffer_(rules.buffer_entries),
          groups_left_(most_groups),
          best_(static_cast<size_t>(ideals.size()), std::numeric_limits<int64_t>::max()),
          seen_(static_cast<size_t>(ideals.size()), 0) {
        best_.front() = 0;
    }

    /// None for more groups than wanted, or if nothing fits.
    std::optional<int64_t> run() {
        for (int target = 1; target < ideals_.size(); ++target) {
            grow(target, target);
            if (groups_left_ < 0 ||
                best_[static_cast<size_t>(target)] == std::numeric_limits<int64_t>::max())
                return std::nullopt;
        }
        return best_.back();
    }

private:
    void grow(int target, int rest) {
        for (const OrderIdeals::Step& step : ideals_.steps(rest)) {
            int& seen = seen_[static_cast<size_t>(step.ideal)];
            if (seen == target) continue;
            seen = target;
            if (--groups_left_ < 0) return;
            group_.push(first_ + step.vertex);
            if (group_.least_entries() <= buffer_) {
                int64_t& best = best_[static_cast<size_t>(target)];
                best = std::min(best, best_[static_cast<size_t>(step.ideal)] + group_.least_cost());
                grow(target, step.ideal);
            }
            group_.pop();
        }
    }

    const OrderIdeals& ideals_;
    GrowingGroup& group_;
    int first_;
    int64_t buffer_;
    int64_t groups_left_;
    std::vector<int64_t> best_;  ///< by ideal
    std::vector<int> seen_;      ///< by ideal: the last target from which it was reached
};

class Parts {
public:
    Parts(const OperatorGraph& graph, const GroupMachine& machine, const GroupRules& rules,
          const PartLimits& limits)
        : graph_(graph), machine_(machine), rules_(rules), limits_(limits), needs_(graph.needs()) {
        // With no operator in the part, every map is read outside of it.
        const GrowingGroup outside(graph, machine, rules, operators_of(0, 0));
        ShapeNumbers numbers;
        std::vector<int64_t> shape;
        for (int op = 0; op < graph.size(); ++op) {
            operator_shape(graph, op, shape);
            for (const int64_t extent : outside.sink_extents(op)) shape.push_back(extent);
            shapes_.push_back(numbers.number_of(shape));
        }
    }

    /// The entries that the operators first .. last - 1 add to the maps that every grouping moves.
    /// None if there are too many to search.
    std::optional<int64_t> gain(int first, int last) {
        const auto is_crossed = [&](int map) {
            const std::vector<int>& readers = graph_.maps[static_cast<size_t>(map)].readers;
            return !readers.empty() && (readers.front() < first || readers.back() >= last);
        };
        std::vector<int> key;
        for (int op = first; op < last; ++op) {
            const std::vector<OperatorInput>& inputs =
                graph_.operators[static_cast<size_t>(op)].inputs;
            key.push_back(shapes_[static_cast<size_t>(op)]);
            key.push_back(is_crossed(op) ? 1 : 0);
            for (const OperatorInput& input : inputs) {
                if (input.map >= graph_.size()) key.push_back(is_crossed(input.map) ? 1 : 0);
            }
        }
        const auto [found, is_new] = gains_.try_emplace(std::move(key));
        if (is_new) found->second = search(first, last);
        return found->second;
    }

private:
    [[nodiscard]] std::vector<bool> operators_of(int first, int last) const {
        std::vector<bool> part(graph_.operators.size(), false);
        std::fill(part.begin() + first, part.begin() + last, true);
        return part;
    }

    std::optional<int64_t> search(int first, int last) {
        std::vector<std::vector<int>> needs;
        for (int op = first; op < last; ++op) {
            std::vector<int>& own = needs.emplace_back();
            for (const int need : needs_[static_cast<size_t>(op)]) {
                if (need >= first) own.push_back(need - first);
            }
        }
        const std::optional<OrderIdeals> ideals = OrderIdeals::of(needs, limits_.most_ideals);
        if (!ideals) return std::nullopt;
        GrowingGroup group(graph_, machine_, rules_, operators_of(first, last));
        const std::optional<int64_t> least =
            PartSearch(*ideals, group, first, rules_, limits_.most_groups).run();
        if (!least) return std::nullopt;
        return *least - rules_.images * moved_by_every_grouping(first, last);
    }

    /// Elements of one image of the maps that every grouping moves and that belong to this part
    /// alone.
    [[nodiscard]] int64_t moved_by_every_grouping(int first, int last) const {
        int64_t elements = 0;
        for (size_t m = 0; m < graph_.maps.size(); ++m) {
            const std::vector<int>& readers = graph_.maps[m].readers;
            const bool is_made_outside =
                m < graph_.operators.size() &&
                (static_cast<int>(m) < first || static_cast<int>(m) >= last);
            const bool is_read_inside =
                readers.empty() || (readers.front() >= first && readers.back() < last);
            if (graph_.always_moves(m) && is_read_inside && !is_made_outside)
                elements += graph_.maps[m].elements();
        }
        return elements;
    }

    const OperatorGraph& graph_;
    GroupMachine machine_;
    GroupRules rules_;
    PartLimits limits_;
    std::vector<std::vector<int>> needs_;
    std::vector<int> shapes_;
    std::map<std::vector<int>, std::optional<int64_t>> gains_;
};

}  // namespace

int64_t bound_by_parts(const OperatorGraph& graph, const GroupMachine& machine,
                       const GroupRules& rules, const PartLimits& limits) {
    Parts parts(graph, machine, rules, limits);
    std::vector<int64_t> most(static_cast<size_t>(graph.size()) + 1,
                              std::numeric_limits<int64_t>::min());
    most.front() = 0;
    for (int first = 0; first < graph.size(); ++first) {
        const int64_t before = most[static_cast<size_t>(first)];
        for (int last = first + 1; last <= std::min(graph.size(), first + limits.longest); ++last) {
            const std::optional<int64_t> gain = parts.gain(first, last);
            if (!gain) break;
            most[static_cast<size_t>(last)] =
                std::max(most[static_cast<size_t>(last)], before + *gain);
        }
    }
    int64_t entries = most.back();
    for (size_t m = 0; m < graph.maps.size(); ++m) {
        if (graph.always_moves(m)) entries += rules.images * graph.maps[m].elements();
    }
    return entries;
}

}  // namespace laminate::dag_groups
