#include "scheduler/models/depth_first/single_layer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace laminate::depth_first {

namespace {

constexpr size_t none = std::numeric_limits<size_t>::max();

size_t index(Dim dim) { return static_cast<size_t>(dim); }

/// Splits loops into what an operand's data grows by and what only uses data again. Relevant loops are the first, irrelevant ones the
/// second. A loop of a window (OX with FX, OY with FY) is both: its data factor is the growth of the span, the rest is reuse.
class DataGrowth {
public:
    DataGrowth(const std::array<Relevance, dim_count>& relevance, const LayerShape& layer)
        : relevance_(relevance), stride_(layer.stride), dilation_(layer.dilation) {}

    struct Factors {
        double data;
        double reuse;
    };
    Factors add(const Loop& loop) {
        switch (relevance_[index(loop.dim)]) {
            case Relevance::relevant:
                return {loop.size, 1};
            case Relevance::irrelevant:
                return {1, loop.size};
            case Relevance::partial:
                break;
        }
        Window& window = loop.dim == Dim::ox || loop.dim == Dim::fx ? x_ : y_;
        (loop.dim == Dim::ox || loop.dim == Dim::oy ? window.outputs : window.kernel) *= loop.size;
        const bool along_x = &window == &x_;
        const double data =
            span(window.outputs, along_x ? stride_.x : stride_.y, window.kernel, along_x ? dilation_.x : dilation_.y);
        const double reuse = window.outputs * window.kernel / data;
        const Factors factors{data / window.data, reuse / window.reuse};
        window.data = data;
        window.reuse = reuse;
        return factors;
    }

private:
    struct Window {
        double outputs = 1, kernel = 1, data = 1, reuse = 1;
    };
    const std::array<Relevance, dim_count>& relevance_;
    Stride stride_, dilation_;
    Window x_, y_;
};

/// To the nearest integer, halves to even.
double rounded(double value) { return std::nearbyint(value); }

double product_of(const LoopOrder& order, size_t begin, size_t end) {
    double product = 1;
    for (size_t i = begin; i < end; ++i) product *= order[i].size;
    return product;
}

}  // namespace

/// Per transfer of one memory: elements per period, period and number of periods in cycles, bits of an element. No periods:
/// nothing moves.
struct MappedLayer::Transfers {
    struct One {
        double amount = 0;
        double period = 0;
        double count = 0;
        int64_t bits = 0;
        /// Of a port, each period.
        [[nodiscard]] double cycles(const WordAccess& access) const {
            return std::ceil(amount * static_cast<double>(bits) / static_cast<double>(access.word_bits));
        }
    };
    One read_to_lower, write_from_lower, read_to_higher, write_from_higher;
    [[nodiscard]] const One& operator[](Transfer transfer) const {
        switch (transfer) {
            case Transfer::write_from_lower:
                return write_from_lower;
            case Transfer::write_from_higher:
                return write_from_higher;
            case Transfer::read_to_lower:
                return read_to_lower;
            case Transfer::read_to_higher:
                return read_to_higher;
        }
        throw std::logic_error("Transfers");
    }
};

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
        lanes.push_back(axis.loop ? std::min(axis.lanes, layer.sizes[dim_of_axis(axis, layer)]) : 1);
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
    return {read_to_lower * times, write_from_lower * times, read_to_higher * times, write_from_higher * times};
}

MappedLayer::MappedLayer(const Machine& machine, const LayerShape& layer, const Unrolling& unrolling,
                         const std::vector<size_t>& tops)
    : machine_(machine), layer_(layer) {
    const std::vector<Role> all = depth_first::roles(layer.type);
    if (tops.size() != all.size() || unrolling.size() != machine.axes.size())
        throw std::invalid_argument("MappedLayer: tops or unrolling of another length");
    for (size_t r = 0; r < all.size(); ++r) {
        RoleData data{};
        data.role = all[r];
        data.bits = all[r] == Role::output   ? machine.bits.partial_sum
                    : all[r] == Role::weight ? (layer.type == LayerType::pooling ? 0 : machine.bits.weight)
                                             : machine.bits.input;
        data.final_bits = all[r] == Role::output ? machine.bits.output : data.bits;
        data.levels = machine.hierarchy(operand_of(all[r]));
        if (tops[r] == 0 || tops[r] > data.levels.size())
            throw std::invalid_argument("MappedLayer: top outside the hierarchy");
        data.levels.resize(tops[r]);
        for (size_t dim = 0; dim < dim_count; ++dim)
            data.relevance[dim] = relevance(layer, all[r], static_cast<Dim>(dim));
        place_lanes(data, unrolling);
        roles_.push_back(std::move(data));
    }
    for (size_t a = 0; a < machine.axes.size(); ++a) {
        for (const std::vector<Loop>& level : roles_[1].lanes) {
            for (const Loop& loop : level) {
                if (machine.axes[a].loop && loop.dim == dim_of_axis(machine.axes[a], layer)) spatial_.push_back(loop);
            }
        }
    }
    for (RoleData& role : roles_) {
        role.units = units_of(role, role.lanes);
        role.whole_units = units_of(role, role.whole_lanes);
    }
    agree_on_unit_counts(false);
    agree_on_unit_counts(true);
    for (size_t memory = 0; memory < machine.memories.size(); ++memory) {
        std::vector<size_t> served;
        // In the order of the memory's operands; the second input of an addition comes last.
        for (const Operand operand : machine.memories[memory].operands) {
            for (size_t r = 0; r < roles_.size(); ++r) {
                if (operand_of(roles_[r].role) == operand && roles_[r].role != Role::second_input &&
                    std::ranges::count(roles_[r].levels, memory) > 0)
                    served.push_back(r);
            }
        }
        if (roles_.back().role == Role::second_input && std::ranges::count(roles_.back().levels, memory) > 0)
            served.push_back(roles_.size() - 1);
        if (served.empty()) continue;
        memories_.push_back(memory);
        served_.push_back(std::move(served));
    }
    count_port_readers();
}

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
                const bool carried = std::ranges::any_of(ports[p].carries, [&](const MemoryPort::Carried& entry) {
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
    const bool lower = port_readers_[port_number(roles_[r].levels[level], operand, Transfer::write_from_higher)] > 1;
    const bool upper = port_readers_[port_number(roles_[r].levels[level + 1], operand, Transfer::read_to_lower)] > 1;
    return lower && upper ? LinkSharing::shared : lower || upper ? LinkSharing::half : LinkSharing::own;
}

bool MappedLayer::is_waited_for(size_t r, size_t level) const {
    if (link_sharing(r, level) != LinkSharing::half) return true;
    // Of links that are shared on one side the artifact keeps the last.
    for (size_t above = level + 1; above + 1 < roles_[r].levels.size(); ++above) {
        if (link_sharing(r, above) == LinkSharing::half) return false;
    }
    return true;
}

/// Each axis lies at the lowest memory of the hierarchy that one copy of serves all its lanes. A loop that the lanes do not divide
/// uses size / trips of them on average.
void MappedLayer::place_lanes(RoleData& role, const Unrolling& unrolling) const {
    role.lanes.assign(role.levels.size() + 1, {});
    for (size_t a = 0; a < machine_.axes.size(); ++a) {
        const ArrayAxis& axis = machine_.axes[a];
        if (!axis.loop) continue;
        const Dim dim = dim_of_axis(axis, layer_);
        const auto size = static_cast<double>(layer_.sizes[dim]);
        const auto used = static_cast<double>(std::min({axis.lanes, unrolling[a], layer_.sizes[dim]}));
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

MappedLayer::RoleData::Units MappedLayer::units_of(const RoleData& role,
                                                   const std::vector<std::vector<Loop>>& lanes) const {
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

/// Units are whole numbers; fractions of lanes are rounded, or, where the operands would disagree on the size of the array then, rounded up or
/// down for all.
void MappedLayer::agree_on_unit_counts(bool whole) {
    const auto with = [&](double (*round)(double)) {
        std::vector<double> arrays;
        for (const RoleData& role : roles_) arrays.push_back(round((whole ? role.whole_units : role.units).count[0]));
        if (std::ranges::adjacent_find(arrays, std::not_equal_to<>()) != arrays.end()) return false;
        for (RoleData& role : roles_) {
            for (double& count : (whole ? role.whole_units : role.units).count) count = round(count);
        }
        return true;
    };
    if (with(rounded) || with([](double v) { return std::ceil(v); }) || with([](double v) { return std::floor(v); }))
        return;
    throw std::logic_error("operands disagree on the number of lanes in use");
}

std::vector<std::pair<Dim, std::vector<int64_t>>> MappedLayer::temporal_factors() const {
    std::vector<std::pair<Dim, std::vector<int64_t>>> result;
    for (const Dim dim : {Dim::g, Dim::k, Dim::c, Dim::oy, Dim::ox, Dim::fy, Dim::fx}) {
        int64_t trips = layer_.sizes[dim];
        for (const Loop& loop : spatial_) {
            if (loop.dim == dim) trips = static_cast<int64_t>(std::ceil(static_cast<double>(trips) / loop.size));
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

double MappedLayer::elements_under(size_t r, const std::array<double, dim_count>& products) const {
    const RoleData& role = roles_[r];
    const auto size = [&](Dim dim) { return std::ceil(products[index(dim)]); };
    double elements = 1;
    for (size_t dim = 0; dim < dim_count; ++dim) {
        if (role.relevance[dim] == Relevance::relevant) elements *= size(static_cast<Dim>(dim));
    }
    if (role.relevance[index(Dim::ox)] == Relevance::partial)
        elements *= span(size(Dim::ox), layer_.stride.x, size(Dim::fx), layer_.dilation.x) *
                    span(size(Dim::oy), layer_.stride.y, size(Dim::fy), layer_.dilation.y);
    return elements;
}

void MappedLayer::level_elements(size_t r, const std::array<double, dim_count>& loops,
                                 std::vector<double>& elements) const {
    std::array<double, dim_count> products = loops;
    elements.clear();
    for (size_t level = 0; level < roles_[r].levels.size(); ++level) {
        for (const Loop& loop : roles_[r].lanes[level]) products[index(loop.dim)] *= loop.size;
        const bool is_as_below = level > 0 && roles_[r].lanes[level].empty();
        elements.push_back(is_as_below ? elements.back() : elements_under(r, products));
    }
}

std::optional<Allocation> MappedLayer::allocate(const LoopOrder& order) const {
    const size_t loops = order.size();
    struct State {
        std::array<double, dim_count> products{};
        size_t allocated = 0;
        size_t level = 0;
    };
    std::array<State, 3> states;
    Allocation allocation(roles_.size());
    const auto multiply = [](std::array<double, dim_count>& products, const Loop& loop) {
        products[index(loop.dim)] *= loop.size;
    };
    for (size_t r = 0; r < roles_.size(); ++r) {
        states[r].products.fill(1);
        for (const Loop& loop : roles_[r].lanes[0]) multiply(states[r].products, loop);
    }
    struct Choice {
        size_t first = 0;  ///< number of loops of the first entry
        std::vector<double> bits;
        std::vector<double> accesses;
    };
    std::array<Choice, 3> choices;
    for (size_t m = 0; m < memories_.size(); ++m) {
        const auto capacity = static_cast<double>(machine_.memories[memories_[m]].capacity_bits);
        const std::vector<size_t>& served = served_[m];
        for (size_t s = 0; s < served.size(); ++s) {
            const RoleData& role = roles_[served[s]];
            const State& state = states[served[s]];
            bool reduction_left = false;
            if (role.role == Role::output) {
                for (size_t i = state.allocated; i < loops; ++i)
                    reduction_left = reduction_left || role.irrelevant(order[i].dim);
            }
            Choice& choice = choices[s];
            choice = {};
            std::array<double, dim_count> products = state.products;
            double left = product_of(order, state.allocated, loops);
            for (size_t k = 0; state.allocated + k <= loops; ++k) {
                if (k > 0) {
                    multiply(products, order[state.allocated + k - 1]);
                    left /= order[state.allocated + k - 1].size;
                }
                const double bits = tile_bits(served[s], products, reduction_left);
                if (bits > capacity) break;
                choice.bits.push_back(bits);
                choice.accesses.push_back(left * bits);
            }
            if (choice.bits.empty()) return std::nullopt;
            if (state.level + 1 == role.levels.size()) {
                choice.first = choice.bits.size() - 1;
                choice.bits = {choice.bits.back()};
                choice.accesses = {0};
            }
        }
        // The last operand varies fastest; of equal combinations the last is taken.
        std::array<size_t, 3> at{}, best{};
        double best_accesses = std::numeric_limits<double>::infinity();
        while (true) {
            double bits = 0, accesses = 0;
            for (size_t s = 0; s < served.size(); ++s) {
                bits += choices[s].bits[at[s]];
                accesses += choices[s].accesses[at[s]];
            }
            if (bits <= capacity && accesses <= best_accesses) {
                best_accesses = accesses;
                for (size_t s = 0; s < served.size(); ++s) best[s] = choices[s].first + at[s];
            }
            size_t s = served.size();
            while (s > 0 && at[s - 1] + 1 == choices[s - 1].bits.size()) at[--s] = 0;
            if (s == 0) break;
            ++at[s - 1];
        }
        for (size_t s = 0; s < served.size(); ++s) {
            const RoleData& role = roles_[served[s]];
            State& state = states[served[s]];
            for (size_t k = 0; k < best[s]; ++k) multiply(state.products, order[state.allocated + k]);
            state.allocated += best[s];
            ++state.level;
            for (const Loop& loop : role.lanes[state.level]) multiply(state.products, loop);
            allocation[served[s]].push_back(state.allocated);
            if (state.level == role.levels.size() && state.allocated < loops) return std::nullopt;
        }
    }
    return allocation;
}

MappedLayer::Movement MappedLayer::movement(const RoleData& role, const LoopOrder& order,
                                            const std::vector<size_t>& allocated, bool whole) const {
    const std::vector<std::vector<Loop>>& lanes = whole ? role.whole_lanes : role.lanes;
    const size_t levels = role.levels.size();
    Movement moved;
    // Data stay while irrelevant loops run: an irrelevant loop innermost at a memory runs below it.
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
        moved.elements.push_back(rounded(elements));
    }
    if (role.role == Role::output) {
        moved.partial.assign(levels + 1, false);
        for (size_t m = levels; m-- > 0;) {
            bool here = moved.partial[m + 1];
            for (size_t i = moved.bounds[m]; i < moved.bounds[m + 1]; ++i)
                here = here || (role.irrelevant(order[i].dim) && order[i].size > 1);
            for (const Loop& loop : lanes[m + 1]) here = here || (role.irrelevant(loop.dim) && loop.size > 1);
            moved.partial[m] = here;
        }
    } else {
        moved.partial.assign(levels + 1, false);
    }
    return moved;
}

MappedLayer::Transfers MappedLayer::transfers(const RoleData& role, const Movement& moved, size_t level,
                                              bool whole) const {
    const RoleData::Units& units = whole ? role.whole_units : role.units;
    const double total = moved.cycles.back();
    const bool top = level + 1 == role.levels.size();
    using One = Transfers::One;
    const One below{moved.elements[level] * units.boost[level], moved.cycles[level],
                    std::floor(total / moved.cycles[level]), role.bits};
    const One above{moved.elements[level + 1], moved.cycles[level + 1], std::floor(total / moved.cycles[level + 1]),
                    role.bits};
    Transfers result;
    if (role.role != Role::output) {
        result.read_to_lower = below;
        if (!top) result.write_from_higher = above;
        return result;
    }
    // A sum that is not finished comes back each time that it is taken up again, the first time too.
    result.write_from_lower = below;
    if (moved.partial[level]) {
        result.read_to_lower = below;
    } else {
        result.write_from_lower.bits = role.final_bits;
    }
    if (!top) {
        result.read_to_higher = above;
        if (moved.partial[level + 1]) {
            result.write_from_higher = above;
        } else {
            result.read_to_higher.bits = role.final_bits;
        }
    }
    return result;
}

/// Of one memory: towards the array and away from it.
BoundaryPeriod MappedLayer::words_of_periods(const RoleData& role, const Transfers& transfers, size_t level) const {
    const Memory& memory = machine_.memories[role.levels[level]];
    const double copies = role.units.count[level + 1];
    const auto per_access = [](double bits, const WordAccess& access) {
        const auto smallest = static_cast<double>(access.smallest_access_bits);
        return std::ceil(bits / smallest) * (smallest / static_cast<double>(access.word_bits));
    };
    // Towards the array: as much at once as both sides can.
    const auto below = [&](const Transfers::One& one, const WordAccess& access, const WordAccess* other) {
        if (one.amount == 0 || one.bits == 0) return PeriodWords{};
        const auto bits = static_cast<double>(one.bits);
        double at_once = one.amount, accesses = 1;
        if (other != nullptr) {
            const double other_width =
                static_cast<double>(other->word_bits) * (role.units.unique[level] / role.units.unique[level + 1]);
            at_once = std::min({other_width / bits, static_cast<double>(access.word_bits) / bits, one.amount});
            accesses = std::ceil(one.amount / at_once);
        }
        return PeriodWords{per_access(at_once * bits, access), accesses, copies};
    };
    const auto above = [&](const Transfers::One& one, const WordAccess& access) {
        if (one.amount == 0) return PeriodWords{};
        return PeriodWords{per_access(one.amount * static_cast<double>(one.bits), access), 1, copies};
    };
    const Memory* lower = level > 0 ? &machine_.memories[role.levels[level - 1]] : nullptr;
    return {.read_to_lower = below(transfers.read_to_lower, memory.read, lower ? &lower->write : nullptr),
            .write_from_lower = below(transfers.write_from_lower, memory.write, lower ? &lower->read : nullptr),
            .read_to_higher = above(transfers.read_to_higher, memory.read),
            .write_from_higher = above(transfers.write_from_higher, memory.write)};
}

WordCounts MappedLayer::words(const RoleData& role, const Transfers& transfers, size_t level) const {
    const BoundaryPeriod period = words_of_periods(role, transfers, level);
    return {.read_to_lower = period.read_to_lower.in(transfers.read_to_lower.count),
            .write_from_lower = period.write_from_lower.in(transfers.write_from_lower.count),
            .read_to_higher = period.read_to_higher.in(transfers.read_to_higher.count),
            .write_from_higher = period.write_from_higher.in(transfers.write_from_higher.count)};
}

double MappedLayer::mac_energy() const { return machine_.mac_pj * static_cast<double>(layer_.macs()); }

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
    const double read = memory.read.word_pj * count.read_to_higher + memory.read.word_pj * count.read_to_lower;
    const double write = memory.write.word_pj * count.write_from_higher + memory.write.word_pj * count.write_from_lower;
    return read + write;
}

double MappedLayer::level_bits(size_t r, size_t level, const std::array<double, dim_count>& loops,
                               bool reduction_left) const {
    std::array<double, dim_count> products = loops;
    for (size_t m = 0; m <= level; ++m) {
        for (const Loop& loop : roles_[r].lanes[m]) products[index(loop.dim)] *= loop.size;
    }
    return tile_bits(r, products, reduction_left);
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

bool MappedLayer::fits(const LoopOrder& order, const Allocation& allocation) const {
    std::vector<double> used(machine_.memories.size(), 0);
    for (size_t r = 0; r < roles_.size(); ++r) {
        const RoleData& role = roles_[r];
        size_t below = 0;
        for (size_t level = 0; level < role.levels.size(); ++level) {
            bool reduction_left = false;
            for (size_t i = below; i < order.size(); ++i)
                reduction_left = reduction_left || (role.role == Role::output && role.irrelevant(order[i].dim));
            std::array<double, dim_count> loops{};
            loops.fill(1);
            for (size_t i = 0; i < allocation[r][level]; ++i) loops[index(order[i].dim)] *= order[i].size;
            used[role.levels[level]] += level_bits(r, level, loops, reduction_left);
            below = allocation[r][level];
        }
        if (below != order.size()) return false;
    }
    for (size_t memory = 0; memory < used.size(); ++memory) {
        if (used[memory] > static_cast<double>(machine_.memories[memory].capacity_bits)) return false;
    }
    return true;
}

void MappedLayer::tile_elements(size_t r, const std::array<double, dim_count>& loops,
                                std::vector<double>& elements) const {
    tile_elements(r, loops, false, elements);
}

void MappedLayer::tile_elements(size_t r, const std::array<double, dim_count>& loops, bool whole,
                                std::vector<double>& elements) const {
    const RoleData& role = roles_[r];
    const std::vector<std::vector<Loop>>& lanes = whole ? role.whole_lanes : role.lanes;
    DataGrowth growth(role.relevance, layer_);
    double tile = 1;
    for (size_t dim = 0; dim < dim_count; ++dim) {
        if (loops[dim] != 1) tile *= growth.add({static_cast<Dim>(dim), loops[dim]}).data;
    }
    elements.clear();
    for (size_t level = 0; level < role.levels.size(); ++level) {
        if (level > 0) {
            for (const Loop& loop : lanes[level - 1]) tile *= growth.add(loop).data;
        }
        elements.push_back(rounded(tile));
    }
}

std::pair<MappedLayer::Transfers, MappedLayer::Transfers> MappedLayer::boundary_transfers(
    size_t r, size_t level, double elements, double cycles, double count, bool reduction_above, bool whole) const {
    const RoleData& role = roles_[r];
    const bool output = role.role == Role::output;
    const bool partial = output && (reduction_above || lanes_reduce_above(r, level));
    const int64_t bits = partial ? role.bits : role.final_bits;
    const Transfers::One above{elements, cycles, count, bits};
    const Transfers::One below{elements * (whole ? role.whole_units : role.units).boost[level], cycles, count, bits};
    std::pair<Transfers, Transfers> transfers;
    auto& [upper, lower] = transfers;
    (output ? upper.write_from_lower : upper.read_to_lower) = below;
    (output ? lower.read_to_higher : lower.write_from_higher) = above;
    if (partial) {
        upper.read_to_lower = below;
        lower.write_from_higher = above;
    }
    return transfers;
}

BoundaryPeriod MappedLayer::boundary_period(size_t r, size_t level, double elements, bool reduction_above) const {
    constexpr double any = 1;  // how many periods there are, and how long, is not asked
    const auto [upper, lower] = boundary_transfers(r, level, elements, any, any, reduction_above, false);
    BoundaryPeriod period = words_of_periods(roles_[r], upper, level);
    if (level == 0) return period;
    const BoundaryPeriod below = words_of_periods(roles_[r], lower, level - 1);
    period.read_to_higher = below.read_to_higher;
    period.write_from_higher = below.write_from_higher;
    return period;
}

double MappedLayer::boundary_energy(size_t r, size_t level, const BoundaryPeriod& period, double count) const {
    const Memory& above = machine_.memories[roles_[r].levels[level]];
    const double upper =
        above.read.word_pj * period.read_to_lower.in(count) + above.write.word_pj * period.write_from_lower.in(count);
    if (level == 0) return upper;
    const Memory& below = machine_.memories[roles_[r].levels[level - 1]];
    return upper + (below.read.word_pj * period.read_to_higher.in(count) +
                    below.write.word_pj * period.write_from_higher.in(count));
}

double MappedLayer::boundary_energy(size_t r, size_t level, const std::array<double, dim_count>& loops, double total,
                                    bool reduction_above) const {
    double cycles = 1;
    for (const double trips : loops) cycles *= trips;
    std::vector<double> elements;
    tile_elements(r, loops, elements);
    return boundary_energy(r, level, boundary_period(r, level, elements[level], reduction_above),
                           std::floor(total / cycles));
}

BoundaryDemand MappedLayer::boundary_demand(size_t r, size_t level, const std::array<double, dim_count>& loops,
                                            double total, bool reduction_above) const {
    const RoleData& role = roles_[r];
    const bool output = role.role == Role::output;
    double period = 1;
    for (const double trips : loops) period *= trips;
    const double count = std::floor(total / period);
    std::vector<double> elements;
    tile_elements(r, loops, true, elements);
    const auto [upper, lower] = boundary_transfers(r, level, elements[level], period, count, reduction_above, true);
    const Transfers::One& across = upper[output ? Transfer::write_from_lower : Transfer::read_to_lower];
    BoundaryDemand demand{.period = across.period, .count = across.count, .ports = {}, .time = 0, .tile_bits = 0};
    const auto add = [&](const Transfers& transfers, size_t m, Transfer transfer) {
        const Transfers::One& one = transfers[transfer];
        if (one.count == 0) return;
        const Memory& memory = machine_.memories[role.levels[m]];
        const double cycles = one.cycles(is_read(transfer) ? memory.read : memory.write);
        demand.ports.push_back({port_number(role.levels[m], operand_of(role.role), transfer), cycles});
        const bool is_upwards = transfer == Transfer::write_from_lower || transfer == Transfer::read_to_higher;
        if (is_upwards == output) demand.time = std::max(demand.time, cycles);
    };
    add(upper, level, Transfer::read_to_lower);
    add(upper, level, Transfer::write_from_lower);
    if (level > 0) {
        add(lower, level - 1, Transfer::read_to_higher);
        add(lower, level - 1, Transfer::write_from_higher);
        tile_elements(r, loops, false, elements);
        const Transfers with_fractions =
            boundary_transfers(r, level, elements[level], period, count, reduction_above, false).second;
        const Transfers::One& tile = with_fractions[output ? Transfer::read_to_higher : Transfer::write_from_higher];
        demand.tile_bits = tile.amount * static_cast<double>(tile.bits);
    }
    return demand;
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
            of_role.push_back(words(roles_[r], transfers(roles_[r], moved.back(), level, false), level));
            cost.memory_pj += energy(roles_[r], of_role.back(), level);
        }
    }
    cost.mac_pj = mac_energy();
    cost.energy_pj = cost.memory_pj + cost.mac_pj;
    cost.latency = latency(order, allocation, moved);
    return cost;
}

/// [role][0] stands for the array, which is never double buffered, [role][m + 1] for level m: whether the part of a tile that
/// changes fits beside it. Operands that share a memory are asked in turn and take space from each other.
std::vector<std::vector<bool>> MappedLayer::double_buffered(const LoopOrder& order,
                                                            const std::vector<Movement>& moved) const {
    std::vector<std::vector<double>> used(roles_.size()), shared;
    for (size_t r = 0; r < roles_.size(); ++r) {
        const RoleData& role = roles_[r];
        for (size_t m = 0; m < role.levels.size(); ++m) {
            const bool partial = role.role == Role::output && moved[r].partial[m + 1];
            double bits = moved[r].elements[m + 1] * static_cast<double>(partial ? role.bits : role.final_bits);
            // Its outermost relevant loops bring in the tile piece by piece.
            double pieces = 1;
            for (size_t i = moved[r].bounds[m + 1]; i > moved[r].bounds[m]; --i) {
                if (role.relevance[index(order[i - 1].dim)] != Relevance::relevant) break;
                pieces *= order[i - 1].size;
            }
            bits = std::floor(bits / pieces);
            used[r].push_back(bits / static_cast<double>(machine_.memories[role.levels[m]].capacity_bits));
        }
    }
    shared = used;
    const auto sharers = [&](size_t memory, const auto& visit) {
        const size_t at = static_cast<size_t>(std::ranges::find(memories_, memory) - memories_.begin());
        for (const size_t r : served_[at]) {
            const std::vector<size_t>& levels = roles_[r].levels;
            visit(r, static_cast<size_t>(std::ranges::find(levels, memory) - levels.begin()));
        }
    };
    for (const size_t memory : memories_) {
        double sum = 0;
        sharers(memory, [&](size_t r, size_t m) { sum += used[r][m]; });
        sharers(memory, [&](size_t r, size_t m) { shared[r][m] = sum; });
    }
    std::vector<std::vector<bool>> result;
    for (size_t r = 0; r < roles_.size(); ++r) {
        result.push_back({false});
        for (size_t m = 0; m < roles_[r].levels.size(); ++m) {
            const double own = used[r][m];
            if (shared[r][m] <= 0.5) {
                result.back().push_back(true);
            } else if (own <= 1 - shared[r][m]) {
                result.back().push_back(true);
                sharers(roles_[r].levels[m], [&](size_t other, size_t level) { shared[other][level] += own; });
            } else {
                result.back().push_back(false);
            }
        }
    }
    return result;
}

namespace {

/// A transfer on a port: it may take `allowed` cycles at the start of each period, and takes `needed`.
struct PortUse {
    double needed;
    double allowed;
    double period;
    double count;
    [[nodiscard]] double stall() const { return (needed - allowed) * (count - 1); }
    [[nodiscard]] double window() const { return allowed * (count - 1); }
};

/// Cycles of [0, length) in which one of uses[first...] is allowed; periods descend and divide each other.
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

/// Cycles that a port stops the array for, negative: to spare.
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
        std::ranges::stable_sort(uses, [](const PortUse& a, const PortUse& b) { return a.period > b.period; });
        whole = covered(uses, 0, uses[0].period) * uses[0].count;
    }
    return late + std::max(0.0, early + windows - whole);
}

}  // namespace

Latency MappedLayer::latency(const LoopOrder& order, const Allocation& allocation) const {
    std::vector<Movement> moved;
    for (size_t r = 0; r < roles_.size(); ++r) moved.push_back(movement(roles_[r], order, allocation[r], false));
    return latency(order, allocation, moved);
}

Latency MappedLayer::latency(const LoopOrder& order, const Allocation& allocation,
                             const std::vector<Movement>& moved) const {
    std::vector<Movement> whole_moved;
    std::vector<std::vector<Transfers>> crossing(roles_.size());  // [role][level]
    whole_moved.reserve(roles_.size());
    for (size_t r = 0; r < roles_.size(); ++r) {
        whole_moved.push_back(movement(roles_[r], order, allocation[r], true));
        crossing[r].reserve(roles_[r].levels.size());
        for (size_t m = 0; m < roles_[r].levels.size(); ++m)
            crossing[r].push_back(transfers(roles_[r], whole_moved[r], m, true));
    }
    const std::vector<std::vector<bool>> buffered = double_buffered(order, moved);
    // Outermost irrelevant loops of a level: while they run, a memory without a second buffer may not be written.
    const auto repeats = [&](size_t r, size_t m) {
        double product = 1;
        if (m == 0) return product;
        for (size_t i = whole_moved[r].bounds[m]; i > whole_moved[r].bounds[m - 1]; --i) {
            if (!roles_[r].irrelevant(order[i - 1].dim)) break;
            product *= order[i - 1].size;
        }
        return product;
    };
    const auto use_of = [&](size_t r, size_t m, Transfer transfer) -> std::optional<PortUse> {
        const Transfers::One& one = crossing[r][m][transfer];
        if (one.count == 0) return std::nullopt;
        const size_t lower = transfer == Transfer::read_to_lower || transfer == Transfer::write_from_lower ? m : m + 1;
        const Memory& memory = machine_.memories[roles_[r].levels[m]];
        const double allowed = buffered[r][lower] ? one.period : std::floor(one.period / repeats(r, lower));
        return PortUse{one.cycles(is_read(transfer) ? memory.read : memory.write), allowed, one.period, one.count};
    };

    Latency result;
    result.temporal_cycles = static_cast<int64_t>(product_of(order, 0, order.size()));
    double stall = 0;
    for (size_t at = 0; at < memories_.size(); ++at) {
        const Memory& memory = machine_.memories[memories_[at]];
        for (size_t p = 0; p < memory.ports.size(); ++p) {
            std::vector<PortUse> uses;
            for (const size_t r : served_[at]) {
                const std::vector<size_t>& levels = roles_[r].levels;
                const size_t m = static_cast<size_t>(std::ranges::find(levels, memories_[at]) - levels.begin());
                for (const MemoryPort::Carried& entry : memory.ports[p].carries) {
                    if (entry.operand != operand_of(roles_[r].role)) continue;
                    if (const auto use = use_of(r, m, entry.transfer)) uses.push_back(*use);
                }
            }
            stall = std::max(stall, port_stall(std::move(uses)));
        }
    }
    result.stall_cycles = static_cast<int64_t>(stall);

    // First tiles: a pair of memories takes as long as the slower side; links whose both ends the two operands share are
    // used one after the other.
    struct Load {
        double own = 0, half = 0, shared = 0;
    };
    std::vector<Load> loads;
    for (size_t r = 1; r < roles_.size(); ++r) {
        Load load;
        for (size_t m = 0; m + 1 < roles_[r].levels.size(); ++m) {
            const double time = std::max(use_of(r, m, Transfer::write_from_higher)->needed,
                                         use_of(r, m + 1, Transfer::read_to_lower)->needed);
            switch (link_sharing(r, m)) {
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
        loads.push_back(load);
    }
    const auto first_then = [](const Load& a, const Load& b) {
        return a.shared + std::max(b.shared + b.half + b.own, a.half + a.own);
    };
    result.load_cycles = static_cast<int64_t>(std::min(first_then(loads[0], loads[1]), first_then(loads[1], loads[0])));

    const size_t output_levels = roles_[0].levels.size();
    for (size_t m = 0; m + 1 < output_levels; ++m) {
        const double time = std::max(use_of(0, m, Transfer::read_to_higher)->needed,
                                     use_of(0, m + 1, Transfer::write_from_lower)->needed);
        result.off_load_cycles += m + 2 == output_levels ? static_cast<int64_t>(time) : 1;
    }
    return result;
}

LoopOrders::LoopOrders(LoopOrder loops) {
    std::ranges::sort(loops,
                      [](const Loop& a, const Loop& b) { return std::pair(a.dim, a.size) > std::pair(b.dim, b.size); });
    for (size_t n = 0; n < loops.size(); ++n) nodes_.push_back({loops[n], n + 1 < loops.size() ? n + 1 : none});
    if (!nodes_.empty()) {
        j_ = nodes_.size() - 1;
        i_ = nodes_.size() >= 2 ? nodes_.size() - 2 : 0;
    }
    read();
}

void LoopOrders::read() {
    current_.clear();
    for (size_t n = nodes_.empty() ? none : head_; n != none; n = nodes_[n].next) current_.push_back(nodes_[n].loop);
}

bool LoopOrders::next() {
    if (nodes_.empty()) return false;
    const auto value = [&](size_t n) { return std::pair(nodes_[n].loop.dim, nodes_[n].loop.size); };
    if (nodes_[j_].next == none && value(j_) >= value(head_)) return false;
    const size_t before = nodes_[j_].next != none && value(i_) >= value(nodes_[j_].next) ? j_ : i_;
    const size_t moved = nodes_[before].next;
    nodes_[before].next = nodes_[moved].next;
    nodes_[moved].next = head_;
    if (value(moved) < value(head_)) i_ = moved;
    j_ = nodes_[i_].next;
    head_ = moved;
    read();
    return true;
}

LoopOrder limited_factors(const MappedLayer& layer, size_t limit) {
    std::vector<std::pair<Dim, std::vector<int64_t>>> factors = layer.temporal_factors();
    size_t count = 0;
    for (const auto& [dim, list] : factors) count += list.size();
    while (limit > 0 && count > limit) {
        auto most = std::ranges::max_element(factors, {}, [](const auto& entry) { return entry.second.size(); });
        std::vector<int64_t>& list = most->second;
        if (list.size() < 2) break;  // one loop for each dimension is as few as there can be
        const int64_t merged = list[0] * list[1];
        list.erase(list.begin(), list.begin() + 2);
        list.insert(std::ranges::upper_bound(list, merged), merged);
        --count;
    }
    LoopOrder loops;
    for (const auto& [dim, list] : factors) {
        for (const int64_t factor : list) loops.push_back({dim, static_cast<double>(factor)});
    }
    return loops;
}

std::optional<LayerMapping> best_limited_mapping(const MappedLayer& layer, size_t limit, const MappingGoal& goal) {
    std::optional<LayerMapping> best;
    double least = std::numeric_limits<double>::infinity();
    const double macs = layer.mac_energy();
    const bool is_by_energy = goal.objective == Objective::energy;
    LoopOrders orders(limited_factors(layer, limit));
    do {
        std::optional<Allocation> allocation = layer.allocate(orders.current());
        if (!allocation) continue;
        LayerCost cost;
        cost.memory_pj = layer.memory_energy(orders.current(), *allocation);
        cost.energy_pj = cost.memory_pj + macs;
        if (!is_by_energy) cost.latency = layer.latency(orders.current(), *allocation);
        const double found =
            is_by_energy ? cost.energy_pj : value(goal.objective, energy_of(cost, goal), latency_of(cost, goal));
        if (found >= least) continue;
        least = found;
        best = LayerMapping{orders.current(), std::move(*allocation), {}};
    } while (orders.next());
    if (best) best->cost = layer.cost(best->order, best->allocation);
    return best;
}

std::string to_text(const LoopOrder& order) {
    std::string text;
    for (const Loop& loop : order)
        text += (text.empty() ? "" : " ") + std::string(to_string(loop.dim)) +
                std::to_string(static_cast<int64_t>(loop.size));
    return text;
}

}  // namespace laminate::depth_first
