// How far the results of a group's code may lie from those of the reference operators.
//
// Two runs of the reference operators bound an element: one computes the values, the other the sums
// of |w x| that go into them, m. Code that adds n products in any order is within n 2^-24 of m; that
// bound and those of the layers before add up along the group to a, so an element may be off by a m.
// A quotient x / y of elements that may be off by a m_x and a m_y may be off by
//
//     (a m_x + |x / y| a m_y) / (|y| - a m_y)
//
// and where |y| <= a m_y by anything, because y may be 0. So its own m is the same without the factors
// a of m_x and m_y above the fraction bar, and infinite there. What is computed of such elements may be
// anything too. A steep function f of an x that may be off by e is off by as much as f(x - e) and f(x + e)
// differ from f(x), and some units in the last place; by anything where only some of the three are
// numbers or where a pole lies between. Its m is 1/a of that. A power x^y is off by as much as those of
// the four corners differ from it, and by anything where x may be 0 or less.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// How code adds the products of a convolution.
enum class Sums {
    by_definition,
    /// Perhaps by minimal filtering, whose errors are of the largest element of the map (the table of
    /// docs/reliability.md). All elements of an input then count as the largest one.
    in_any_kernel,
};

struct BoundedRows {
    std::vector<float> expected;  ///< as reference_rows()
    std::vector<float> allowed;   ///< the largest error of code; infinite where it may be anything
    /// Whether code may find this as element n. NaN and infinities must be where they are expected.
    [[nodiscard]] bool holds(float found, size_t n) const;
    /// Elements that may be off by no more than a hundredth of the median of those that are not 0: all
    /// others say little about code.
    [[nodiscard]] int64_t judged() const;
    /// Whether every element may be anything.
    [[nodiscard]] bool judge_nothing() const;
};
/// Rows [first, last) of the last layer's output. `problems` and `inputs` as for reference_rows().
[[nodiscard]] BoundedRows bounded_rows(const Network& network,
                                       const std::vector<LayerProblem>& problems,
                                       const std::vector<std::vector<float>>& inputs, int64_t first,
                                       int64_t last, Sums sums);
/// random_group_inputs() by which as much as possible of the result is judged. Sums of values of both
/// signs come near 0 somewhere, and what is divided by these, and every convolution that reads one such
/// quotient, may be anything. So inputs of a group that is steep lie around larger and larger numbers
/// until nearly all of the first rows are judged: a divisor is then some number times the sum of its
/// weights.
[[nodiscard]] std::vector<std::vector<float>> judged_inputs(
    const Network& network, const std::vector<LayerProblem>& problems, uint64_t seed);
/// The error allowed to results of judged_inputs() is 1e-4 of the range of the rows. Quotients have no
/// range, so where the group is steep, each element is judged by its own bound, in which no argument of
/// a steep function is off by more than 1e-4 of the range of all.
[[nodiscard]] BoundedRows judged_rows(const Network& network,
                                      const std::vector<LayerProblem>& problems,
                                      const std::vector<std::vector<float>>& inputs, int64_t first,
                                      int64_t last);

}  // namespace laminate
