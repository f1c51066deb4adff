#include "scheduler/models/dag_groups/costs_by_shape.h"

namespace laminate::dag_groups {

namespace {

constexpr uint64_t ratio = 0xd1342543de82ef95u;  // odd, so that it has an inverse modulo 2^64

constexpr uint64_t inverse(uint64_t odd) {
    uint64_t x = odd;
    for (int n = 0; n < 5; ++n) x *= 2 - odd * x;
    return x;
}

}  // namespace

void operator_shape(const OperatorGraph& graph, int op, std::vector<int64_t>& key) {
    const Operator& o = graph.operators[static_cast<size_t>(op)];
    key.clear();
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
}

CostsByShape::CostsByShape(const OperatorGraph& graph, GroupEvaluator& evaluator)
    : evaluator_(evaluator), inverse_power_{1} {
    ShapeNumbers numbers;
    std::vector<int64_t> key;
    uint64_t power = 1;
    for (int op = 0; op < graph.size(); ++op) {
        operator_shape(graph, op, key);
        shape_.push_back(numbers.number_of(key));
        const auto number = static_cast<uint64_t>(shape_.back() + 1);
        term_.push_back((number * 0x9e3779b97f4a7c15u ^ (number << 29)) * power);
        power *= ratio;
        inverse_power_.push_back(inverse_power_.back() * inverse(ratio));
    }
}

const std::optional<GroupCost>& CostsByShape::cost(const std::vector<int>& operators, uint64_t sum, int least) {
    std::vector<Known>& alike = known_[sum * inverse_power_[static_cast<size_t>(least)] + operators.size()];
    for (const Known& known : alike) {
        if (is_shift(known.operators, operators)) return known.cost;
    }
    ++looked_for;
    alike.push_back({operators, evaluator_.cost(operators)});
    return alike.back().cost;
}

bool CostsByShape::is_shift(const std::vector<int>& a, const std::vector<int>& b) const {
    if (a.size() != b.size()) return false;
    const int distance = b.front() - a.front();
    for (size_t n = 0; n < a.size(); ++n) {
        if (b[n] - a[n] != distance || shape_[static_cast<size_t>(a[n])] != shape_[static_cast<size_t>(b[n])])
            return false;
    }
    return true;
}

}  // namespace laminate::dag_groups
