// What one layer costs on a machine under one mapping: a spatial unrolling, an order of the
// temporal loops and their allocation to memories. This is ZigZag's cost model as shipped with
// DeFiNES; each formula stands where it is computed.
//
// Terms. The *hierarchy* of an operand is the list of memories that serve it, lowest first, up to
// the memory where the layer finds or leaves the operand. A *level* is an index into it. An
// *allocation* says for each level of each operand how many of the order's loops, innermost first,
// run at or below it. The *tile* of an operand in a memory is what these loops touch of it. A
// *boundary* lies between two neighbouring levels; the one below level 0 is the array's.
//
// The model counts words first (WordCounts) and prices them afterwards. It forms each sum in one
// fixed order, so equal costs are equal bit for bit and ties fall to the mapping visited first.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "papers/depth_first/layer_shape.h"
#include "papers/depth_first/objective.h"
#include "papers/depth_first/transfers.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// Lanes that a layer uses of each axis of the array, parallel to Machine::axes. An axis without a
/// loop has one.
using Unrolling = std::vector<int64_t>;
/// min(lanes, size of the loop) for each axis that carries a loop of the layer.
[[nodiscard]] Unrolling default_unrolling(const Machine& machine, const LayerShape& layer);
/// The loop that an axis carries. The axis of K carries G for layers with K = 1.
[[nodiscard]] Dim dim_of_axis(const ArrayAxis& axis, const LayerShape& layer);

/// Words that one operand transfers in one memory, summed over all copies of the memory. A word is
/// as wide as the port; an access narrower than that counts as a fraction.
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
    int64_t temporal_cycles = 0;  ///< if every operand always arrived in time
    int64_t stall_cycles = 0;
    int64_t load_cycles = 0;      ///< for the first tiles of the inputs
    int64_t off_load_cycles = 0;  ///< for the last tile of the output
    [[nodiscard]] int64_t cycles_without_load() const { return temporal_cycles + stall_cycles; }
    /// What DeFiNES reports; leaves out the final off-load.
    [[nodiscard]] int64_t cycles() const { return cycles_without_load() + load_cycles; }
    [[nodiscard]] int64_t cycles_with_off_load() const { return cycles() + off_load_cycles; }
};

/// The number of loops at or below each memory, indexed by role (in the order of roles()) and
/// level.
using Allocation = std::vector<std::vector<size_t>>;

struct LayerCost {
    double memory_pj = 0;
    double mac_pj = 0;
    double energy_pj = 0;  ///< memory_pj + mac_pj
    Latency latency;
    std::vector<std::vector<WordCounts>> words;  ///< [role][level]
};

/// What a mapping is to minimise. The two flags matter only to the product of energy and latency.
struct MappingGoal {
    Objective objective = Objective::energy;
    bool counts_macs = true;      ///< energy includes the multiplications
    bool counts_off_load = true;  ///< latency includes the final off-load
};
[[nodiscard]] double energy_of(const LayerCost& cost, const MappingGoal& goal);
[[nodiscard]] int64_t latency_of(const LayerCost& cost, const MappingGoal& goal);

/// Words per period of one transfer, summed over all copies of the memory and kept as factors.
/// in() multiplies them in one fixed order, so equal costs are equal bit for bit.
struct PeriodWords {
    double at_once = 0;   ///< words of one access
    double accesses = 1;  ///< per period
    double copies = 1;    ///< of the memory
    [[nodiscard]] double in(double periods) const { return at_once * periods * accesses * copies; }
};

/// Words per period across one boundary, in the memory above it and in the one below.
struct BoundaryPeriod {
    PeriodWords read_to_lower, write_from_lower;    ///< above
    PeriodWords read_to_higher, write_from_higher;  ///< below; nothing at the array's boundary
};

/// What one boundary asks of the ports on both sides in each of its periods. Lanes are rounded up.
struct BoundaryDemand {
    struct Port {
        size_t number;  ///< among all ports of the layer, below MappedLayer::port_count()
        double cycles;
    };
    double period = 0, count = 0;
    std::vector<Port> ports;
    double time = 0;       ///< cycles of one tile on the slower side
    double tile_bits = 0;  ///< of the tile in the lower memory
};

/// A layer with its unrolling and the hierarchies of its operands: all of a mapping but the order
/// of the loops and their allocation. Keeps a reference to the machine.
class MappedLayer {
public:
    /// `tops`: for each role the number of memories of its operand's hierarchy that the layer may
    /// use, at least 1.
    MappedLayer(const Machine& machine, const LayerShape& layer, const Unrolling& unrolling,
                const std::vector<size_t>& tops);

    [[nodiscard]] const LayerShape& layer() const { return layer_; }
    [[nodiscard]] const Machine& machine() const { return machine_; }
    [[nodiscard]] size_t role_count() const { return roles_.size(); }
    [[nodiscard]] Role role(size_t r) const { return roles_[r].role; }
    /// Indices into Machine::memories.
    [[nodiscard]] const std::vector<size_t>& hierarchy(size_t r) const { return roles_[r].levels; }

    /// Prime factors, ascending, of the trips that each dimension leaves to the temporal loops.
    [[nodiscard]] std::vector<std::pair<Dim, std::vector<int64_t>>> temporal_factors() const;

    /// ZigZag's allocation of an order. It goes through the memories from the array upwards and
    /// gives each the combination of loops that leaves the fewest accesses to the memory above.
    /// nullopt if the order does not fit.
    [[nodiscard]] std::optional<Allocation> allocate(const LoopOrder& order) const;

    /// The energy part of cost().
    [[nodiscard]] double memory_energy(const LoopOrder& order, const Allocation& allocation) const;
    [[nodiscard]] double mac_energy() const;
    [[nodiscard]] Latency latency(const LoopOrder& order, const Allocation& allocation) const;
    [[nodiscard]] LayerCost cost(const LoopOrder& order, const Allocation& allocation) const;

    /// Whether the tiles of all memories fit. An output tile has the width of partial sums if a
    /// loop of the sum lies above the level below.
    [[nodiscard]] bool fits(const LoopOrder& order, const Allocation& allocation) const;

    // The searches of mappings (mapper.h) ask for single boundaries: what a boundary costs depends
    // on the set of loops below it, not on their order.

    [[nodiscard]] bool irrelevant(size_t r, Dim dim) const { return roles_[r].irrelevant(dim); }
    /// Bits of the tile at a level with these loops at or below it.
    [[nodiscard]] double level_bits(size_t r, size_t level, const Trips& loops,
                                    bool reduction_left) const;
    /// Elements of the tile at each level with these loops at or below it; an element has
    /// element_bits().
    void level_elements(size_t r, const Trips& loops, std::vector<double>& elements) const;
    /// `reduction_left`: the output is a partial sum.
    [[nodiscard]] double element_bits(size_t r, bool reduction_left) const {
        return static_cast<double>(reduction_left ? roles_[r].bits : roles_[r].final_bits);
    }
    /// For each level, the elements of the tile of one unit below it, with these loops below; [0]
    /// is the array's.
    void tile_elements(size_t r, const Trips& loops, std::vector<double>& elements) const;
    /// What crosses the boundary between levels `level` - 1 and `level` in one period, with a tile
    /// of `elements` (tile_elements()) below it.
    [[nodiscard]] BoundaryPeriod boundary_period(size_t r, size_t level, double elements,
                                                 bool reduction_above) const;
    /// The energy of `count` such periods.
    [[nodiscard]] double boundary_energy(size_t r, size_t level, const BoundaryPeriod& period,
                                         double count) const;
    /// The energy of one boundary with these loops below it, in a layer of `total` cycles.
    [[nodiscard]] double boundary_energy(size_t r, size_t level, const Trips& loops, double total,
                                         bool reduction_above) const;
    [[nodiscard]] BoundaryDemand boundary_demand(size_t r, size_t level, const Trips& loops,
                                                 double total, bool reduction_above) const;
    /// Whether the two inputs share the ports of the link between levels `level` and `level` + 1:
    /// at both ends, at one end or at none.
    enum class LinkSharing { shared, half, own };
    [[nodiscard]] LinkSharing link_sharing(size_t r, size_t level) const;
    /// Whether the first load over the link between levels `level` and `level` + 1 counts.
    [[nodiscard]] bool is_waited_for(size_t r, size_t level) const;
    /// For operands that share a memory, in the order of served(): whether the part of a tile that
    /// changes fits beside the part that it replaces. `used` is that part's share of the capacity.
    /// Operands are asked in the order of roles, and each takes space from the next.
    [[nodiscard]] static std::vector<bool> fit_twice(const std::vector<size_t>& served,
                                                     const std::vector<double>& used);
    /// Ports of the memories in use.
    [[nodiscard]] size_t port_count() const { return port_count_; }
    [[nodiscard]] Relevance relevance_of(size_t r, Dim dim) const {
        return roles_[r].relevance[dim];
    }
    /// Whether lanes above the level add up outputs.
    [[nodiscard]] bool lanes_reduce_above(size_t r, size_t level) const;
    /// Memories in use and, parallel to them, the roles that each serves.
    [[nodiscard]] const std::vector<size_t>& memories() const { return memories_; }
    [[nodiscard]] const std::vector<std::vector<size_t>>& served() const { return served_; }

private:
    struct RoleData {
        Role role;
        int64_t bits;        ///< of an element; of an output, as a partial sum
        int64_t final_bits;  ///< of a finished output; for other roles the same as `bits`
        std::vector<size_t> levels;
        PerDim<Relevance> relevance;
        /// Spatial loops: [0] between the array and level 0, [m] between levels m - 1 and m,
        /// [levels] above all levels.
        std::vector<std::vector<Loop>> lanes;
        std::vector<std::vector<Loop>> whole_lanes;  ///< rounded up, for cycles
        /// Units of the array and of each level; indices are those of `lanes`.
        struct Units {
            std::vector<double> unique;  ///< that hold different data
            std::vector<double> count;   ///< all
            std::vector<double> boost;   ///< lower units with different data per upper unit,
                                         ///< truncated
        } units, whole_units;            ///< for `lanes` and for `whole_lanes`
        bool irrelevant(Dim dim) const { return relevance[dim] == Relevance::irrelevant; }
    };
    /// How the tiles of one operand change under an order. An irrelevant loop directly above a
    /// boundary counts as below it.
    struct Movement {
        std::vector<size_t> bounds;    ///< loops at or below level m - 1; [0] = 0
        std::vector<double> cycles;    ///< product of these loops
        std::vector<double> elements;  ///< data of one copy of level m - 1; [0] = 1
        std::vector<bool> partial;     ///< loops of the sum remain at or above level m (outputs)
    };
    class MemoryAllocator;  // limited_orders.cpp
    class PortSchedule;     // latency.cpp

    [[nodiscard]] double tile_bits(size_t r, const Trips& loops, bool reduction_left) const {
        return elements_under(r, loops) * element_bits(r, reduction_left);
    }
    [[nodiscard]] double elements_under(size_t r, const Trips& loops) const;

    [[nodiscard]] RoleData role_data(Role role, size_t top, const Unrolling& unrolling) const;
    void place_lanes(RoleData& role, const Unrolling& unrolling) const;
    [[nodiscard]] RoleData::Units units_of(const RoleData& role,
                                           const std::vector<std::vector<Loop>>& lanes) const;
    void agree_on_unit_counts(bool whole);
    void find_spatial_loops();
    void find_served_roles();
    void count_port_readers();

    [[nodiscard]] size_t level_of(size_t r, size_t memory) const;
    [[nodiscard]] Movement movement(const RoleData& role, const LoopOrder& order,
                                    const std::vector<size_t>& allocated, bool whole) const;
    [[nodiscard]] Transfers transfers(const RoleData& role, const Movement& movement, size_t level,
                                      bool whole) const;
    [[nodiscard]] BoundaryPeriod words_of_periods(const RoleData& role, const Transfers& transfers,
                                                  size_t level) const;
    [[nodiscard]] WordCounts words(const RoleData& role, const Transfers& transfers,
                                   size_t level) const;
    [[nodiscard]] double energy(const RoleData& role, const WordCounts& words, size_t level) const;
    /// `moved`: movement() of each role with fractions of lanes.
    [[nodiscard]] Latency latency(const LoopOrder& order, const Allocation& allocation,
                                  const std::vector<Movement>& moved) const;
    /// What crosses a boundary, as seen by the memory above it and by the one below: `count`
    /// periods of `cycles`, each with a lower tile of `elements`.
    [[nodiscard]] std::pair<Transfers, Transfers> boundary_transfers(size_t r, size_t level,
                                                                     double elements, double cycles,
                                                                     double count,
                                                                     bool reduction_above,
                                                                     bool whole) const;
    void tile_elements(size_t r, const Trips& loops, bool whole,
                       std::vector<double>& elements) const;
    [[nodiscard]] size_t port_number(size_t memory, Operand operand, Transfer transfer) const;
    [[nodiscard]] std::vector<std::vector<bool>> double_buffered(
        const LoopOrder& order, const std::vector<Movement>& moved) const;

    const Machine& machine_;
    LayerShape layer_;
    std::vector<RoleData> roles_;
    std::vector<Loop> spatial_;                ///< of all axes in use
    std::vector<size_t> memories_;             ///< used by any role, ascending
    std::vector<std::vector<size_t>> served_;  ///< parallel to memories_: roles, in the order of
                                               ///< the memory's operands
    std::vector<size_t> first_port_;           ///< parallel to memories_: number of its first port
    size_t port_count_ = 0;
    std::vector<size_t> port_readers_;  ///< for each port the number of inputs that use it
};

struct LayerMapping {
    LoopOrder order;
    Allocation allocation;
    LayerCost cost;
    double gap = 0;  ///< the objective is at most (1 + gap) times the least; 0: proven best
};

}  // namespace laminate::depth_first
