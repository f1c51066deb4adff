#include "papers/depth_first/delay_bounds.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace laminate::depth_first {

DelayBounds::DelayBounds(const MappingSpace& space, const MappingGoal& goal)
    : space_(space), layer_(space.layer()), goal_(goal) {
    columns_.late = columns_.loads + 2 * (space_.roles() - 1);
    columns_.needed = columns_.late + layer_.port_count();
    columns_.used = columns_.needed + layer_.port_count();
    columns_.count = columns_.used + space_.watched().size();
    // The last tile takes a cycle between each pair of memories below the highest two.
    always_ = space_.total() + (goal_.counts_off_load && space_.levels(0) > 2
                                    ? static_cast<double>(space_.levels(0) - 2)
                                    : 0.0);
    tabulate();
}

void DelayBounds::tabulate() {
    start_.assign(columns_.count, 0);
    if (goal_.counts_macs) start_[columns_.energy] += layer_.mac_energy();
    const auto add_transfers = [&](const BoundaryDemand& demand, double* columns) {
        for (const BoundaryDemand::Port& port : demand.ports) {
            columns[columns_.late + port.number] +=
                std::max(0.0, port.cycles - demand.period) * (demand.count - 1);
            columns[columns_.needed + port.number] += port.cycles * (demand.count - 1);
        }
    };
    demands_.resize(space_.roles());
    terms_.resize(space_.roles());
    std::vector<double> columns(columns_.count);
    for (size_t r = 0; r < space_.roles(); ++r) {
        const bool sums = r == 0 && space_.reduction_left(0);
        const BoundaryDemand of_array =
            layer_.boundary_demand(r, 0, space_.products(0), space_.total(), sums);
        start_[columns_.energy] +=
            layer_.boundary_energy(r, 0, space_.products(0), space_.total(), sums);
        add_transfers(of_array, start_.data());
        for (const BoundaryDemand::Port& port : of_array.ports)
            ports_of_array_.push_back(port.number);
        demands_[r].resize(space_.levels(r) - 1);
        terms_[r].resize(space_.levels(r) - 1);
        for (size_t level = 0; level + 1 < space_.levels(r); ++level) {
            demands_[r][level].resize(space_.multisets());
            std::vector<Term>& terms = terms_[r][level];
            for (size_t s = 0; s < space_.multisets(); ++s) {
                if (space_.energy()[r][level][s] == MappingSpace::infinity) continue;
                const BoundaryDemand& demand = demands_[r][level][s] =
                    layer_.boundary_demand(r, level + 1, space_.products(s), space_.total(),
                                           r == 0 && space_.reduction_left(s));
                std::ranges::fill(columns, 0.0);
                add_boundary(r, level, s, columns.data());
                add_transfers(demand, columns.data());
                for (size_t c = 0; c < columns_.used; ++c) {
                    if (columns[c] == 0) continue;
                    auto term = std::ranges::find(terms, c, &Term::column);
                    if (term == terms.end())
                        term = terms.insert(terms.end(),
                                            Term{c, std::vector<double>(space_.multisets(), 0)});
                    term->values[s] = columns[c];
                }
            }
        }
    }
    for (size_t w = 0; w < space_.watched().size(); ++w) {
        const MappingSpace::Watched& watched = space_.watched()[w];
        for (size_t n = 0; n < watched.sharers.size(); ++n) {
            const auto& [r, level] = watched.sharers[n];
            if (level + 1 < space_.levels(r))
                terms_[r][level].push_back({columns_.used + w, watched.bits[n]});
        }
    }
}

void DelayBounds::add_boundary(size_t r, size_t level, size_t s, double* columns) const {
    columns[columns_.energy] += space_.energy()[r][level][s];
    const double time = demand(r, level, s).time;
    if (r == 0) {
        if (goal_.counts_off_load && level + 2 == space_.levels(0))
            columns[columns_.off_load] += time;
    } else if (layer_.is_waited_for(r, level)) {
        const bool is_shared = layer_.link_sharing(r, level) == MappedLayer::LinkSharing::shared;
        columns[columns_.loads + 2 * (r - 1) + (is_shared ? 1 : 0)] += time;
    }
}

std::array<double, 3> DelayBounds::loads_of(const std::vector<double>& columns) const {
    const double* loads = columns.data() + columns_.loads;
    return {loads[0] + loads[1], loads[2] + loads[3], loads[1] + loads[3]};
}

double DelayBounds::stall_of(size_t n, const std::vector<double>& columns) const {
    return columns[columns_.late + n] - (n < layer_.port_count() ? 0 : space_.total());
}

double DelayBounds::value_of(const Weights& weights, const std::vector<double>& columns) const {
    double latency = always_ + columns[columns_.off_load];
    const std::array<double, 3> loads = loads_of(columns);
    for (size_t n = 0; n < loads.size(); ++n) latency += weights.loads[n] * loads[n];
    for (size_t n = 0; n < weights.stalls.size(); ++n)
        latency += weights.stalls[n] * stall_of(n, columns);
    double value = weights.energy * columns[columns_.energy] + weights.latency * latency;
    for (size_t w = 0; w < weights.prices.size(); ++w)
        value += weights.prices[w] * (columns[columns_.used + w] - space_.room(w));
    return value;
}

/// With the table of its least rests. `costs`: room for those of boundaries.
DelayBounds::Sum DelayBounds::sum_of(const Weights& weights,
                                     MappingSpace::BoundaryCosts& costs) const {
    Sum sum;
    std::vector<double> of_columns(columns_.count, 0);
    of_columns[columns_.energy] = weights.energy;
    of_columns[columns_.off_load] = weights.latency;
    const double both = weights.loads[2];
    for (size_t n = 0; n < 2; ++n) {
        of_columns[columns_.loads + 2 * n] = weights.latency * weights.loads[n];
        of_columns[columns_.loads + 2 * n + 1] = weights.latency * (weights.loads[n] + both);
    }
    sum.always = weights.latency * always_;
    for (size_t n = 0; n < weights.stalls.size(); ++n) {
        of_columns[columns_.late + n] = weights.latency * weights.stalls[n];
        if (n >= layer_.port_count())
            sum.always -= weights.latency * weights.stalls[n] * space_.total();
    }
    double of_highest = 0;
    for (size_t w = 0; w < weights.prices.size(); ++w) {
        of_columns[columns_.used + w] = weights.prices[w];
        sum.rooms.push_back(weights.prices[w] * space_.room(w));
        const MappingSpace::Watched& watched = space_.watched()[w];
        for (size_t n = 0; n < watched.sharers.size(); ++n) {
            const auto& [r, level] = watched.sharers[n];
            if (level + 1 == space_.levels(r)) of_highest += weights.prices[w] * watched.bits[n][0];
        }
    }
    for (size_t c = 0; c < columns_.count; ++c) {
        if (of_columns[c] != 0) sum.weights.emplace_back(c, of_columns[c]);
    }
    costs.resize(space_.roles());
    for (size_t r = 0; r < space_.roles(); ++r) {
        costs[r].resize(terms_[r].size());
        for (size_t level = 0; level < terms_[r].size(); ++level) {
            std::vector<double>& cost = costs[r][level];
            const std::vector<double>& energy = space_.energy()[r][level];
            cost.resize(energy.size());
            for (size_t s = 0; s < cost.size(); ++s)
                cost[s] = energy[s] == MappingSpace::infinity ? MappingSpace::infinity : 0;
            for (const Term& term : terms_[r][level]) {
                const double weight = of_columns[term.column];
                if (weight == 0) continue;
                for (size_t s = 0; s < cost.size(); ++s) cost[s] += weight * term.values[s];
            }
        }
    }
    sum.rest = space_.rest(costs, of_highest);
    std::array<bool, MappingSpace::most_watched> unpaid;
    unpaid.fill(true);
    sum.at_start = least(sum, 0, unpaid, start_.data());
    return sum;
}

std::vector<double> DelayBounds::columns_of(const MappingSpace::Path& path) const {
    std::vector<double> columns = start_;
    space_.for_each_boundary(path.states, [&](size_t r, size_t level, size_t s) {
        for (const Term& term : terms_[r][level]) columns[term.column] += term.values[s];
    });
    for (size_t w = 0; w < space_.watched().size(); ++w) {
        const MappingSpace::Watched& watched = space_.watched()[w];
        for (size_t n = 0; n < watched.sharers.size(); ++n) {
            const auto& [r, level] = watched.sharers[n];
            if (level + 1 == space_.levels(r)) columns[columns_.used + w] += watched.bits[n][0];
        }
    }
    return columns;
}

std::vector<DelayBounds::Sum> DelayBounds::raise(
    double energy_weight, double latency_weight,
    const std::function<double(const MappingSpace::Path&)>& visit) const {
    constexpr int most_rounds = 6, most_steps = 6;
    constexpr double enough = 1 - 1e-9;
    double reached = MappingSpace::infinity;
    MappingSpace::BoundaryCosts costs;
    std::vector<Sum> sums;
    Weights best{.energy = energy_weight,
                 .latency = latency_weight,
                 .loads = {0.5, 0.5, 0},
                 .stalls = std::vector<double>(2 * layer_.port_count(), 0),
                 .prices = std::vector<double>(space_.watched().size(), 0)};
    const auto look_at = [&](const Weights& weights) {
        Sum sum = sum_of(weights, costs);
        const MappingSpace::Path path = space_.follow(costs, sum.rest);
        reached = std::min(reached, visit(path));
        Found found{sum.at_start, columns_of(path)};
        if (sums.empty() || sum.at_start > sums.back().at_start) sums.push_back(std::move(sum));
        return found;
    };
    Found here = look_at(best);
    // From the best weights to others, as far as it is worth it; `here` becomes a mean of the paths
    // on both sides, by which no way there gives more.
    const auto search_line = [&](const Weights& end) {
        const auto between = [&](double t) {
            Weights weights = best;
            for (size_t n = 0; n < weights.loads.size(); ++n)
                weights.loads[n] += t * (end.loads[n] - best.loads[n]);
            for (size_t n = 0; n < weights.stalls.size(); ++n)
                weights.stalls[n] += t * (end.stalls[n] - best.stalls[n]);
            for (size_t n = 0; n < weights.prices.size(); ++n)
                weights.prices[n] += t * (end.prices[n] - best.prices[n]);
            return weights;
        };
        const auto slope = [&](const Found& found) {
            return value_of(end, found.columns) - value_of(best, found.columns);
        };
        Found low = here, high = look_at(end);
        Weights winner = best;
        double most = here.value;
        const auto keep = [&](const Weights& weights, double value) {
            if (value <= most) return;
            most = value;
            winner = weights;
        };
        keep(end, high.value);
        if (slope(high) >= 0) {
            here = high;
        } else {
            for (int step = 0; step < most_steps && most < reached * enough; ++step) {
                // Where the lines of both paths meet.
                const double at_low = value_of(best, low.columns),
                             at_high = value_of(best, high.columns);
                const double t = (at_high - at_low) / (slope(low) - slope(high));
                if (!(t > 0 && t < 1)) break;
                const Weights weights = between(t);
                Found found = look_at(weights);
                keep(weights, found.value);
                const double on_lines = at_low + t * slope(low);
                const bool is_met = found.value >= on_lines - 1e-12 * std::abs(on_lines);
                if (!is_met) (slope(found) > 0 ? low : high) = std::move(found);
                if (is_met) break;
            }
            const double up = slope(low), down = -slope(high);
            const double share = up + down > 0 ? up / (up + down) : 0;
            here.columns = low.columns;
            for (size_t c = 0; c < here.columns.size(); ++c)
                here.columns[c] += share * (high.columns[c] - low.columns[c]);
        }
        best = winner;
        here.value = most;
    };
    const auto try_weights = [&](const Weights& end) {
        if (here.value < reached * enough &&
            value_of(end, here.columns) > value_of(best, here.columns))
            search_line(end);
    };
    for (int round = 0; round < most_rounds && here.value < reached * enough; ++round) {
        const double before = here.value;
        for (size_t w = 0; w < best.prices.size(); ++w) {
            const double over = here.columns[columns_.used + w] - space_.room(w);
            Weights end = best;
            // Up by so much that it would pay for all that is missing.
            end.prices[w] =
                over > 0
                    ? best.prices[w] +
                          2 * std::max(reached - here.value, 1e-3 * std::abs(here.value)) / over
                    : 0;
            try_weights(end);
        }
        if (latency_weight > 0) {
            for (size_t n = 0; n < best.loads.size(); ++n) {
                Weights end = best;
                end.loads = {};
                end.loads[n] = 1;
                try_weights(end);
            }
            for (size_t n = 0; n <= best.stalls.size(); ++n) {
                Weights end = best;
                std::ranges::fill(end.stalls, 0.0);
                if (n < best.stalls.size()) end.stalls[n] = 1;
                try_weights(end);
            }
        }
        if (here.value - before <= 1e-2 * (reached - before)) break;
    }
    return sums;
}

}  // namespace laminate::depth_first
