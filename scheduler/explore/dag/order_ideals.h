// The order ideals of a DAG: sets of vertices that hold, with a vertex, everything that it needs.
//
// They are the states of every search over acyclic partitions. Executing the parts of a partition
// one after the other goes from ideal to ideal, and the difference of two ideals, one in the other,
// is a convex set. So chains of ideals from the empty set to all vertices are exactly the
// partitions whose quotient graph has no cycle, in the orders in which they can be executed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace laminate::search {

class OrderIdeals {
public:
    /// `needs[v]`: vertices below v, all with smaller numbers. None when there are more than
    /// `limit` ideals, or one of them has a vertex that is 128 or more above the first that it
    /// lacks.
    [[nodiscard]] static std::optional<OrderIdeals> of(const std::vector<std::vector<int>>& needs,
                                                       size_t limit);

    struct Step {
        int vertex;  ///< a maximal vertex of the ideal
        int ideal;   ///< what is left without it
    };
    /// By size; 0 is empty, the last one has all vertices.
    [[nodiscard]] int size() const { return static_cast<int>(begin_.size()) - 1; }
    /// Ways to take one vertex away, by vertex, largest first.
    [[nodiscard]] std::span<const Step> steps(int ideal) const {
        const auto n = static_cast<size_t>(ideal);
        return {steps_.data() + begin_[n], begin_[n + 1] - begin_[n]};
    }

private:
    std::vector<Step> steps_;    ///< of all ideals, one after the other
    std::vector<size_t> begin_;  ///< into steps_, one more than ideals
};

/// Convex sets of vertices, connected or not, without the empty one: those in which no path leaves
/// the set and comes back. None when the states of the count (what the vertices with readers to
/// come are: in the set, above it, neither) are more than `limit` at some vertex. Throws
/// std::overflow_error beyond 2^63.
[[nodiscard]] std::optional<int64_t> convex_set_count(const std::vector<std::vector<int>>& needs,
                                                      size_t limit = 2'000'000);

}  // namespace laminate::search
