#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "papers/depth_first/single_layer.h"

// Latency: what the ports of the memories carry, and what the array waits for.

namespace laminate::depth_first {

void MappedLayer::count_port_readers() {
    for (const size_t memory : memories_) {
        first_port_.push_back(port_count_);
        port_count_ += machine_.memories[memory].ports.size();
    }
    port_readers_.assign(port_count_, 0);
    for (size_t at = 0; at < memories_.size(); ++at) {
        const std::vector<MemoryPort>& ports = machine_.memories[memories_[at]].ports;
        for (size_t p = 0; p < ports.size(); ++p) {
            for (const size_t r : served_[at]) {
                const bool carried =
                    std::ranges::any_of(ports[p].carries, [&](const MemoryPort::Carried& entry) {
                        return entry.operand == operand_of(roles_[r].role);
                    });
                if (carried && roles_[r].role != Role::output) ++port_readers_[first_port_[at] + p];
            }
        }
    }
}

size_t MappedLayer::port_number(size_t memory, Operand operand, Transfer transfer) const {
    const auto at = static_cast<size_t>(std::ranges::find(memories_, memory) - memories_.begin());
    const MemoryPort& port = machine_.memories[memory].port_of(operand, transfer);
    return first_port_[at] + static_cast<size_t>(&port - machine_.memories[memory].ports.data());
}

MappedLayer::LinkSharing MappedLayer::link_sharing(size_t r, size_t level) const {
    const Operand operand = operand_of(roles_[r].role);
    const bool lower =
        port_readers_[port_number(roles_[r].levels[level], operand, Transfer::write_from_higher)] >
        1;
    const bool upper =
        port_readers_[port_number(roles_[r].levels[level + 1], operand, Transfer::read_to_lower)] >
        1;
    return lower && upper   ? LinkSharing::shared
           : lower || upper ? LinkSharing::half
                            : LinkSharing::own;
}

bool MappedLayer::is_waited_for(size_t r, size_t level) const {
    if (link_sharing(r, level) != LinkSharing::half) return true;
    // The artifact counts only the highest of the links that are shared at one end.
    for (size_t above = level + 1; above + 1 < roles_[r].levels.size(); ++above) {
        if (link_sharing(r, above) == LinkSharing::half) return false;
    }
    return true;
}

BoundaryDemand MappedLayer::boundary_demand(size_t r, size_t level, const Trips& loops,
                                            double total, bool reduction_above) const {
    const RoleData& role = roles_[r];
    const bool output = role.role == Role::output;
    double period = 1;
    for (const double trips : loops) period *= trips;
    const double count = std::floor(total / period);
    std::vector<double> elements;
    tile_elements(r, loops, true, elements);
    const auto [upper, lower] =
        boundary_transfers(r, level, elements[level], period, count, reduction_above, true);
    const PeriodicTransfer& across =
        upper[output ? Transfer::write_from_lower : Transfer::read_to_lower];
    BoundaryDemand demand{
        .period = across.period, .count = across.count, .ports = {}, .time = 0, .tile_bits = 0};
    const auto add = [&](const Transfers& transfers, size_t m, Transfer transfer) {
        const PeriodicTransfer& one = transfers[transfer];
        if (one.count == 0) return;
        const Memory& memory = machine_.memories[role.levels[m]];
        const double cycles = one.cycles(is_read(transfer) ? memory.read : memory.write);
        demand.ports.push_back(
            {port_number(role.levels[m], operand_of(role.role), transfer), cycles});
        const bool is_upwards =
            transfer == Transfer::write_from_lower || transfer == Transfer::read_to_higher;
        if (is_upwards == output) demand.time = std::max(demand.time, cycles);
    };
    add(upper, level, Transfer::read_to_lower);
    add(upper, level, Transfer::write_from_lower);
    if (level > 0) {
        add(lower, level - 1, Transfer::read_to_higher);
        add(lower, level - 1, Transfer::write_from_higher);
        tile_elements(r, loops, false, elements);
        const Transfers with_fractions =
            boundary_transfers(r, level, elements[level], period, count, reduction_above, false)
                .second;
        const PeriodicTransfer& tile =
            with_fractions[output ? Transfer::read_to_higher : Transfer::write_from_higher];
        demand.tile_bits = tile.amount * static_cast<double>(tile.bits);
    }
    return demand;
}

std::vector<bool> MappedLayer::fit_twice(const std::vector<size_t>& served,
                                         const std::vector<double>& used) {
    double taken = 0;
    for (const double part : used) taken += part;
    std::vector<bool> result(served.size(), false);
    std::vector<size_t> order(served.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t n) { return served[n]; });
    for (const size_t n : order) {
        if (taken <= 0.5) {
            result[n] = true;
        } else if (used[n] <= 1 - taken) {
            result[n] = true;
            taken += used[n];
        }
    }
    return result;
}

/// Indexed by role and level + 1; [0] stands for the array, which is never double buffered.
std::vector<std::vector<bool>> MappedLayer::double_buffered(
    const LoopOrder& order, const std::vector<Movement>& moved) const {
    std::vector<std::vector<double>> used(roles_.size());
    std::vector<std::vector<bool>> result(roles_.size());
    for (size_t r = 0; r < roles_.size(); ++r) {
        const RoleData& role = roles_[r];
        result[r].assign(role.levels.size() + 1, false);
        for (size_t m = 0; m < role.levels.size(); ++m) {
            const bool partial = role.role == Role::output && moved[r].partial[m + 1];
            double bits = moved[r].elements[m + 1] *
                          static_cast<double>(partial ? role.bits : role.final_bits);
            // The outermost relevant loops bring in the tile piece by piece.
            double pieces = 1;
            for (size_t i = moved[r].bounds[m + 1]; i > moved[r].bounds[m]; --i) {
                if (role.relevance[order[i - 1].dim] != Relevance::relevant) break;
                pieces *= order[i - 1].size;
            }
            bits = std::floor(bits / pieces);
            used[r].push_back(bits /
                              static_cast<double>(machine_.memories[role.levels[m]].capacity_bits));
        }
    }
    for (size_t at = 0; at < memories_.size(); ++at) {
        const std::vector<size_t>& served = served_[at];
        std::vector<size_t> levels;
        std::vector<double> parts;
        for (const size_t r : served) {
            levels.push_back(level_of(r, memories_[at]));
            parts.push_back(used[r][levels.back()]);
        }
        const std::vector<bool> twice = fit_twice(served, parts);
        for (size_t n = 0; n < served.size(); ++n) result[served[n]][levels[n] + 1] = twice[n];
    }
    return result;
}

namespace {

/// A transfer on a port. It needs `needed` cycles of each period and must lie within the first
/// `allowed` ones.
struct PortUse {
    double needed;
    double allowed;
    double period;
    double count;
    [[nodiscard]] double stall() const { return (needed - allowed) * (count - 1); }
    [[nodiscard]] double window() const { return allowed * (count - 1); }
};

/// The number of cycles in [0, length) in which any of uses[first...] is allowed. Periods descend
/// and divide each other.
double covered(const std::vector<PortUse>& uses, size_t first, double length) {
    if (first == uses.size() || length == 0) return 0;
    const PortUse& use = uses[first];
    const double periods = std::floor(length / use.period);
    const auto within = [&](double part) {
        if (part <= use.allowed) return part;
        return use.allowed + covered(uses, first + 1, part) - covered(uses, first + 1, use.allowed);
    };
    double sum = within(length - periods * use.period);
    if (periods > 0) sum += periods * within(use.period);
    return sum;
}

/// Cycles that a port stalls the array; a negative number is time to spare.
double port_stall(std::vector<PortUse> uses) {
    if (uses.empty()) return 0;
    if (uses.size() == 1) return uses[0].stall();
    double late = 0, early = 0, windows = 0, whole = 0;
    for (const PortUse& use : uses) {
        (use.stall() > 0 ? late : early) += use.stall();
        windows += use.window();
    }
    for (const PortUse& use : uses) {
        if (use.period == use.allowed) {
            whole = use.period * use.count;
            break;
        }
    }
    if (whole == 0) {
        std::ranges::stable_sort(
            uses, [](const PortUse& a, const PortUse& b) { return a.period > b.period; });
        whole = covered(uses, 0, uses[0].period) * uses[0].count;
    }
    return late + std::max(0.0, early + windows - whole);
}

}  // namespace

/// The transfers of one mapping on the ports of the memories, with lanes rounded up.
class MappedLayer::PortSchedule {
public:
    PortSchedule(const MappedLayer& layer, const LoopOrder& order, const Allocation& allocation,
                 const std::vector<Movement>& moved);

    /// Cycles that the port with the longest stall stops the array.
    [[nodiscard]] double stall() const;
    /// Cycles until the first tiles of both inputs have arrived.
    [[nodiscard]] double load() const;
    /// Cycles after the last operation until the last tile of the output has left.
    [[nodiscard]] int64_t off_load() const;

private:
    struct Load {
        double own = 0, half = 0, shared = 0;
    };
    [[nodiscard]] double repeats(size_t r, size_t m) const;
    [[nodiscard]] std::optional<PortUse> use(size_t r, size_t m, Transfer transfer) const;
    [[nodiscard]] Load load_of(size_t r) const;

    const MappedLayer& layer_;
    const LoopOrder& order_;
    std::vector<Movement> moved_;                   ///< whole lanes
    std::vector<std::vector<Transfers>> crossing_;  ///< [role][level], whole lanes
    std::vector<std::vector<bool>> buffered_;
};

MappedLayer::PortSchedule::PortSchedule(const MappedLayer& layer, const LoopOrder& order,
                                        const Allocation& allocation,
                                        const std::vector<Movement>& moved)
    : layer_(layer),
      order_(order),
      crossing_(layer.roles_.size()),
      buffered_(layer.double_buffered(order, moved)) {
    moved_.reserve(layer.roles_.size());
    for (size_t r = 0; r < layer.roles_.size(); ++r) {
        const RoleData& role = layer.roles_[r];
        moved_.push_back(layer.movement(role, order, allocation[r], true));
        crossing_[r].reserve(role.levels.size());
        for (size_t m = 0; m < role.levels.size(); ++m)
            crossing_[r].push_back(layer.transfers(role, moved_[r], m, true));
    }
}

/// Trips of a level's outermost irrelevant loops. While they run, a memory without a second buffer
/// may not be written.
double MappedLayer::PortSchedule::repeats(size_t r, size_t m) const {
    double product = 1;
    if (m == 0) return product;
    for (size_t i = moved_[r].bounds[m]; i > moved_[r].bounds[m - 1]; --i) {
        if (!layer_.roles_[r].irrelevant(order_[i - 1].dim)) break;
        product *= order_[i - 1].size;
    }
    return product;
}

std::optional<PortUse> MappedLayer::PortSchedule::use(size_t r, size_t m, Transfer transfer) const {
    const PeriodicTransfer& one = crossing_[r][m][transfer];
    if (one.count == 0) return std::nullopt;
    const bool is_below =
        transfer == Transfer::read_to_lower || transfer == Transfer::write_from_lower;
    const size_t lower = is_below ? m : m + 1;
    const Memory& memory = layer_.machine_.memories[layer_.roles_[r].levels[m]];
    const double allowed =
        buffered_[r][lower] ? one.period : std::floor(one.period / repeats(r, lower));
    return PortUse{one.cycles(is_read(transfer) ? memory.read : memory.write), allowed, one.period,
                   one.count};
}

double MappedLayer::PortSchedule::stall() const {
    double longest = 0;
    for (size_t at = 0; at < layer_.memories_.size(); ++at) {
        for (const MemoryPort& port : layer_.machine_.memories[layer_.memories_[at]].ports) {
            std::vector<PortUse> uses;
            for (const size_t r : layer_.served_[at]) {
                const size_t m = layer_.level_of(r, layer_.memories_[at]);
                for (const MemoryPort::Carried& entry : port.carries) {
                    if (entry.operand != operand_of(layer_.roles_[r].role)) continue;
                    if (const auto use = this->use(r, m, entry.transfer)) uses.push_back(*use);
                }
            }
            longest = std::max(longest, port_stall(std::move(uses)));
        }
    }
    return longest;
}

/// A link takes as long as the slower of its two ends.
MappedLayer::PortSchedule::Load MappedLayer::PortSchedule::load_of(size_t r) const {
    Load load;
    for (size_t m = 0; m + 1 < layer_.roles_[r].levels.size(); ++m) {
        const double time = std::max(use(r, m, Transfer::write_from_higher)->needed,
                                     use(r, m + 1, Transfer::read_to_lower)->needed);
        switch (layer_.link_sharing(r, m)) {
            case LinkSharing::shared:
                load.shared += time;
                break;
            case LinkSharing::own:
                load.own += time;
                break;
            case LinkSharing::half:
                load.half = time;
                break;
        }
    }
    return load;
}

/// Links that both operands share at both ends are used one after the other.
double MappedLayer::PortSchedule::load() const {
    const auto first_then = [](const Load& a, const Load& b) {
        return a.shared + std::max(b.shared + b.half + b.own, a.half + a.own);
    };
    const Load a = load_of(1), b = load_of(2);
    return std::min(first_then(a, b), first_then(b, a));
}

int64_t MappedLayer::PortSchedule::off_load() const {
    int64_t cycles = 0;
    const size_t levels = layer_.roles_[0].levels.size();
    for (size_t m = 0; m + 1 < levels; ++m) {
        const double time = std::max(use(0, m, Transfer::read_to_higher)->needed,
                                     use(0, m + 1, Transfer::write_from_lower)->needed);
        cycles += m + 2 == levels ? static_cast<int64_t>(time) : 1;
    }
    return cycles;
}

Latency MappedLayer::latency(const LoopOrder& order, const Allocation& allocation) const {
    std::vector<Movement> moved;
    for (size_t r = 0; r < roles_.size(); ++r)
        moved.push_back(movement(roles_[r], order, allocation[r], false));
    return latency(order, allocation, moved);
}

Latency MappedLayer::latency(const LoopOrder& order, const Allocation& allocation,
                             const std::vector<Movement>& moved) const {
    const PortSchedule ports(*this, order, allocation, moved);
    double cycles = 1;
    for (const Loop& loop : order) cycles *= loop.size;
    return {.temporal_cycles = static_cast<int64_t>(cycles),
            .stall_cycles = static_cast<int64_t>(ports.stall()),
            .load_cycles = static_cast<int64_t>(ports.load()),
            .off_load_cycles = ports.off_load()};
}

}  // namespace laminate::depth_first
