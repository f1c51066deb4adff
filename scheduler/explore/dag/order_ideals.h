// The order ideals of a DAG: sets that contain, with every vertex, all vertices that it needs.
//
// They are the states of every search over acyclic partitions. Executing the parts of a partition
// one after the other leads from ideal to ideal, and the difference of two nested ideals is a
// convex set. So chains of ideals from the empty set to all vertices are exactly the partitions
// with an acyclic quotient graph, in the orders in which they can be executed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace laminate::search {

class OrderIdeals {
public:
    /// `needs[v]` lists the vertices that v needs, all with smaller numbers. nullopt if there are
    /// more than `limit` ideals, or if one of them has a vertex that is 128 or more above the first
    /// that it lacks.
    [[nodiscard]] static std::optional<OrderIdeals> of(const std::vector<std::vector<int>>& needs,
                                                       size_t limit);

    struct Step {
        int vertex;  ///< a maximal vertex of the ideal
        int ideal;   ///< the ideal without it
    };
    /// Ideals are numbered by size: 0 is empty, the last one has all vertices.
    [[nodiscard]] int size() const { return static_cast<int>(begin_.size()) - 1; }
    /// Ways to remove one vertex, the largest vertex first.
    [[nodiscard]] std::span<const Step> steps(int ideal) const {
        const auto n = static_cast<size_t>(ideal);
        return {steps_.data() + begin_[n], begin_[n + 1] - begin_[n]};
    }

private:
    std::vector<Step> steps_;    ///< of all ideals, in order
    std::vector<size_t> begin_;  ///< by ideal: its first step; one more than ideals
};

/// Number of non-empty convex sets of vertices, connected or not: sets that no path leaves and
/// enters again. nullopt if the count needs more than `limit` states at some vertex (a state says
/// of each vertex with readers to come whether it is in the set, above it, or neither). Throws
/// std::overflow_error beyond 2^63.
[[nodiscard]] std::optional<int64_t> convex_set_count(const std::vector<std::vector<int>>& needs,
                                                      size_t limit = 2'000'000);

}  // namespace laminate::search
