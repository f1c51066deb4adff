// A search for the overlap mode of each map of a stack: tiles may keep nothing of one map, columns
// of the next and everything of a third. DeFiNES has one mode for a whole stack.
#pragma once

#include <cstdint>

#include "papers/depth_first/depth_first.h"

namespace laminate::depth_first {

struct OverlapSearch {
    Strategy strategy;        ///< as given, with a mode for every map but the stacks' outputs
    int64_t compared = 0;     ///< choices of modes, over all stacks
    bool is_complete = true;  ///< all choices of all stacks were compared
    /// A lower bound on the sum over stacks of the objective: multiplications, weights and outputs
    /// once. For energy x latency this is the sum of the products.
    double bound = 0;
    double value = 0;  ///< the same sum for `strategy`
};

/// Finds the modes of each stack that are best by `objective`. For energy and latency these are the
/// best of the network, whose cost is the sum of the stacks'.
///
/// A stack of n maps has 2 x 3^n choices, counting both directions of the tiles. The search
/// compares all of them if they are at most `most`. Otherwise it compares choices with one mode for
/// the first maps and another for the rest, and then changes one map at a time while that helps.
/// Choices that do not fit the machine are left out. Throws InfeasibleMapping if none fits.
[[nodiscard]] OverlapSearch search_overlaps(const DepthFirst& model, const Strategy& given,
                                            Objective objective, int64_t most = 5000);

}  // namespace laminate::depth_first
