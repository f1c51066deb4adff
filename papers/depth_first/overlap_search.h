// The overlap mode of each map of a stack, searched: tiles may keep nothing of one map, columns of
// the next, all of a third. Beyond DeFiNES, which has one mode for a whole stack.
#pragma once

#include <cstdint>

#include "papers/depth_first/depth_first.h"

namespace laminate::depth_first {

struct OverlapSearch {
    Strategy strategy;  ///< as given, with the overlap of every map that a stack keeps something of
    int64_t compared = 0;     ///< choices of modes, of all stacks
    bool is_complete = true;  ///< all choices of all stacks; then the best of the space
    /// Sum over stacks of what any choice costs at least, in units of the objective:
    /// multiplications, weights and outputs once. Of energy x latency the sum of the products.
    double bound = 0;
    double value = 0;  ///< the same sum for `strategy`
};

/// Stack by stack, each by itself the best by `objective` (whose sum is the network's for energy
/// and latency). A stack of n maps has 2 x 3^n choices, row by row and column by column; up to
/// `most` of them all are compared, otherwise: the modes of which one holds for the first maps and
/// one for the rest, and from the best of these on, changes of one map while they help. Modes that
/// do not fit the machine are left out; throws InfeasibleMapping where none fits.
[[nodiscard]] OverlapSearch search_overlaps(const DepthFirst& model, const Strategy& given,
                                            Objective objective, int64_t most = 5000);

}  // namespace laminate::depth_first
