#include "papers/depth_first/mapper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>

#include "base/rng.h"
#include "papers/depth_first/limited_orders.h"

namespace laminate::depth_first {
namespace {

/// Calls `visit` with every allocation of `loops` loops. The bounds of a role ascend, and the last
/// one is all loops.
template <typename Visit>
void for_all_allocations(const MappedLayer& layer, size_t loops, Allocation& allocation, size_t r,
                         const Visit& visit) {
    if (r == layer.role_count()) {
        visit(allocation);
        return;
    }
    std::vector<size_t>& bounds = allocation[r];
    bounds.assign(layer.hierarchy(r).size(), 0);
    bounds.back() = loops;
    while (true) {
        for_all_allocations(layer, loops, allocation, r + 1, visit);
        // The next ascending sequence.
        size_t m = bounds.size() - 1;
        while (m > 0 && bounds[m - 1] == loops) --m;
        if (m == 0) return;
        const size_t value = bounds[m - 1] + 1;
        for (size_t k = m - 1; k + 1 < bounds.size(); ++k) bounds[k] = value;
    }
}

/// The least value of each objective.
struct Least {
    double energy = std::numeric_limits<double>::infinity();
    double latency = energy, product = energy;
    double energy_of_least_latency = energy;
};

Least least_of_all(const MappedLayer& layer, const MappingGoal& counted) {
    Least least;
    LoopOrders orders(limited_factors(layer, 0));
    do {
        Allocation allocation(layer.role_count());
        for_all_allocations(layer, orders.current().size(), allocation, 0,
                            [&](const Allocation& candidate) {
                                if (!layer.fits(orders.current(), candidate)) return;
                                LayerCost cost;
                                cost.memory_pj = layer.memory_energy(orders.current(), candidate);
                                cost.energy_pj = cost.memory_pj + layer.mac_energy();
                                cost.latency = layer.latency(orders.current(), candidate);
                                const double energy = energy_of(cost, counted);
                                const auto latency = static_cast<double>(latency_of(cost, counted));
                                least.energy = std::min(least.energy, energy);
                                least.product = std::min(least.product, energy * latency);
                                if (std::tuple(latency, energy) <
                                    std::tuple(least.latency, least.energy_of_least_latency)) {
                                    least.latency = latency;
                                    least.energy_of_least_latency = energy;
                                }
                            });
    } while (orders.next());
    return least;
}

/// A machine whose memories are so small that operands compete for them, and a layer of few prime
/// factors.
struct Case {
    Machine machine;
    LayerShape shape;
    std::vector<size_t> tops;
};

void set_random_layer(Case& made, Rng& rng);

/// A machine of Table I with other capacities and lanes.
Case random_case(Rng& rng) {
    static const std::array<const char*, 6> names{"meta_proto_df", "tpu_df",       "edge_tpu_df",
                                                  "ascend_df",     "tesla_npu_df", "meta_proto"};
    Case made{open_machine(names[static_cast<size_t>(rng.below(std::ssize(names)))]), {}, {}};
    for (size_t m = 0; m + 1 < made.machine.memories.size(); ++m) {
        Memory& memory = made.machine.memories[m];
        if (memory.replicated_along.empty()) memory.capacity_bits = int64_t{64} << rng.below(9);
    }
    for (ArrayAxis& axis : made.machine.axes) axis.lanes = 1 + static_cast<int64_t>(rng.below(3));
    set_random_layer(made, rng);
    return made;
}

/// A machine unlike any published one: up to four memories below the highest; any operands in each,
/// in any order; copies along any axes; one port for all transfers, one for each direction or one
/// for each transfer; words and energies that do not grow with the level.
Case made_up_case(Rng& rng) {
    Case made;
    Machine& machine = made.machine;
    machine.name = "made up";
    static const std::array<int64_t, 3> widths{4, 8, 16};
    const auto width = [&] { return widths[static_cast<size_t>(rng.below(3))]; };
    machine.bits = {.input = width(), .weight = width(), .output = width()};
    machine.bits.partial_sum = machine.bits.output << rng.below(3);
    machine.mac_pj = static_cast<double>(rng.below(4));
    for (const ArrayLoop loop :
         {ArrayLoop::k, ArrayLoop::c, ArrayLoop::ox, ArrayLoop::oy, ArrayLoop::fx}) {
        if (rng.chance(1, 2)) machine.axes.push_back({loop, rng.between(1, 3)});
    }
    const auto access = [&] {
        WordAccess result;
        result.smallest_access_bits = int64_t{4} << rng.below(4);
        result.word_bits = result.smallest_access_bits << rng.below(4);
        result.word_pj = static_cast<double>(rng.between(1, 1000)) / 8;
        return result;
    };
    const auto below_highest = static_cast<size_t>(rng.below(5));
    for (size_t m = 0; m <= below_highest; ++m) {
        Memory memory;
        memory.name = "memory " + std::to_string(m);
        const bool highest = m == below_highest;
        for (const Operand operand : all_operands) {
            if (highest || rng.chance(1, 2)) memory.operands.push_back(operand);
        }
        if (memory.operands.empty())
            memory.operands.push_back(all_operands[static_cast<size_t>(rng.below(3))]);
        rng.shuffle(memory.operands);
        memory.capacity_bits = highest ? int64_t{1} << 40 : int64_t{16} << rng.below(10);
        for (size_t axis = 0; axis < machine.axes.size(); ++axis) {
            if (!highest && m < 2 && rng.chance(1, 3)) memory.replicated_along.push_back(axis);
        }
        memory.read = access();
        memory.write = access();
        const int64_t ports = rng.below(3);
        for (const Operand operand : memory.operands) {
            for (const Transfer transfer : {Transfer::write_from_lower, Transfer::write_from_higher,
                                            Transfer::read_to_lower, Transfer::read_to_higher}) {
                if (memory.ports.empty() || ports == 2 || (ports == 1 && memory.ports.size() == 1))
                    memory.ports.push_back({std::to_string(memory.ports.size()), {}});
                const size_t port = ports == 0   ? 0
                                    : ports == 1 ? size_t{is_read(transfer)}
                                                 : memory.ports.size() - 1;
                memory.ports[port].carries.push_back({operand, transfer});
            }
        }
        machine.memories.push_back(std::move(memory));
    }
    set_random_layer(made, rng);
    return made;
}

void set_random_layer(Case& made, Rng& rng) {
    static const std::array<LayerType, 4> types{LayerType::convolution, LayerType::convolution,
                                                LayerType::depthwise, LayerType::addition};
    made.shape.type = types[static_cast<size_t>(rng.below(std::ssize(types)))];
    const bool grouped = made.shape.type != LayerType::convolution;
    Sizes& sizes = made.shape.sizes;
    const auto size = [&] { return 1 + static_cast<int64_t>(rng.below(5)); };
    (grouped ? sizes[Dim::g] : sizes[Dim::k]) = size();
    if (!grouped) sizes[Dim::c] = size();
    sizes[Dim::ox] = size();
    sizes[Dim::oy] = size();
    if (made.shape.type != LayerType::addition && rng.below(2) == 0) {
        sizes[Dim::fx] = sizes[Dim::fy] = 2 + static_cast<int64_t>(rng.below(2));
        made.shape.stride = {1 + static_cast<int64_t>(rng.below(2)), 1};
    }
    for (const Role role : roles(made.shape.type)) {
        const size_t levels = made.machine.hierarchy(operand_of(role)).size();
        const auto cut = static_cast<size_t>(rng.below(2));
        made.tops.push_back(role == Role::second_input ? made.tops.back()
                                                       : std::max(levels - cut, size_t{1}));
    }
}

/// Runs `first` .. `end` - 1 of the cases of a seed. All mappings are proven.
void expect_equal_to_exhaustive_search(uint64_t seed, int first, int end, Case (*make)(Rng&)) {
    Rng rng(seed);
    int feasible = 0, infeasible = 0, differs = 0;
    for (int run = 0; run < end; ++run) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", run " + std::to_string(run));
        const Case test = make(rng);
        const MappedLayer layer(test.machine, test.shape,
                                default_unrolling(test.machine, test.shape), test.tops);
        if (limited_factors(layer, 0).size() > 4) continue;
        MappingGoal goal{.objective = Objective::energy,
                         .counts_macs = rng.below(2) == 0,
                         .counts_off_load = rng.below(2) == 0};
        if (run < first) continue;
        const Least expected = least_of_all(layer, goal);
        const bool fits = expected.energy < std::numeric_limits<double>::infinity();
        ++(fits ? feasible : infeasible);
        for (goal.objective = Objective::energy;;
             goal.objective = goal.objective == Objective::energy ? Objective::latency
                                                                  : Objective::energy_delay) {
            const std::optional<LayerMapping> found = best_mapping(layer, goal);
            ASSERT_EQ(found.has_value(), fits);
            if (!found) break;
            SCOPED_TRACE(std::string(to_string(goal.objective)) + ": " + to_text(found->order));
            EXPECT_TRUE(layer.fits(found->order, found->allocation));
            const double energy = energy_of(found->cost, goal);
            const auto latency = static_cast<double>(latency_of(found->cost, goal));
            EXPECT_EQ(found->gap, 0);
            if (goal.objective == Objective::energy) {
                EXPECT_NEAR(energy, expected.energy, 1e-9 * expected.energy);
                continue;
            }
            if (goal.objective == Objective::latency) {
                EXPECT_EQ(latency, expected.latency);
                EXPECT_NEAR(energy, expected.energy_of_least_latency, 1e-9 * energy);
            }
            if (goal.objective != Objective::energy_delay) continue;
            EXPECT_NEAR(energy * latency, expected.product, 1e-9 * expected.product);
            differs += latency != expected.latency || energy > expected.energy * (1 + 1e-9) ? 1 : 0;
            break;
        }
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(differs, 0);  // the product is not simply one of its factors
    EXPECT_GT(feasible, (end - first) / 5);
    EXPECT_GT(infeasible, 0);
}

TEST(Mapper, EqualsAllOrdersAndAllAllocationsOfSmallLayers) {
    expect_equal_to_exhaustive_search(7, 0, 50, random_case);
}

TEST(Mapper, EqualsAllOrdersAndAllAllocationsOnMadeUpMachines) {
    expect_equal_to_exhaustive_search(13, 0, 60, made_up_case);
}

TEST(Mapper, KeepsPathsThatTakeMoreRoomAndCostLess) {
    Machine machine = open_machine("tpu_df");
    machine.memories[2].capacity_bits = 4096;
    machine.memories[3].capacity_bits = 8192;
    machine.memories[4].capacity_bits = 128;  // outputs and inputs compete for it
    for (ArrayAxis& axis : machine.axes) axis.lanes = 2;
    LayerShape shape;
    shape.sizes[Dim::k] = 4;
    shape.sizes[Dim::ox] = 3;
    shape.sizes[Dim::oy] = 5;
    const MappedLayer layer(machine, shape, default_unrolling(machine, shape), {4, 3, 3});
    const MappingGoal goal;
    const std::optional<LayerMapping> found = best_mapping(layer, goal);
    ASSERT_TRUE(found);
    const double expected = least_of_all(layer, goal).energy;
    EXPECT_NEAR(energy_of(found->cost, goal), expected, 1e-9 * expected);
}

TEST(Mapper, GivesUpWithABoundThatHolds) {
    Rng rng(5);
    int bounded = 0;
    for (int run = 0; run < 60; ++run) {
        SCOPED_TRACE(run);
        const Case test = random_case(rng);
        const MappedLayer layer(test.machine, test.shape,
                                default_unrolling(test.machine, test.shape), test.tops);
        for (const Objective objective : {Objective::latency, Objective::energy_delay}) {
            const MappingGoal goal{.objective = objective};
            const std::optional<LayerMapping> best = best_mapping(layer, goal);
            const std::optional<LayerMapping> hasty = best_mapping(layer, goal, 4);
            ASSERT_EQ(best.has_value(), hasty.has_value());
            if (!best) continue;
            ASSERT_EQ(best->gap, 0);
            const auto value_of = [&](const LayerMapping& mapping) {
                return value(objective, energy_of(mapping.cost, goal),
                             latency_of(mapping.cost, goal));
            };
            EXPECT_GE(value_of(*hasty), value_of(*best) * (1 - 1e-9));
            EXPECT_LE(value_of(*hasty), value_of(*best) * (1 + hasty->gap) * (1 + 1e-9));
            bounded += hasty->gap > 0 ? 1 : 0;
        }
    }
    EXPECT_GT(bounded, 0);
}

/// 2000 cases of each kind, in twenty parts.
class MapperLong : public ::testing::TestWithParam<int> {};
TEST_P(MapperLong, EqualsAllOrdersAndAllAllocationsOfSmallLayers) {
    expect_equal_to_exhaustive_search(11, 100 * GetParam(), 100 * (GetParam() + 1), random_case);
}
TEST_P(MapperLong, EqualsAllOrdersAndAllAllocationsOnMadeUpMachines) {
    expect_equal_to_exhaustive_search(17, 100 * GetParam(), 100 * (GetParam() + 1), made_up_case);
}
INSTANTIATE_TEST_SUITE_P(Parts, MapperLong, ::testing::Range(0, 20));

TEST(Mapper, IsNeverWorseThanLimitedOrders) {
    // 3x3, 12 -> 12 on 64 x 76, as in FSRCNN; 56 -> 16 on 60 x 72.
    for (const char* name : {"meta_proto_df", "tpu_df", "ascend_df", "tesla_npu_df"}) {
        const Machine machine = open_machine(name);
        for (const auto& [k, c, ox, oy] :
             {std::array<int64_t, 4>{12, 12, 64, 76}, {16, 56, 60, 72}, {56, 12, 62, 74}}) {
            LayerShape shape;
            shape.sizes[Dim::k] = k;
            shape.sizes[Dim::c] = c;
            shape.sizes[Dim::ox] = ox;
            shape.sizes[Dim::oy] = oy;
            shape.sizes[Dim::fx] = shape.sizes[Dim::fy] = 3;
            std::vector<size_t> tops;
            for (const Role role : roles(shape.type))
                tops.push_back(machine.hierarchy(operand_of(role)).size());
            const MappedLayer layer(machine, shape, default_unrolling(machine, shape), tops);
            const auto exact = best_mapping(layer);
            const auto limited = best_limited_mapping(layer, 6);
            ASSERT_TRUE(exact && limited) << name;
            EXPECT_LE(exact->cost.energy_pj, limited->cost.energy_pj * (1 + 1e-12))
                << name << " " << k << " " << c;
        }
    }
}

}  // namespace
}  // namespace laminate::depth_first
