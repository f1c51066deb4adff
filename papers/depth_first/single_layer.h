// One layer on a machine: spatial unrolling, one order of the temporal loops, their allocation to
// the memories, and what that costs. ZigZag's cost model as shipped with DeFiNES; formulas restated
// where they are computed.
//
// Terms: an operand's *hierarchy* is the list of memories that serve it, lowest first, cut at the
// memory where the layer finds or leaves the operand. An *allocation* gives each operand, per
// memory, how many of the order's loops (innermost first) run at or below it. The tile of an
// operand in a memory is what the loops at and below the memory touch of it.
//
// Numbers are counted in words first (WordCounts) and priced after. Sums are formed in one fixed
// order: equal costs are equal bit for bit, and ties are decided by the order of visit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "papers/depth_first/layer_shape.h"
#include "papers/depth_first/objective.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// A loop and its trips; of spatial loops the number of lanes, which is a fraction where lanes do
/// not divide the loop.
struct Loop {
    Dim dim;
    double size = 1;
    bool operator==(const Loop&) const = default;
};
/// Innermost first.
using LoopOrder = std::vector<Loop>;

/// Lanes of each axis of the array that a layer uses; an axis without an entry has one. Parallel to
/// Machine::axes.
using Unrolling = std::vector<int64_t>;
/// min(lanes, size of the loop) on every axis that carries a loop of the layer.
[[nodiscard]] Unrolling default_unrolling(const Machine& machine, const LayerShape& layer);
/// The loop that an axis carries: groups lie on the axis of K where K is 1.
[[nodiscard]] Dim dim_of_axis(const ArrayAxis& axis, const LayerShape& layer);

/// Words per transfer of one operand in one memory, all copies together. A word is the port's
/// width; fractions where the smallest access is narrower.
struct WordCounts {
    double read_to_lower = 0;
    double write_from_lower = 0;
    double read_to_higher = 0;
    double write_from_higher = 0;
    WordCounts& operator+=(const WordCounts& other);
    [[nodiscard]] WordCounts operator*(double times) const;
    [[nodiscard]] double reads() const { return read_to_lower + read_to_higher; }
    [[nodiscard]] double writes() const { return write_from_lower + write_from_higher; }
};

struct Latency {
    int64_t temporal_cycles = 0;  ///< every operand always there in time
    int64_t stall_cycles = 0;
    int64_t load_cycles = 0;      ///< first tiles of the inputs
    int64_t off_load_cycles = 0;  ///< last tile of the output
    [[nodiscard]] int64_t cycles_without_load() const { return temporal_cycles + stall_cycles; }
    /// What DeFiNES reports: without the final off-load.
    [[nodiscard]] int64_t cycles() const { return cycles_without_load() + load_cycles; }
    [[nodiscard]] int64_t cycles_with_off_load() const { return cycles() + off_load_cycles; }
};

/// Per role (in the order of roles()), per memory of its hierarchy: number of loops of the order at
/// or below the memory.
using Allocation = std::vector<std::vector<size_t>>;

struct LayerCost {
    double memory_pj = 0;
    double mac_pj = 0;
    double energy_pj = 0;  ///< the sum of both
    Latency latency;
    std::vector<std::vector<WordCounts>> words;  ///< [role][level]
};

/// What a mapping has to be best in. Only the product of energy and latency depends on what each
/// counts.
struct MappingGoal {
    Objective objective = Objective::energy;
    bool counts_macs = true;      ///< energy, that of the multiplications
    bool counts_off_load = true;  ///< latency, the final off-load
};
[[nodiscard]] double energy_of(const LayerCost& cost, const MappingGoal& goal);
[[nodiscard]] int64_t latency_of(const LayerCost& cost, const MappingGoal& goal);

/// Words of one transfer in each of its periods, all copies together, as factors: multiplied with
/// the number of periods in one fixed order, so that equal costs are equal bit for bit.
struct PeriodWords {
    double at_once = 0;   ///< of one access
    double accesses = 1;  ///< of a period
    double copies = 1;    ///< of the memory
    [[nodiscard]] double in(double periods) const { return at_once * periods * accesses * copies; }
};

/// What one boundary between two levels of an operand moves: through the memory above it and
/// through the one below.
struct BoundaryPeriod {
    PeriodWords read_to_lower, write_from_lower;    ///< above
    PeriodWords read_to_higher, write_from_higher;  ///< below; at the array none
};

/// What one boundary between two levels of an operand asks of the ports on both sides, in each of
/// `count` periods, with whole lanes.
struct BoundaryDemand {
    struct Port {
        size_t number;  ///< of all the layer's ports, below MappedLayer::port_count()
        double cycles;
    };
    double period = 0, count = 0;
    std::vector<Port> ports;
    double time = 0;       ///< of one tile, by the slower side
    double tile_bits = 0;  ///< of the tile in the lower memory
};

/// A layer with the hierarchies of its operands and its unrolling: everything but the order of
/// loops. Keeps a reference to the machine.
class MappedLayer {
public:
    /// `tops`: per role the number of memories of the operand's hierarchy that the layer may use,
    /// at least 1.
    MappedLayer(const Machine& machine, const LayerShape& layer, const Unrolling& unrolling,
                const std::vector<size_t>& tops);

    [[nodiscard]] const LayerShape& layer() const { return layer_; }
    [[nodiscard]] const Machine& machine() const { return machine_; }
    [[nodiscard]] size_t role_count() const { return roles_.size(); }
    [[nodiscard]] Role role(size_t r) const { return roles_[r].role; }
    /// Indices into Machine::memories.
    [[nodiscard]] const std::vector<size_t>& hierarchy(size_t r) const { return roles_[r].levels; }

    /// Trips that remain for the temporal loops, prime factors of each dimension ascending.
    [[nodiscard]] std::vector<std::pair<Dim, std::vector<int64_t>>> temporal_factors() const;

    /// ZigZag's allocation of an order: memories from the array upwards, at each the combination of
    /// loops that leaves the fewest accesses to the memory above. None: the order does not fit.
    [[nodiscard]] std::optional<Allocation> allocate(const LoopOrder& order) const;

    /// Energy alone, without latency. Sums in the order of roles and levels.
    [[nodiscard]] double memory_energy(const LoopOrder& order, const Allocation& allocation) const;
    [[nodiscard]] double mac_energy() const;
    [[nodiscard]] Latency latency(const LoopOrder& order, const Allocation& allocation) const;
    [[nodiscard]] LayerCost cost(const LoopOrder& order, const Allocation& allocation) const;

    /// Whether the tiles of all memories fit: at each level, loops up to the allocated one and
    /// lanes up to the level; outputs as sums where the loops above the level below still add to
    /// them.
    [[nodiscard]] bool fits(const LoopOrder& order, const Allocation& allocation) const;

    // For the search of mappings (mapper.cpp): what one boundary between two levels costs does not
    // depend on the order of the loops below it.

    [[nodiscard]] bool irrelevant(size_t r, Dim dim) const { return roles_[r].irrelevant(dim); }
    /// Bits of the tile in level `level` of role `r` with these loops below.
    [[nodiscard]] double level_bits(size_t r, size_t level,
                                    const std::array<double, dim_count>& loops,
                                    bool reduction_left) const;
    /// Per level of role `r`: elements of the tile there with these loops below; bits of one are
    /// element_bits().
    void level_elements(size_t r, const std::array<double, dim_count>& loops,
                        std::vector<double>& elements) const;
    /// Bits of an element; of an output that is not finished where `reduction_left`.
    [[nodiscard]] double element_bits(size_t r, bool reduction_left) const {
        return static_cast<double>(reduction_left ? roles_[r].bits : roles_[r].final_bits);
    }
    /// Per level of role `r`: elements of the tile of one unit below the level with these loops
    /// below it; [0] of the array.
    void tile_elements(size_t r, const std::array<double, dim_count>& loops,
                       std::vector<double>& elements) const;
    /// What crosses between levels `level` - 1 and `level` in one of its periods, with a tile of so
    /// many elements (tile_elements()) below. Level 0: between the array and the lowest memory.
    /// Loops that the operand does not see change nothing.
    [[nodiscard]] BoundaryPeriod boundary_period(size_t r, size_t level, double elements,
                                                 bool reduction_above) const;
    /// Energy of so many such periods.
    [[nodiscard]] double boundary_energy(size_t r, size_t level, const BoundaryPeriod& period,
                                         double count) const;
    /// The same of one boundary, with these loops below and `total` cycles in all.
    [[nodiscard]] double boundary_energy(size_t r, size_t level,
                                         const std::array<double, dim_count>& loops, double total,
                                         bool reduction_above) const;
    /// Level 0: of the array.
    [[nodiscard]] BoundaryDemand boundary_demand(size_t r, size_t level,
                                                 const std::array<double, dim_count>& loops,
                                                 double total, bool reduction_above) const;
    /// How many inputs use the ports of the link between levels `level` and `level` + 1: both on
    /// both sides, both on one, one.
    enum class LinkSharing { shared, half, own };
    [[nodiscard]] LinkSharing link_sharing(size_t r, size_t level) const;
    /// Whether the first load from level `level` + 1 to `level` counts among those of the operand
    /// that is loaded last.
    [[nodiscard]] bool is_waited_for(size_t r, size_t level) const;
    /// Of operands that share a memory, in the order of served(): whether the part of a tile that
    /// changes fits beside what it replaces. `used`: by that part, of the memory's capacity. They
    /// are asked in the order of roles and take space from each other.
    [[nodiscard]] static std::vector<bool> fit_twice(const std::vector<size_t>& served,
                                                     const std::vector<double>& used);
    /// Ports of the memories in use.
    [[nodiscard]] size_t port_count() const { return port_count_; }
    [[nodiscard]] Relevance relevance_of(size_t r, Dim dim) const {
        return roles_[r].relevance[static_cast<size_t>(dim)];
    }
    /// Whether lanes above the level sum outputs.
    [[nodiscard]] bool lanes_reduce_above(size_t r, size_t level) const;
    /// Memories in use and the roles that they serve.
    [[nodiscard]] const std::vector<size_t>& memories() const { return memories_; }
    [[nodiscard]] const std::vector<std::vector<size_t>>& served() const { return served_; }

private:
    struct RoleData {
        Role role;
        int64_t bits;        ///< of an element; of an output that is not finished
        int64_t final_bits;  ///< of a finished output; otherwise as bits
        std::vector<size_t> levels;
        std::array<Relevance, dim_count> relevance;
        /// Spatial loops: [0] between array and level 0, [m] between levels m - 1 and m, [levels]
        /// above all.
        std::vector<std::vector<Loop>> lanes;
        std::vector<std::vector<Loop>> whole_lanes;  ///< rounded up, for cycles
        // Of `lanes`, from each index upwards; the same with whole lanes.
        struct Units {
            std::vector<double> unique;  ///< units that hold different data
            std::vector<double> count;   ///< all units
            std::vector<double>
                boost;  ///< lower units with different data per upper one, truncated
        } units, whole_units;
        bool irrelevant(Dim dim) const {
            return relevance[static_cast<size_t>(dim)] == Relevance::irrelevant;
        }
    };
    /// One operand under one order: boundaries moved up over irrelevant loops, and what follows
    /// from them per level.
    struct Movement {
        std::vector<size_t> bounds;    ///< loops at or below level m - 1; [0] = 0
        std::vector<double> cycles;    ///< product of these loops
        std::vector<double> elements;  ///< data of one copy of level m - 1; [0] = 1
        std::vector<bool> partial;     ///< reduction loops remain in levels m and above (outputs)
    };
    struct Transfers;  // of one level: amounts, periods, precisions
    /// Bits of the operand's tile under the loops given by their product per dimension.
    /// `reduction_left`: loops of the sum remain above.
    [[nodiscard]] double tile_bits(size_t r, const std::array<double, dim_count>& products,
                                   bool reduction_left) const {
        return elements_under(r, products) * element_bits(r, reduction_left);
    }
    [[nodiscard]] double elements_under(size_t r,
                                        const std::array<double, dim_count>& products) const;

    void place_lanes(RoleData& role, const Unrolling& unrolling) const;
    [[nodiscard]] typename RoleData::Units units_of(
        const RoleData& role, const std::vector<std::vector<Loop>>& lanes) const;
    void agree_on_unit_counts(bool whole);
    [[nodiscard]] Movement movement(const RoleData& role, const LoopOrder& order,
                                    const std::vector<size_t>& allocated, bool whole) const;
    [[nodiscard]] Transfers transfers(const RoleData& role, const Movement& movement, size_t level,
                                      bool whole) const;
    [[nodiscard]] BoundaryPeriod words_of_periods(const RoleData& role, const Transfers& transfers,
                                                  size_t level) const;
    [[nodiscard]] WordCounts words(const RoleData& role, const Transfers& transfers,
                                   size_t level) const;
    [[nodiscard]] double energy(const RoleData& role, const WordCounts& words, size_t level) const;
    /// `moved`: movement() of each role, without rounding of lanes.
    [[nodiscard]] Latency latency(const LoopOrder& order, const Allocation& allocation,
                                  const std::vector<Movement>& moved) const;
    /// What crosses a boundary, as seen by the memory above it and by the one below.
    /// `elements` of the tile below, `count` periods of `cycles`.
    [[nodiscard]] std::pair<Transfers, Transfers> boundary_transfers(size_t r, size_t level,
                                                                     double elements, double cycles,
                                                                     double count,
                                                                     bool reduction_above,
                                                                     bool whole) const;
    void tile_elements(size_t r, const std::array<double, dim_count>& loops, bool whole,
                       std::vector<double>& elements) const;
    [[nodiscard]] size_t port_number(size_t memory, Operand operand, Transfer transfer) const;
    void count_port_readers();
    [[nodiscard]] std::vector<std::vector<bool>> double_buffered(
        const LoopOrder& order, const std::vector<Movement>& moved) const;

    const Machine& machine_;
    LayerShape layer_;
    std::vector<RoleData> roles_;
    std::vector<Loop> spatial_;     ///< of all axes in use
    std::vector<size_t> memories_;  ///< used by any role, ascending
    std::vector<std::vector<size_t>>
        served_;  ///< parallel to memories_: roles, in the order of the memory's operands
    std::vector<size_t> first_port_;  ///< parallel to memories_: number of its first port
    size_t port_count_ = 0;
    std::vector<size_t> port_readers_;  ///< per port: inputs that use it
};

struct LayerMapping {
    LoopOrder order;
    Allocation allocation;
    LayerCost cost;
    double gap = 0;  ///< by so much more than a proven bound the objective may be above the best
                     ///< one's; 0: it is the best
};

/// "OX3 C2 | K4", innermost first; for messages and reports.
[[nodiscard]] std::string to_text(const LoopOrder& order);

}  // namespace laminate::depth_first
