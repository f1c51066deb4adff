// Lower bounds on the latency of a mapping, or on a weighted sum of latency and energy, that are
// sums over boundaries. DelaySearch (delay_search.h) uses them.
//
//   latency >= T + off-load + load + stall
//
// T is the product of all trips. The load is that of either input, or what both load over links
// that they share. The stall is 0, or for any port either the cycles by which its late transfers
// exceed what is allowed, or the cycles of all its transfers less T. The maximum of such terms is
// at least any weighted mean of them. A price per bit of a memory that operands compete for may be
// added if the price of the memory's whole capacity is paid back (Lagrange relaxation).
//
// Each choice of weights and prices thus gives a sum over boundaries, and the table of its least
// rests gives a bound. raise() searches for weights with high bounds.
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
    /// Places in the row of numbers that the boundaries of a path add up to.
    struct Columns {
        size_t energy = 0, off_load = 1;
        size_t loads = 2;   ///< of each input: over its own links, over links that both share
        size_t late = 0;    ///< by port: cycles beyond those allowed
        size_t needed = 0;  ///< by port: cycles in all
        size_t used = 0;    ///< by watched memory: bits
        size_t count = 0;
    };
    struct Sum {
        std::vector<std::pair<size_t, double>> weights;  ///< of columns
        std::vector<double> rooms;  ///< by watched memory: the price of its whole capacity
        double always = 0;
        MappingSpace::Rest rest;
        double at_start = 0;  ///< a lower bound for all mappings
    };
    /// Sees the path that is best by some sum, and returns the least value reached so far.
    using Visit = std::function<double(const MappingSpace::Path&)>;

    /// Keeps a reference to the space.
    DelayBounds(const MappingSpace& space, const MappingGoal& goal);

    [[nodiscard]] const Columns& columns() const { return columns_; }
    /// The demand of the boundary above level `level` with multiset `s` below it.
    [[nodiscard]] const BoundaryDemand& demand(size_t r, size_t level, size_t s) const {
        return demands_[r][level][s];
    }
    /// The row of a path before its first boundary: multiplications, and what crosses between the
    /// array and the lowest memories.
    [[nodiscard]] const std::vector<double>& start() const { return start_; }
    /// Ports that the array uses in every cycle.
    [[nodiscard]] const std::vector<size_t>& ports_of_array() const { return ports_of_array_; }
    /// Adds a boundary's costs to a row, but not its demand on ports.
    void add_boundary(size_t r, size_t level, size_t s, double* columns) const;

    /// A lower bound on the weighted sum for all ends of a path. `place` is the path's place in the
    /// tables; `unpaid` says for each watched memory whether a boundary that shares it is missing.
    [[nodiscard]] double least(const Sum& sum, size_t place,
                               const std::array<bool, MappingSpace::most_watched>& unpaid,
                               const double* columns) const {
        double value = sum.always + sum.rest[place];
        for (const auto& [column, weight] : sum.weights) value += weight * columns[column];
        for (size_t w = 0; w < sum.rooms.size(); ++w) value -= unpaid[w] ? sum.rooms[w] : 0;
        return value;
    }

    /// Sums that bound energy_weight x energy + latency_weight x latency from below; the bound at
    /// the start rises from each to the next.
    [[nodiscard]] std::vector<Sum> raise(double energy_weight, double latency_weight,
                                         const Visit& visit) const;

private:
    /// One column of a boundary, by multiset. Allowed cycles are those of a memory with room for
    /// two tiles.
    struct Term {
        size_t column;
        std::vector<double> values;
    };
    struct Weights {
        double energy = 0, latency = 0;
        std::array<double, 3> loads{};  ///< of either input and of the links that both share; their
                                        ///< sum is 1
        std::vector<double> stalls;  ///< late by port, then needed by port; their sum is at most 1
        std::vector<double> prices;  ///< per bit, by watched memory
    };
    /// A path or a mean of paths.
    struct Found {
        double value = 0;
        std::vector<double> columns;
    };
    class Ascent;
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
    double always_ = 0;  ///< cycles of every mapping: of all loops, and of the last tile on its way
                         ///< up
};

}  // namespace laminate::depth_first
