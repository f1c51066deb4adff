// Costs of groups, looked up by shape: groups that are shifts of one another, in the numbers of the
// operators, cost the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "papers/dag_groups/group_cost.h"

namespace laminate::dag_groups {

class CostsByShape {
public:
    CostsByShape(const OperatorGraph& graph, GroupEvaluator& evaluator);

    /// The operator's term of a group's sum.
    [[nodiscard]] uint64_t term(int op) const { return term_[static_cast<size_t>(op)]; }

    /// `sum` is the sum of the terms of `operators`, `least` their smallest number. None if it does
    /// not fit.
    std::optional<GroupCost> cost(std::span<const int> operators, uint64_t sum, int least);

    int64_t looked_for = 0;

private:
    struct Known {
        uint64_t key;
        size_t begin, size;  ///< of its operators, in operators_
        std::optional<GroupCost> cost;
    };

    [[nodiscard]] bool is_shift(std::span<const int> a, std::span<const int> b) const;
    void enlarge();

    GroupEvaluator& evaluator_;
    std::vector<int> shape_;  ///< by operator: equal numbers for equal shapes
    std::vector<uint64_t> inverse_power_, term_;
    std::vector<Known> known_;
    std::vector<int> operators_;   ///< of all that are known, one after the other
    std::vector<uint32_t> slots_;  ///< 1 + place in known_, by key; a power of two of them
};

/// Numbers from 0 for vectors, equal ones for equal vectors. Kept in one row, because an on-line
/// search takes less time than as many small vectors.
class ShapeNumbers {
public:
    [[nodiscard]] int number_of(std::span<const int64_t> key);

private:
    [[nodiscard]] std::span<const int64_t> key_of(size_t number) const {
        return {keys_.data() + begin_[number], begin_[number + 1] - begin_[number]};
    }
    std::vector<int64_t> keys_;
    std::vector<size_t> begin_{0};  ///< into keys_, one more than numbers
    std::vector<int> slots_;        ///< 1 + number, by hash; a power of two of them
};

/// Replaces `key` by everything that the cost of a group depends on at this operator; neighbours
/// are given by their distance.
void operator_shape(const OperatorGraph& graph, int op, std::vector<int64_t>& key);

}  // namespace laminate::dag_groups
