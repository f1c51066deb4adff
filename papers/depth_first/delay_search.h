// The mapping of least latency, or of least energy x latency, in the space of mapper.h.
//
// Latency is not a sum over boundaries. A port stalls the array for as long as all its transfers
// together are late. A memory without room for a second tile may be written only while no loop
// reuses the first, which depends on the order of loops. The first loads of two operands wait for
// each other. But there are lower bounds that are sums (delay_bounds.h), each with a table of least
// rests, and the search goes best first by the highest of them (A*).
//
// Everything that the end of a path asks of its beginning is a row of numbers of which less is
// never worse: energy, first loads, late and needed cycles of each port, room taken, boundaries
// that may no longer be placed. Of two paths through the same multiset with the same boundaries
// placed, one whose row is nowhere above the other's dominates the other. Two things are not
// numbers and have to be equal: tiles in a memory whose other tiles are not placed yet, and the
// transfers on ports where the array may have to wait. The latency of a whole path is that of
// MappedLayer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_set>
#include <vector>

#include "papers/depth_first/delay_bounds.h"
#include "papers/depth_first/mapping_space.h"

namespace laminate::depth_first {

class DelaySearch {
public:
    /// Keeps a reference to the space. Gives up at `most_nodes` nodes.
    DelaySearch(const MappingSpace& space, const MappingGoal& goal, size_t most_nodes);
    /// `known` is a mapping that fits. Of mappings with equal latency, returns the one of least
    /// energy. LayerMapping::gap is above 0 if the search gave up.
    [[nodiscard]] LayerMapping run(LayerMapping known);

private:
    static constexpr size_t most_sums = 4;
    static constexpr size_t most_rivals = 64;  ///< latest nodes that a new one is compared with
    static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

    /// What a search minimises. After the least latency comes the least energy with it.
    enum class Aim { product, latency, energy_at_latency };
    /// Places in a row after those of DelayBounds::Columns.
    struct Row {
        /// State::role, whether the next tile of the output is a partial sum, and for each role
        /// whether a boundary lies here.
        size_t closed = 0;
        /// Two for each role: how often the loops of the open level reuse a tile. The second is the
        /// negative of the first if the two paths must agree, and 0 otherwise.
        size_t open = 0;
        size_t size = 0;
    };
    struct Node {
        MappingSpace::State state;
        uint8_t placed_here = 0;  ///< bit r: a boundary of the role lies at this multiset
        bool is_done = false;     ///< expanded, or dominated by a node that was reached later
        /// Trips of the open level's outermost irrelevant loops, by role.
        std::array<double, 3> reused{1, 1, 1};
        /// Trips of the open level's outermost relevant loops, by role.
        std::array<double, 3> pieces{1, 1, 1};
        uint64_t pending = 0;  ///< hash of tiles in memories whose other tiles are not placed yet
        uint64_t always_allowed = 0;  ///< bit p: a transfer on port p (of the first 64) may take
                                      ///< all cycles
        uint32_t from = none;
        uint32_t before = none;  ///< with the same boundaries and multiset
        void allow_always(size_t port) { always_allowed |= port < 64 ? uint64_t{1} << port : 0; }
        [[nodiscard]] bool is_always_allowed(size_t port) const {
            return port < 64 && (always_allowed >> port & 1) != 0;
        }
    };
    /// A node with its row and a hash of the transfers on each port.
    struct Reached {
        Node node;
        std::vector<double> row;
        std::vector<uint64_t> transfers;
    };
    /// A boundary, as seen by the shared memory below it.
    struct Placement {
        uint32_t multiset = 0;
        double reused = 1;
        double used = 0;  ///< share of the memory that the changing part of the tile takes
    };
    struct Key {
        std::array<uint64_t, 2> hash{};
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        size_t operator()(const Key& key) const { return key.hash[0]; }
    };
    struct Entry {
        double bound;
        uint32_t depth;
        uint32_t node;
        bool operator<(const Entry& other) const {
            if (bound != other.bound) return bound > other.bound;
            return depth != other.depth ? depth < other.depth : node > other.node;
        }
    };

    void find_competition();
    /// A lower bound for all mappings that the path leads to. Infinite if they are too slow for
    /// Aim::energy_at_latency.
    [[nodiscard]] double bound_of(const Node& node, const double* row) const;
    void consider(LayerMapping mapping);
    void raise_bounds();
    /// Whether it depends on tiles of other roles if the memory holds the role's tile twice.
    [[nodiscard]] bool competes(size_t r, size_t level) const { return competes_[r][level]; }
    /// Adds `times` (1 or -1) a boundary's demand on the ports. `is_certain`: `allowed` will not
    /// change any more.
    void add_transfers(size_t r, size_t level, uint32_t multiset, double allowed, double times,
                       bool is_certain, Reached& to) const;
    [[nodiscard]] uint64_t hash_of(size_t r, size_t level, const Placement& placement) const;
    [[nodiscard]] bool is_open_question(const Placement& placement) const;
    [[nodiscard]] Placement placement_in(const Node& before, size_t r) const;
    void answer(size_t memory_at, Reached& reached) const;
    /// `next` is the node with one more loop or boundary. False if that is not legal.
    [[nodiscard]] bool with_loop(const Node& node, const MappingSpace::Factor& factor,
                                 Reached& next) const;
    [[nodiscard]] bool with_boundary(const Node& node, size_t r, Reached& next) const;
    void finish_row(Reached& reached) const;
    /// Whether a mapping with this bound may be better than the best one so far.
    [[nodiscard]] bool is_better(double bound) const;
    /// Searches until nothing better is left or there are too many nodes. Returns the lowest bound
    /// of what is left.
    double search(Aim aim);
    [[nodiscard]] bool beats(const Node& node, const double* row, const uint64_t* transfers,
                             const Node& other, const double* other_row,
                             const uint64_t* other_transfers) const;
    [[nodiscard]] Key key_of(const Reached& reached) const;
    void reach(const Reached& reached);
    void expand(uint32_t index);
    [[nodiscard]] LayerMapping mapping_to(uint32_t node) const;
    [[nodiscard]] size_t place_in_tables(const Node& node) const {
        return space_.placed_index(node.state.levels) * space_.multisets() + node.state.multiset;
    }
    [[nodiscard]] const double* row_of(uint32_t node) const {
        return rows_.data() + node * row_.size;
    }
    [[nodiscard]] const uint64_t* transfers_of(uint32_t node) const {
        return transfers_.data() + node * layer_.port_count();
    }

    const MappingSpace& space_;
    const MappedLayer& layer_;
    MappingGoal goal_;
    size_t most_nodes_;
    DelayBounds bounds_;
    std::vector<std::vector<bool>> competes_;  ///< [role][level]
    Row row_;
    using Sums = std::vector<DelayBounds::Sum>;
    Sums below_latency_, below_energy_;
    /// Lower bounds on energy_weight x energy + latency.
    struct Joint {
        double energy_weight = 0;
        Sums sums;
    };
    std::vector<Joint> joints_;
    std::optional<LayerMapping> best_;
    double best_energy_ = MappingSpace::infinity, best_latency_ = MappingSpace::infinity;
    Aim aim_ = Aim::latency;
    std::vector<Node> nodes_;
    std::vector<double> rows_;
    std::vector<uint64_t> transfers_;
    std::unordered_set<Key, KeyHash> known_;
    std::vector<uint32_t> last_;  ///< by place in the tables: the last node that none dominates
    std::priority_queue<Entry> open_;
    /// The same nodes with the longest paths first. Every second node comes from here, which finds
    /// good mappings early.
    struct Deeper {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.depth != b.depth ? a.depth < b.depth : a < b;
        }
    };
    std::priority_queue<Entry, std::vector<Entry>, Deeper> deep_;
};

}  // namespace laminate::depth_first
