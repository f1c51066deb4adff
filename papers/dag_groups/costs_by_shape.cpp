#include "papers/dag_groups/costs_by_shape.h"

#include <algorithm>

namespace laminate::dag_groups {

namespace {

constexpr uint64_t ratio = 0xd1342543de82ef95u;  // odd, so that it has an inverse modulo 2^64

constexpr uint64_t inverse(uint64_t odd) {
    uint64_t x = odd;
    for (int n = 0; n < 5; ++n) x *= 2 - odd * x;
    return x;
}
constexpr uint64_t inverse_ratio = inverse(ratio);

/// The place of a key among so many slots, a power of two.
size_t place(uint64_t key, size_t slots) {
    return static_cast<size_t>((key ^ key >> 32) * 0x9e3779b97f4a7c15u >> 32) & (slots - 1);
}

}  // namespace

int ShapeNumbers::number_of(std::span<const int64_t> key) {
    const auto slot_of = [&](std::span<const int64_t> of) {
        uint64_t hash = of.size();
        for (const int64_t number : of)
            hash = (hash ^ static_cast<uint64_t>(number) ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
        size_t at = place(hash, slots_.size());
        while (slots_[at] != 0 &&
               !std::ranges::equal(key_of(static_cast<size_t>(slots_[at] - 1)), of))
            at = (at + 1) & (slots_.size() - 1);
        return at;
    };
    if (2 * begin_.size() > slots_.size()) {
        slots_.assign(std::max<size_t>(128, 4 * slots_.size()), 0);
        for (size_t n = 0; n + 1 < begin_.size(); ++n)
            slots_[slot_of(key_of(n))] = static_cast<int>(n + 1);
    }
    int& slot = slots_[slot_of(key)];
    if (slot == 0) {
        keys_.insert(keys_.end(), key.begin(), key.end());
        begin_.push_back(keys_.size());
        slot = static_cast<int>(begin_.size() - 1);
    }
    return slot - 1;
}

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
            for (const int64_t number : {reach.kernel, reach.stride, reach.upscale})
                key.push_back(number);
        }
    }
}

CostsByShape::CostsByShape(const OperatorGraph& graph, GroupEvaluator& evaluator)
    : evaluator_(evaluator), inverse_power_{1}, slots_(512, 0) {
    ShapeNumbers numbers;
    std::vector<int64_t> key;
    shape_.reserve(graph.operators.size());
    term_.reserve(graph.operators.size());
    inverse_power_.reserve(graph.operators.size() + 1);
    uint64_t power = 1;
    for (int op = 0; op < graph.size(); ++op) {
        operator_shape(graph, op, key);
        shape_.push_back(numbers.number_of(key));
        const auto number = static_cast<uint64_t>(shape_.back() + 1);
        term_.push_back((number * 0x9e3779b97f4a7c15u ^ (number << 29)) * power);
        power *= ratio;
        inverse_power_.push_back(inverse_power_.back() * inverse_ratio);
    }
}

std::optional<GroupCost> CostsByShape::cost(std::span<const int> operators, uint64_t sum,
                                            int least) {
    const uint64_t key = sum * inverse_power_[static_cast<size_t>(least)] + operators.size();
    if (2 * (known_.size() + 1) > slots_.size()) enlarge();
    size_t at = place(key, slots_.size());
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
        const Known& known = known_[slots_[at] - 1];
        if (known.key == key && is_shift({operators_.data() + known.begin, known.size}, operators))
            return known.cost;
    }
    ++looked_for;
    known_.push_back({key, operators_.size(), operators.size(), evaluator_.cost(operators)});
    operators_.insert(operators_.end(), operators.begin(), operators.end());
    slots_[at] = static_cast<uint32_t>(known_.size());
    return known_.back().cost;
}

void CostsByShape::enlarge() {
    slots_.assign(4 * slots_.size(), 0);
    for (size_t n = 0; n < known_.size(); ++n) {
        size_t at = place(known_[n].key, slots_.size());
        while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = static_cast<uint32_t>(n + 1);
    }
}

bool CostsByShape::is_shift(std::span<const int> a, std::span<const int> b) const {
    if (a.size() != b.size()) return false;
    const int distance = b.front() - a.front();
    for (size_t n = 0; n < a.size(); ++n) {
        if (b[n] - a[n] != distance ||
            shape_[static_cast<size_t>(a[n])] != shape_[static_cast<size_t>(b[n])])
            return false;
    }
    return true;
}

}  // namespace laminate::dag_groups
