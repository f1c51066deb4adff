// The mapping of least latency, or of least energy x latency, in the space of mapper.h.
//
// Latency is no sum over boundaries: a port stalls the array for as long as all its transfers together are late, a memory without room for a second tile
// may be written only while no loop uses the old one again (which depends on the order of loops), and the first loads of two operands wait for each other.
// But for any one port, and either order of the loads, a sum over boundaries lies below it:
//
//   latency >= T + off-load + load of one operand + max(0, sum of (cycles needed - cycles allowed) that are late, sum of cycles needed - T)
//
// So each port gives a table of least rests as energy does, and the search is best first by the highest of these bounds (A*). Two partial paths are one where
// all that latency asks of them is equal: boundaries, the loops used again and the pieces right below each, and the same of the level that is open.
// The latency of a whole path is that of MappedLayer, of all its ports.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_set>
#include <vector>

#include "scheduler/models/depth_first/mapping_space.h"

namespace laminate::depth_first {

class DelaySearch {
public:
    /// Keeps a reference to the space.
    DelaySearch(const MappingSpace& space, const MappingGoal& goal);
    /// `known`: a mapping that fits. Of mappings with equal latency the one of least energy. LayerMapping::gap is above 0 where the search gave up.
    [[nodiscard]] LayerMapping run(LayerMapping known);

private:
    static constexpr size_t most_bounds = 8;
    static constexpr size_t most_nodes = 60'000;

    /// What decides between mappings, or bounds it: the objective, then the energy.
    struct Worth {
        double value = MappingSpace::infinity;
        double energy_pj = MappingSpace::infinity;
        auto operator<=>(const Worth&) const = default;
    };
    /// What the cost of a boundary consists of. Latency: one of the sums that lie below it.
    struct Bound {
        size_t load = 1;  ///< the operand whose first load is waited for
        std::optional<size_t> port;
        bool late = false;  ///< what is late on the port; otherwise all cycles that it is needed
        double at_start = 0;
        MappingSpace::Rest rest;
    };
    struct Node {
        MappingSpace::State state;
        uint8_t placed_here = 0;  ///< bit r: a boundary of the role lies at this multiset
        std::array<double, 3> reused{1, 1, 1},
            pieces{1, 1, 1};  ///< outermost loops of the open level that the role does not see, or all see as new data
        std::array<uint64_t, 2> closed{};  ///< of boundaries placed so far and what matters of them
        double energy_pj = 0;
        std::array<double, most_bounds> delay{};
        uint32_t from = 0;
    };
    struct Entry {
        Worth bound;
        uint32_t depth;
        uint32_t node;
        bool operator<(const Entry& other) const {
            if (bound != other.bound) return bound > other.bound;
            return depth != other.depth ? depth < other.depth : node > other.node;
        }
    };
    struct Key {
        std::array<uint64_t, 2> hash;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        size_t operator()(const Key& key) const { return key.hash[0]; }
    };

    void tabulate_demands();
    void choose_bounds();
    [[nodiscard]] MappingSpace::BoundaryCosts costs_of(const Bound& bound) const;
    [[nodiscard]] double delay_of(const Bound& bound, size_t r, size_t level, const BoundaryDemand& demand,
                                  double allowed) const;
    [[nodiscard]] Worth worth(double energy_pj, double latency) const;
    [[nodiscard]] Worth bound_of(const Node& node) const;
    void consider(LayerMapping mapping);
    void consider_relaxed();
    [[nodiscard]] Key key_of(const Node& node) const;
    /// A loop or a boundary more. None: not legal, or another path is the same.
    [[nodiscard]] std::optional<Node> with_loop(const Node& node, const MappingSpace::Factor& factor) const;
    [[nodiscard]] std::optional<Node> with_boundary(const Node& node, size_t r) const;
    [[nodiscard]] std::vector<Node> successors(uint32_t node) const;
    /// Whether a mapping of this worth, or a bound of it, would be better than the best one so far.
    [[nodiscard]] bool is_better(const Worth& worth) const;
    void reach(const Node& node);
    [[nodiscard]] LayerMapping mapping_to(uint32_t node) const;
    [[nodiscard]] bool is_shared(size_t r, size_t level) const;
    [[nodiscard]] const BoundaryDemand& demand(size_t r, size_t level, size_t s) const { return demands_[r][level][s]; }

    const MappingSpace& space_;
    const MappedLayer& layer_;
    MappingGoal goal_;
    /// [role][level][multiset]: of the boundary above memory `level`.
    std::vector<std::vector<std::vector<BoundaryDemand>>> demands_;
    MappingSpace::Rest energy_rest_;
    std::vector<Bound> bounds_;
    /// Energy x latency: of a weighted sum of energy and the first bound's latency.
    struct Joint {
        double energy_weight = 0;
        size_t bound = 0;
        MappingSpace::Rest rest;
    };
    std::vector<Joint> joints_;
    std::optional<LayerMapping> best_;
    Worth best_worth_;
    std::vector<Node> nodes_;
    std::unordered_set<Key, KeyHash> known_;
    std::priority_queue<Entry> open_;
};

}  // namespace laminate::depth_first
