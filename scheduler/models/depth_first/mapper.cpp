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
// which each operand places its boundaries. Were there no memories that operands compete for, a table over multisets and placed boundaries
// would hold the least cost of every rest of a path, and with it the best path. It also bounds the search where they compete: there a shortest path is
// found with lower bounds (A*), and to the table a price for each bit of such a memory is added (Lagrange relaxation), which makes the bounds know of the
// competition.
// A boundary right below a loop that its operand does not see moves above it and costs less there: paths that place it too early only
// overestimate, and another path has the true cost.

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
    using Bits = std::array<double, most_watched>;
    using Prices = std::array<double, most_watched>;  ///< pJ per bit of each memory that is watched
    struct Node {
        uint32_t multiset = 0;
        Levels levels{};
        uint8_t role = 0;       ///< boundaries of lower roles were placed before at this multiset
        bool reduction = true;  ///< of the output: loops of the sum were above its last boundary
        Bits used{};            ///< in the memories that are watched
        bool operator==(const Node&) const = default;
    };
    struct Hash {
        size_t operator()(const Node& node) const {
            size_t hash = node.multiset;
            const auto mix = [&](size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL; hash ^= hash >> 29; };
            mix(node.levels[0] | node.levels[1] << 4 | node.levels[2] << 8 | node.role << 12 | size_t{node.reduction} << 16);
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
    /// Least cost of the rest of a path, bits at these prices included.
    struct Table {
        Prices prices{};
        std::vector<double> rest;  ///< [boundaries placed][multiset]
        double whole = infinity;   ///< no mapping that fits costs less
    };
    /// A mapping that costs least under some prices. It need not fit.
    struct Path {
        std::vector<Node> nodes;
        double cost = 0;  ///< without prices
        Bits bits{};
        bool fits = false;
    };

    [[nodiscard]] size_t level_count(size_t r) const { return layer_.hierarchy(r).size(); }
    [[nodiscard]] size_t count_of(size_t multiset, const Factor& factor) const { return multiset / factor.step % (factor.count + 1); }
    [[nodiscard]] size_t placed_index(const Levels& levels) const {
        size_t index = 0;
        for (size_t r = 0; r < layer_.role_count(); ++r) index += levels[r] * placed_step_[r];
        return index;
    }
    [[nodiscard]] double room(size_t w) const { return static_cast<double>(layer_.machine().memories[watched_[w].memory].capacity_bits); }
    [[nodiscard]] bool finished(const Node& node) const;
    [[nodiscard]] bool all_placed(size_t w, const Node& node) const;
    [[nodiscard]] bool fits(size_t r, size_t level, size_t multiset, bool reduction, Node& node) const;
    [[nodiscard]] bool place(size_t r, Node& node) const;
    [[nodiscard]] double bound(const Node& node) const;
    void find_factors();
    void tabulate_products();
    void watch();
    void tabulate_costs();
    void fill(Table& table) const;
    [[nodiscard]] Path follow(const Table& table) const;
    void raise_prices();
    void consider(const Path& path);
    void reach(const Node& node, double cost, const Node* from);
    void expand(const Node& node, double cost);
    [[nodiscard]] std::vector<Node> path_to(const Node& last) const;
    [[nodiscard]] LayerMapping mapping(const std::vector<Node>& path) const;

    const MappedLayer& layer_;
    std::vector<Factor> factors_;
    size_t multisets_ = 1;
    double total_ = 1;
    std::vector<std::array<double, dim_count>> products_;
    std::vector<bool> reduction_left_;  ///< loops of the sum are missing from the multiset
    std::array<size_t, 3> placed_step_{};
    size_t placed_count_ = 1;
    /// [role][level - 1][multiset]: the boundary below `level` there; infinite where the tile does not fit.
    std::vector<std::vector<std::vector<double>>> cost_;
    /// Memories that several roles share and that do not hold all of them whole.
    struct Watched {
        size_t memory;
        std::vector<std::pair<size_t, size_t>> sharers;  ///< role and level
        /// Per sharer, per multiset: least bits of a boundary there. Of a role's highest level, which has no boundary: of the whole.
        std::vector<std::vector<double>> bits;
    };
    std::vector<Watched> watched_;
    Table unpriced_, priced_;
    bool has_prices_ = false;
    double best_cost_ = infinity;
    std::vector<Node> best_;  ///< the cheapest path that fits, so far
    /// Bits in watched memories of nodes that are done and otherwise equal. Costs rise from one to the next, so a later one that
    /// also takes no less of each memory leads nowhere better.
    std::unordered_map<Node, std::vector<Bits>, Hash> done_;

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
    find_factors();
    tabulate_products();
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        placed_step_[r] = placed_count_;
        placed_count_ *= level_count(r);
    }
    watch();
    tabulate_costs();
}

void Search::find_factors() {
    for (const auto& [dim, primes] : layer_.temporal_factors()) {
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
}

void Search::tabulate_products() {
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
}

void Search::watch() {
    const size_t all = multisets_ - 1;
    std::vector<double> whole(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        const std::vector<size_t>& levels = layer_.hierarchy(r);
        for (size_t level = 0; level < levels.size(); ++level) whole[levels[level]] += layer_.level_bits(r, level, products_[all], true);
    }
    for (size_t at = 0; at < layer_.memories().size(); ++at) {
        const size_t memory = layer_.memories()[at];
        if (layer_.served()[at].size() < 2 || whole[memory] <= static_cast<double>(layer_.machine().memories[memory].capacity_bits)) continue;
        Watched watched{memory, {}, {}};
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
}

void Search::tabulate_costs() {
    const size_t all = multisets_ - 1;
    std::vector<double> tops(layer_.machine().memories.size(), 0);
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        const std::vector<size_t>& levels = layer_.hierarchy(r);
        tops[levels.back()] += layer_.level_bits(r, levels.size() - 1, products_[all], false);
    }
    cost_.resize(layer_.role_count());
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
    }
    for (Watched& watched : watched_) {
        for (const auto& [r, level] : watched.sharers) {
            std::vector<double>& bits = watched.bits.emplace_back();
            const bool top = level + 1 == level_count(r);
            for (size_t s = top ? all : 0; s < multisets_; ++s)
                bits.push_back(layer_.level_bits(r, level, products_[s], r == 0 && reduction_left_[s]));
        }
    }
}

/// From all boundaries placed and all loops below backwards.
void Search::fill(Table& table) const {
    const size_t all = multisets_ - 1;
    table.rest.assign(placed_count_ * multisets_, infinity);
    double of_tops = 0, of_room = 0;
    std::vector<std::vector<std::vector<double>>> priced(layer_.role_count());  // only of levels with a price
    for (size_t r = 0; r < layer_.role_count(); ++r) priced[r].resize(level_count(r));
    for (size_t w = 0; w < watched_.size(); ++w) {
        if (table.prices[w] == 0) continue;
        of_room += table.prices[w] * room(w);
        for (size_t i = 0; i < watched_[w].sharers.size(); ++i) {
            const auto& [r, level] = watched_[w].sharers[i];
            const std::vector<double>& bits = watched_[w].bits[i];
            if (level + 1 == level_count(r)) {
                of_tops += table.prices[w] * bits[0];
                continue;
            }
            priced[r][level] = cost_[r][level];
            for (size_t s = 0; s < multisets_; ++s) priced[r][level][s] += table.prices[w] * bits[s];
        }
    }
    for (size_t placed = placed_count_; placed-- > 0;) {
        double* rest = table.rest.data() + placed * multisets_;
        if (placed + 1 == placed_count_) rest[all] = of_tops;
        for (size_t r = 0; r < layer_.role_count(); ++r) {
            const size_t level = placed / placed_step_[r] % level_count(r);
            if (level + 1 == level_count(r)) continue;
            const double* cost = priced[r][level].empty() ? cost_[r][level].data() : priced[r][level].data();
            const double* next = rest + placed_step_[r] * multisets_;
            for (size_t s = 0; s < multisets_; ++s) rest[s] = std::min(rest[s], cost[s] + next[s]);
        }
        for (const Factor& factor : factors_) {
            const size_t block = factor.step * (factor.count + 1);
            for (size_t begin = 0; begin < multisets_; begin += block) {
                for (size_t at = begin + factor.step * factor.count; at-- > begin;) rest[at] = std::min(rest[at], rest[at + factor.step]);
            }
        }
    }
    table.whole = table.rest[0] - of_room;
}

bool Search::all_placed(size_t w, const Node& node) const {
    return std::ranges::all_of(watched_[w].sharers, [&](const auto& sharer) { return node.levels[sharer.first] > sharer.second; });
}

/// Takes the tile's bits of watched memories; false where they do not fit.
bool Search::fits(size_t r, size_t level, size_t multiset, bool reduction, Node& node) const {
    const size_t memory = layer_.hierarchy(r)[level];
    const double bits = layer_.level_bits(r, level, products_[multiset], r == 0 && reduction);
    const auto capacity = static_cast<double>(layer_.machine().memories[memory].capacity_bits);
    const auto found = std::ranges::find(watched_, memory, &Watched::memory);
    if (found == watched_.end()) return bits <= capacity;
    const auto w = static_cast<size_t>(found - watched_.begin());
    double& used = node.used[w];
    if (used + bits > capacity) return false;
    used += bits;
    // Once all have their place it no longer matters how much is left.
    if (all_placed(w, node)) used = 0;
    return true;
}

/// The next boundary of a role at the node's multiset.
bool Search::place(size_t r, Node& node) const {
    const size_t level = node.levels[r];
    ++node.levels[r];
    if (!fits(r, level, node.multiset, node.reduction, node)) return false;
    if (r == 0) node.reduction = reduction_left_[node.multiset];
    node.role = static_cast<uint8_t>(r);
    return true;
}

bool Search::finished(const Node& node) const {
    return node.multiset == multisets_ - 1 && placed_index(node.levels) + 1 == placed_count_;
}

/// Along the table: its cheapest path.
Search::Path Search::follow(const Table& table) const {
    Path path;
    path.fits = true;
    Node node;
    node.reduction = reduction_left_[0];
    path.nodes.push_back(node);
    const auto take_bits = [&](size_t r, size_t level, size_t s) {
        for (size_t w = 0; w < watched_.size(); ++w) {
            for (size_t i = 0; i < watched_[w].sharers.size(); ++i) {
                if (watched_[w].sharers[i] != std::pair(r, level)) continue;
                path.bits[w] += level + 1 == level_count(r) ? watched_[w].bits[i][0] : watched_[w].bits[i][s];
            }
        }
    };
    while (!finished(node)) {
        const size_t placed = placed_index(node.levels);
        const double here = table.rest[placed * multisets_ + node.multiset];
        bool moved = false;
        for (size_t f = 0; f < factors_.size() && !moved; ++f) {
            if (count_of(node.multiset, factors_[f]) == factors_[f].count) continue;
            if (table.rest[placed * multisets_ + node.multiset + factors_[f].step] != here) continue;
            node.multiset += static_cast<uint32_t>(factors_[f].step);
            node.role = 0;
            moved = true;
        }
        for (size_t r = 0; r < layer_.role_count() && !moved; ++r) {
            const size_t level = node.levels[r];
            if (level + 1 == level_count(r)) continue;
            double cost = cost_[r][level][node.multiset];
            for (size_t w = 0; w < watched_.size(); ++w) {
                for (size_t i = 0; i < watched_[w].sharers.size() && table.prices[w] > 0; ++i) {
                    if (watched_[w].sharers[i] == std::pair(r, level)) cost += table.prices[w] * watched_[w].bits[i][node.multiset];
                }
            }
            if (cost + table.rest[(placed + placed_step_[r]) * multisets_ + node.multiset] != here) continue;
            path.cost += cost_[r][level][node.multiset];
            take_bits(r, level, node.multiset);
            path.fits = place(r, node) && path.fits;
            moved = true;
        }
        path.nodes.push_back(node);
    }
    for (size_t r = 0; r < layer_.role_count(); ++r) {
        take_bits(r, level_count(r) - 1, 0);
        path.fits = fits(r, level_count(r) - 1, node.multiset, node.reduction, node) && path.fits;
    }
    return path;
}

void Search::consider(const Path& path) {
    if (!path.fits || path.cost >= best_cost_) return;
    best_cost_ = path.cost;
    best_ = path.nodes;
}

double Search::bound(const Node& node) const {
    const size_t at = placed_index(node.levels) * multisets_ + node.multiset;
    double least = unpriced_.rest[at];
    if (!has_prices_) return least;
    double priced = priced_.rest[at];
    for (size_t w = 0; w < watched_.size(); ++w) {
        if (!all_placed(w, node)) priced += priced_.prices[w] * (node.used[w] - room(w));
    }
    return std::max(least, priced);
}

/// One price after the other where the bound it gives is highest: the bound is concave and piecewise linear in a price, one piece per path; where the
/// pieces of a path that takes too much and of one that takes too little meet lies the next price to look at.
void Search::raise_prices() {
    constexpr int most_tables = 12;
    Table table;
    priced_ = unpriced_;
    Path over = follow(unpriced_);
    for (size_t w = 0; w < watched_.size(); ++w) {
        if (over.bits[w] <= room(w)) continue;
        has_prices_ = true;
        // Far beyond: the path that takes as little as it can.
        Path low = over;
        table.prices = priced_.prices;
        table.prices[w] = std::max(1.0, 1e3 * std::abs(unpriced_.rest[0])) / std::max(1.0, over.bits[w] - room(w));
        fill(table);
        Path high = follow(table);
        consider(high);
        const auto line = [&](const Path& path, double price) {  // the bound that a path gives, other prices as they are
            double value = path.cost + price * (path.bits[w] - room(w));
            for (size_t other = 0; other < watched_.size(); ++other) {
                if (other != w) value += priced_.prices[other] * (path.bits[other] - room(other));
            }
            return value;
        };
        if (table.whole > priced_.whole) priced_ = table;
        if (high.bits[w] > room(w)) {
            over = high;
            continue;
        }
        for (int n = 0; n < most_tables && priced_.whole < best_cost_; ++n) {
            const double slope = (low.bits[w] - room(w)) - (high.bits[w] - room(w));
            const double price = (line(high, 0) - line(low, 0)) / slope;
            if (!(price > 0)) break;
            table.prices[w] = price;
            fill(table);
            Path path = follow(table);
            consider(path);
            if (table.whole > priced_.whole) priced_ = table;
            const double on_lines = line(low, price);
            if (line(path, price) >= on_lines * (1 - 1e-12)) break;
            (path.bits[w] > room(w) ? low : high) = std::move(path);
        }
        over = follow(priced_);
        consider(over);
    }
}

void Search::reach(const Node& node, double cost, const Node* from) {
    const double estimate = cost + bound(node);
    if (estimate >= best_cost_) return;
    const auto [entry, is_new] = known_.try_emplace(node);
    if (!is_new && (entry->second.done || cost >= entry->second.cost)) return;
    entry->second.cost = cost;
    entry->second.from = from;
    const size_t depth = size_t{node.multiset} * 16 + node.levels[0] + node.levels[1] + node.levels[2];
    open_.push({estimate, depth, sequence_++, &entry->first, cost});
}

void Search::expand(const Node& node, double cost) {
    for (const Factor& factor : factors_) {
        if (count_of(node.multiset, factor) == factor.count) continue;
        Node moved = node;
        moved.multiset += static_cast<uint32_t>(factor.step);
        moved.role = 0;
        reach(moved, cost, &node);
    }
    for (size_t r = node.role; r < layer_.role_count(); ++r) {
        const size_t level = node.levels[r];
        if (level + 1 == level_count(r) || cost_[r][level][node.multiset] == infinity) continue;
        Node placed = node;
        if (place(r, placed)) reach(placed, cost + cost_[r][level][node.multiset], &node);
    }
}

std::optional<LayerMapping> Search::run() {
    fill(unpriced_);
    if (unpriced_.whole == infinity) return std::nullopt;
    const Path relaxed = follow(unpriced_);
    if (relaxed.fits) return mapping(relaxed.nodes);
    raise_prices();
    Node start;
    start.reduction = reduction_left_[0];
    reach(start, 0, nullptr);
    while (!open_.empty()) {
        const Entry entry = open_.top();
        open_.pop();
        Reached& reached = known_.at(*entry.node);
        if (reached.done || entry.cost > reached.cost) continue;
        reached.done = true;
        Node key = *entry.node;
        key.used = {};
        std::vector<Bits>& others = done_[key];
        const bool dominated =
            std::ranges::any_of(others, [&](const Bits& used) { return std::ranges::equal(used, entry.node->used, std::less_equal<>()); });
        if (dominated) continue;
        others.push_back(entry.node->used);
        if (finished(*entry.node)) {
            // The highest memories take what there is.
            Node whole = *entry.node;
            bool fit = true;
            for (size_t r = 0; r < layer_.role_count(); ++r)
                fit = fit && fits(r, level_count(r) - 1, whole.multiset, whole.reduction, whole);
            if (fit) return mapping(path_to(*entry.node));
            continue;
        }
        expand(*entry.node, entry.cost);
    }
    if (best_.empty()) return std::nullopt;
    return mapping(best_);
}

std::vector<Search::Node> Search::path_to(const Node& last) const {
    std::vector<Node> path;
    for (const Node* node = &last; node != nullptr; node = known_.at(*node).from) path.push_back(*node);
    std::ranges::reverse(path);
    return path;
}

LayerMapping Search::mapping(const std::vector<Node>& path) const {
    LayerMapping result;
    result.allocation.resize(layer_.role_count());
    for (size_t i = 1; i < path.size(); ++i) {
        for (const Factor& factor : factors_) {
            if (path[i].multiset == path[i - 1].multiset + factor.step)
                result.order.push_back({factor.dim, static_cast<double>(factor.prime)});
        }
        for (size_t r = 0; r < layer_.role_count(); ++r) {
            if (path[i].levels[r] != path[i - 1].levels[r]) result.allocation[r].push_back(result.order.size());
        }
    }
    for (std::vector<size_t>& bounds : result.allocation) bounds.push_back(result.order.size());
    result.cost = layer_.cost(result.order, result.allocation);
    return result;
}

}  // namespace

std::optional<LayerMapping> best_mapping(const MappedLayer& layer) { return Search(layer).run(); }

}  // namespace laminate::depth_first
