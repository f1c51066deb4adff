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
    // The last tile takes a cycle on each link below the highest one.
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

/// Also fills `costs`, the costs of boundaries under these weights.
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

/// The ascent of raise(). The bound is concave and piecewise linear in the weights, one piece per
/// path. The ascent changes one group of weights after the other and searches each line to where
/// the pieces of two paths meet.
class DelayBounds::Ascent {
public:
    Ascent(const DelayBounds& bounds, double energy_weight, double latency_weight,
           const Visit& visit)
        : bounds_(bounds),
          space_(bounds.space_),
          visit_(visit),
          best_{.energy = energy_weight,
                .latency = latency_weight,
                .loads = {0.5, 0.5, 0},
                .stalls = std::vector<double>(2 * bounds.layer_.port_count(), 0),
                .prices = std::vector<double>(space_.watched().size(), 0)},
          here_(look_at(best_)) {}

    [[nodiscard]] std::vector<Sum> run();

private:
    [[nodiscard]] Found look_at(const Weights& weights);
    [[nodiscard]] Weights between(const Weights& end, double share) const;
    /// How much a path gains on the way from the best weights to `end`.
    [[nodiscard]] double slope(const Found& found, const Weights& end) const {
        return bounds_.value_of(end, found.columns) - bounds_.value_of(best_, found.columns);
    }
    /// Whether a bound this high leaves nothing to gain.
    [[nodiscard]] bool is_tight(double value) const { return !(value < reached_ * enough); }
    void search_line(const Weights& end);
    void try_weights(const Weights& end);
    void raise_prices();
    void move_loads();
    void move_stalls();

    static constexpr int most_rounds = 6, most_steps = 6;
    static constexpr double enough = 1 - 1e-9;

    const DelayBounds& bounds_;
    const MappingSpace& space_;
    const Visit& visit_;
    double reached_ = MappingSpace::infinity;  ///< by the best path seen
    MappingSpace::BoundaryCosts costs_;
    std::vector<Sum> sums_;
    Weights best_;
    /// A path, or a mean of paths, that no weights on the lines searched so far give more.
    Found here_;
};

/// The path that is best by these weights. Keeps the sum if its bound is the highest so far.
DelayBounds::Found DelayBounds::Ascent::look_at(const Weights& weights) {
    Sum sum = bounds_.sum_of(weights, costs_);
    const MappingSpace::Path path = space_.follow(costs_, sum.rest);
    reached_ = std::min(reached_, visit_(path));
    Found found{sum.at_start, bounds_.columns_of(path)};
    if (sums_.empty() || sum.at_start > sums_.back().at_start) sums_.push_back(std::move(sum));
    return found;
}

DelayBounds::Weights DelayBounds::Ascent::between(const Weights& end, double share) const {
    Weights weights = best_;
    for (size_t n = 0; n < weights.loads.size(); ++n)
        weights.loads[n] += share * (end.loads[n] - best_.loads[n]);
    for (size_t n = 0; n < weights.stalls.size(); ++n)
        weights.stalls[n] += share * (end.stalls[n] - best_.stalls[n]);
    for (size_t n = 0; n < weights.prices.size(); ++n)
        weights.prices[n] += share * (end.prices[n] - best_.prices[n]);
    return weights;
}

/// Moves from the best weights towards `end` as far as the bound rises. `here_` becomes a mean of
/// the paths on both sides of the highest point, which gains nothing in either direction.
void DelayBounds::Ascent::search_line(const Weights& end) {
    Found low = here_, high = look_at(end);
    Weights winner = best_;
    double most = here_.value;
    const auto keep = [&](const Weights& weights, double value) {
        if (value <= most) return;
        most = value;
        winner = weights;
    };
    keep(end, high.value);
    if (slope(high, end) >= 0) {
        here_ = high;
    } else {
        for (int step = 0; step < most_steps && !is_tight(most); ++step) {
            // The lines of both paths meet at `t`.
            const double at_low = bounds_.value_of(best_, low.columns),
                         at_high = bounds_.value_of(best_, high.columns);
            const double t = (at_high - at_low) / (slope(low, end) - slope(high, end));
            if (!(t > 0 && t < 1)) break;
            const Weights weights = between(end, t);
            Found found = look_at(weights);
            keep(weights, found.value);
            const double on_lines = at_low + t * slope(low, end);
            if (found.value >= on_lines - 1e-12 * std::abs(on_lines)) break;
            (slope(found, end) > 0 ? low : high) = std::move(found);
        }
        const double up = slope(low, end), down = -slope(high, end);
        const double share = up + down > 0 ? up / (up + down) : 0;
        here_.columns = low.columns;
        for (size_t c = 0; c < here_.columns.size(); ++c)
            here_.columns[c] += share * (high.columns[c] - low.columns[c]);
    }
    best_ = winner;
    here_.value = most;
}

void DelayBounds::Ascent::try_weights(const Weights& end) {
    if (!is_tight(here_.value) && slope(here_, end) > 0) search_line(end);
}

/// One price after the other. That of a memory that is too full goes up far enough to pay for all
/// that the bound lacks; any other goes to 0.
void DelayBounds::Ascent::raise_prices() {
    for (size_t w = 0; w < best_.prices.size(); ++w) {
        const double over = here_.columns[bounds_.columns_.used + w] - space_.room(w);
        Weights end = best_;
        end.prices[w] =
            over > 0 ? best_.prices[w] +
                           2 * std::max(reached_ - here_.value, 1e-3 * std::abs(here_.value)) / over
                     : 0;
        try_weights(end);
    }
}

/// Towards each load alone.
void DelayBounds::Ascent::move_loads() {
    for (size_t n = 0; n < best_.loads.size(); ++n) {
        Weights end = best_;
        end.loads = {};
        end.loads[n] = 1;
        try_weights(end);
    }
}

/// Towards the stall of each port alone, and towards none.
void DelayBounds::Ascent::move_stalls() {
    for (size_t n = 0; n <= best_.stalls.size(); ++n) {
        Weights end = best_;
        std::ranges::fill(end.stalls, 0.0);
        if (n < best_.stalls.size()) end.stalls[n] = 1;
        try_weights(end);
    }
}

std::vector<DelayBounds::Sum> DelayBounds::Ascent::run() {
    for (int round = 0; round < most_rounds && !is_tight(here_.value); ++round) {
        const double before = here_.value;
        raise_prices();
        if (best_.latency > 0) {
            move_loads();
            move_stalls();
        }
        if (here_.value - before <= 1e-2 * (reached_ - before)) break;
    }
    return std::move(sums_);
}

std::vector<DelayBounds::Sum> DelayBounds::raise(double energy_weight, double latency_weight,
                                                 const Visit& visit) const {
    return Ascent(*this, energy_weight, latency_weight, visit).run();
}

}  // namespace laminate::depth_first
