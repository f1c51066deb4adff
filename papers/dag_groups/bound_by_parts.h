// A lower bound for groupings of graphs with too many order ideals to search: the sum of what parts
// of the graph cost at least.
//
// A part is a run of operators in the order of the graph. What a grouping's groups hold of a part
// is a grouping of the part by itself, acyclic too, and a group costs at least the sum of what its
// pieces cost when maps that cross a part's border are free and buffer and passes are those of the
// piece alone (GrowingGroup): pieces need less buffer, hold less volume and weigh less. So the sum
// over parts of the cheapest such groupings, each found exactly over the part's order ideals, is
// below every grouping of the whole. Where to cut the graph into parts is chosen for the largest
// sum.
#pragma once

#include <cstdint>

#include "papers/dag_groups/group_cost.h"

namespace laminate::dag_groups {

struct PartLimits {
    int longest = 8;              ///< operators in a part
    size_t most_ideals = 500;     ///< of a part
    int64_t most_groups = 1'000;  ///< looked at in a part
};

/// Entries of all images that no acyclic grouping goes below.
[[nodiscard]] int64_t bound_by_parts(const OperatorGraph& graph, const GroupMachine& machine,
                                     const GroupRules& rules, const PartLimits& limits = {});

}  // namespace laminate::dag_groups
