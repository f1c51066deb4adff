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

/// All that the cost of a group depends on at this operator; neighbours by their distance.
[[nodiscard]] std::vector<int64_t> operator_shape(const OperatorGraph& graph, int op);

}  // namespace laminate::dag_groups
