#include "papers/depth_first/single_layer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "papers/depth_first/data_growth.h"

// A layer on a machine: lanes, units of each memory, tiles and whether they fit. energy.cpp has
// what the tiles move, latency.cpp how long that takes.

namespace laminate::depth_first {

double energy_of(const LayerCost& cost, const MappingGoal& goal) {
    return goal.counts_macs ? cost.energy_pj : cost.memory_pj;
}

int64_t latency_of(const LayerCost& cost, const MappingGoal& goal) {
    return goal.counts_off_load ? cost.latency.cycles_with_off_load() : cost.latency.cycles();
}

Dim dim_of_axis(const ArrayAxis& axis, const LayerShape& layer) {
    if (!axis.loop) throw std::invalid_argument("an axis of the array without a loop");
    switch (*axis.loop) {
        case ArrayLoop::k:
            return layer.sizes[Dim::k] == 1 && layer.sizes[Dim::g] > 1 ? Dim::g : Dim::k;
        case ArrayLoop::c:
            return Dim::c;
        case ArrayLoop::ox:
            return Dim::ox;
        case ArrayLoop::oy:
            return Dim::oy;
        case ArrayLoop::fx:
            return Dim::fx;
        case ArrayLoop::fy:
            return Dim::fy;
    }
    throw std::logic_error("dim_of_axis");
}

Unrolling default_unrolling(const Machine& machine, const LayerShape& layer) {
    Unrolling lanes;
    for (const ArrayAxis& axis : machine.axes)
        lanes.push_back(axis.loop ? std::min(axis.lanes, layer.sizes[dim_of_axis(axis, layer)])
                                  : 1);
    return lanes;
}

WordCounts& WordCounts::operator+=(const WordCounts& other) {
    read_to_lower += other.read_to_lower;
    write_from_lower += other.write_from_lower;
    read_to_higher += other.read_to_higher;
    write_from_higher += other.write_from_higher;
    return *this;
}

WordCounts WordCounts::operator*(double times) const {
    return {read_to_lower * times, write_from_lower * times, read_to_higher * times,
            write_from_higher * times};
}

MappedLayer::MappedLayer(const Machine& machine, const LayerShape& layer,
                         const Unrolling& unrolling, const std::vector<size_t>& tops)
    : machine_(machine), layer_(layer) {
    const std::vector<Role> all = depth_first::roles(layer.type);
    if (tops.size() != all.size() || unrolling.size() != machine.axes.size())
        throw std::invalid_argument("MappedLayer: tops or unrolling of another length");
    for (size_t r = 0; r < all.size(); ++r) roles_.push_back(role_data(all[r], tops[r], unrolling));
    find_spatial_loops();
    for (RoleData& role : roles_) {
        role.units = units_of(role, role.lanes);
        role.whole_units = units_of(role, role.whole_lanes);
    }
    agree_on_unit_counts(false);
    agree_on_unit_counts(true);
    find_served_roles();
    count_port_readers();
}

MappedLayer::RoleData MappedLayer::role_data(Role role, size_t top,
                                             const Unrolling& unrolling) const {
    const auto bits = [&]() -> int64_t {
        switch (operand_of(role)) {
            case Operand::output:
                return machine_.bits.partial_sum;
            case Operand::weight:
                return layer_.type == LayerType::pooling ? 0 : machine_.bits.weight;
            case Operand::input:
                return machine_.bits.input;
        }
        throw std::logic_error("role_data");
    };
    RoleData data{};
    data.role = role;
    data.bits = bits();
    data.final_bits = role == Role::output ? machine_.bits.output : data.bits;
    data.levels = machine_.hierarchy(operand_of(role));
    if (top == 0 || top > data.levels.size())
        throw std::invalid_argument("MappedLayer: top outside the hierarchy");
    data.levels.resize(top);
    for (const Dim dim : all_dims) data.relevance[dim] = relevance(layer_, role, dim);
    place_lanes(data, unrolling);
    return data;
}

/// The lanes of every role hold the same loops; those of the second role are taken.
void MappedLayer::find_spatial_loops() {
    for (const ArrayAxis& axis : machine_.axes) {
        for (const std::vector<Loop>& level : roles_[1].lanes) {
            for (const Loop& loop : level) {
                if (axis.loop && loop.dim == dim_of_axis(axis, layer_)) spatial_.push_back(loop);
            }
        }
    }
}

/// Roles that a memory serves, in the order of its operands; the second input of an addition comes
/// last.
void MappedLayer::find_served_roles() {
    const auto uses = [&](const RoleData& role, size_t memory) {
        return std::ranges::count(role.levels, memory) > 0;
    };
    for (size_t memory = 0; memory < machine_.memories.size(); ++memory) {
        std::vector<size_t> served;
        for (const Operand operand : machine_.memories[memory].operands) {
            for (size_t r = 0; r < roles_.size(); ++r) {
                if (operand_of(roles_[r].role) == operand && roles_[r].role != Role::second_input &&
                    uses(roles_[r], memory))
                    served.push_back(r);
            }
        }
        if (roles_.back().role == Role::second_input && uses(roles_.back(), memory))
            served.push_back(roles_.size() - 1);
        if (served.empty()) continue;
        memories_.push_back(memory);
        served_.push_back(std::move(served));
    }
}

size_t MappedLayer::level_of(size_t r, size_t memory) const {
    return static_cast<size_t>(std::ranges::find(roles_[r].levels, memory) -
                               roles_[r].levels.begin());
}

/// Each axis lies at the lowest memory of the hierarchy of which one copy serves all its lanes. A
/// loop that its lanes do not divide uses size / trips of them on average.
void MappedLayer::place_lanes(RoleData& role, const Unrolling& unrolling) const {
    role.lanes.assign(role.levels.size() + 1, {});
    for (size_t a = 0; a < machine_.axes.size(); ++a) {
        const ArrayAxis& axis = machine_.axes[a];
        if (!axis.loop) continue;
        const Dim dim = dim_of_axis(axis, layer_);
        const auto size = static_cast<double>(layer_.sizes[dim]);
        const auto used =
            static_cast<double>(std::min({axis.lanes, unrolling[a], layer_.sizes[dim]}));
        const double lanes = size / std::ceil(size / used);
        size_t level = 0;
        while (level < role.levels.size() &&
               std::ranges::count(machine_.memories[role.levels[level]].replicated_along, a) > 0)
            ++level;
        role.lanes[level].push_back({dim, lanes});
    }
    role.whole_lanes = role.lanes;
    for (std::vector<Loop>& level : role.whole_lanes) {
        for (Loop& loop : level) loop.size = std::ceil(loop.size);
    }
}

MappedLayer::RoleData::Units MappedLayer::units_of(
    const RoleData& role, const std::vector<std::vector<Loop>>& lanes) const {
    DataGrowth growth(role.relevance, layer_);
    std::vector<double> data(lanes.size(), 1), all(lanes.size(), 1);
    for (size_t level = 0; level < lanes.size(); ++level) {
        for (const Loop& loop : lanes[level]) {
            const DataGrowth::Factors factors = growth.add(loop);
            data[level] *= factors.data;
            all[level] *= factors.data;
            all[level] *= factors.reuse;
        }
    }
    RoleData::Units units;
    for (size_t level = 0; level < lanes.size(); ++level) {
        double unique = 1, count = 1;
        for (size_t above = level; above < lanes.size(); ++above) {
            unique *= data[above];
            count *= all[above];
        }
        units.unique.push_back(unique);
        units.count.push_back(count);
    }
    for (size_t level = 0; level + 1 < lanes.size(); ++level)
        units.boost.push_back(std::trunc(units.unique[level] / units.unique[level + 1]));
    return units;
}

/// Rounds counts of units to whole numbers. If the operands then disagreed on the size of the
/// array, rounds up for all of them, or else down.
void MappedLayer::agree_on_unit_counts(bool whole) {
    const auto with = [&](double (*round)(double)) {
        std::vector<double> arrays;
        for (const RoleData& role : roles_)
            arrays.push_back(round((whole ? role.whole_units : role.units).count[0]));
        if (std::ranges::adjacent_find(arrays, std::not_equal_to<>()) != arrays.end()) return false;
        for (RoleData& role : roles_) {
            for (double& count : (whole ? role.whole_units : role.units).count)
                count = round(count);
        }
        return true;
    };
    if (with([](double v) { return std::nearbyint(v); }) ||
        with([](double v) { return std::ceil(v); }) || with([](double v) { return std::floor(v); }))
        return;
    throw std::logic_error("operands disagree on the number of lanes in use");
}

std::vector<std::pair<Dim, std::vector<int64_t>>> MappedLayer::temporal_factors() const {
    std::vector<std::pair<Dim, std::vector<int64_t>>> result;
    for (const Dim dim : {Dim::g, Dim::k, Dim::c, Dim::oy, Dim::ox, Dim::fy, Dim::fx}) {
        int64_t trips = layer_.sizes[dim];
        for (const Loop& loop : spatial_) {
            if (loop.dim == dim)
                trips = static_cast<int64_t>(std::ceil(static_cast<double>(trips) / loop.size));
        }
        std::vector<int64_t> factors;
        for (int64_t prime = 2; prime * prime <= trips; ++prime) {
            while (trips % prime == 0) {
                factors.push_back(prime);
                trips /= prime;
            }
        }
        if (trips > 1) factors.push_back(trips);
        if (!factors.empty()) result.emplace_back(dim, std::move(factors));
    }
    return result;
}

double MappedLayer::elements_under(size_t r, const Trips& loops) const {
    const RoleData& role = roles_[r];
    const auto size = [&](Dim dim) { return std::ceil(loops[dim]); };
    double elements = 1;
    for (const Dim dim : all_dims) {
        if (role.relevance[dim] == Relevance::relevant) elements *= size(dim);
    }
    if (role.relevance[Dim::ox] == Relevance::partial)
        elements *= span(size(Dim::ox), layer_.stride.x, size(Dim::fx), layer_.dilation.x) *
                    span(size(Dim::oy), layer_.stride.y, size(Dim::fy), layer_.dilation.y);
    return elements;
}

void MappedLayer::level_elements(size_t r, const Trips& loops,
                                 std::vector<double>& elements) const {
    Trips trips = loops;
    elements.clear();
    for (size_t level = 0; level < roles_[r].levels.size(); ++level) {
        for (const Loop& loop : roles_[r].lanes[level]) trips[loop.dim] *= loop.size;
        const bool is_as_below = level > 0 && roles_[r].lanes[level].empty();
        elements.push_back(is_as_below ? elements.back() : elements_under(r, trips));
    }
}

double MappedLayer::level_bits(size_t r, size_t level, const Trips& loops,
                               bool reduction_left) const {
    Trips trips = loops;
    for (size_t m = 0; m <= level; ++m) {
        for (const Loop& loop : roles_[r].lanes[m]) trips[loop.dim] *= loop.size;
    }
    return tile_bits(r, trips, reduction_left);
}

bool MappedLayer::fits(const LoopOrder& order, const Allocation& allocation) const {
    std::vector<double> used(machine_.memories.size(), 0);
    for (size_t r = 0; r < roles_.size(); ++r) {
        const RoleData& role = roles_[r];
        size_t below = 0;
        for (size_t level = 0; level < role.levels.size(); ++level) {
            bool reduction_left = false;
            for (size_t i = below; i < order.size(); ++i)
                reduction_left =
                    reduction_left || (role.role == Role::output && role.irrelevant(order[i].dim));
            Trips loops = no_loops;
            for (size_t i = 0; i < allocation[r][level]; ++i) loops[order[i].dim] *= order[i].size;
            used[role.levels[level]] += level_bits(r, level, loops, reduction_left);
            below = allocation[r][level];
        }
        if (below != order.size()) return false;
    }
    for (size_t memory = 0; memory < used.size(); ++memory) {
        if (used[memory] > static_cast<double>(machine_.memories[memory].capacity_bits))
            return false;
    }
    return true;
}

LayerCost MappedLayer::cost(const LoopOrder& order, const Allocation& allocation) const {
    LayerCost cost;
    std::vector<Movement> moved;
    moved.reserve(roles_.size());
    cost.words.reserve(roles_.size());
    for (size_t r = 0; r < roles_.size(); ++r) {
        moved.push_back(movement(roles_[r], order, allocation[r], false));
        std::vector<WordCounts>& of_role = cost.words.emplace_back();
        of_role.reserve(roles_[r].levels.size());
        for (size_t level = 0; level < roles_[r].levels.size(); ++level) {
            of_role.push_back(
                words(roles_[r], transfers(roles_[r], moved.back(), level, false), level));
            cost.memory_pj += energy(roles_[r], of_role.back(), level);
        }
    }
    cost.mac_pj = mac_energy();
    cost.energy_pj = cost.memory_pj + cost.mac_pj;
    cost.latency = latency(order, allocation, moved);
    return cost;
}

}  // namespace laminate::depth_first
