// The space of mappings that the exact searches of mapper.h go through. A mapping is a path from
// "no loop" to "all loops" through the multisets of a layer's prime factors, on which each operand
// places the boundaries of its memories. The cost of a boundary depends on the set of loops below
// it, not on their order.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "papers/depth_first/single_layer.h"

namespace laminate::depth_first {

class MappingSpace {
public:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    /// The most memories that operands may compete for.
    static constexpr size_t most_watched = 6;

    using Placed = std::array<uint8_t, 3>;  ///< boundaries placed, by role
    using Bits = std::array<double, most_watched>;
    /// A point on a path.
    struct State {
        uint32_t multiset = 0;
        Placed levels{};
        uint8_t role = 0;       ///< boundaries of lower roles were placed before at this multiset
        bool reduction = true;  ///< loops of the sum lie above the output's last boundary
        Bits used{};            ///< by watched memory
        bool operator==(const State&) const = default;
    };
    /// The cost of each boundary, [role][level - 1][multiset].
    using BoundaryCosts = std::vector<std::vector<std::vector<double>>>;
    /// The least cost of the rest of a path, [boundaries placed][multiset] in one vector.
    using Rest = std::vector<double>;

    /// The number of a multiset has the counts of its factors as digits. The last digit is padded
    /// to whole vectors: numbers beyond the factor's count are no multisets, and every cost there
    /// is infinite.
    struct Factor {
        Dim dim;
        int64_t prime;
        size_t count;
        size_t step;  ///< what one such loop adds to the number of a multiset
        size_t rows;  ///< values of the digit; more than count + 1 if padded
    };
    /// A memory that several roles share and that does not hold all their data at once.
    struct Watched {
        size_t memory;
        std::vector<std::pair<size_t, size_t>> sharers;  ///< (role, level)
        /// The least bits of a boundary, [sharer][multiset]. A role's highest level, which has no
        /// boundary, has one entry: the bits of the whole operand.
        std::vector<std::vector<double>> bits;
    };

    /// Keeps a reference to the layer. Throws InputError if operands compete for more than
    /// most_watched memories.
    explicit MappingSpace(const MappedLayer& layer);

    [[nodiscard]] const MappedLayer& layer() const { return layer_; }
    [[nodiscard]] const std::vector<Factor>& factors() const { return factors_; }
    /// The count of numbers of multisets, padding included.
    [[nodiscard]] size_t multisets() const { return multisets_; }
    /// The multiset of all loops.
    [[nodiscard]] size_t all() const { return all_; }
    /// The place of a multiset in the order whose digits are factors(), the first one varying
    /// fastest.
    [[nodiscard]] size_t rank(size_t multiset) const { return ranks_[multiset]; }
    [[nodiscard]] double total() const { return total_; }  ///< trips of all loops
    /// The trips of a multiset's loops.
    [[nodiscard]] const Trips& products(size_t multiset) const { return products_[multiset]; }
    /// Whether loops of the sum are missing from the multiset.
    [[nodiscard]] bool reduction_left(size_t multiset) const { return reduction_left_[multiset]; }
    [[nodiscard]] const std::vector<Watched>& watched() const { return watched_; }
    [[nodiscard]] double room(size_t w) const {
        return static_cast<double>(layer_.machine().memories[watched_[w].memory].capacity_bits);
    }

    [[nodiscard]] size_t roles() const { return layer_.role_count(); }
    [[nodiscard]] size_t levels(size_t r) const { return layer_.hierarchy(r).size(); }
    [[nodiscard]] size_t count_of(size_t multiset, const Factor& factor) const {
        return multiset / factor.step % factor.rows;
    }
    [[nodiscard]] size_t placed_count() const { return placed_count_; }
    [[nodiscard]] size_t placed_step(size_t r) const { return placed_step_[r]; }
    [[nodiscard]] size_t placed_index(const Placed& levels) const;
    /// The boundaries of a role that are placed at such an index.
    [[nodiscard]] size_t placed_of(size_t index, size_t r) const {
        return index / placed_step_[r] % levels(r);
    }

    [[nodiscard]] State start() const;
    [[nodiscard]] bool finished(const State& state) const;
    /// Whether all tiles in watched memory `w` are placed.
    [[nodiscard]] bool all_placed(size_t w, const State& state) const;
    /// Takes the tile's bits from its memory; false if they do not fit.
    [[nodiscard]] bool fits(size_t r, size_t level, size_t multiset, bool reduction,
                            State& state) const;
    /// Places the next boundary of a role at the state's multiset; false if the tile does not fit.
    [[nodiscard]] bool place(size_t r, State& state) const;
    /// Whether what remains at the end of a path fits the highest memories.
    [[nodiscard]] bool highest_fit(State state) const;

    /// pJ; infinite if the tile alone does not fit its memory.
    [[nodiscard]] const BoundaryCosts& energy() const { return energy_; }
    /// The least sum of costs from each point to the end of a path, ignoring the competition for
    /// memories. `at_end` is added to all.
    [[nodiscard]] Rest rest(const BoundaryCosts& costs, double at_end = 0) const {
        Rest rest;
        fill_rest(costs, at_end, rest);
        return rest;
    }
    /// `rest` is empty, or was filled by this space before.
    void fill_rest(const BoundaryCosts& costs, double at_end, Rest& rest) const;

    /// A path of least cost by `costs`, whose least sums are `rest`. There must be one. It may not
    /// fit where operands compete.
    struct Path {
        std::vector<State> states;
        bool fits = false;
    };
    [[nodiscard]] Path follow(const BoundaryCosts& costs, const Rest& rest) const;
    /// Calls visit(role, level, multiset) for each boundary that the path places above a level of a
    /// role's hierarchy.
    template <typename Visit>
    void for_each_boundary(const std::vector<State>& path, const Visit& visit) const {
        for (size_t i = 1; i < path.size(); ++i) {
            for (size_t r = 0; r < roles(); ++r) {
                if (path[i].levels[r] != path[i - 1].levels[r])
                    visit(r, size_t{path[i - 1].levels[r]}, size_t{path[i].multiset});
            }
        }
    }

    /// The mapping of a path, without its cost.
    [[nodiscard]] LayerMapping mapping(const std::vector<State>& path) const;

private:
    void find_factors();
    void number_multisets();
    void tabulate_multisets();
    void tabulate_bits();
    void watch();
    void tabulate_energy();
    void find_rows();
    /// Bits of the tile in a memory with this multiset below; outputs are partial sums if
    /// `reduction`.
    [[nodiscard]] double bits(size_t r, size_t level, size_t multiset, bool reduction) const {
        if (level + 1 == levels(r))
            return layer_.level_bits(r, level, products_[multiset], r == 0 && reduction);
        return (r == 0 && reduction ? sum_bits_[level] : bits_[r][level])[multiset];
    }

    const MappedLayer& layer_;
    std::vector<Factor> factors_;
    std::optional<size_t> last_digit_;  ///< the factor that is padded to whole vectors
    size_t multisets_ = 1;
    size_t all_ = 0;
    double total_ = 1;
    std::vector<Trips> products_;
    std::vector<uint32_t> ranks_;
    std::vector<bool> reduction_left_;
    std::vector<double> periods_;  ///< whole periods of a boundary above the multiset
    /// By role, the multisets of relevant loops and those of irrelevant loops. Every multiset is
    /// the sum of one of each and touches what its relevant part touches.
    std::array<std::vector<uint32_t>, 3> seen_, unseen_;
    std::array<size_t, 3> placed_step_{};
    size_t placed_count_ = 1;
    std::vector<Watched> watched_;
    BoundaryCosts bits_;                         ///< outputs are finished
    std::vector<std::vector<double>> sum_bits_;  ///< outputs are partial sums; [level][multiset]
    BoundaryCosts energy_;
    // A row is a set of multisets that differ only in the last digit.
    size_t row_size_ = 0;
    std::vector<size_t> begin_of_next_;    ///< into next_rows_, by row
    std::vector<uint32_t> next_rows_;      ///< distances to the rows with one more loop
    std::vector<size_t> begin_of_placed_;  ///< into rows_, by placed boundaries
    std::vector<uint32_t> rows_;           ///< from which a path may continue, last ones first
};

}  // namespace laminate::depth_first
