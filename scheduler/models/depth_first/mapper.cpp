#include "scheduler/models/depth_first/mapper.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"

// The energy of a mapping is a sum over boundaries between neighbouring levels of each operand, and what a boundary costs depends only
// on which loops lie below it, not on their order. So a mapping is a path from "no loop" to "all loops" through the multisets of loops, on
// which each operand places its boundaries. The shortest path is found with lower bounds (A*): what an operand's remaining boundaries cost at least, were
// it alone, is a second, small shortest path per operand, computed for every multiset beforehand. Operands meet only in the order and in the capacity
// of memories that they share.

namespace laminate::depth_first {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Memories that operands share and compete for.
constexpr size_t most_watched = 6;

struct Factor {
    Dim dim;
    int64_t prime;
    size_t count;
    size_t step;  ///< of one such loop in the index of a multiset
};

class Search {
public:
    explicit Search(const MappedLayer& layer);
    [[nodiscard]] std::optional<LayerMapping> run();

private:
    using Levels = std::array<uint8_t, 3>;  ///< boundaries placed, per role
    struct Node {
        uint32_t multiset = 0;
        Levels levels{};
        uint8_t next = 0;   ///< the factor that will be the next loop, plus 1; 0: to be chosen
        uint8_t role = 0;   ///< whose boundaries may be placed before it
        bool reduction = true;  ///< of the output: loops of the sum were above its last boundary
        std::array<double, most_watched> used{};  ///< bits in the memories that are watched
        bool operator==(const Node&) const = default;
    };
    struct Hash {
        size_t operator()(const Node& node) const {
            size_t hash = node.multiset;
            const auto mix = [&](size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL; hash ^= hash >> 29; };
            mix(node.levels[0] | node.levels[1] << 4 | node.levels[2] << 8 | node.next << 12 | node.role << 20 | size_t{node.reduction} << 24);
            for (const double bits : node.used) mix(std::hash<double>()(bits));
            return hash;
        }
    };
    struct Reached {
        double cost = infinity;
        const Node* from = nullptr;
        bool done = false;
    };
    using Known = std::unordered_map<Node, Reached, Hash>;

    [[nodiscard]] size_t level_count(size_t r) const { return layer_.hierarchy(r).size(); }
    [[nodiscard]] size_t count_of(size_t multiset, const Factor& factor) const { return multiset / factor.step % (factor.count + 1); }
    [[nodiscard]] bool fits(size_t r, size_t level, size_t multiset, bool reduction, Node& node) const;
    [[nodiscard]] double bound(const Node& node) const;
    void tabulate();
    void reach(const Node& node, double cost, const Node* from);
    void expand(const Node& node, double cost);
    [[nodiscard]] LayerMapping mapping(const Node& last) const;

    const MappedLayer& layer_;
    std::vector<Factor> factors_;
    size_t multisets_ = 1;
    double total_ = 1;
    std::vector<std::array<double, dim_count>> products_;
    std::vector<bool> reduction_left_;  ///< loops of the sum are missing from the multiset
    /// [role][level - 1][multiset]: the boundary below `level` there; infinite where the tile does not fit.
    std::vector<std::vector<std::vector<double>>> cost_;
    /// [role][boundaries placed][multiset]: the least that the others cost, at this multiset or larger ones.
    std::vector<std::vector<std::vector<double>>> rest_;
    /// Memories that several roles share and that do not hold all of them whole.
    struct Watched {
        size_t memory;
        std::vector<std::pair<size_t, size_t>> sharers;  ///< role and level
    };
    std::vector<Watched> watched_;
    /// Bits in watched memories of nodes that are done and otherwise equal. Costs rise from one to the next, so a later one that
    /// also takes no less of each memory leads nowhere better.
    std::unordered_map<Node, std::vector<std::array<double, most_watched>>, Hash> done_;

    struct Entry {
        double estimate;
        size_t depth;
        size_t sequence;
        const Node* node;
        double cost;
        bool operator<(const Entry& other) const {
            return std::tuple(estimate, -static_cast<double>(depth), sequence) >
                   std::tuple(other.estimate, -static_cast<double>(other.depth), other.sequence);
        }
    };
    std::priority_queue<Entry> open_;
    Known known_;
    size_t sequence_ = 0;
};

Search::Search(const MappedLayer& layer) : layer_(layer) {
    for (const auto& [dim, primes] : layer.temporal_factors()) {
        for (const int64_t prime : primes) {
            total_ *= static_cast<double>(prime);
            if (!factors_.empty() && factors_.back().dim == dim && factors_.back().prime == prime) {
                ++factors_.back().count;
            } else {
                factors_.push_back({dim, prime, 1, 0});
            }
        }
    }
    for (Factor& factor : factors_) {
        factor.step = multisets_;
        multisets_ *= factor.count + 1;
    }
    tabulate();
}

void Search::tabulate() {
    products_.resize(multisets_);
    reduction_left_.resize(multisets_);
    for (size_t s = 0; s < multisets_; ++s) {
        products_[s].fill(1);
        for (const Factor& factor : factors_) {
            const size_t count = count_of(s, factor);
            for (size_t i = 0; i < count; ++i) products_[s][static_cast<size_t>(factor.dim)] *= static_cast<double>(factor.prime);
            if (count < factor.count && layer_.irrelevant(0, factor.dim)) reduction_left_[s] = true;
        }
    }
    const size_t all = multisets_ - 1;
    std::vector<double> tops(layer_.machine().memories.size(), 0), whole = tops;
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        const std::vector<size_t>& levels = layer_.hierarchy(r);
        tops[levels.back()] += layer_.level_bits(r, levels.size() - 1, products_[all], false);
        for (size_t level = 0; level < levels.size(); ++level) whole[levels[level]] += layer_.level_bits(r, level, products_[all], true);
    }
    for (size_t at = 0; at < layer_.memories().size(); ++at) {
        const size_t memory = layer_.memories()[at];
        if (layer_.served()[at].size() < 2 || whole[memory] <= static_cast<double>(layer_.machine().memories[memory].capacity_bits)) continue;
        Watched watched{memory, {}};
        for (const size_t r : layer_.served()[at]) {
            const std::vector<size_t>& levels = layer_.hierarchy(r);
            watched.sharers.emplace_back(r, static_cast<size_t>(std::ranges::find(levels, memory) - levels.begin()));
        }
        watched_.push_back(std::move(watched));
    }
    if (watched_.size() > most_watched) {
        throw InputError("machine " + layer_.machine().name + ": found " + std::to_string(watched_.size()) +
                         " memories that operands compete for, expected at most " + std::to_string(most_watched));
    }
    cost_.resize(layer_.role_count());
    rest_.resize(layer_.role_count());
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        const std::vector<size_t>& levels = layer_.hierarchy(r);
        cost_[r].resize(levels.size() - 1);
        for (size_t level = 1; level < levels.size(); ++level) {
            std::vector<double>& cost = cost_[r][level - 1];
            cost.assign(multisets_, infinity);
            const size_t memory = levels[level - 1];
            const double room = static_cast<double>(layer_.machine().memories[memory].capacity_bits) - tops[memory];
            for (size_t s = 0; s < multisets_; ++s) {
                if (layer_.level_bits(r, level - 1, products_[s], false) > room) continue;
                cost[s] = layer_.boundary_energy(r, level, products_[s], total_, r == 0 && reduction_left_[s]);
            }
        }
        rest_[r].assign(levels.size(), std::vector<double>(multisets_, infinity));
        rest_[r].back().assign(multisets_, 0);
        for (size_t placed = levels.size() - 1; placed-- > 0;) {
            std::vector<double>& rest = rest_[r][placed];
            for (size_t s = multisets_; s-- > 0;) {
                rest[s] = cost_[r][placed][s] + rest_[r][placed + 1][s];
                for (const Factor& factor : factors_) {
                    if (count_of(s, factor) < factor.count) rest[s] = std::min(rest[s], rest[s + factor.step]);
                }
            }
        }
    }
}

/// Takes the tile's bits of watched memories; false where they do not fit.
bool Search::fits(size_t r, size_t level, size_t multiset, bool reduction, Node& node) const {
    const size_t memory = layer_.hierarchy(r)[level];
    const double bits = layer_.level_bits(r, level, products_[multiset], r == 0 && reduction);
    const auto capacity = static_cast<double>(layer_.machine().memories[memory].capacity_bits);
    const auto found = std::ranges::find(watched_, memory, &Watched::memory);
    if (found == watched_.end()) return bits <= capacity;
    double& used = node.used[static_cast<size_t>(found - watched_.begin())];
    if (used + bits > capacity) return false;
    used += bits;
    // Once all have their place it no longer matters how much is left.
    const bool full = std::ranges::all_of(found->sharers, [&](const auto& sharer) { return node.levels[sharer.first] > sharer.second; });
    if (full) used = 0;
    return true;
}

double Search::bound(const Node& node) const {
    double sum = 0;
    for (size_t r = 0; r < layer_.role_count(); ++r) sum += rest_[r][node.levels[r]][node.multiset];
    return sum;
}

void Search::reach(const Node& node, double cost, const Node* from) {
    const double estimate = cost + bound(node);
    if (estimate == infinity) return;
    const auto [entry, is_new] = known_.try_emplace(node);
    if (!is_new && (entry->second.done || cost >= entry->second.cost)) return;
    entry->second.cost = cost;
    entry->second.from = from;
    const size_t depth = node.multiset * 4 + node.role + (node.next > 0 ? 1 : 0);
    open_.push({estimate, depth, sequence_++, &entry->first, cost});
}

void Search::expand(const Node& node, double cost) {
    const size_t all = multisets_ - 1;
    if (node.next == 0 && node.multiset != all) {
        for (size_t f = 0; f < factors_.size(); ++f) {
            if (count_of(node.multiset, factors_[f]) == factors_[f].count) continue;
            Node chosen = node;
            chosen.next = static_cast<uint8_t>(f + 1);
            reach(chosen, cost, &node);
        }
        return;
    }
    const size_t r = node.role;
    const bool last = node.multiset == all;
    if (r == layer_.role_count()) {
        Node moved = node;
        moved.multiset += static_cast<uint32_t>(factors_[node.next - 1].step);
        moved.next = 0;
        moved.role = 0;
        reach(moved, cost, &node);
        return;
    }
    const size_t level = node.levels[r];
    const bool top = level + 1 == level_count(r);
    // A boundary right below an irrelevant loop would move above it.
    const bool may_place = !top && (last || !layer_.irrelevant(r, factors_[node.next - 1].dim));
    if (may_place && cost_[r][level][node.multiset] < infinity) {
        Node placed = node;
        ++placed.levels[r];
        if (fits(r, level, node.multiset, node.reduction, placed)) {
            if (r == 0) placed.reduction = reduction_left_[node.multiset];
            reach(placed, cost + cost_[r][level][node.multiset], &node);
        }
    }
    if (last && !top) return;
    Node passed = node;
    ++passed.role;
    // At the end, the highest memory takes what there is.
    if (last && !fits(r, level, node.multiset, node.reduction, passed)) return;
    reach(passed, cost, &node);
}

std::optional<LayerMapping> Search::run() {
    Node start;
    start.reduction = reduction_left_[0];
    reach(start, 0, nullptr);
    while (!open_.empty()) {
        const Entry entry = open_.top();
        open_.pop();
        Reached& reached = known_.at(*entry.node);
        if (reached.done || entry.cost > reached.cost) continue;
        reached.done = true;
        if (!watched_.empty()) {
            Node key = *entry.node;
            key.used = {};
            auto& others = done_[key];
            const bool dominated = std::ranges::any_of(others, [&](const auto& used) {
                return std::ranges::equal(used, entry.node->used, std::less_equal<>());
            });
            if (dominated) continue;
            others.push_back(entry.node->used);
        }
        if (entry.node->multiset == multisets_ - 1 && entry.node->role == layer_.role_count()) return mapping(*entry.node);
        expand(*entry.node, entry.cost);
    }
    return std::nullopt;
}

LayerMapping Search::mapping(const Node& last) const {
    LayerMapping result;
    result.allocation.resize(layer_.role_count());
    std::vector<const Node*> path;
    for (const Node* node = &last; node != nullptr; node = known_.at(*node).from) path.push_back(node);
    std::ranges::reverse(path);
    for (size_t i = 1; i < path.size(); ++i) {
        if (path[i]->multiset != path[i - 1]->multiset) {
            const Factor& factor = factors_[path[i - 1]->next - 1];
            result.order.push_back({factor.dim, static_cast<double>(factor.prime)});
        }
        for (size_t r = 0; r < layer_.role_count(); ++r) {
            if (path[i]->levels[r] != path[i - 1]->levels[r]) result.allocation[r].push_back(result.order.size());
        }
    }
    for (std::vector<size_t>& bounds : result.allocation) bounds.push_back(result.order.size());
    result.cost = layer_.cost(result.order, result.allocation);
    return result;
}

}  // namespace

std::optional<LayerMapping> best_mapping(const MappedLayer& layer) { return Search(layer).run(); }

}  // namespace laminate::depth_first
