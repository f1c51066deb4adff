// The mapping of least latency, or of least energy x latency, in the space of mapper.h.
//
// Latency is no sum over boundaries: a port stalls the array for as long as all its transfers
// together are late, a memory without room for a second tile may be written only while no loop uses
// the old one again (which depends on the order of loops), and the first loads of two operands wait
// for each other. But sums lie below it (delay_bounds.h), each with a table of least rests as
// energy has one, and the search is best first by the highest of them (A*).
//
// All that the end of a path asks of its beginning is a row of numbers of which less is never
// worse: energy, first loads, what is late and what is needed of each port, room taken, boundaries
// that may no longer be placed. Of paths through the same multiset with the same boundaries placed
// one whose row is nowhere above another's leaves the other out. What is no number has to be equal:
// tiles in a memory whose other tiles are not placed yet, and on ports where the array always waits
// at some time, their transfers. The latency of a whole path is that of MappedLayer, of all its
// ports.
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
    /// Keeps a reference to the space. Gives up at so many nodes.
    DelaySearch(const MappingSpace& space, const MappingGoal& goal, size_t most_nodes);
    /// `known`: a mapping that fits. Of mappings with equal latency the one of least energy.
    /// LayerMapping::gap is above 0 where the search gave up.
    [[nodiscard]] LayerMapping run(LayerMapping known);

private:
    static constexpr size_t most_sums = 4;
    static constexpr size_t most_rivals = 64;  ///< of a node, the latest; equal ones are all known
    static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

    /// What is searched for: after the least latency the least energy with it.
    enum class Aim { product, latency, energy_at_latency };
    /// Where the numbers of a row are that follow those of DelayBounds::Columns.
    struct Row {
        /// The role of State, whether the next tile of the output is of sums, per role whether a
        /// boundary lies here.
        size_t closed = 0;
        /// Per role two: how the loops of the open level use a tile again; where it has to be
        /// equal, with both signs.
        size_t open = 0;
        size_t size = 0;
    };
    struct Node {
        MappingSpace::State state;
        uint8_t placed_here = 0;  ///< bit r: a boundary of the role lies at this multiset
        bool is_done = false;     ///< beaten by a node that was reached later, or expanded
        std::array<double, 3> reused{
            1, 1, 1};  ///< outermost loops of the open level that the role does not see
        std::array<double, 3> pieces{1, 1, 1};  ///< or that all bring new data
        uint64_t pending = 0;  ///< of tiles in memories whose other tiles are not placed yet
        uint64_t always_allowed =
            0;  ///< bit p: on port p a transfer may take all cycles; of the first ports
        uint32_t from = none;
        uint32_t before = none;  ///< of the same boundaries and multiset
        void allow_always(size_t port) { always_allowed |= port < 64 ? uint64_t{1} << port : 0; }
        [[nodiscard]] bool is_always_allowed(size_t port) const {
            return port < 64 && (always_allowed >> port & 1) != 0;
        }
    };
    /// A node with its row and, per port, a hash of the transfers on it.
    struct Reached {
        Node node;
        std::vector<double> row;
        std::vector<uint64_t> transfers;
    };
    /// A boundary as the shared memory below it sees it.
    struct Placement {
        uint32_t multiset = 0;
        double reused = 1;
        double used = 0;  ///< of the memory, by what changes of the tile
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
    /// Of all mappings that the path leads to; infinite where they are slower than they may be.
    [[nodiscard]] double bound_of(const Node& node, const double* row) const;
    void consider(LayerMapping mapping);
    void raise_bounds();
    /// Whether tiles of the role in this memory and those of others are held twice or not depending
    /// on each other.
    [[nodiscard]] bool competes(size_t r, size_t level) const { return competes_[r][level]; }
    /// Adds `times` (1 or -1) what a boundary asks of the ports. `is_certain`: it may take all
    /// cycles allowed now.
    void add_transfers(size_t r, size_t level, uint32_t multiset, double allowed, double times,
                       bool is_certain, Reached& to) const;
    [[nodiscard]] uint64_t hash_of(size_t r, size_t level, const Placement& placement) const;
    [[nodiscard]] bool is_open_question(const Placement& placement) const;
    [[nodiscard]] Placement placement_in(const Node& before, size_t r) const;
    void answer(size_t memory_at, Reached& reached) const;
    /// A loop or a boundary more, as `next`. False: not legal.
    [[nodiscard]] bool with_loop(const Node& node, const MappingSpace::Factor& factor,
                                 Reached& next) const;
    [[nodiscard]] bool with_boundary(const Node& node, size_t r, Reached& next) const;
    void finish_row(Reached& reached) const;
    /// Whether a mapping with this bound would be better than the best one so far.
    [[nodiscard]] bool is_better(double bound) const;
    /// From the start until nothing is better or there are too many nodes; the lowest bound of what
    /// is left.
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
    /// Below energy times a weight and latency together.
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
    std::vector<uint32_t> last_;  ///< by place in the tables: the last node that no other beats
    std::priority_queue<Entry> open_;
    /// The same with the longest paths first: every second node comes from here, so that good
    /// mappings are known early.
    struct Deeper {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.depth != b.depth ? a.depth < b.depth : a < b;
        }
    };
    std::priority_queue<Entry, std::vector<Entry>, Deeper> deep_;
};

}  // namespace laminate::depth_first
