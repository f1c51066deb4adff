// Sums over boundaries that lie below the latency of a mapping, or below a weighted sum of latency
// and energy. Of delay_search.h alone.
//
//   latency >= T + off-load + (load of either input, or what both load by links that they share)
// + max(0, for any port: sum of (cycles needed - cycles allowed) that are late, sum of cycles
// needed - T)
//
// The maximum of such terms is at least any mean of them, and a price for room in a memory that
// operands compete for may be added that is paid back for all the room there is (Lagrange
// relaxation): each choice of weights and prices gives a sum over boundaries, and the table of its
// least rests a bound. Weights are raised where the bound is: from the path that is best by the sum
// to the terms that it has most of, by line search.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "papers/depth_first/mapping_space.h"

namespace laminate::depth_first {

class DelayBounds {
public:
    /// Where the numbers of a path are: what its boundaries so far add up to.
    struct Columns {
        size_t energy = 0, off_load = 1;
        size_t loads = 2;  ///< of each input: by links of its own, by links that both share
        size_t late = 0, needed = 0;  ///< by port: cycles beyond those allowed, cycles in all
        size_t used = 0;              ///< bits of the memories that are watched
        size_t count = 0;
    };
    struct Sum {
        std::vector<std::pair<size_t, double>> weights;  ///< of columns
        std::vector<double> rooms;  ///< per memory that is watched, what is paid back for all of it
        double always = 0;
        MappingSpace::Rest rest;
        double at_start = 0;  ///< no mapping has less
    };

    /// Keeps a reference to the space.
    DelayBounds(const MappingSpace& space, const MappingGoal& goal);

    [[nodiscard]] const Columns& columns() const { return columns_; }
    /// Of the boundary above memory `level`.
    [[nodiscard]] const BoundaryDemand& demand(size_t r, size_t level, size_t s) const {
        return demands_[r][level][s];
    }
    /// Of a path before its first boundary: between the array and the lowest memories, and the
    /// multiplications.
    [[nodiscard]] const std::vector<double>& start() const { return start_; }
    /// Ports that the array uses in every cycle of all loops.
    [[nodiscard]] const std::vector<size_t>& ports_of_array() const { return ports_of_array_; }
    /// Adds what a boundary costs, but not what it asks of the ports.
    void add_boundary(size_t r, size_t level, size_t s, double* columns) const;

    /// Below energy_weight * energy + latency_weight * latency of all ends of a path. `unpaid`: per
    /// watched memory, whether a boundary that shares it is missing.
    [[nodiscard]] double least(const Sum& sum, size_t place,
                               const std::array<bool, MappingSpace::most_watched>& unpaid,
                               const double* columns) const {
        double value = sum.always + sum.rest[place];
        for (const auto& [column, weight] : sum.weights) value += weight * columns[column];
        for (size_t w = 0; w < sum.rooms.size(); ++w) value -= unpaid[w] ? sum.rooms[w] : 0;
        return value;
    }

    /// Sums that bound it from below, the last the highest at the start. `visit` sees each path
    /// that is best by some sum, and returns what is known to be reached: there is no use for more.
    [[nodiscard]] std::vector<Sum> raise(
        double energy_weight, double latency_weight,
        const std::function<double(const MappingSpace::Path&)>& visit) const;

private:
    /// Of each boundary (role, level) one column: its value at each multiset, cycles allowed being
    /// those of a memory with room for two tiles.
    struct Term {
        size_t column;
        std::vector<double> values;
    };
    struct Weights {
        double energy = 0, latency = 0;
        std::array<double, 3>
            loads{};  ///< of either input, of the links that both share; their sum is 1
        std::vector<double> stalls;  ///< late by port, then needed by port; their sum is at most 1
        std::vector<double> prices;  ///< per bit
    };
    /// A path or a mean of paths.
    struct Found {
        double value = 0;
        std::vector<double> columns;
    };
    [[nodiscard]] double value_of(const Weights& weights, const std::vector<double>& columns) const;
    [[nodiscard]] Sum sum_of(const Weights& weights, MappingSpace::BoundaryCosts& costs) const;
    [[nodiscard]] std::vector<double> columns_of(const MappingSpace::Path& path) const;
    [[nodiscard]] std::array<double, 3> loads_of(const std::vector<double>& columns) const;
    [[nodiscard]] double stall_of(size_t n, const std::vector<double>& columns) const;
    void tabulate();

    const MappingSpace& space_;
    const MappedLayer& layer_;
    MappingGoal goal_;
    Columns columns_;
    std::vector<std::vector<std::vector<BoundaryDemand>>> demands_;  ///< [role][level][multiset]
    std::vector<std::vector<std::vector<Term>>> terms_;              ///< [role][level]
    std::vector<double> start_;
    std::vector<size_t> ports_of_array_;
    double always_ =
        0;  ///< cycles of every mapping: of all loops, and of the last tile on its way up
};

}  // namespace laminate::depth_first
