// Beyond ConvFusion's sequences: a whole network cut into groups that may hold forks and joins (residual Adds, Concats, pooling,
// activations), so every schedulable layer is in a group and everything that crosses is counted.
//
// Groups: every set of at most max_depth layers with one sink whose other outputs are read inside alone (groups_ending_at). Schedules
// of a fused group are a family, not everything (dag_group_front): producers hang at the sink's row or tile loop, with halos computed again or kept along x or
// along both axes, or each at the row loop of what reads it (line buffers); weights resident, or the largest fetched again in every tile (of more than eight: none or
// all; and powers of two instead of all tiles). A group of one layer
// with weights has the complete front of group_front(). Which groups: exact, over all exact covers of the DAG (docs/search.md).
#pragma once

#include <vector>

#include "nets/network.h"
#include "scheduler/explore.h"

namespace laminate {

/// Every set of layers that may be a group with this sink, at most `max_depth` of them; ascending, the sink alone first.
[[nodiscard]] std::vector<std::vector<LayerId>> groups_ending_at(const Network& network, LayerId sink, int64_t max_depth);

/// The best of the family for one group (producers first): by memory, smallest first; on two axes, (accesses, MACs) in lexicographic order (pareto.h).
[[nodiscard]] std::vector<GroupPoint> dag_group_front(const Network& network, const std::vector<LayerId>& layers,
                                                      const ExploreOptions& options);

/// The family alone, for one group whose problems are at hand.
[[nodiscard]] std::vector<GroupPoint> family_front(const std::vector<LayerProblem>& problems, const ExploreOptions& options);

/// The front (accesses, memory; ties by MACs) over all covers of the network by groups. Throws InputError for a network without schedulable layers.
[[nodiscard]] Front explore_dag(const Network& network, const ExploreOptions& options);

}  // namespace laminate
