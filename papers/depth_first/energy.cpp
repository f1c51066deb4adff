#include <algorithm>
#include <cmath>
#include <utility>

#include "papers/depth_first/data_growth.h"
#include "papers/depth_first/single_layer.h"

// Words and energy of whole mappings, level by level, and of single boundaries, which are all that
// the searches of mappings ask for.

namespace laminate::depth_first {

MappedLayer::Movement MappedLayer::movement(const RoleData& role, const LoopOrder& order,
                                            const std::vector<size_t>& allocated,
                                            bool whole) const {
    const std::vector<std::vector<Loop>>& lanes = whole ? role.whole_lanes : role.lanes;
    const size_t levels = role.levels.size();
    Movement moved;
    // A tile stays while irrelevant loops run, so an irrelevant loop that is innermost at a memory
    // moves below the boundary.
    moved.bounds.assign(1, 0);
    for (size_t m = 0; m < levels; ++m) {
        size_t bound = allocated[m];
        while (bound < order.size() && role.irrelevant(order[bound].dim)) ++bound;
        moved.bounds.push_back(bound);
    }
    DataGrowth growth(role.relevance, layer_);
    double cycles = 1, elements = 1;
    moved.cycles.push_back(1);
    moved.elements.push_back(1);
    for (size_t m = 0; m < levels; ++m) {
        double here = 1, trips = 1;
        for (size_t i = moved.bounds[m]; i < moved.bounds[m + 1]; ++i) {
            trips *= order[i].size;
            here *= growth.add(order[i]).data;
        }
        for (const Loop& loop : lanes[m]) here *= growth.add(loop).data;
        cycles *= trips;
        elements *= here;
        moved.cycles.push_back(cycles);
        moved.elements.push_back(std::nearbyint(elements));
    }
    moved.partial.assign(levels + 1, false);
    if (role.role != Role::output) return moved;
    for (size_t m = levels; m-- > 0;) {
        bool here = moved.partial[m + 1];
        for (size_t i = moved.bounds[m]; i < moved.bounds[m + 1]; ++i)
            here = here || (role.irrelevant(order[i].dim) && order[i].size > 1);
        for (const Loop& loop : lanes[m + 1])
            here = here || (role.irrelevant(loop.dim) && loop.size > 1);
        moved.partial[m] = here;
    }
    return moved;
}

Transfers MappedLayer::transfers(const RoleData& role, const Movement& moved, size_t level,
                                 bool whole) const {
    const RoleData::Units& units = whole ? role.whole_units : role.units;
    const double total = moved.cycles.back();
    const bool top = level + 1 == role.levels.size();
    const PeriodicTransfer below{moved.elements[level] * units.boost[level], moved.cycles[level],
                                 std::floor(total / moved.cycles[level]), role.bits};
    const PeriodicTransfer above{moved.elements[level + 1], moved.cycles[level + 1],
                                 std::floor(total / moved.cycles[level + 1]), role.bits};
    Transfers result;
    if (role.role != Role::output) {
        result[Transfer::read_to_lower] = below;
        if (!top) result[Transfer::write_from_higher] = above;
        return result;
    }
    // A partial sum is read back each time that it is taken up again, the first time included.
    result[Transfer::write_from_lower] = below;
    if (moved.partial[level]) {
        result[Transfer::read_to_lower] = below;
    } else {
        result[Transfer::write_from_lower].bits = role.final_bits;
    }
    if (!top) {
        result[Transfer::read_to_higher] = above;
        if (moved.partial[level + 1]) {
            result[Transfer::write_from_higher] = above;
        } else {
            result[Transfer::read_to_higher].bits = role.final_bits;
        }
    }
    return result;
}

/// Words that one memory moves towards the array and away from it.
BoundaryPeriod MappedLayer::words_of_periods(const RoleData& role, const Transfers& transfers,
                                             size_t level) const {
    const Memory& memory = machine_.memories[role.levels[level]];
    const double copies = role.units.count[level + 1];
    const auto per_access = [](double bits, const WordAccess& access) {
        const auto smallest = static_cast<double>(access.smallest_access_bits);
        return std::ceil(bits / smallest) * (smallest / static_cast<double>(access.word_bits));
    };
    // Towards the array, one access moves as much as the ports on both sides can.
    const auto below = [&](const PeriodicTransfer& one, const WordAccess& access,
                           const WordAccess* other) {
        if (one.amount == 0 || one.bits == 0) return PeriodWords{};
        const auto bits = static_cast<double>(one.bits);
        double at_once = one.amount, accesses = 1;
        if (other != nullptr) {
            const double other_width = static_cast<double>(other->word_bits) *
                                       (role.units.unique[level] / role.units.unique[level + 1]);
            at_once = std::min(
                {other_width / bits, static_cast<double>(access.word_bits) / bits, one.amount});
            accesses = std::ceil(one.amount / at_once);
        }
        return PeriodWords{per_access(at_once * bits, access), accesses, copies};
    };
    const auto above = [&](const PeriodicTransfer& one, const WordAccess& access) {
        if (one.amount == 0) return PeriodWords{};
        return PeriodWords{per_access(one.amount * static_cast<double>(one.bits), access), 1,
                           copies};
    };
    const Memory* lower = level > 0 ? &machine_.memories[role.levels[level - 1]] : nullptr;
    return {.read_to_lower = below(transfers[Transfer::read_to_lower], memory.read,
                                   lower ? &lower->write : nullptr),
            .write_from_lower = below(transfers[Transfer::write_from_lower], memory.write,
                                      lower ? &lower->read : nullptr),
            .read_to_higher = above(transfers[Transfer::read_to_higher], memory.read),
            .write_from_higher = above(transfers[Transfer::write_from_higher], memory.write)};
}

WordCounts MappedLayer::words(const RoleData& role, const Transfers& transfers,
                              size_t level) const {
    const BoundaryPeriod period = words_of_periods(role, transfers, level);
    return {
        .read_to_lower = period.read_to_lower.in(transfers[Transfer::read_to_lower].count),
        .write_from_lower = period.write_from_lower.in(transfers[Transfer::write_from_lower].count),
        .read_to_higher = period.read_to_higher.in(transfers[Transfer::read_to_higher].count),
        .write_from_higher =
            period.write_from_higher.in(transfers[Transfer::write_from_higher].count)};
}

double MappedLayer::mac_energy() const {
    return machine_.mac_pj * static_cast<double>(layer_.macs());
}

double MappedLayer::memory_energy(const LoopOrder& order, const Allocation& allocation) const {
    double sum = 0;
    for (size_t r = 0; r < roles_.size(); ++r) {
        const RoleData& role = roles_[r];
        const Movement moved = movement(role, order, allocation[r], false);
        for (size_t level = 0; level < role.levels.size(); ++level) {
            sum += energy(role, words(role, transfers(role, moved, level, false), level), level);
        }
    }
    return sum;
}

double MappedLayer::energy(const RoleData& role, const WordCounts& count, size_t level) const {
    const Memory& memory = machine_.memories[role.levels[level]];
    const double read =
        memory.read.word_pj * count.read_to_higher + memory.read.word_pj * count.read_to_lower;
    const double write = memory.write.word_pj * count.write_from_higher +
                         memory.write.word_pj * count.write_from_lower;
    return read + write;
}

bool MappedLayer::lanes_reduce_above(size_t r, size_t level) const {
    const RoleData& role = roles_[r];
    for (size_t m = level + 1; m < role.lanes.size(); ++m) {
        for (const Loop& loop : role.lanes[m]) {
            if (role.irrelevant(loop.dim) && loop.size > 1) return true;
        }
    }
    return false;
}

void MappedLayer::tile_elements(size_t r, const Trips& loops, std::vector<double>& elements) const {
    tile_elements(r, loops, false, elements);
}

void MappedLayer::tile_elements(size_t r, const Trips& loops, bool whole,
                                std::vector<double>& elements) const {
    const RoleData& role = roles_[r];
    const std::vector<std::vector<Loop>>& lanes = whole ? role.whole_lanes : role.lanes;
    DataGrowth growth(role.relevance, layer_);
    double tile = 1;
    for (const Dim dim : all_dims) {
        if (loops[dim] != 1) tile *= growth.add({dim, loops[dim]}).data;
    }
    elements.clear();
    for (size_t level = 0; level < role.levels.size(); ++level) {
        if (level > 0) {
            for (const Loop& loop : lanes[level - 1]) tile *= growth.add(loop).data;
        }
        elements.push_back(std::nearbyint(tile));
    }
}

std::pair<Transfers, Transfers> MappedLayer::boundary_transfers(size_t r, size_t level,
                                                                double elements, double cycles,
                                                                double count, bool reduction_above,
                                                                bool whole) const {
    const RoleData& role = roles_[r];
    const bool output = role.role == Role::output;
    const bool partial = output && (reduction_above || lanes_reduce_above(r, level));
    const int64_t bits = partial ? role.bits : role.final_bits;
    const PeriodicTransfer above{elements, cycles, count, bits};
    const PeriodicTransfer below{elements * (whole ? role.whole_units : role.units).boost[level],
                                 cycles, count, bits};
    std::pair<Transfers, Transfers> transfers;
    auto& [upper, lower] = transfers;
    (output ? upper[Transfer::write_from_lower] : upper[Transfer::read_to_lower]) = below;
    (output ? lower[Transfer::read_to_higher] : lower[Transfer::write_from_higher]) = above;
    if (partial) {
        upper[Transfer::read_to_lower] = below;
        lower[Transfer::write_from_higher] = above;
    }
    return transfers;
}

BoundaryPeriod MappedLayer::boundary_period(size_t r, size_t level, double elements,
                                            bool reduction_above) const {
    constexpr double any = 1;  // the words of one period depend on neither its length nor the count
    const auto [upper, lower] =
        boundary_transfers(r, level, elements, any, any, reduction_above, false);
    BoundaryPeriod period = words_of_periods(roles_[r], upper, level);
    if (level == 0) return period;
    const BoundaryPeriod below = words_of_periods(roles_[r], lower, level - 1);
    period.read_to_higher = below.read_to_higher;
    period.write_from_higher = below.write_from_higher;
    return period;
}

double MappedLayer::boundary_energy(size_t r, size_t level, const BoundaryPeriod& period,
                                    double count) const {
    const Memory& above = machine_.memories[roles_[r].levels[level]];
    const double upper = above.read.word_pj * period.read_to_lower.in(count) +
                         above.write.word_pj * period.write_from_lower.in(count);
    if (level == 0) return upper;
    const Memory& below = machine_.memories[roles_[r].levels[level - 1]];
    return upper + (below.read.word_pj * period.read_to_higher.in(count) +
                    below.write.word_pj * period.write_from_higher.in(count));
}

double MappedLayer::boundary_energy(size_t r, size_t level, const Trips& loops, double total,
                                    bool reduction_above) const {
    double cycles = 1;
    for (const double trips : loops) cycles *= trips;
    std::vector<double> elements;
    tile_elements(r, loops, elements);
    return boundary_energy(r, level, boundary_period(r, level, elements[level], reduction_above),
                           std::floor(total / cycles));
}

}  // namespace laminate::depth_first
