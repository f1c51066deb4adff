// Costs of groups, looked up by shape: groups that are shifts of one another, in the numbers of the operators, cost the same.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler/models/dag_groups/group_cost.h"

namespace laminate::dag_groups {

class CostsByShape {
public:
    CostsByShape(const OperatorGraph& graph, GroupEvaluator& evaluator);

    /// To be summed over a group.
    [[nodiscard]] uint64_t term(int op) const { return term_[static_cast<size_t>(op)]; }

    /// `sum` of the terms of `operators`, `least` their smallest number. None: it does not fit.
    const std::optional<GroupCost>& cost(const std::vector<int>& operators, uint64_t sum, int least);

    int64_t looked_for = 0;

private:
    struct Known {
        std::vector<int> operators;
        std::optional<GroupCost> cost;
    };

    [[nodiscard]] bool is_shift(const std::vector<int>& a, const std::vector<int>& b) const;

    GroupEvaluator& evaluator_;
    std::vector<int> shape_;  ///< by operator: equal numbers for equal shapes
    std::vector<uint64_t> inverse_power_, term_;
    std::unordered_map<uint64_t, std::vector<Known>> known_;
};

/// Numbers from 0 for vectors, equal ones for equal vectors.
class ShapeNumbers {
public:
    [[nodiscard]] int number_of(const std::vector<int64_t>& key) {
        const auto found = numbers_.find(key);
        return found != numbers_.end() ? found->second
                                       : numbers_.emplace(key, static_cast<int>(numbers_.size())).first->second;
    }

private:
    struct Hash {
        size_t operator()(const std::vector<int64_t>& key) const {
            uint64_t hash = key.size();
            for (const int64_t number : key)
                hash = (hash ^ static_cast<uint64_t>(number) ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
            return static_cast<size_t>(hash ^ hash >> 32);
        }
    };
    std::unordered_map<std::vector<int64_t>, int, Hash> numbers_;
};

/// All that the cost of a group depends on at this operator, in place of what `key` held; neighbours by their distance.
void operator_shape(const OperatorGraph& graph, int op, std::vector<int64_t>& key);

}  // namespace laminate::dag_groups
