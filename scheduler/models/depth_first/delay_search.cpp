#include "scheduler/models/depth_first/delay_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace laminate::depth_first {

namespace {

/// Sums are formed in another order than those they are compared with.
constexpr double almost = 1 - 1e-12;

uint64_t mixed(uint64_t seed, uint64_t value) {
    value += seed;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

}  // namespace

DelaySearch::DelaySearch(const MappingSpace& space, const MappingGoal& goal)
    : space_(space), layer_(space.layer()), goal_(goal) {
    tabulate_demands();
    energy_rest_ = space_.rest(space_.energy());
    choose_bounds();
}

void DelaySearch::tabulate_demands() {
    demands_.resize(space_.roles());
    for (size_t r = 0; r < space_.roles(); ++r) {
        demands_[r].resize(space_.levels(r) - 1);
        for (size_t level = 0; level + 1 < space_.levels(r); ++level) {
            demands_[r][level].resize(space_.multisets());
            for (size_t s = 0; s < space_.multisets(); ++s) {
                if (space_.energy()[r][level][s] == MappingSpace::infinity) continue;
                demands_[r][level][s] = layer_.boundary_demand(r, level + 1, space_.products(s), space_.total(),
                                                               r == 0 && space_.reduction_left(s));
            }
        }
    }
}

bool DelaySearch::is_shared(size_t r, size_t level) const {
    const auto at = static_cast<size_t>(std::ranges::find(layer_.memories(), layer_.hierarchy(r)[level]) -
                                        layer_.memories().begin());
    return layer_.served()[at].size() > 1;
}

/// What a boundary above memory `level` adds to a bound.
double DelaySearch::delay_of(const Bound& bound, size_t r, size_t level, const BoundaryDemand& demand,
                             double allowed) const {
    double sum = 0;
    if (r == 0) {
        if (goal_.counts_off_load && level + 2 == space_.levels(0)) sum += demand.time;
    } else if (r == bound.load && layer_.is_waited_for(r, level)) {
        sum += demand.time;
    }
    for (const BoundaryDemand::Port& port : demand.ports) {
        if (port.number != bound.port) continue;
        sum += (bound.late ? std::max(0.0, port.cycles - allowed) : port.cycles) * (demand.count - 1);
    }
    return sum;
}

MappingSpace::BoundaryCosts DelaySearch::costs_of(const Bound& bound) const {
    MappingSpace::BoundaryCosts costs = space_.energy();
    for (size_t r = 0; r < space_.roles(); ++r) {
        for (size_t level = 0; level + 1 < space_.levels(r); ++level) {
            for (size_t s = 0; s < space_.multisets(); ++s) {
                if (costs[r][level][s] != MappingSpace::infinity)
                    costs[r][level][s] = delay_of(bound, r, level, demand(r, level, s), demand(r, level, s).period);
            }
        }
    }
    return costs;
}

/// Of all the sums below latency those that are highest at the start; both operands' loads without any port always.
void DelaySearch::choose_bounds() {
    // The last tile takes a cycle between each pair of memories below the highest two.
    const double always =
        space_.total() +
        (goal_.counts_off_load && space_.levels(0) > 2 ? static_cast<double>(space_.levels(0) - 2) : 0.0);
    std::vector<BoundaryDemand> of_array;
    for (size_t r = 0; r < space_.roles(); ++r)
        of_array.push_back(
            layer_.boundary_demand(r, 0, space_.products(0), space_.total(), r == 0 && space_.reduction_left(0)));
    std::vector<Bound> candidates;
    const auto add = [&](size_t load, std::optional<size_t> port, bool late) {
        Bound bound{.load = load, .port = port, .late = late, .at_start = always, .rest = {}};
        if (port) {
            for (const BoundaryDemand& demand : of_array) {
                for (const BoundaryDemand::Port& use : demand.ports) {
                    if (use.number == port)
                        bound.at_start +=
                            (late ? std::max(0.0, use.cycles - demand.period) : use.cycles) * (demand.count - 1);
                }
            }
            if (!late) bound.at_start -= space_.total();
        }
        bound.rest = space_.rest(costs_of(bound));
        candidates.push_back(std::move(bound));
    };
    for (size_t load = 1; load < space_.roles(); ++load) add(load, std::nullopt, false);
    const auto lowest = [](const Bound& bound) { return bound.at_start + bound.rest[0]; };
    const size_t longer = lowest(candidates[0]) >= lowest(candidates[1]) ? 1 : 2;
    const double without_ports = lowest(candidates[longer - 1]);
    for (size_t port = 0; port < layer_.port_count(); ++port) {
        for (const bool late : {true, false}) {
            add(longer, port, late);
            if (lowest(candidates.back()) <= without_ports) candidates.pop_back();
        }
    }
    std::ranges::stable_sort(candidates.begin() + 2, candidates.end(), std::greater<>(), lowest);
    candidates.resize(std::min(candidates.size(), most_bounds));
    bounds_ = std::move(candidates);
}

DelaySearch::Worth DelaySearch::worth(double energy_pj, double latency) const {
    if (goal_.objective == Objective::energy_delay) return {energy_pj * latency, 0};
    return {latency, energy_pj};
}

DelaySearch::Worth DelaySearch::bound_of(const Node& node) const {
    const size_t at = space_.placed_index(node.state.levels) * space_.multisets() + node.state.multiset;
    const double energy = node.energy_pj + energy_rest_[at];
    double latency = 0;
    for (size_t k = 0; k < bounds_.size(); ++k)
        latency = std::max(latency, bounds_[k].at_start + node.delay[k] + bounds_[k].rest[at]);
    Worth bound = worth(energy, latency);
    // The product of what is at least so much each, and at least so much together, is least where only one is more than it must.
    for (const Joint& joint : joints_) {
        const double together = joint.energy_weight * node.energy_pj + bounds_[joint.bound].at_start +
                                node.delay[joint.bound] + joint.rest[at];
        if (together <= joint.energy_weight * energy + latency) continue;
        bound.value = std::max(bound.value, std::min(energy * (together - joint.energy_weight * energy),
                                                     (together - latency) / joint.energy_weight * latency));
    }
    return bound;
}

void DelaySearch::consider(LayerMapping mapping) {
    const Worth found = worth(energy_of(mapping.cost, goal_), static_cast<double>(latency_of(mapping.cost, goal_)));
    if (!(found < best_worth_)) return;
    best_worth_ = found;
    best_ = std::move(mapping);
}

/// The paths that are best by one bound, alone or with energy at several weights; often one of them is the best mapping.
void DelaySearch::consider_relaxed() {
    const auto look_at = [&](const MappingSpace::BoundaryCosts& costs, const MappingSpace::Rest& rest) {
        const MappingSpace::Path path = space_.follow(costs, rest);
        if (!path.fits) return;
        LayerMapping mapping = space_.mapping(path.states);
        mapping.cost = layer_.cost(mapping.order, mapping.allocation);
        consider(std::move(mapping));
    };
    for (const Bound& bound : bounds_) look_at(costs_of(bound), bound.rest);
    const double even = static_cast<double>(latency_of(best_->cost, goal_)) / energy_of(best_->cost, goal_);
    for (size_t k = 0; k < std::min<size_t>(bounds_.size(), 3); ++k) {
        const MappingSpace::BoundaryCosts delays = costs_of(bounds_[k]);
        for (const double weight : {even, even / 4, even / 16, even * 4}) {
            MappingSpace::BoundaryCosts costs = delays;
            for (size_t r = 0; r < space_.roles(); ++r) {
                for (size_t level = 0; level + 1 < space_.levels(r); ++level) {
                    for (size_t s = 0; s < space_.multisets(); ++s)
                        costs[r][level][s] += weight * space_.energy()[r][level][s];
                }
            }
            MappingSpace::Rest rest = space_.rest(costs);
            look_at(costs, rest);
            if (goal_.objective == Objective::energy_delay && weight == even)
                joints_.push_back({weight, k, std::move(rest)});
        }
    }
}

DelaySearch::Key DelaySearch::key_of(const Node& node) const {
    Key key;
    for (size_t half = 0; half < 2; ++half) {
        uint64_t hash = node.closed[half] + half;
        const auto add = [&](uint64_t value) { hash = mixed(hash * 3 + half, value); };
        add(uint64_t{node.state.multiset} << 32 | uint64_t{node.state.role} << 16 | uint64_t{node.placed_here} << 8 |
            uint64_t{node.state.reduction});
        for (size_t r = 0; r < 3; ++r) {
            add(node.state.levels[r]);
            add(std::bit_cast<uint64_t>(node.reused[r]));
            add(std::bit_cast<uint64_t>(node.pieces[r]));
        }
        key.hash[half] = hash;
    }
    return key;
}

bool DelaySearch::is_better(const Worth& worth) const {
    return worth.value < best_worth_.value * almost ||
           (goal_.objective == Objective::latency && worth.value <= best_worth_.value &&
            worth.energy_pj < best_worth_.energy_pj * almost);
}

void DelaySearch::reach(const Node& node) {
    const Worth bound = bound_of(node);
    if (!is_better(bound) || !known_.insert(key_of(node)).second) return;
    size_t depth = 0;
    for (const MappingSpace::Factor& factor : space_.factors()) depth += space_.count_of(node.state.multiset, factor);
    for (size_t r = 0; r < space_.roles(); ++r) depth += node.state.levels[r];
    nodes_.push_back(node);
    open_.push({bound, static_cast<uint32_t>(depth), static_cast<uint32_t>(nodes_.size() - 1)});
}

std::optional<DelaySearch::Node> DelaySearch::with_loop(const Node& node, const MappingSpace::Factor& factor) const {
    if (space_.count_of(node.state.multiset, factor) == factor.count) return std::nullopt;
    Node next = node;
    next.placed_here = 0;
    next.state.multiset += static_cast<uint32_t>(factor.step);
    next.state.role = 0;
    for (size_t r = 0; r < space_.roles(); ++r) {
        const Relevance seen = layer_.relevance_of(r, factor.dim);
        // A boundary right below a loop that its operand does not see lies above it.
        if ((node.placed_here >> r & 1) != 0 && seen == Relevance::irrelevant) return std::nullopt;
        const auto trips = static_cast<double>(factor.prime);
        next.reused[r] = seen == Relevance::irrelevant ? node.reused[r] * trips : 1;
        next.pieces[r] = seen == Relevance::relevant ? node.pieces[r] * trips : 1;
    }
    return next;
}

std::optional<DelaySearch::Node> DelaySearch::with_boundary(const Node& node, size_t r) const {
    const size_t level = node.state.levels[r];
    const size_t s = node.state.multiset;
    if (level + 1 == space_.levels(r) || space_.energy()[r][level][s] == MappingSpace::infinity) return std::nullopt;
    Node next = node;
    if (!space_.place(r, next.state)) return std::nullopt;
    const BoundaryDemand& demand = this->demand(r, level, s);
    const auto capacity = static_cast<double>(layer_.machine().memories[layer_.hierarchy(r)[level]].capacity_bits);
    // Beside others there may be no room for a second tile; of more than half a memory there is none.
    const bool is_buffered = std::floor(demand.tile_bits / node.pieces[r]) / capacity <= 0.5;
    const double allowed = is_buffered ? demand.period : std::floor(demand.period / node.reused[r]);
    next.placed_here |= static_cast<uint8_t>(1U << r);
    next.energy_pj += space_.energy()[r][level][s];
    for (size_t k = 0; k < bounds_.size(); ++k) next.delay[k] += delay_of(bounds_[k], r, level, demand, allowed);
    for (size_t half = 0; half < 2; ++half) {
        uint64_t hash = mixed(half, r << 40 | level << 32 | s);
        if (is_shared(r, level)) {
            hash = mixed(mixed(hash, std::bit_cast<uint64_t>(node.reused[r])), std::bit_cast<uint64_t>(node.pieces[r]));
        } else {
            hash = mixed(hash, std::bit_cast<uint64_t>(allowed));
        }
        next.closed[half] += hash;
    }
    next.reused[r] = next.pieces[r] = 1;
    return next;
}

std::vector<DelaySearch::Node> DelaySearch::successors(uint32_t index) const {
    const Node& node = nodes_[index];
    std::vector<Node> result;
    const auto add = [&](std::optional<Node> next) {
        if (!next) return;
        next->from = index;
        // Of a role's highest memory only the pieces can matter, and only to others in it.
        for (size_t r = 0; r < space_.roles(); ++r) {
            if (next->state.levels[r] + size_t{1} < space_.levels(r)) continue;
            next->reused[r] = 1;
            if (!is_shared(r, space_.levels(r) - 1)) next->pieces[r] = 1;
        }
        result.push_back(*next);
    };
    for (const MappingSpace::Factor& factor : space_.factors()) add(with_loop(node, factor));
    for (size_t r = node.state.role; r < space_.roles(); ++r) add(with_boundary(node, r));
    return result;
}

LayerMapping DelaySearch::mapping_to(uint32_t node) const {
    std::vector<MappingSpace::State> path;
    for (uint32_t at = node;; at = nodes_[at].from) {
        path.push_back(nodes_[at].state);
        if (at == 0) break;
    }
    std::ranges::reverse(path);
    LayerMapping mapping = space_.mapping(path);
    mapping.cost = layer_.cost(mapping.order, mapping.allocation);
    return mapping;
}

LayerMapping DelaySearch::run(LayerMapping known) {
    consider(std::move(known));
    consider_relaxed();
    Node start;
    start.state = space_.start();
    // Between the array and the lowest memories, and the multiplications: the same for all.
    for (size_t r = 0; r < space_.roles(); ++r)
        start.energy_pj +=
            layer_.boundary_energy(r, 0, space_.products(0), space_.total(), r == 0 && space_.reduction_left(0));
    if (goal_.counts_macs) start.energy_pj += layer_.mac_energy();
    reach(start);
    double proven = best_worth_.value;
    while (!open_.empty()) {
        const Entry entry = open_.top();
        open_.pop();
        if (!is_better(entry.bound)) break;
        if (nodes_.size() >= most_nodes) {
            proven = std::min(proven, entry.bound.value);
            break;
        }
        if (space_.finished(nodes_[entry.node].state)) {
            if (space_.highest_fit(nodes_[entry.node].state)) consider(mapping_to(entry.node));
            continue;
        }
        for (const Node& node : successors(entry.node)) reach(node);
    }
    best_->gap = std::max(0.0, best_worth_.value / std::min(proven, best_worth_.value) - 1);
    return std::move(*best_);
}

}  // namespace laminate::depth_first
