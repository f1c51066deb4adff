// Beyond ConvFusion's sequences: a whole network cut into groups that may hold forks and joins
// (residual Adds, Concats, pooling, activations), so every schedulable layer is in a group and
// everything that crosses is counted.
//
// A group is any set of at most max_depth layers with one sink, in which every other output is read
// only inside (groups_ending_at). Fused groups get the schedules of a family (family.h), not all
// schedules. A group of one layer with weights gets the complete front of group_front(). The choice
// of groups is exact, over all exact covers of the DAG (docs/search.md).
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/explore/dag/family.h"
#include "scheduler/explore/options.h"

namespace laminate {

/// Every set of layers that may be a group with this sink, at most `max_depth` of them; ascending,
/// the sink alone first.
[[nodiscard]] std::vector<std::vector<LayerId>> groups_ending_at(const Network& network,
                                                                 LayerId sink, int64_t max_depth);

/// All of them in a network.
struct OneSinkGroups {
    std::vector<std::vector<LayerId>> layers;    ///< of every group, ascending; by sink
    std::vector<std::vector<size_t>> ending_at;  ///< groups by sink, the sink alone first
};
[[nodiscard]] OneSinkGroups one_sink_groups(const Network& network, int64_t max_depth);

/// The value of all exact covers of the schedulable layers together. `nothing`: of no group;
/// `none`: of no cover. add(before, group, target) takes into `target` what `before` becomes with
/// one more group.
template <class Value, class Add>
[[nodiscard]] Value over_covers(const Network& network, const OneSinkGroups& groups, Value nothing,
                                const Value& none, const Add& add) {
    // From the end: the last layer that is not covered can only be a sink, because everything that
    // reads it is in other groups already. States by that layer, then by what is covered; every
    // group leads to an earlier last layer.
    using State = std::pair<LayerId, std::vector<bool>>;
    const auto state_of = [](const std::vector<bool>& covered) {
        auto last = static_cast<LayerId>(covered.size()) - 1;
        while (last >= 0 && covered[static_cast<size_t>(last)]) --last;
        return State{last, covered};
    };
    std::vector<bool> covered(network.layers.size(), false);
    for (size_t id = 0; id < covered.size(); ++id)
        covered[id] = !is_schedulable(network, static_cast<LayerId>(id));
    std::map<State, Value, std::greater<>> states;
    states.emplace(state_of(covered), std::move(nothing));
    while (!states.empty()) {
        const auto first = states.begin();
        const State state = first->first;
        const Value before = std::move(first->second);
        states.erase(first);
        if (state.first < 0) return before;
        for (const size_t group : groups.ending_at[static_cast<size_t>(state.first)]) {
            const auto is_covered = [&](LayerId id) {
                return state.second[static_cast<size_t>(id)];
            };
            if (std::any_of(groups.layers[group].begin(), groups.layers[group].end(), is_covered))
                continue;
            std::vector<bool> now = state.second;
            for (const LayerId id : groups.layers[group]) now[static_cast<size_t>(id)] = true;
            add(before, group, states.try_emplace(state_of(now), none).first->second);
        }
    }
    return none;
}

/// The best of the family for one group (producers first): by memory, smallest first; on two axes,
/// (accesses, MACs) in lexicographic order (pareto.h), unless options.macs_is_axis.
[[nodiscard]] std::vector<GroupPoint> dag_group_front(const Network& network,
                                                      const std::vector<LayerId>& layers,
                                                      const ExploreOptions& options);

/// The front over all covers of the network by groups: (accesses, memory), MACs between equals;
/// with options.macs_is_axis on all three, unless there are too many partial covers
/// (Front::macs_is_axis). Throws InputError for a network without schedulable layers.
[[nodiscard]] Front explore_dag(const Network& network, const ExploreOptions& options);

}  // namespace laminate
