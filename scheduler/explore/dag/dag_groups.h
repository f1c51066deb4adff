// Goes beyond ConvFusion's sequences: cuts a whole network into groups that may fork and join
// (residual Adds, Concats, pooling, activations). Every schedulable layer is in a group, and all
// traffic between groups is counted.
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

#include "base/indexed.h"
#include "nets/network/network.h"
#include "scheduler/explore/dag/family.h"
#include "scheduler/explore/options.h"

namespace laminate {

/// Every set of at most `max_depth` layers that may be a group with this sink. Layers ascend; small
/// groups come first.
[[nodiscard]] std::vector<std::vector<LayerId>> groups_ending_at(const Network& network,
                                                                 LayerId sink, int64_t max_depth);

/// All such groups of a network.
struct OneSinkGroups {
    std::vector<std::vector<LayerId>> layers;  ///< of every group, ascending; groups by sink
    IndexVector<std::vector<size_t>, LayerId>
        ending_at;  ///< by sink: its groups, the sink alone first
};
[[nodiscard]] OneSinkGroups one_sink_groups(const Network& network, int64_t max_depth);

/// The value of all exact covers of the schedulable layers. `nothing` is the value without groups,
/// `none` that without covers. add(before, group, target) adds to `target` what `before` becomes
/// with one more group.
template <class Value, class Add>
[[nodiscard]] Value over_covers(const Network& network, const OneSinkGroups& groups, Value nothing,
                                const Value& none, const Add& add) {
    // Cover from the end. The last uncovered layer can only be a sink, because all its readers are
    // in other groups. States are ordered by that layer, then by what is covered; every group leads
    // to a state with an earlier last layer.
    using Covered = IndexVector<bool, LayerId>;
    using State = std::pair<LayerId, Covered>;
    const auto state_of = [](const Covered& covered) {
        auto last = static_cast<LayerId>(covered.size()) - 1;
        while (last >= 0 && covered[last]) --last;
        return State{last, covered};
    };
    Covered covered(network.layers.size());
    for (LayerId id = 0; id < std::ssize(network.layers); ++id)
        covered[id] = !is_schedulable(network, id);
    std::map<State, Value, std::greater<>> states;
    states.emplace(state_of(covered), std::move(nothing));
    while (!states.empty()) {
        const auto first = states.begin();
        const State state = first->first;
        const Value before = std::move(first->second);
        states.erase(first);
        if (state.first < 0) return before;
        for (const size_t group : groups.ending_at[state.first]) {
            const auto is_covered = [&](LayerId id) { return state.second[id]; };
            if (std::any_of(groups.layers[group].begin(), groups.layers[group].end(), is_covered))
                continue;
            Covered now = state.second;
            for (const LayerId id : groups.layers[group]) now[id] = true;
            add(before, group, states.try_emplace(state_of(now), none).first->second);
        }
    }
    return none;
}

/// The front of the family for one group (producers first), by memory, smallest first. It has two
/// axes, memory and (accesses, MACs) in lexicographic order (pareto.h), unless
/// options.macs_is_axis.
[[nodiscard]] std::vector<GroupPoint> dag_group_front(const Network& network,
                                                      const std::vector<LayerId>& layers,
                                                      const ExploreOptions& options);

/// The front over all covers of the network by groups, on (accesses, memory) with MACs between
/// equals. With options.macs_is_axis it has three axes, unless there are too many partial covers
/// (Front::macs_is_axis). Throws InputError for a network without schedulable layers.
[[nodiscard]] Front explore_dag(const Network& network, const ExploreOptions& options);

}  // namespace laminate
