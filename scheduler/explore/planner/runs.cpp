#include "scheduler/explore/planner/runs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "base/indexed.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

namespace {

/// Whether the layer joins its maps with one of constants: coordinates, mostly.
bool joins_constants(const Network& network, const LayerProblem& p) {
    const auto is_of_constants = [&](const LayerInput& input) {
        const LayerId producer = network.producer(input.tensor);
        return producer >= 0 && is_constant(network.layer(producer));
    };
    return (p.operation == Operation::concat || is_elementwise(p.operation)) &&
           std::ranges::any_of(p.inputs, is_of_constants);
}

/// Whether the layer is of a kind that mostly networks for pictures have.
bool is_of_pictures(const Network& network, const LayerProblem& p) {
    return joins_constants(network, p) || p.operation == Operation::rearrange ||
           p.operation == Operation::resample ||
           p.operation == Operation::normalise || is_extreme_of_channels(p.operation) ||
           (is_elementwise(p.operation) && p.operation != Operation::add) ||
           (p.operation == Operation::concat && p.inputs.size() == 1);
}

/// Whether the layer needs the whole map before its first output. A group that held it would hold
/// the map, so it lies between groups.
bool is_global_mean(const LayerProblem& p) {
    return p.operation == Operation::average_pool && p[Dim::y] == 1 && p[Dim::x] == 1 &&
           p.y().in * p.x().in > 1;
}

/// By layer, the first layer that it is connected with; none where no schedule covers the layer, or
/// no group is to hold it.
IndexVector<std::optional<LayerId>, LayerId> components(const Network& network) {
    IndexVector<std::optional<LayerId>, LayerId> first(network.layers.size());
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (is_schedulable(network, id) && !is_global_mean(layer_problem(network, id)))
            first[id] = id;
    }
    const Readers all = all_readers(network);
    const std::function<LayerId(LayerId)> root = [&](LayerId id) {
        return *first[id] == id ? id : root(*first[id]);
    };
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const TensorId output = network.layer(id).output;
        if (!first[id] || network.is_output(output)) continue;
        const std::vector<LayerId>& readers = all[output];
        if (!std::all_of(readers.begin(), readers.end(),
                         [&](LayerId reader) { return first[reader].has_value(); }))
            continue;
        for (const LayerId reader : readers) {
            const auto [low, high] = std::minmax({root(id), root(reader)});
            first[high] = low;
        }
    }
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (first[id]) first[id] = root(id);
    }
    return first;
}

}  // namespace

std::vector<std::vector<LayerId>> planned_runs(const Network& network) {
    const IndexVector<std::optional<LayerId>, LayerId> first = components(network);
    std::map<LayerId, std::vector<LayerId>> connected;  // with a layer of pictures among them
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (first[id] && is_of_pictures(network, layer_problem(network, id))) connected[*first[id]] = {};
    }
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (!first[id]) continue;
        if (const auto found = connected.find(*first[id]); found != connected.end())
            found->second.push_back(id);
    }
    std::vector<std::vector<LayerId>> runs;
    for (const auto& [root, layers] : connected) runs.push_back(layers);
    for (std::vector<LayerId>& chain : schedulable_chains(network)) {
        if (!connected.contains(*first[chain.front()])) runs.push_back(std::move(chain));
    }
    return runs;
}

Readers all_readers(const Network& network) {
    Readers readers(network.tensors.size());
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        for (const TensorId input : network.layer(id).inputs) readers[input].push_back(id);
    }
    return readers;
}

std::vector<size_t> last_readers(const Network& network, const Readers& readers,
                                 const std::vector<LayerId>& run) {
    std::vector<size_t> last;
    for (const LayerId id : run) {
        const TensorId output = network.layer(id).output;
        size_t place = network.is_output(output) ? run.size() : 0;
        for (const LayerId reader : readers[output]) {
            const auto at = std::lower_bound(run.begin(), run.end(), reader);
            const bool is_inside = at != run.end() && *at == reader;
            place = std::max(place, is_inside ? static_cast<size_t>(at - run.begin()) : run.size());
        }
        last.push_back(place);
    }
    return last;
}

}  // namespace laminate
