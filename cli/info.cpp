// laminate info NET: what a network is, layer by layer, and the memory that running it layer by
// layer takes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/network_argument.h"
#include "base/units.h"
#include "cli/compiled.h"
#include "cli/execution.h"
#include "cli/verbs.h"

namespace laminate::cli {

namespace {

int64_t elements_of(const ConstantPtr& constant) {
    return constant == nullptr ? 0 : static_cast<int64_t>(constant->values.size());
}

int64_t parameters(const Layer& layer) {
    return elements_of(layer.weights) + elements_of(layer.bias) +
           elements_of(layer.activation.slope);
}

/// Bytes of activations that exist while each layer runs, one layer after the other, each tensor
/// freed after its last reader; the network's inputs and outputs included.
std::vector<Bytes> live_bytes(const Network& network) {
    // One pass over the layers: asking the network for each tensor's readers would look at all of
    // them each time.
    const size_t layers = network.layers.size();
    std::vector<size_t> last(network.tensors.size(), 0);
    for (size_t at = 0; at < layers; ++at) {
        last[static_cast<size_t>(network.layers[at].output)] = at;
        for (const TensorId id : network.layers[at].inputs) last[static_cast<size_t>(id)] = at;
    }
    for (const TensorId id : network.outputs) last[static_cast<size_t>(id)] = layers - 1;

    std::vector<std::vector<TensorId>> freed_after(layers);
    for (size_t id = 0; id < last.size(); ++id)
        freed_after[last[id]].push_back(static_cast<TensorId>(id));
    const auto bytes_of = [&](TensorId id) {
        return to_bytes(Elements(element_count(network.tensor(id).dims))).value();
    };
    std::vector<Bytes> live(layers);
    int64_t held = 0;
    for (const TensorId id : network.inputs) held = checked_add(held, bytes_of(id));
    for (size_t at = 0; at < layers; ++at) {
        held = checked_add(held, bytes_of(network.layers[at].output));
        live[at] = Bytes(held);
        for (const TensorId id : freed_after[at]) held -= bytes_of(id);
    }
    return live;
}

std::string window_text(const Layer& layer) {
    const Window& w = layer.window;
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
        case LayerKind::max_pool:
        case LayerKind::average_pool:
            break;
        default:
            return "";
    }
    std::string text = fmt::format("{}x{}", w.kernel[0], w.kernel[1]);
    if (w.stride != std::array<int64_t, 2>{1, 1})
        text += fmt::format(" /{}x{}", w.stride[0], w.stride[1]);
    if (w.dilation != std::array<int64_t, 2>{1, 1})
        text += fmt::format(" dil {}x{}", w.dilation[0], w.dilation[1]);
    if (layer.groups != 1) text += fmt::format(" g{}", layer.groups);
    return text;
}

nlohmann::ordered_json tensors_json(const Network& network, const std::vector<TensorId>& ids) {
    auto list = nlohmann::ordered_json::array();
    for (const TensorId id : ids) list.push_back(tensor_json(network.tensor(id)));
    return list;
}

Exit info(const Network& network, const Output& output) {
    const std::vector<Bytes> live = live_bytes(network);
    Table table({{"layer"},
                 {"kind"},
                 {"window"},
                 {"activation"},
                 {"output"},
                 {"MACs", Align::right},
                 {"parameters", Align::right},
                 {"output bytes", Align::right},
                 {"live bytes", Align::right}});
    auto layers = nlohmann::ordered_json::array();
    Macs macs;
    Elements parameter_sum;
    Bytes peak;
    for (LayerId id = 0; id < static_cast<LayerId>(network.layers.size()); ++id) {
        const Layer& layer = network.layer(id);
        const std::vector<int64_t>& dims = network.tensor(layer.output).dims;
        const Macs layer_work(layer_macs(network, id));
        const Bytes bytes = to_bytes(Elements(element_count(dims)));
        const Bytes alive = live[static_cast<size_t>(id)];
        const bool activated = layer.activation.kind != ActivationKind::none;
        table.add({layer.name, operation_text(layer), window_text(layer),
                   activated ? activation_text(layer.activation) : "", dims_text(dims),
                   grouped(layer_work.value()), grouped(parameters(layer)), grouped(bytes.value()),
                   grouped(alive.value())});
        layers.push_back({{"name", layer.name},
                          {"onnx_name", layer.onnx_name},
                          {"kind", operation_text(layer)},
                          {"activation", activation_text(layer.activation)},
                          {"inputs", tensors_json(network, layer.inputs)},
                          {"output", tensors_json(network, {layer.output})[0]},
                          {"macs", layer_work.value()},
                          {"parameters_elements", parameters(layer)},
                          {"output_bytes", bytes.value()},
                          {"live_bytes", alive.value()}});
        macs += layer_work;
        parameter_sum += Elements(parameters(layer));
        peak = std::max(peak, alive);
    }
    table.add_rule();
    table.add({fmt::format("{} layers", network.layers.size()), "", "", "", "",
               grouped(macs.value()), grouped(parameter_sum.value()), "",
               "peak " + grouped(peak.value())});

    std::vector<std::string> ends;
    for (const TensorId id : network.inputs) {
        ends.push_back("input " + tensor_text(network.tensor(id)));
    }
    for (const TensorId id : network.outputs) {
        ends.push_back("output " + tensor_text(network.tensor(id)));
    }
    output.print(fmt::format("{} ({})\n{}\n\n{}\n", network.name, network_hash(network),
                             fmt::join(ends, "\n"), table.text()));
    output.print(fmt::format("layer by layer the activations take {} at their peak; parameters {}",
                             bytes_text(peak.value()),
                             bytes_text(to_bytes(parameter_sum).value())));
    if (!network.folded.empty())
        output.print(fmt::format("fused away on import:\n  {}", fmt::join(network.folded, "\n  ")));

    output.json({{"schema", "laminate.info"},
                 {"version", 1},
                 {"network", network.name},
                 {"network_hash", network_hash(network)},
                 {"structure_hash", structure_hash(network)},
                 {"inputs", tensors_json(network, network.inputs)},
                 {"outputs", tensors_json(network, network.outputs)},
                 {"layers", layers},
                 {"macs", macs.value()},
                 {"parameters_elements", parameter_sum.value()},
                 {"layer_by_layer_peak_bytes", peak.value()},
                 {"folded", network.folded}});
    return Exit::ok;
}

}  // namespace

void add_info(Program& program) {
    CLI::App* verb =
        program.add_verb("info", "Layers, shapes, MACs, parameters and memory of a network",
                         "  laminate info zoo:resnet50\n"
                         "  laminate info net.onnx --height 540 --width 960 --json -\n"
                         "  laminate compile zoo:l2net -o l2net/ && laminate info l2net/");
    auto argument = std::make_shared<NetworkArgument>();
    argument->declare(verb, true);
    program.on(verb, [argument](const Output& output) {
        if (is_compiled_directory(*argument)) return compiled_info(argument->spec, output);
        return info(argument->open(), output);
    });
}

}  // namespace laminate::cli
