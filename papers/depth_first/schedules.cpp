#include "papers/depth_first/schedules.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace laminate::depth_first {

namespace {

using laminate::Dim;

/// The stack's layers in the order of the network, with the layers between them that the model
/// leaves out.
std::vector<LayerId> group_layers(const Network& network, const Workload& workload,
                                  const std::vector<size_t>& layers) {
    std::set<LayerId> inside;
    for (const size_t n : layers) inside.insert(workload.layers[n].layer);
    const auto producer = [&](TensorId tensor) -> LayerId {
        for (size_t id = 0; id < network.layers.size(); ++id) {
            if (network.layers[id].output == tensor) return static_cast<LayerId>(id);
        }
        return -1;
    };
    const auto is_costed = [&](LayerId id) {
        return std::ranges::any_of(workload.layers,
                                   [&](const WorkloadLayer& layer) { return layer.layer == id; });
    };
    // A left-out layer joins the group if it computes only from layers inside.
    for (size_t id = 0; id < network.layers.size(); ++id) {
        const auto layer = static_cast<LayerId>(id);
        if (is_costed(layer) || !is_schedulable(network, layer)) continue;
        const std::vector<TensorId>& inputs = network.layers[id].inputs;
        const bool follows = std::ranges::all_of(
            inputs, [&](TensorId tensor) { return inside.contains(producer(tensor)); });
        if (follows) inside.insert(layer);
    }
    // From the back, drop left-out layers that nothing inside reads and that need not be in a
    // group.
    std::vector<LayerId> result(inside.begin(), inside.end());
    for (size_t n = result.size(); n-- > 0;) {
        const LayerId id = result[n];
        if (is_costed(id) || must_be_scheduled(network, id)) continue;
        const TensorId output = network.layers[static_cast<size_t>(id)].output;
        const bool is_read = std::ranges::any_of(result, [&](LayerId reader) {
            return std::ranges::count(network.layers[static_cast<size_t>(reader)].inputs, output) >
                   0;
        });
        if (!is_read) result.erase(result.begin() + static_cast<ptrdiff_t>(n));
    }
    return result;
}

/// The layer of the workload whose map a tensor holds, directly or through layers that the model
/// leaves out. A concatenation holds the map of its first part.
size_t map_of(const Network& network, const Workload& workload, TensorId tensor) {
    while (true) {
        const auto producer = std::ranges::find(network.layers, tensor, &Layer::output);
        const bool is_input = producer == network.layers.end();
        const auto id = static_cast<LayerId>(producer - network.layers.begin());
        for (size_t n = 0; n < workload.layers.size(); ++n) {
            const WorkloadLayer& layer = workload.layers[n];
            if (is_input ? layer.is_input() && layer.name == network.tensor(tensor).name
                         : layer.layer == id)
                return n;
        }
        if (is_input) throw std::logic_error("map_of: a tensor without source");
        tensor = producer->inputs.at(0);
    }
}

GroupSchedule group_of(const Network& network, const Workload& workload,
                       const std::vector<LayerId>& layers, const ScheduledStack& stack) {
    for (const LayerId layer : layers) {
        if (!is_schedulable(network, layer)) {
            const Layer& refused = network.layers[static_cast<size_t>(layer)];
            throw InputError(refused.name + " (" + to_string(refused.kind) +
                             "): found in a stack of " + std::to_string(layers.size()) +
                             " layers, but it has no loop nest that a schedule could hold");
        }
    }
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    const int sink = static_cast<int>(problems.size()) - 1;
    // The sink's first two loops run over tiles; everything is computed in their body.
    const Level root, outer{sink, 0}, body{sink, 1};
    const auto store = [&](TensorId tensor) {
        const Overlap overlap =
            stack.strategy.overlap_of(workload.layers[map_of(network, workload, tensor)].name);
        return overlap == Overlap::fully_cached ? root
               : overlap == Overlap::recompute  ? body
                                                : outer;
    };
    const bool by_columns = goes_by_columns(workload, stack.layers, stack.strategy);
    GroupSchedule group;
    for (const LayerProblem& problem : problems) {
        Nest nest;
        nest.layer = problem.name;
        const Dim first = by_columns ? Dim::x : Dim::y, second = by_columns ? Dim::y : Dim::x;
        for (const Dim dim : {first, second, Dim::z, Dim::i})
            nest.loops.push_back({dim, Band::outer});
        for (const Dim dim : laminate::all_dims) nest.loops.push_back({dim, Band::inner});
        nest.tile = problem.extent;
        if (problem.has_weights()) nest.w = Placement{root, root};
        nest.y = Placement{store(problem.output), body};
        group.nests.push_back(std::move(nest));
    }
    Nest& last = group.nests.back();
    last.tile[Dim::x] = std::min(stack.strategy.tile.x, problems.back()[Dim::x]);
    last.tile[Dim::y] = std::min(stack.strategy.tile.y, problems.back()[Dim::y]);
    last.y = Placement{body, body};
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) continue;
        const TensorReader& reader = tensor.readers.front();
        group.nests[static_cast<size_t>(reader.nest)].x.push_back(
            {reader.operand, Placement{store(tensor.tensor), body}});
    }
    check_group(network, group);
    return group;
}

}  // namespace

Schedule schedule_of(const Network& network, const Workload& workload,
                     const std::vector<ScheduledStack>& stacks) {
    std::vector<GroupSchedule> groups;
    for (const ScheduledStack& stack : stacks)
        groups.push_back(
            group_of(network, workload, group_layers(network, workload, stack.layers), stack));
    return Schedule(network, std::move(groups));
}

}  // namespace laminate::depth_first
