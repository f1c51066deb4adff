#include "papers/depth_first/limited_orders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace laminate::depth_first {

namespace {

constexpr size_t none = std::numeric_limits<size_t>::max();

double product_of(const LoopOrder& order, size_t begin, size_t end) {
    double product = 1;
    for (size_t i = begin; i < end; ++i) product *= order[i].size;
    return product;
}

void add_loop(Trips& trips, const Loop& loop) { trips[loop.dim] *= loop.size; }

}  // namespace

/// ZigZag's bottom-up allocation of one order. Each memory takes, for each operand that it serves,
/// some of the next loops of the order.
class MappedLayer::MemoryAllocator {
public:
    MemoryAllocator(const MappedLayer& layer, const LoopOrder& order);

    /// Allocates loops to memories()[at]; the memories below it come first. False if they do not
    /// fit.
    [[nodiscard]] bool fill(size_t at);
    [[nodiscard]] Allocation& allocation() { return allocation_; }

private:
    using Counts = std::array<size_t, 3>;  ///< loops to take, by operand that the memory serves
    struct Progress {
        Trips trips = no_loops;  ///< of the loops and lanes below
        size_t allocated = 0;    ///< loops of the order
        size_t level = 0;
    };
    /// The numbers of loops that an operand may put into a memory: `first`, first + 1, ...
    struct Options {
        size_t first = 0;
        std::vector<double> bits;      ///< of the tile then
        std::vector<double> accesses;  ///< bits that then cross to the memory above
    };
    [[nodiscard]] bool reduction_left(size_t r) const;
    [[nodiscard]] Options options(size_t r, double capacity) const;
    [[nodiscard]] static Counts fewest_accesses(std::span<const Options> options, double capacity);
    [[nodiscard]] bool take(size_t r, size_t loops);

    const MappedLayer& layer_;
    const LoopOrder& order_;
    std::array<Progress, 3> progress_;  ///< by role
    Allocation allocation_;
};

MappedLayer::MemoryAllocator::MemoryAllocator(const MappedLayer& layer, const LoopOrder& order)
    : layer_(layer), order_(order), allocation_(layer.roles_.size()) {
    for (size_t r = 0; r < layer.roles_.size(); ++r) {
        for (const Loop& loop : layer.roles_[r].lanes[0]) add_loop(progress_[r].trips, loop);
    }
}

/// Whether loops of the sum are still to be allocated, so that the output is a partial sum.
bool MappedLayer::MemoryAllocator::reduction_left(size_t r) const {
    const RoleData& role = layer_.roles_[r];
    if (role.role != Role::output) return false;
    return std::any_of(order_.begin() + static_cast<ptrdiff_t>(progress_[r].allocated),
                       order_.end(), [&](const Loop& loop) { return role.irrelevant(loop.dim); });
}

/// Empty if not even a tile without loops fits. The highest memory of an operand takes all loops
/// that fit.
MappedLayer::MemoryAllocator::Options MappedLayer::MemoryAllocator::options(size_t r,
                                                                            double capacity) const {
    const Progress& progress = progress_[r];
    const bool is_partial = reduction_left(r);
    Options options;
    options.bits.reserve(order_.size() + 1 - progress.allocated);
    options.accesses.reserve(order_.size() + 1 - progress.allocated);
    Trips trips = progress.trips;
    double left = product_of(order_, progress.allocated, order_.size());
    for (size_t k = 0; progress.allocated + k <= order_.size(); ++k) {
        if (k > 0) {
            add_loop(trips, order_[progress.allocated + k - 1]);
            left /= order_[progress.allocated + k - 1].size;
        }
        const double bits = layer_.tile_bits(r, trips, is_partial);
        if (bits > capacity) break;
        options.bits.push_back(bits);
        options.accesses.push_back(left * bits);
    }
    if (!options.bits.empty() && progress.level + 1 == layer_.roles_[r].levels.size()) {
        options.first = options.bits.size() - 1;
        options.bits = {options.bits.back()};
        options.accesses = {0};
    }
    return options;
}

/// The last operand varies fastest, and the last of equal combinations is taken.
MappedLayer::MemoryAllocator::Counts MappedLayer::MemoryAllocator::fewest_accesses(
    std::span<const Options> options, double capacity) {
    Counts at{}, best{};
    double best_accesses = std::numeric_limits<double>::infinity();
    while (true) {
        double bits = 0, accesses = 0;
        for (size_t s = 0; s < options.size(); ++s) {
            bits += options[s].bits[at[s]];
            accesses += options[s].accesses[at[s]];
        }
        if (bits <= capacity && accesses <= best_accesses) {
            best_accesses = accesses;
            for (size_t s = 0; s < options.size(); ++s) best[s] = options[s].first + at[s];
        }
        size_t s = options.size();
        while (s > 0 && at[s - 1] + 1 == options[s - 1].bits.size()) at[--s] = 0;
        if (s == 0) return best;
        ++at[s - 1];
    }
}

/// False if the operand's highest memory leaves loops over.
bool MappedLayer::MemoryAllocator::take(size_t r, size_t loops) {
    const RoleData& role = layer_.roles_[r];
    Progress& progress = progress_[r];
    for (size_t k = 0; k < loops; ++k) add_loop(progress.trips, order_[progress.allocated + k]);
    progress.allocated += loops;
    ++progress.level;
    for (const Loop& loop : role.lanes[progress.level]) add_loop(progress.trips, loop);
    allocation_[r].push_back(progress.allocated);
    return progress.level < role.levels.size() || progress.allocated == order_.size();
}

bool MappedLayer::MemoryAllocator::fill(size_t at) {
    const auto capacity =
        static_cast<double>(layer_.machine_.memories[layer_.memories_[at]].capacity_bits);
    const std::vector<size_t>& served = layer_.served_[at];
    std::array<Options, 3> options;
    for (size_t s = 0; s < served.size(); ++s) {
        options[s] = this->options(served[s], capacity);
        if (options[s].bits.empty()) return false;
    }
    const Counts best = fewest_accesses({options.data(), served.size()}, capacity);
    for (size_t s = 0; s < served.size(); ++s) {
        if (!take(served[s], best[s])) return false;
    }
    return true;
}

std::optional<Allocation> MappedLayer::allocate(const LoopOrder& order) const {
    MemoryAllocator allocator(*this, order);
    for (size_t at = 0; at < memories_.size(); ++at) {
        if (!allocator.fill(at)) return std::nullopt;
    }
    return std::move(allocator.allocation());
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
        if (list.size() < 2) break;  // every dimension is down to one loop
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
