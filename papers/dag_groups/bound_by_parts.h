// A lower bound for groupings of graphs with too many order ideals to search: the sum of the least
// costs of parts of the graph.
//
// A part is a run of operators in the order of the graph. The pieces of a grouping's groups inside
// a part are an acyclic grouping of the part. A group costs at least the sum of its pieces when
// maps that cross a part's border are free and each piece has its own buffer and passes
// (GrowingGroup), because pieces need less buffer, hold less volume and weigh less. So the sum over
// parts of the cheapest such groupings, each found exactly over the part's order ideals, is below
// every grouping of the whole. The cuts between parts are chosen for the largest sum.
#pragma once

#include <cstdint>

#include "papers/dag_groups/group_cost.h"

namespace laminate::dag_groups {

struct PartLimits {
    int longest = 8;              ///< operators in a part
    size_t most_ideals = 500;     ///< of a part
    int64_t most_groups = 1'000;  ///< looked at in a part
};

/// Entries of all images: no acyclic grouping has fewer.
[[nodiscard]] int64_t bound_by_parts(const OperatorGraph& graph, const GroupMachine& machine,
                                     const GroupRules& rules, const PartLimits& limits = {});

}  // namespace laminate::dag_groups
