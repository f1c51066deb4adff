#include "answers/network_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/indexed.h"

namespace laminate::cli {

namespace {

/// Layers in the order in which they run. A group has one output, so it may run where its last
/// layer stands: its inputs exist by then, and nothing needs its output earlier.
std::vector<LayerId> execution_order(const Network& network, const Schedule& schedule) {
    std::map<std::string_view, LayerId> by_name;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id)
        by_name[network.layer(id).name] = id;
    std::map<LayerId, std::vector<LayerId>> by_sink;
    IndexVector<bool, LayerId> is_grouped(network.layers.size());
    for (const GroupSchedule& group : schedule.groups()) {
        std::vector<LayerId> members;
        for (const Nest& nest : group.nests) {
            members.push_back(by_name.at(nest.layer));
            is_grouped[members.back()] = true;
        }
        const LayerId sink = members.back();
        by_sink[sink] = std::move(members);
    }
    std::vector<LayerId> order;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (const auto group = by_sink.find(id); group != by_sink.end())
            order.insert(order.end(), group->second.begin(), group->second.end());
        else if (!is_grouped[id])
            order.push_back(id);
    }
    return order;
}

/// Lanes, each with the tensor that holds it.
class Lanes {
public:
    explicit Lanes(IndexVector<int, TensorId> readers) : readers_(std::move(readers)) {}

    /// Counts one reader of the tensor; the last one frees its lane.
    void read(TensorId tensor) {
        if (--readers_[tensor] > 0) return;
        std::replace(holders_.begin(), holders_.end(), tensor, free_);
    }
    int take(TensorId tensor) {
        const auto found = std::find(holders_.begin(), holders_.end(), free_);
        const auto lane = static_cast<int>(found - holders_.begin());
        if (found == holders_.end()) holders_.push_back(free_);
        if (readers_[tensor] > 0) holders_[lane] = tensor;
        return lane;
    }

private:
    static constexpr TensorId free_ = -1;
    IndexVector<int, TensorId> readers_;  ///< still to come
    IndexVector<TensorId, int> holders_;  ///< by lane
};

}  // namespace

std::vector<GraphRow> network_graph(const Network& network, const Schedule& schedule) {
    IndexVector<int, TensorId> readers(network.tensors.size());
    for (const Layer& layer : network.layers)
        for (const TensorId id : layer.inputs) ++readers[id];
    Lanes lanes(std::move(readers));
    std::vector<GraphRow> rows;
    for (const TensorId id : network.inputs) rows.push_back({id, -1, lanes.take(id)});
    for (const LayerId id : execution_order(network, schedule)) {
        const Layer& layer = network.layer(id);
        for (const TensorId input : layer.inputs) lanes.read(input);
        rows.push_back({layer.output, id, lanes.take(layer.output)});
    }
    return rows;
}

}  // namespace laminate::cli
