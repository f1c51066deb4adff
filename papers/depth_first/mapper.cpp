#include "papers/depth_first/mapper.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "papers/depth_first/delay_search.h"
#include "papers/depth_first/mapping_space.h"

// The energy of a mapping is a sum over the boundaries of its operands, and what a boundary costs
// depends on the set of loops below it, not on their order. So a mapping is a path from "no loop"
// to "all loops" through the multisets of loops, on which each operand places its boundaries.
//
// If operands never competed for a memory, a table over multisets and placed boundaries would hold
// the least cost of every rest of a path, and with it the best path. Where they compete, the table
// is a lower bound for a search of shortest paths (A*). A price for each bit of such a memory,
// added to the table (Lagrange relaxation), makes the bound account for the competition.
//
// A boundary directly below a loop that is irrelevant to its operand moves above the loop and costs
// less there. A path that places it too early overestimates; another path has the true cost.

namespace laminate::depth_first {

namespace {

constexpr double infinity = MappingSpace::infinity;

/// result[j] = costs[j] + price * bits[j]
void add_priced(const std::vector<double>& costs, double price, const std::vector<double>& bits,
                std::vector<double>& result) {
    for (size_t j = 0; j < costs.size(); ++j) result[j] = costs[j] + price * bits[j];
}

class EnergySearch {
public:
    explicit EnergySearch(const MappingSpace& space) : space_(space), placed_(space.energy()) {}
    [[nodiscard]] std::optional<LayerMapping> run();

private:
    using Node = MappingSpace::State;
    using Bits = MappingSpace::Bits;
    using Prices = std::array<double, MappingSpace::most_watched>;  ///< pJ per bit, by watched
                                                                    ///< memory
    static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
    struct Reached {
        Node node;
        double cost = infinity;
        uint32_t from = none;
        uint32_t done_before = none;  ///< with the same boundaries and multiset
        bool done = false;
    };
    /// The least cost of the rest of a path, bits at these prices included.
    struct Table {
        Prices prices{};
        MappingSpace::BoundaryCosts costs;
        MappingSpace::Rest rest;
        double whole = infinity;  ///< a lower bound for mappings that fit
    };
    /// A mapping of least cost under some prices. It may not fit.
    struct Path {
        std::vector<Node> nodes;
        double cost = 0;  ///< without prices
        Bits bits{};
        bool fits = false;
    };

    [[nodiscard]] size_t place_in_tables(const Node& node) const {
        return space_.placed_index(node.levels) * space_.multisets() + node.multiset;
    }
    struct Charges {
        std::array<double, MappingSpace::most_watched> pj;
        size_t count = 0;
    };
    [[nodiscard]] Charges charges(const Node& node) const;
    /// A lower bound on the rest of a path; `at` is its place in the tables.
    [[nodiscard]] double bound(size_t at, const Charges& charges) const;
    void fill(Table& table) const;
    [[nodiscard]] Path follow(const Table& table) const;
    void raise_prices();
    void consider(const Path& path);
    [[nodiscard]] uint64_t hash_of(const Node& node) const;
    [[nodiscard]] size_t slot_of(const Node& node) const;
    [[nodiscard]] uint32_t find_or_add(const Node& node);
    [[nodiscard]] bool is_dominated(uint32_t index);
    void reach(const Node& node, double cost, double estimate, uint32_t from);
    void expand(uint32_t index);
    [[nodiscard]] std::vector<Node> path_to(uint32_t last) const;
    [[nodiscard]] LayerMapping mapping(const std::vector<Node>& path) const;

    const MappingSpace& space_;
    const MappingSpace::BoundaryCosts& placed_;  ///< the cost of placing a boundary
    Table unpriced_;
    std::array<Table, 2> tables_;       ///< with prices
    const Table* priced_ = &unpriced_;  ///< the table with the highest bound so far
    double best_cost_ = infinity;
    std::vector<Node> best_;  ///< the cheapest path so far that fits

    struct Entry {
        double estimate;
        size_t depth;
        size_t sequence;
        uint32_t node;
        double cost;
        bool operator<(const Entry& other) const {
            return std::tuple(estimate, -static_cast<double>(depth), sequence) >
                   std::tuple(other.estimate, -static_cast<double>(other.depth), other.sequence);
        }
    };
    std::priority_queue<Entry> open_;
    std::vector<Reached> reached_;
    std::vector<uint32_t> slots_;  ///< a hash table of indices into reached_; its size is a power
                                   ///< of two
    /// The last node that is done, by place in the tables. A later node that costs no less and
    /// takes no less of each memory leads to nothing better.
    std::vector<uint32_t> last_done_;
    size_t sequence_ = 0;
};

void EnergySearch::fill(Table& table) const {
    double of_tops = 0, of_room = 0;
    if (table.costs.empty()) table.costs = placed_;
    for (size_t w = 0; w < space_.watched().size(); ++w) {
        const MappingSpace::Watched& watched = space_.watched()[w];
        of_room += table.prices[w] * space_.room(w);
        for (size_t i = 0; i < watched.sharers.size(); ++i) {
            const auto& [r, level] = watched.sharers[i];
            const std::vector<double>& bits = watched.bits[i];
            if (level + 1 == space_.levels(r)) {
                of_tops += table.prices[w] * bits[0];
                continue;
            }
            add_priced(placed_[r][level], table.prices[w], bits, table.costs[r][level]);
        }
    }
    space_.fill_rest(table.costs, of_tops, table.rest);
    table.whole = table.rest[0] - of_room;
}

EnergySearch::Path EnergySearch::follow(const Table& table) const {
    MappingSpace::Path found = space_.follow(table.costs, table.rest);
    Path path{std::move(found.states), 0, {}, found.fits};
    const auto take_bits = [&](size_t r, size_t level, size_t s) {
        for (size_t w = 0; w < space_.watched().size(); ++w) {
            const MappingSpace::Watched& watched = space_.watched()[w];
            for (size_t i = 0; i < watched.sharers.size(); ++i) {
                if (watched.sharers[i] == std::pair(r, level))
                    path.bits[w] +=
                        level + 1 == space_.levels(r) ? watched.bits[i][0] : watched.bits[i][s];
            }
        }
    };
    space_.for_each_boundary(path.nodes, [&](size_t r, size_t level, size_t s) {
        path.cost += placed_[r][level][s];
        take_bits(r, level, s);
    });
    for (size_t r = 0; r < space_.roles(); ++r) take_bits(r, space_.levels(r) - 1, 0);
    return path;
}

void EnergySearch::consider(const Path& path) {
    if (!path.fits || path.cost >= best_cost_) return;
    best_cost_ = path.cost;
    best_ = path.nodes;
}

/// The price, in the best table, of what tiles below take of memories that other operands still
/// need.
EnergySearch::Charges EnergySearch::charges(const Node& node) const {
    Charges charges;
    if (priced_ == &unpriced_) return charges;
    for (size_t w = 0; w < space_.watched().size(); ++w) {
        if (!space_.all_placed(w, node))
            charges.pj[charges.count++] = priced_->prices[w] * (node.used[w] - space_.room(w));
    }
    return charges;
}

double EnergySearch::bound(size_t at, const Charges& charges) const {
    const double least = unpriced_.rest[at];
    if (priced_ == &unpriced_) return least;
    double priced = priced_->rest[at];
    for (size_t n = 0; n < charges.count; ++n) priced += charges.pj[n];
    return std::max(least, priced);
}

/// Sets one price after the other to where its bound is highest. The bound is concave and piecewise
/// linear in a price, one piece per path. The next price to look at is where the piece of a path
/// that takes too much meets that of a path that takes too little.
void EnergySearch::raise_prices() {
    constexpr int most_tables = 12;
    size_t spare = 0;
    const auto table_at = [&](size_t w, double price) -> const Table& {
        Table& table = tables_[spare];
        table.prices = priced_->prices;
        table.prices[w] = price;
        fill(table);
        return table;
    };
    const auto keep_better = [&] {
        if (tables_[spare].whole <= priced_->whole) return;
        priced_ = &tables_[spare];
        spare = 1 - spare;
    };
    Path over = follow(unpriced_);
    const auto room = [&](size_t w) { return space_.room(w); };
    for (size_t w = 0; w < space_.watched().size(); ++w) {
        if (over.bits[w] <= room(w)) continue;
        // Far beyond any useful price, the best path takes as little of the memory as it can.
        Path low = over;
        Path high = follow(table_at(w, std::max(1.0, 1e3 * std::abs(unpriced_.rest[0])) /
                                           std::max(1.0, over.bits[w] - room(w))));
        consider(high);
        // The bound that a path gives at a price, with the other prices as they are.
        const auto line = [&](const Path& path, double price) {
            double value = path.cost + price * (path.bits[w] - room(w));
            for (size_t other = 0; other < space_.watched().size(); ++other) {
                if (other != w) value += priced_->prices[other] * (path.bits[other] - room(other));
            }
            return value;
        };
        keep_better();
        if (high.bits[w] > room(w)) {
            over = high;
            continue;
        }
        for (int n = 0; n < most_tables && priced_->whole < best_cost_; ++n) {
            const double slope = (low.bits[w] - room(w)) - (high.bits[w] - room(w));
            const double price = (line(high, 0) - line(low, 0)) / slope;
            if (!(price > 0)) break;
            Path path = follow(table_at(w, price));
            consider(path);
            keep_better();
            const double on_lines = line(low, price);
            if (line(path, price) >= on_lines * (1 - 1e-12)) break;
            (path.bits[w] > room(w) ? low : high) = std::move(path);
        }
        over = follow(*priced_);
        consider(over);
    }
}

uint64_t EnergySearch::hash_of(const Node& node) const {
    uint64_t hash = node.multiset;
    const auto mix = [&](uint64_t value) {
        hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 29;
    };
    mix(uint64_t{node.levels[0]} | uint64_t{node.levels[1]} << 8 | uint64_t{node.levels[2]} << 16 |
        uint64_t{node.role} << 24 | uint64_t{node.reduction} << 32);
    for (size_t w = 0; w < space_.watched().size(); ++w) mix(std::bit_cast<uint64_t>(node.used[w]));
    return hash;
}

/// The slot that the node is in or goes into.
size_t EnergySearch::slot_of(const Node& node) const {
    size_t at = hash_of(node) & (slots_.size() - 1);
    while (slots_[at] != none && !(reached_[slots_[at]].node == node))
        at = (at + 1) & (slots_.size() - 1);
    return at;
}

uint32_t EnergySearch::find_or_add(const Node& node) {
    if (2 * (reached_.size() + 1) > slots_.size()) {
        slots_.assign(std::max<size_t>(256, 4 * slots_.size()), none);
        for (uint32_t n = 0; n < reached_.size(); ++n) slots_[slot_of(reached_[n].node)] = n;
    }
    uint32_t& found = slots_[slot_of(node)];
    if (found == none) {
        found = static_cast<uint32_t>(reached_.size());
        reached_.push_back({node});
    }
    return found;
}

/// Whether a node that is done has no higher cost and takes no more. (With prices, a node that
/// takes less may be done first though it costs more.) If not, adds this node to those that are
/// done.
bool EnergySearch::is_dominated(uint32_t index) {
    Reached& reached = reached_[index];
    uint32_t& last = last_done_[place_in_tables(reached.node)];
    for (uint32_t n = last; n != none; n = reached_[n].done_before) {
        const Node& other = reached_[n].node;
        if (reached_[n].cost <= reached.cost && other.role == reached.node.role &&
            other.reduction == reached.node.reduction &&
            std::ranges::equal(other.used, reached.node.used, std::less_equal<>()))
            return true;
    }
    reached.done_before = std::exchange(last, index);
    return false;
}

void EnergySearch::reach(const Node& node, double cost, double estimate, uint32_t from) {
    const uint32_t index = find_or_add(node);
    Reached& reached = reached_[index];
    if (reached.done || cost >= reached.cost) return;
    reached.cost = cost;
    reached.from = from;
    const size_t depth =
        space_.rank(node.multiset) * 16 + node.levels[0] + node.levels[1] + node.levels[2];
    open_.push({estimate, depth, sequence_++, index, cost});
}

void EnergySearch::expand(uint32_t index) {
    const Node node = reached_[index].node;
    const double cost = reached_[index].cost;
    // Most steps lead to nothing better; their bound shows it before the node is built.
    const size_t at = place_in_tables(node);
    const Charges before = charges(node);
    Node moved = node;
    moved.role = 0;
    for (const MappingSpace::Factor& factor : space_.factors()) {
        if (space_.count_of(node.multiset, factor) == factor.count) continue;
        const double estimate = cost + bound(at + factor.step, before);
        if (estimate >= best_cost_) continue;
        moved.multiset = node.multiset + static_cast<uint32_t>(factor.step);
        reach(moved, cost, estimate, index);
    }
    for (size_t r = node.role; r < space_.roles(); ++r) {
        const size_t level = node.levels[r];
        if (level + 1 == space_.levels(r) || placed_[r][level][node.multiset] == infinity) continue;
        const double cost_placed = cost + placed_[r][level][node.multiset];
        const size_t at_placed = at + space_.placed_step(r) * space_.multisets();
        if (cost_placed + unpriced_.rest[at_placed] >= best_cost_) continue;
        Node placed = node;
        if (!space_.place(r, placed)) continue;
        const double estimate = cost_placed + bound(at_placed, charges(placed));
        if (estimate < best_cost_) reach(placed, cost_placed, estimate, index);
    }
}

std::optional<LayerMapping> EnergySearch::run() {
    fill(unpriced_);
    if (unpriced_.whole == infinity) return std::nullopt;
    const Path relaxed = follow(unpriced_);
    if (relaxed.fits) return mapping(relaxed.nodes);
    raise_prices();
    const Node start = space_.start();
    if (const double estimate = bound(place_in_tables(start), charges(start));
        estimate < best_cost_)
        reach(start, 0, estimate, none);
    if (!open_.empty()) last_done_.assign(unpriced_.rest.size(), none);
    while (!open_.empty()) {
        const Entry entry = open_.top();
        open_.pop();
        Reached& reached = reached_[entry.node];
        if (reached.done || entry.cost > reached.cost) continue;
        reached.done = true;
        if (is_dominated(entry.node)) continue;
        if (space_.finished(reached.node)) {
            if (space_.highest_fit(reached.node)) return mapping(path_to(entry.node));
            continue;
        }
        expand(entry.node);
    }
    if (best_.empty()) return std::nullopt;
    return mapping(best_);
}

std::vector<EnergySearch::Node> EnergySearch::path_to(uint32_t last) const {
    std::vector<Node> path;
    for (uint32_t n = last; n != none; n = reached_[n].from) path.push_back(reached_[n].node);
    std::ranges::reverse(path);
    return path;
}

LayerMapping EnergySearch::mapping(const std::vector<Node>& path) const {
    LayerMapping result = space_.mapping(path);
    result.cost = space_.layer().cost(result.order, result.allocation);
    return result;
}

}  // namespace

std::optional<LayerMapping> best_mapping(const MappedLayer& layer, const MappingGoal& goal,
                                         size_t most_paths) {
    const MappingSpace space(layer);
    std::optional<LayerMapping> least_energy = EnergySearch(space).run();
    if (!least_energy || goal.objective == Objective::energy) return least_energy;
    MappingGoal product = goal;
    product.objective = Objective::energy_delay;
    LayerMapping least_product =
        DelaySearch(space, product, most_paths).run(std::move(*least_energy));
    if (goal.objective == Objective::energy_delay) return least_product;
    return DelaySearch(space, goal, most_paths)
        .run(std::move(least_product));  // often close to the fastest mapping
}

}  // namespace laminate::depth_first
