#include "papers/depth_first/limited_orders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace laminate::depth_first {

namespace {

constexpr size_t none = std::numeric_limits<size_t>::max();

double product_of(const LoopOrder& order, size_t begin, size_t end) {
    double product = 1;
    for (size_t i = begin; i < end; ++i) product *= order[i].size;
    return product;
}

}  // namespace

std::optional<Allocation> MappedLayer::allocate(const LoopOrder& order) const {
    const size_t loops = order.size();
    struct State {
        std::array<double, dim_count> products{};
        size_t allocated = 0;
        size_t level = 0;
    };
    std::array<State, 3> states;
    Allocation allocation(roles_.size());
    const auto multiply = [](std::array<double, dim_count>& products, const Loop& loop) {
        products[index_of(loop.dim)] *= loop.size;
    };
    for (size_t r = 0; r < roles_.size(); ++r) {
        states[r].products.fill(1);
        for (const Loop& loop : roles_[r].lanes[0]) multiply(states[r].products, loop);
    }
    struct Choice {
        size_t first = 0;  ///< number of loops of the first entry
        std::vector<double> bits;
        std::vector<double> accesses;
    };
    std::array<Choice, 3> choices;
    for (size_t m = 0; m < memories_.size(); ++m) {
        const auto capacity = static_cast<double>(machine_.memories[memories_[m]].capacity_bits);
        const std::vector<size_t>& served = served_[m];
        for (size_t s = 0; s < served.size(); ++s) {
            const RoleData& role = roles_[served[s]];
            const State& state = states[served[s]];
            bool reduction_left = false;
            if (role.role == Role::output) {
                for (size_t i = state.allocated; i < loops; ++i)
                    reduction_left = reduction_left || role.irrelevant(order[i].dim);
            }
            Choice& choice = choices[s];
            choice = {};
            std::array<double, dim_count> products = state.products;
            double left = product_of(order, state.allocated, loops);
            for (size_t k = 0; state.allocated + k <= loops; ++k) {
                if (k > 0) {
                    multiply(products, order[state.allocated + k - 1]);
                    left /= order[state.allocated + k - 1].size;
                }
                const double bits = tile_bits(served[s], products, reduction_left);
                if (bits > capacity) break;
                choice.bits.push_back(bits);
                choice.accesses.push_back(left * bits);
            }
            if (choice.bits.empty()) return std::nullopt;
            if (state.level + 1 == role.levels.size()) {
                choice.first = choice.bits.size() - 1;
                choice.bits = {choice.bits.back()};
                choice.accesses = {0};
            }
        }
        // The last operand varies fastest; of equal combinations the last is taken.
        std::array<size_t, 3> at{}, best{};
        double best_accesses = std::numeric_limits<double>::infinity();
        while (true) {
            double bits = 0, accesses = 0;
            for (size_t s = 0; s < served.size(); ++s) {
                bits += choices[s].bits[at[s]];
                accesses += choices[s].accesses[at[s]];
            }
            if (bits <= capacity && accesses <= best_accesses) {
                best_accesses = accesses;
                for (size_t s = 0; s < served.size(); ++s) best[s] = choices[s].first + at[s];
            }
            size_t s = served.size();
            while (s > 0 && at[s - 1] + 1 == choices[s - 1].bits.size()) at[--s] = 0;
            if (s == 0) break;
            ++at[s - 1];
        }
        for (size_t s = 0; s < served.size(); ++s) {
            const RoleData& role = roles_[served[s]];
            State& state = states[served[s]];
            for (size_t k = 0; k < best[s]; ++k)
                multiply(state.products, order[state.allocated + k]);
            state.allocated += best[s];
            ++state.level;
            for (const Loop& loop : role.lanes[state.level]) multiply(state.products, loop);
            allocation[served[s]].push_back(state.allocated);
            if (state.level == role.levels.size() && state.allocated < loops) return std::nullopt;
        }
    }
    return allocation;
}

LoopOrders::LoopOrders(LoopOrder loops) {
    std::ranges::sort(loops, [](const Loop& a, const Loop& b) {
        return std::pair(a.dim, a.size) > std::pair(b.dim, b.size);
    });
    for (size_t n = 0; n < loops.size(); ++n)
        nodes_.push_back({loops[n], n + 1 < loops.size() ? n + 1 : none});
    if (!nodes_.empty()) {
        j_ = nodes_.size() - 1;
        i_ = nodes_.size() >= 2 ? nodes_.size() - 2 : 0;
    }
    read();
}

void LoopOrders::read() {
    current_.clear();
    for (size_t n = nodes_.empty() ? none : head_; n != none; n = nodes_[n].next)
        current_.push_back(nodes_[n].loop);
}

bool LoopOrders::next() {
    if (nodes_.empty()) return false;
    const auto value = [&](size_t n) { return std::pair(nodes_[n].loop.dim, nodes_[n].loop.size); };
    if (nodes_[j_].next == none && value(j_) >= value(head_)) return false;
    const size_t before = nodes_[j_].next != none && value(i_) >= value(nodes_[j_].next) ? j_ : i_;
    const size_t moved = nodes_[before].next;
    nodes_[before].next = nodes_[moved].next;
    nodes_[moved].next = head_;
    if (value(moved) < value(head_)) i_ = moved;
    j_ = nodes_[i_].next;
    head_ = moved;
    read();
    return true;
}

LoopOrder limited_factors(const MappedLayer& layer, size_t limit) {
    std::vector<std::pair<Dim, std::vector<int64_t>>> factors = layer.temporal_factors();
    size_t count = 0;
    for (const auto& [dim, list] : factors) count += list.size();
    while (limit > 0 && count > limit) {
        auto most = std::ranges::max_element(factors, {},
                                             [](const auto& entry) { return entry.second.size(); });
        std::vector<int64_t>& list = most->second;
        if (list.size() < 2) break;  // one loop for each dimension is as few as there can be
        const int64_t merged = list[0] * list[1];
        list.erase(list.begin(), list.begin() + 2);
        list.insert(std::ranges::upper_bound(list, merged), merged);
        --count;
    }
    LoopOrder loops;
    for (const auto& [dim, list] : factors) {
        for (const int64_t factor : list) loops.push_back({dim, static_cast<double>(factor)});
    }
    return loops;
}

std::optional<LayerMapping> best_limited_mapping(const MappedLayer& layer, size_t limit,
                                                 const MappingGoal& goal) {
    std::optional<LayerMapping> best;
    double least = std::numeric_limits<double>::infinity();
    const double macs = layer.mac_energy();
    const bool is_by_energy = goal.objective == Objective::energy;
    LoopOrders orders(limited_factors(layer, limit));
    do {
        std::optional<Allocation> allocation = layer.allocate(orders.current());
        if (!allocation) continue;
        LayerCost cost;
        cost.memory_pj = layer.memory_energy(orders.current(), *allocation);
        cost.energy_pj = cost.memory_pj + macs;
        if (!is_by_energy) cost.latency = layer.latency(orders.current(), *allocation);
        const double found =
            is_by_energy ? cost.energy_pj
                         : value(goal.objective, energy_of(cost, goal), latency_of(cost, goal));
        if (found >= least) continue;
        least = found;
        best = LayerMapping{orders.current(), std::move(*allocation), {}};
    } while (orders.next());
    if (best) best->cost = layer.cost(best->order, best->allocation);
    return best;
}

}  // namespace laminate::depth_first
