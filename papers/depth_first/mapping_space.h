// The space of mappings that the exact searches of mapper.h look through: paths from "no loop" to
// "all loops" through the multisets of a layer's prime factors, on which each operand places the
// boundaries of its memories. Costs of a boundary depend on the loops below it, not on their order.
// Of the mapper alone.
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
    /// Memories that operands share and compete for.
    static constexpr size_t most_watched = 6;

    using Placed = std::array<uint8_t, 3>;  ///< boundaries placed, per role
    using Bits = std::array<double, most_watched>;
    /// A point on a path.
    struct State {
        uint32_t multiset = 0;
        Placed levels{};
        uint8_t role = 0;       ///< boundaries of lower roles were placed before at this multiset
        bool reduction = true;  ///< of the output: loops of the sum were above its last boundary
        Bits used{};            ///< in the memories that are watched
        bool operator==(const State&) const = default;
    };
    /// Of one boundary: [role][level - 1][multiset].
    using BoundaryCosts = std::vector<std::vector<std::vector<double>>>;
    /// Least cost of the rest of a path, [boundaries placed][multiset] in one row.
    using Rest = std::vector<double>;

    /// Multisets are numbered by the counts of their factors, as digits. Those of one factor, the
    /// last digit, fill vectors: numbers beyond its count are no multisets, and everything costs
    /// infinitely much there.
    struct Factor {
        Dim dim;
        int64_t prime;
        size_t count;
        size_t step;  ///< of one such loop in the number of a multiset
        size_t rows;  ///< values of the digit; more than count + 1 where vectors are filled
    };
    /// A memory that several roles share and that does not hold all of them whole.
    struct Watched {
        size_t memory;
        std::vector<std::pair<size_t, size_t>> sharers;  ///< role and level
        /// Per sharer, per multiset: least bits of a boundary there. Of a role's highest level,
        /// which has no boundary: of the whole.
        std::vector<std::vector<double>> bits;
    };

    /// Keeps a reference to the layer. Throws InputError where operands compete for more than
    /// most_watched memories.
    explicit MappingSpace(const MappedLayer& layer);

    [[nodiscard]] const MappedLayer& layer() const { return layer_; }
    [[nodiscard]] const std::vector<Factor>& factors() const { return factors_; }
    /// Numbers of multisets, and those between them that are none.
    [[nodiscard]] size_t multisets() const { return multisets_; }
    [[nodiscard]] size_t all() const { return all_; }
    /// Its place among the multisets when the digits are those of factors(), the first one the last
    /// digit.
    [[nodiscard]] size_t rank(size_t multiset) const { return ranks_[multiset]; }
    [[nodiscard]] double total() const { return total_; }  ///< trips of all loops
    /// Trips of each dimension's loops in a multiset.
    [[nodiscard]] const std::array<double, dim_count>& products(size_t multiset) const {
        return products_[multiset];
    }
    /// Loops of the sum are missing from the multiset.
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
    /// Levels placed of a role in such an index.
    [[nodiscard]] size_t placed_of(size_t index, size_t r) const {
        return index / placed_step_[r] % levels(r);
    }

    [[nodiscard]] State start() const;
    [[nodiscard]] bool finished(const State& state) const;
    /// Of all that share memory `w`.
    [[nodiscard]] bool all_placed(size_t w, const State& state) const;
    /// Takes the tile's bits of watched memories; false where they do not fit.
    [[nodiscard]] bool fits(size_t r, size_t level, size_t multiset, bool reduction,
                            State& state) const;
    /// The next boundary of a role at the state's multiset; false where the tile does not fit.
    [[nodiscard]] bool place(size_t r, State& state) const;
    /// At the end of a path: the highest memories take what there is.
    [[nodiscard]] bool highest_fit(State state) const;

    /// pJ; infinite where the tile alone does not fit its memory.
    [[nodiscard]] const BoundaryCosts& energy() const { return energy_; }
    /// The least sums of costs from each point to the end of paths, competition for memories left
    /// aside; `at_end` is added to all.
    [[nodiscard]] Rest rest(const BoundaryCosts& costs, double at_end = 0) const {
        Rest rest;
        fill_rest(costs, at_end, rest);
        return rest;
    }
    /// `rest`: empty, or filled by this space before.
    void fill_rest(const BoundaryCosts& costs, double at_end, Rest& rest) const;

    /// A path that costs least by `costs`, of which `rest` are the sums; there must be one. It need
    /// not fit where operands compete.
    struct Path {
        std::vector<State> states;
        bool fits = false;
    };
    [[nodiscard]] Path follow(const BoundaryCosts& costs, const Rest& rest) const;
    /// Calls visit(role, level, multiset) for each boundary that the path places above memory
    /// `level` of the role's hierarchy.
    template <typename Visit>
    void for_each_boundary(const std::vector<State>& path, const Visit& visit) const {
        for (size_t i = 1; i < path.size(); ++i) {
            for (size_t r = 0; r < roles(); ++r) {
                if (path[i].levels[r] != path[i - 1].levels[r])
                    visit(r, size_t{path[i - 1].levels[r]}, size_t{path[i].multiset});
            }
        }
    }

    /// Without cost.
    [[nodiscard]] LayerMapping mapping(const std::vector<State>& path) const;

private:
    void find_factors();
    void number_multisets();
    void tabulate_multisets();
    void tabulate_bits();
    void watch();
    void tabulate_energy();
    void find_rows();
    /// Of the tile in a memory with these loops below, of outputs as sums where `reduction`.
    [[nodiscard]] double bits(size_t r, size_t level, size_t multiset, bool reduction) const {
        if (level + 1 == levels(r))
            return layer_.level_bits(r, level, products_[multiset], r == 0 && reduction);
        return (r == 0 && reduction ? sum_bits_[level] : bits_[r][level])[multiset];
    }

    const MappedLayer& layer_;
    std::vector<Factor> factors_;
    std::optional<size_t> last_digit_;  ///< the factor that fills vectors
    size_t multisets_ = 1;
    size_t all_ = 0;
    double total_ = 1;
    std::vector<std::array<double, dim_count>> products_;
    std::vector<uint32_t> ranks_;
    std::vector<bool> reduction_left_;
    std::vector<double> periods_;  ///< of a boundary above the multiset: whole ones in all cycles
    /// Per role the multisets of loops that it sees, and of loops that it does not see; every
    /// multiset is a sum of one of each, and what it touches of the operand is what the first
    /// touches.
    std::array<std::vector<uint32_t>, 3> seen_, unseen_;
    std::array<size_t, 3> placed_step_{};
    size_t placed_count_ = 1;
    std::vector<Watched> watched_;
    BoundaryCosts bits_;                         ///< of finished outputs
    std::vector<std::vector<double>> sum_bits_;  ///< of outputs as sums, [level][multiset]
    BoundaryCosts energy_;
    // A row: multisets that differ in the last digit alone.
    size_t row_size_ = 0;
    std::vector<size_t> begin_of_next_;    ///< into next_rows_, by row
    std::vector<uint32_t> next_rows_;      ///< how far the rows with one loop more lie
    std::vector<size_t> begin_of_placed_;  ///< into rows_, by placed boundaries
    std::vector<uint32_t> rows_;           ///< from which a path may go on, the last ones first
};

}  // namespace laminate::depth_first
