#include "papers/depth_first/delay_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/vector_width.h"

namespace laminate::depth_first {

namespace {

/// A tolerance for sums that are formed in different orders.
constexpr double almost = 1 - 1e-12;

uint64_t mixed(uint64_t seed, uint64_t value) {
    value += seed;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

/// Whether any of `values` is above its counterpart.
LAMINATE_FOR_EACH_VECTOR_WIDTH
bool any_above(const double* values, const double* others, size_t size) {
    int64_t above = 0;
    for (size_t n = 0; n < size; ++n) above |= values[n] > others[n] ? 1 : 0;
    return above != 0;
}

uint64_t mixed(uint64_t seed, double value) { return mixed(seed, std::bit_cast<uint64_t>(value)); }

}  // namespace

DelaySearch::DelaySearch(const MappingSpace& space, const MappingGoal& goal, size_t most_nodes)
    : space_(space),
      layer_(space.layer()),
      goal_(goal),
      most_nodes_(most_nodes),
      bounds_(space, goal) {
    find_competition();
    row_.closed = bounds_.columns().count;
    row_.open = row_.closed + 2 + space_.roles();
    row_.size = row_.open + 2 * space_.roles();
}

void DelaySearch::find_competition() {
    competes_.resize(space_.roles());
    for (size_t r = 0; r < space_.roles(); ++r) {
        for (const size_t memory : layer_.hierarchy(r)) {
            const auto at = static_cast<size_t>(std::ranges::find(layer_.memories(), memory) -
                                                layer_.memories().begin());
            const std::vector<size_t>& served = layer_.served()[at];
            // Nothing leaves a memory upwards that is the highest of every role that it serves.
            competes_[r].push_back(served.size() > 1 &&
                                   std::ranges::any_of(served, [&](size_t other) {
                                       return layer_.hierarchy(other).back() != memory;
                                   }));
        }
    }
}

double DelaySearch::bound_of(const Node& node, const double* row) const {
    const size_t at = place_in_tables(node);
    std::array<bool, MappingSpace::most_watched> unpaid{};
    for (size_t w = 0; w < space_.watched().size(); ++w)
        unpaid[w] = !space_.all_placed(w, node.state);
    const auto highest = [&](const Sums& sums) {
        double most = 0;
        for (const DelayBounds::Sum& sum : sums)
            most = std::max(most, bounds_.least(sum, at, unpaid, row));
        return most;
    };
    const double latency = highest(below_latency_);
    if (aim_ == Aim::latency) return latency;
    double energy = highest(below_energy_);
    if (aim_ == Aim::energy_at_latency) {
        // Latencies are whole cycles.
        if (latency > best_latency_ + 0.5) return MappingSpace::infinity;
        for (const Joint& joint : joints_)
            energy = std::max(energy, (highest(joint.sums) - best_latency_) / joint.energy_weight);
        return energy;
    }
    double product = energy * latency;
    // Two factors are bounded from below, and so is their weighted sum. Their product is least
    // where one of them equals its bound.
    for (const Joint& joint : joints_) {
        const double together = highest(joint.sums);
        if (together <= joint.energy_weight * energy + latency) continue;
        product = std::max(product, std::min(energy * (together - joint.energy_weight * energy),
                                             (together - latency) / joint.energy_weight * latency));
    }
    return product;
}

void DelaySearch::consider(LayerMapping mapping) {
    const double energy = energy_of(mapping.cost, goal_);
    const auto latency = static_cast<double>(latency_of(mapping.cost, goal_));
    const bool is_better =
        goal_.objective == Objective::energy_delay
            ? !best_ || energy * latency < best_energy_ * best_latency_
            : std::pair(latency, energy) < std::pair(best_latency_, best_energy_);
    if (!is_better) return;
    best_energy_ = energy;
    best_latency_ = latency;
    best_ = std::move(mapping);
}

/// Also considers each path that is best by a sum as a mapping; often one of them is the best.
void DelaySearch::raise_bounds() {
    const auto raise = [&](double energy_weight, double latency_weight, size_t most) {
        const auto weighted = [&](const LayerCost& cost) {
            return energy_weight * energy_of(cost, goal_) +
                   latency_weight * static_cast<double>(latency_of(cost, goal_));
        };
        Sums sums =
            bounds_.raise(energy_weight, latency_weight, [&](const MappingSpace::Path& path) {
                double reached = weighted(best_->cost);
                if (path.fits) {
                    LayerMapping mapping = space_.mapping(path.states);
                    mapping.cost = layer_.cost(mapping.order, mapping.allocation);
                    reached = std::min(reached, weighted(mapping.cost));
                    consider(std::move(mapping));
                }
                return reached;
            });
        if (sums.size() > most)
            sums.erase(sums.begin(), sums.end() - static_cast<std::ptrdiff_t>(most));
        return sums;
    };
    below_energy_ = raise(1, 0, 1);
    below_latency_ = raise(0, 1, most_sums);
    const double even =
        static_cast<double>(latency_of(best_->cost, goal_)) / energy_of(best_->cost, goal_);
    for (const double weight : {even, even / 4, even * 4})
        joints_.push_back({weight, raise(weight, 1, 2)});
}

bool DelaySearch::is_better(double bound) const {
    switch (aim_) {
        case Aim::product:
            return bound < best_energy_ * best_latency_ * almost;
        case Aim::latency:  // whole cycles
            return bound < best_latency_ - 0.5;
        case Aim::energy_at_latency:
            return bound < best_energy_ * almost;
    }
    throw std::logic_error("DelaySearch::is_better");
}

void DelaySearch::add_transfers(size_t r, size_t level, uint32_t multiset, double allowed,
                                double times, bool is_certain, Reached& to) const {
    const BoundaryDemand& demand = bounds_.demand(r, level, multiset);
    for (const BoundaryDemand::Port& port : demand.ports) {
        to.row[bounds_.columns().late + port.number] +=
            times * std::max(0.0, port.cycles - allowed) * (demand.count - 1);
        to.row[bounds_.columns().needed + port.number] += times * port.cycles * (demand.count - 1);
        const uint64_t hash = mixed(
            mixed(mixed(mixed(uint64_t{1}, port.cycles), allowed), demand.period), demand.count);
        to.transfers[port.number] += times > 0 ? hash : -hash;
        if (is_certain && allowed == demand.period) to.node.allow_always(port.number);
    }
}

/// Whether other tiles in the memory decide when it may be written.
bool DelaySearch::is_open_question(const Placement& placement) const {
    return placement.reused > 1 && placement.used <= 0.5;
}

uint64_t DelaySearch::hash_of(size_t r, size_t level, const Placement& placement) const {
    uint64_t hash = mixed(mixed(uint64_t{r << 8 | level}, uint64_t{7}), placement.used);
    if (is_open_question(placement))
        hash = mixed(mixed(hash, uint64_t{placement.multiset}), placement.reused);
    return hash;
}

/// The role's next boundary, placed at the node's multiset.
DelaySearch::Placement DelaySearch::placement_in(const Node& before, size_t r) const {
    const size_t level = before.state.levels[r];
    const auto capacity =
        static_cast<double>(layer_.machine().memories[layer_.hierarchy(r)[level]].capacity_bits);
    const double bits = bounds_.demand(r, level, before.state.multiset).tile_bits;
    return {before.state.multiset, before.reused[r],
            std::floor(bits / before.pieces[r]) / capacity};
}

/// Once all boundaries above a shared memory are placed, decides which of its tiles it holds twice.
void DelaySearch::answer(size_t memory_at, Reached& reached) const {
    const std::vector<size_t>& served = layer_.served()[memory_at];
    std::vector<size_t> levels;
    std::vector<Placement> placements;
    std::vector<double> used;
    for (const size_t r : served) {
        const std::vector<size_t>& hierarchy = layer_.hierarchy(r);
        const auto level = static_cast<size_t>(
            std::ranges::find(hierarchy, layer_.memories()[memory_at]) - hierarchy.begin());
        if (reached.node.state.levels[r] <= level) return;
        const Node* before = &nodes_[reached.node.from];
        while (before->state.levels[r] > level) before = &nodes_[before->from];
        levels.push_back(level);
        placements.push_back(placement_in(*before, r));
        used.push_back(placements.back().used);
    }
    const std::vector<bool> twice = MappedLayer::fit_twice(served, used);
    for (size_t n = 0; n < served.size(); ++n) {
        const size_t r = served[n];
        reached.node.pending -= hash_of(r, levels[n], placements[n]);
        if (!is_open_question(placements[n])) continue;
        const double period = bounds_.demand(r, levels[n], placements[n].multiset).period;
        add_transfers(r, levels[n], placements[n].multiset, period, -1, false, reached);
        add_transfers(r, levels[n], placements[n].multiset,
                      twice[n] ? period : std::floor(period / placements[n].reused), 1, true,
                      reached);
    }
}

bool DelaySearch::with_loop(const Node& node, const MappingSpace::Factor& factor,
                            Reached& next) const {
    if (space_.count_of(node.state.multiset, factor) == factor.count) return false;
    for (size_t r = 0; r < space_.roles(); ++r) {
        // A boundary directly below an irrelevant loop belongs above it.
        if ((node.placed_here >> r & 1) != 0 &&
            layer_.relevance_of(r, factor.dim) == Relevance::irrelevant)
            return false;
    }
    next.node = node;
    next.node.placed_here = 0;
    next.node.state.multiset += static_cast<uint32_t>(factor.step);
    next.node.state.role = 0;
    for (size_t r = 0; r < space_.roles(); ++r) {
        const Relevance seen = layer_.relevance_of(r, factor.dim);
        const auto trips = static_cast<double>(factor.prime);
        next.node.reused[r] = seen == Relevance::irrelevant ? node.reused[r] * trips : 1;
        next.node.pieces[r] = seen == Relevance::relevant ? node.pieces[r] * trips : 1;
    }
    return true;
}

bool DelaySearch::with_boundary(const Node& node, size_t r, Reached& next) const {
    const size_t level = node.state.levels[r];
    const uint32_t s = node.state.multiset;
    if (level + 1 == space_.levels(r) || space_.energy()[r][level][s] == MappingSpace::infinity)
        return false;
    next.node = node;
    if (!space_.place(r, next.node.state)) return false;
    next.node.placed_here |= static_cast<uint8_t>(1U << r);
    next.node.reused[r] = next.node.pieces[r] = 1;
    const BoundaryDemand& demand = bounds_.demand(r, level, s);
    bounds_.add_boundary(r, level, s, next.row.data());
    const Placement placement = placement_in(node, r);
    const bool competes = this->competes(r, level);
    const bool is_open = competes && is_open_question(placement);
    const double allowed = is_open || placement.used <= 0.5
                               ? demand.period
                               : std::floor(demand.period / placement.reused);
    add_transfers(r, level, s, allowed, 1, !is_open, next);
    if (competes) next.node.pending += hash_of(r, level, placement);
    return true;
}

/// Fills in the numbers of the row that follow from the node alone.
void DelaySearch::finish_row(Reached& reached) const {
    const Node& node = reached.node;
    for (size_t w = 0; w < space_.watched().size(); ++w)
        reached.row[bounds_.columns().used + w] = node.state.used[w];
    double* closed = reached.row.data() + row_.closed;
    *closed++ = node.state.role;
    *closed++ = node.state.reduction ? 1 : 0;
    for (size_t r = 0; r < space_.roles(); ++r) *closed++ = node.placed_here >> r & 1;
    double* open = reached.row.data() + row_.open;
    for (size_t r = 0; r < space_.roles(); ++r) {
        // In a role's highest memory only the pieces can matter, and only to other roles in it.
        const size_t level = node.state.levels[r];
        const bool is_highest = level + 1 == space_.levels(r);
        const bool has_to_be_equal = competes(r, level);
        double reuse = (is_highest ? 1 : node.reused[r]) / node.pieces[r];
        if (is_highest && !has_to_be_equal) reuse = 1;
        *open++ = reuse;
        *open++ = has_to_be_equal ? -reuse : 0;
    }
}

/// Whether the path dominates the other: no end of the other is better than the same end of this
/// one.
bool DelaySearch::beats(const Node& node, const double* row, const uint64_t* transfers,
                        const Node& other, const double* other_row,
                        const uint64_t* other_transfers) const {
    if (node.pending != other.pending) return false;
    const size_t energy = bounds_.columns().energy;
    if (aim_ != Aim::latency && row[energy] * almost > other_row[energy]) return false;
    if (any_above(row + energy + 1, other_row + energy + 1, row_.size - energy - 1)) return false;
    for (size_t p = 0; p < layer_.port_count(); ++p) {
        if (!node.is_always_allowed(p) && transfers[p] != other_transfers[p]) return false;
    }
    return true;
}

DelaySearch::Key DelaySearch::key_of(const Reached& reached) const {
    Key key;
    for (size_t half = 0; half < 2; ++half) {
        uint64_t hash = mixed(half, uint64_t{place_in_tables(reached.node)});
        const auto add = [&](uint64_t value) { hash = mixed(hash * 3 + half, value); };
        for (size_t n = 0; n < row_.size; ++n) {
            // Ignore the last bits of energy: its sums may be formed in different orders.
            const auto bits = std::bit_cast<uint64_t>(reached.row[n]);
            if (n != bounds_.columns().energy) {
                add(bits);
            } else if (aim_ != Aim::latency) {
                add(bits >> 12);
            }
        }
        add(reached.node.pending);
        for (size_t p = 0; p < layer_.port_count(); ++p) {
            if (!reached.node.is_always_allowed(p)) add(reached.transfers[p]);
        }
        key.hash[half] = hash;
    }
    return key;
}

void DelaySearch::reach(const Reached& reached) {
    const double bound = bound_of(reached.node, reached.row.data());
    if (!is_better(bound) || !known_.insert(key_of(reached)).second) return;
    uint32_t& last = last_[place_in_tables(reached.node)];
    size_t looked_at = 0;
    for (uint32_t n = last; n != none && looked_at < most_rivals;
         n = nodes_[n].before, ++looked_at) {
        if (beats(nodes_[n], row_of(n), transfers_of(n), reached.node, reached.row.data(),
                  reached.transfers.data()))
            return;
    }
    looked_at = 0;
    for (uint32_t* link = &last; *link != none && looked_at < most_rivals; ++looked_at) {
        Node& other = nodes_[*link];
        if (beats(reached.node, reached.row.data(), reached.transfers.data(), other, row_of(*link),
                  transfers_of(*link))) {
            other.is_done = true;
            *link = other.before;
        } else {
            link = &other.before;
        }
    }
    size_t depth = 0;
    for (const MappingSpace::Factor& factor : space_.factors())
        depth += space_.count_of(reached.node.state.multiset, factor);
    for (size_t r = 0; r < space_.roles(); ++r) depth += reached.node.state.levels[r];
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(reached.node);
    nodes_.back().before = std::exchange(last, index);
    rows_.insert(rows_.end(), reached.row.begin(), reached.row.end());
    transfers_.insert(transfers_.end(), reached.transfers.begin(), reached.transfers.end());
    const Entry entry{bound, static_cast<uint32_t>(depth), index};
    open_.push(entry);
    deep_.push(entry);
}

void DelaySearch::expand(uint32_t index) {
    Node node = nodes_[index];
    node.is_done = false;
    node.from = index;
    Reached next;
    const auto reach_next = [&] {
        finish_row(next);
        reach(next);
    };
    const auto begin = [&] {
        next.row.assign(row_of(index), row_of(index) + row_.size);
        next.transfers.assign(transfers_of(index), transfers_of(index) + layer_.port_count());
    };
    for (const MappingSpace::Factor& factor : space_.factors()) {
        begin();
        if (with_loop(node, factor, next)) reach_next();
    }
    for (size_t r = node.state.role; r < space_.roles(); ++r) {
        begin();
        if (!with_boundary(node, r, next)) continue;
        if (const size_t level = node.state.levels[r]; competes(r, level)) {
            answer(static_cast<size_t>(
                       std::ranges::find(layer_.memories(), layer_.hierarchy(r)[level]) -
                       layer_.memories().begin()),
                   next);
        }
        reach_next();
    }
}

LayerMapping DelaySearch::mapping_to(uint32_t node) const {
    std::vector<MappingSpace::State> path;
    for (uint32_t at = node; at != none; at = nodes_[at].from) path.push_back(nodes_[at].state);
    std::ranges::reverse(path);
    LayerMapping mapping = space_.mapping(path);
    mapping.cost = layer_.cost(mapping.order, mapping.allocation);
    return mapping;
}

double DelaySearch::search(Aim aim) {
    aim_ = aim;
    nodes_.clear();
    rows_.clear();
    transfers_.clear();
    known_.clear();
    open_ = {};
    deep_ = {};
    last_.assign(space_.placed_count() * space_.multisets(), none);
    Reached start{{}, bounds_.start(), std::vector<uint64_t>(layer_.port_count(), 0)};
    start.row.resize(row_.size, 0);
    start.node.state = space_.start();
    for (const size_t port : bounds_.ports_of_array()) start.node.allow_always(port);
    finish_row(start);
    reach(start);
    const auto visit = [&](uint32_t index) {
        nodes_[index].is_done = true;
        if (!space_.finished(nodes_[index].state)) {
            expand(index);
        } else if (space_.highest_fit(nodes_[index].state)) {
            consider(mapping_to(index));
        }
    };
    while (!open_.empty()) {
        const Entry entry = open_.top();
        open_.pop();
        if (nodes_[entry.node].is_done) continue;
        if (!is_better(entry.bound)) break;
        if (nodes_.size() >= most_nodes_) return entry.bound;
        visit(entry.node);
        while (!deep_.empty()) {
            const Entry deep = deep_.top();
            deep_.pop();
            if (nodes_[deep.node].is_done || !is_better(deep.bound)) continue;
            visit(deep.node);
            break;
        }
    }
    return MappingSpace::infinity;
}

LayerMapping DelaySearch::run(LayerMapping known) {
    consider(std::move(known));
    raise_bounds();
    const bool is_product = goal_.objective == Objective::energy_delay;
    const double left = search(is_product ? Aim::product : Aim::latency);
    const double found = is_product ? best_energy_ * best_latency_ : best_latency_;
    best_->gap = std::max(0.0, found / std::min(left, found) - 1);
    if (!is_product) {
        const double gap = best_->gap;
        search(Aim::energy_at_latency);
        best_->gap = gap;
    }
    return std::move(*best_);
}

}  // namespace laminate::depth_first
