#include "papers/dag_groups/operator_graph.h"

#include <algorithm>

#include "base/error.h"

namespace laminate::dag_groups {

namespace {

class Builder {
public:
    Builder(const Network& network, const MergeOptions& options)
        : network_(network), options_(options) {}

    OperatorGraph build() {
        for (const Layer& layer : network_.layers) {
            if (layer.kind == LayerKind::general)
                throw InputError(layer.name + " (" + operation_text(layer) +
                                 "): is a general layer, which the model of groups does not know");
        }
        find_maps();
        find_left_out();
        find_merged();
        for (size_t n = 0; n < network_.layers.size(); ++n) add_operator(static_cast<LayerId>(n));
        if (graph_.operators.empty())
            throw InputError("network " + network_.name +
                             ": no operator to group (fully connected layers on maps of more than "
                             "one pixel, and what follows "
                             "them, are left out)");
        for (LayerId id = 0; id < count(); ++id) {
            const size_t n = static_cast<size_t>(id);
            const int op = operator_of_[n] >= 0 ? operator_of_[n] : producer_operator(id);
            if (op >= 0 && operator_of_[n] != op && !left_out_[n])
                graph_.operators[static_cast<size_t>(op)].layers.push_back(id);
        }
        add_maps();
        return std::move(graph_);
    }

private:
    [[nodiscard]] LayerId count() const { return static_cast<LayerId>(network_.layers.size()); }
    [[nodiscard]] TensorId& map_of(TensorId id) { return map_of_[static_cast<size_t>(id)]; }

    /// Finds the tensor that holds a map: a layer in place writes the map that it reads.
    void find_maps() {
        map_of_.resize(network_.tensors.size());
        readers_.resize(network_.tensors.size());
        through_merged_.assign(network_.tensors.size(), false);
        for (size_t t = 0; t < map_of_.size(); ++t) map_of_[t] = static_cast<TensorId>(t);
        for (const Layer& layer : network_.layers) {
            if (!is_in_place(layer)) continue;
            map_of(layer.output) = map_of(layer.inputs.front());
            through_merged_[static_cast<size_t>(layer.output)] = true;
        }
        for (LayerId id = 0; id < count(); ++id) {
            if (is_in_place(network_.layer(id))) continue;
            for (const TensorId input : network_.layer(id).inputs)
                readers_[static_cast<size_t>(map_of(input))].push_back(id);
        }
    }

    void find_left_out() {
        left_out_.assign(network_.layers.size(), false);
        std::vector<bool> without(network_.tensors.size(), false);
        for (LayerId id = 0; id < count(); ++id) {
            const Layer& layer = network_.layer(id);
            bool out = std::any_of(layer.inputs.begin(), layer.inputs.end(),
                                   [&](TensorId t) { return without[static_cast<size_t>(t)]; });
            if (layer.kind == LayerKind::gemm) {
                const std::vector<int64_t>& dims =
                    network_.tensor(map_of(layer.inputs.front())).dims;
                out = out || (dims.size() == 4 && dims[2] * dims[3] > 1);
            }
            if (!out) continue;
            left_out_[static_cast<size_t>(id)] = true;
            without[static_cast<size_t>(layer.output)] = true;
            graph_.left_out.push_back(id);
        }
    }

    /// The only layer that reads the layer's map, if that layer is grouped and the map is no
    /// output; else -1.
    [[nodiscard]] LayerId only_reader(LayerId id) {
        const TensorId map = network_.layer(id).output;
        std::vector<LayerId> readers = readers_[static_cast<size_t>(map)];
        readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
        if (readers.size() != 1 || left_out_[static_cast<size_t>(readers.front())]) return -1;
        for (const TensorId output : network_.outputs)
            if (map_of(output) == map) return -1;
        return readers.front();
    }

    void find_merged() {
        into_.assign(network_.layers.size(), -1);
        for (LayerId id = 0; id < count(); ++id) {
            const Layer& layer = network_.layer(id);
            const Window& w = layer.window;
            if (options_.pools &&
                (layer.kind == LayerKind::max_pool || layer.kind == LayerKind::average_pool) &&
                w.stride == std::array<int64_t, 2>{1, 1}) {
                const LayerId reader = only_reader(id);
                if (reader < 0 || network_.layer(reader).kind != LayerKind::conv) continue;
                const Window& r = network_.layer(reader).window;
                if (r.kernel == std::array<int64_t, 2>{1, 1} && r.stride == r.kernel)
                    into_[static_cast<size_t>(id)] = reader;
            }
            if (!options_.adds || layer.kind != LayerKind::add || layer.inputs.size() < 2) continue;
            for (auto input = layer.inputs.rbegin(); input != layer.inputs.rend(); ++input) {
                const LayerId producer = network_.producer(map_of(*input));
                if (producer < 0 || network_.layer(producer).kind != LayerKind::conv ||
                    only_reader(producer) != id)
                    continue;
                into_[static_cast<size_t>(producer)] = id;
                break;
            }
        }
    }

    [[nodiscard]] Reach reach_of(const Layer& layer, MapAxis axis) const {
        const size_t place = axis == MapAxis::y ? 0 : 1;
        if (layer.kind == LayerKind::depth_to_space) return {layer.block, 1, layer.block};
        if (layer.kind == LayerKind::global_average_pool) {
            const int64_t whole = network_.tensor(layer.inputs.front()).dims[2 + place];
            return {whole, whole, 1};
        }
        const AxisWindow w = axis_window(network_, layer, place);
        return w.transposed ? Reach{w.span(), 1, w.stride} : Reach{w.span(), w.stride, 1};
    }

    /// Adds the inputs of a layer to an operator. `after` is the reach of what reads the layer's
    /// map; nothing in between reads more than one row of it.
    void add_inputs(Operator& op, LayerId id, const PerAxis<Reach>& after) {
        const Layer& layer = network_.layer(id);
        PerAxis<Reach> reach;
        for (const MapAxis axis : map_axes) {
            reach[axis] = reach_of(layer, axis);
            reach[axis].kernel = std::max(reach[axis].kernel, after[axis].kernel);
        }
        for (const TensorId input : layer.inputs) {
            const TensorId map = map_of(input);
            const bool direct = !through_merged_[static_cast<size_t>(input)];
            const LayerId producer = network_.producer(map);
            if (producer >= 0 && into_[static_cast<size_t>(producer)] == id) {
                op.is_direct = op.is_direct && direct;
                add_inputs(op, producer, reach);
                op.layers.push_back(producer);
                continue;
            }
            const auto same = std::find_if(op.inputs.begin(), op.inputs.end(),
                                           [&](const OperatorInput& i) { return i.map == map; });
            if (same == op.inputs.end()) {
                op.inputs.push_back({map, reach, direct});
                continue;
            }
            for (const MapAxis axis : map_axes) {
                if (reach[axis].inputs(1) > same->reach[axis].inputs(1))
                    same->reach[axis] = reach[axis];
            }
            same->is_direct = same->is_direct && direct;
        }
        if (layer.weights != nullptr && layer.kind != LayerKind::add)
            op.weights += static_cast<int64_t>(layer.weights->values.size());
    }

    void add_operator(LayerId id) {
        operator_of_.push_back(-1);
        const Layer& layer = network_.layer(id);
        if (left_out_[static_cast<size_t>(id)] || into_[static_cast<size_t>(id)] >= 0 ||
            is_in_place(layer))
            return;
        Operator op;
        op.name = layer.name;
        add_inputs(op, id, {});
        op.layers.push_back(id);
        std::sort(op.layers.begin(), op.layers.end());
        operator_of_.back() = graph_.size();
        for (const LayerId part : op.layers)
            operator_of_[static_cast<size_t>(part)] = graph_.size();
        operator_of_map_.resize(network_.tensors.size(), -1);
        operator_of_map_[static_cast<size_t>(layer.output)] = graph_.size();
        graph_.operators.push_back(std::move(op));
        Map map;
        const std::vector<int64_t>& dims = network_.tensor(layer.output).dims;
        map.channels = dims[1];
        if (dims.size() == 4) {
            map.height = dims[2];
            map.width = dims[3];
        }
        graph_.maps.push_back(map);
    }

    /// The operator whose map a layer in place belongs to; -1 for the map of a network input.
    [[nodiscard]] int producer_operator(LayerId id) {
        return is_in_place(network_.layer(id))
                   ? operator_of_map_[static_cast<size_t>(map_of(network_.layer(id).output))]
                   : -1;
    }

    void add_maps() {
        for (const TensorId input : network_.inputs) {
            operator_of_map_[static_cast<size_t>(input)] = static_cast<int>(graph_.maps.size());
            const std::vector<int64_t>& dims = network_.tensor(input).dims;
            Map map;
            map.channels = dims.size() > 1 ? dims[1] : 1;
            if (dims.size() == 4) {
                map.height = dims[2];
                map.width = dims[3];
            }
            graph_.maps.push_back(map);
        }
        for (size_t op = 0; op < graph_.operators.size(); ++op) {
            for (OperatorInput& input : graph_.operators[op].inputs) {
                input.map = operator_of_map_[static_cast<size_t>(input.map)];
                graph_.maps[static_cast<size_t>(input.map)].readers.push_back(static_cast<int>(op));
            }
        }
        const auto mark = [&](TensorId id) {
            const int map = operator_of_map_[static_cast<size_t>(map_of(id))];
            if (map >= 0) graph_.maps[static_cast<size_t>(map)].is_output = true;
        };
        for (const TensorId output : network_.outputs) mark(output);
        for (const LayerId id : graph_.left_out) {
            for (const TensorId input : network_.layer(id).inputs) mark(input);
        }
    }

    const Network& network_;
    MergeOptions options_;
    OperatorGraph graph_;
    std::vector<TensorId> map_of_;
    std::vector<bool> through_merged_;
    std::vector<std::vector<LayerId>> readers_;  ///< by tensor, without layers in place
    std::vector<bool> left_out_;
    std::vector<LayerId> into_;         ///< the layer that a layer is merged into, or -1
    std::vector<int> operator_of_;      ///< by layer
    std::vector<int> operator_of_map_;  ///< by tensor
};

}  // namespace

std::vector<std::vector<int>> OperatorGraph::needs() const {
    std::vector<std::vector<int>> result(operators.size());
    for (size_t op = 0; op < result.size(); ++op) {
        for (const OperatorInput& input : operators[op].inputs) {
            if (input.map < size()) result[op].push_back(input.map);
        }
    }
    return result;
}

OperatorGraph operator_graph(const Network& network, const MergeOptions& options) {
    return Builder(network, options).build();
}

}  // namespace laminate::dag_groups
