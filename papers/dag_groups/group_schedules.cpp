#include "papers/dag_groups/group_schedules.h"

#include <algorithm>
#include <tuple>

#include "scheduler/counts/bounds.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "scheduler/schedule/problem.h"

namespace laminate::dag_groups {

ScheduledGroups::ScheduledGroups(const Network& network, const OperatorGraph& graph,
                                 Elements memory, TileSizes tiles, const std::atomic<bool>* stop)
    : network_(network), graph_(graph), memory_(memory), tiles_(tiles), stop_(stop) {}

std::optional<std::vector<LayerId>> ScheduledGroups::layers_of(
    const std::vector<int>& operators) const {
    std::vector<LayerId> layers;
    for (const int op : operators) {
        const Operator& o = graph_.operators[static_cast<size_t>(op)];
        if (!o.is_direct) return std::nullopt;
        for (const LayerId id : o.layers) {
            if (is_schedulable(network_, id)) layers.push_back(id);
        }
    }
    std::sort(layers.begin(), layers.end());
    if (layers.size() < 2) return layers;
    // Every layer but the last feeds the group and nothing else.
    for (const LayerId id : layers) {
        const TensorId output = network_.layer(id).output;
        if (id == layers.back()) continue;
        const std::vector<LayerId> readers = network_.consumers(output);
        const auto is_inside = [&](LayerId reader) {
            return std::binary_search(layers.begin(), layers.end(), reader);
        };
        if (network_.is_output(output) || !std::all_of(readers.begin(), readers.end(), is_inside))
            return std::nullopt;
    }
    return layers;
}

const std::vector<GroupPoint>& ScheduledGroups::front(const std::vector<LayerId>& layers,
                                                      bool within_memory) {
    std::pair<bool, std::vector<int64_t>> key{within_memory,
                                              shape_key(layer_problems(network_, layers))};
    const auto known = fronts_.find(key);
    if (known != fronts_.end()) return known->second;
    ExploreOptions options;
    options.tiles = layers.size() > 1 ? tiles_ : TileSizes::divisors;
    options.stop = stop_;
    if (within_memory) options.memory = memory_;
    std::vector<GroupPoint> points = dag_group_front(network_, layers, options);
    std::sort(points.begin(), points.end(), [](const GroupPoint& a, const GroupPoint& b) {
        return std::tie(a.accesses, a.macs, a.live_total, a.group) <
               std::tie(b.accesses, b.macs, b.live_total, b.group);
    });
    return fronts_.emplace(std::move(key), std::move(points)).first->second;
}

GroupPoint ScheduledGroups::named(GroupPoint point, const std::vector<LayerId>& layers) const {
    for (size_t k = 0; k < layers.size(); ++k)
        point.group.nests[k].layer = network_.layer(layers[k]).name;
    return point;
}

std::optional<GroupPoint> ScheduledGroups::best(const std::vector<int>& operators) {
    const std::optional<std::vector<LayerId>> layers = layers_of(operators);
    if (!layers) return std::nullopt;
    if (layers->empty()) return GroupPoint{};
    const std::vector<GroupPoint>& points = front(*layers, true);
    if (points.empty()) return std::nullopt;
    return named(points.front(), *layers);
}

std::optional<int64_t> ScheduledGroups::entries(const std::vector<int>& operators, int64_t images) {
    const std::optional<std::vector<LayerId>> layers = layers_of(operators);
    if (!layers) return std::nullopt;
    if (layers->empty()) return 0;
    const std::vector<GroupPoint>& points = front(*layers, true);
    if (points.empty()) return std::nullopt;
    return checked_multiply(images, points.front().accesses.value());
}

std::optional<int64_t> ScheduledGroups::least_entries(const std::vector<int>& operators,
                                                      int64_t images) const {
    const std::optional<std::vector<LayerId>> layers = layers_of(operators);
    if (!layers) return std::nullopt;
    if (layers->empty()) return 0;
    return checked_multiply(images,
                            group_bound(layer_problems(network_, *layers), memory_).value());
}

GroupPoint ScheduledGroups::alone(LayerId layer) {
    const std::vector<LayerId> layers{layer};
    const std::vector<GroupPoint>& fitting = front(layers, true);
    if (!fitting.empty()) return named(fitting.front(), layers);
    const std::vector<GroupPoint>& all = front(layers, false);
    return named(*std::min_element(all.begin(), all.end(),
                                   [](const GroupPoint& a, const GroupPoint& b) {
                                       return a.live_total < b.live_total;
                                   }),
                 layers);
}

NetworkSchedule network_schedule(const Network& network, const OperatorGraph& graph,
                                 const std::vector<Group>& groups, ScheduledGroups& schedules) {
    std::vector<GroupSchedule> nests;
    int64_t split = 0;
    std::vector<LayerId> alone;
    for (const Group& group : groups) {
        if (const std::optional<GroupPoint> best = schedules.best(group.operators)) {
            if (!best->group.nests.empty()) nests.push_back(best->group);
            continue;
        }
        ++split;
        alone.clear();
        for (const int op : group.operators) {
            for (const LayerId id : graph.operators[static_cast<size_t>(op)].layers) {
                if (is_schedulable(network, id)) alone.push_back(id);
            }
        }
        std::sort(alone.begin(), alone.end());
        for (const LayerId id : alone) nests.push_back(schedules.alone(id).group);
    }
    for (const LayerId id : graph.left_out) {
        if (is_schedulable(network, id)) nests.push_back(schedules.alone(id).group);
    }
    return {Schedule(network, std::move(nests)), split};
}

}  // namespace laminate::dag_groups
