// laminate info NET: a network layer by layer, and the memory that running it layer by layer takes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "answers/front_file.h"
#include "answers/network_argument.h"
#include "base/indexed.h"
#include "base/units.h"
#include "cli/compiled.h"
#include "cli/execution.h"
#include "cli/verbs.h"
#include "nets/network/picture_views.h"
#include "scheduler/schedule/problem.h"

namespace laminate::cli {

namespace {

int64_t elements_of(const ConstantPtr& constant) {
    return constant == nullptr ? 0 : static_cast<int64_t>(constant->values.size());
}

int64_t parameters(const Layer& layer) {
    return elements_of(layer.weights) + elements_of(layer.bias) +
           elements_of(layer.activation.slope);
}

/// Bytes of activations that exist while each layer runs, one layer after the other, including the
/// network's inputs and outputs. Each tensor is freed after its last reader.
IndexVector<Bytes, LayerId> live_bytes(const Network& network) {
    // One pass over the layers: asking the network for the readers of each tensor takes quadratic
    // time.
    const auto layers = static_cast<LayerId>(network.layers.size());
    IndexVector<LayerId, TensorId> last_reader(network.tensors.size());
    for (LayerId at = 0; at < layers; ++at) {
        last_reader[network.layer(at).output] = at;
        for (const TensorId id : network.layer(at).inputs) last_reader[id] = at;
    }
    for (const TensorId id : network.outputs) last_reader[id] = layers - 1;

    IndexVector<std::vector<TensorId>, LayerId> freed_after(network.layers.size());
    for (TensorId id = 0; id < std::ssize(network.tensors); ++id)
        freed_after[last_reader[id]].push_back(id);
    const auto bytes_of = [&](TensorId id) {
        return to_bytes(Elements(element_count(network.tensor(id).dims))).value();
    };
    IndexVector<Bytes, LayerId> live(network.layers.size());
    int64_t held = 0;
    for (const TensorId id : network.inputs) held = checked_add(held, bytes_of(id));
    for (LayerId at = 0; at < layers; ++at) {
        held = checked_add(held, bytes_of(network.layer(at).output));
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

/// What is said of one layer.
struct LayerFacts {
    const Layer* layer;
    const Tensor* output;
    Macs macs;
    Elements parameters;
    Bytes output_bytes;
    Bytes live;
    bool can_be_grouped;
};

struct NetworkFacts {
    std::vector<LayerFacts> layers;
    Macs macs;
    Elements parameters;
    Bytes peak;  ///< of activations, layer by layer
};

NetworkFacts facts_of(const Network& network) {
    const IndexVector<Bytes, LayerId> live = live_bytes(network);
    NetworkFacts facts;
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        const Layer& layer = network.layer(id);
        const Tensor& output = network.tensor(layer.output);
        const LayerFacts& one = facts.layers.emplace_back(
            LayerFacts{&layer, &output, Macs(layer_macs(network, id)), Elements(parameters(layer)),
                       to_bytes(Elements(element_count(output.dims))), live[id],
                       is_schedulable(network, id)});
        facts.macs += one.macs;
        facts.parameters += one.parameters;
        facts.peak = std::max(facts.peak, one.live);
    }
    return facts;
}

std::string layers_table(const NetworkFacts& facts) {
    Table table({{"layer"},
                 {"kind"},
                 {"window"},
                 {"activation"},
                 {"output"},
                 {"MACs", Align::right},
                 {"parameters", Align::right},
                 {"output bytes", Align::right},
                 {"live bytes", Align::right}});
    for (const LayerFacts& one : facts.layers) {
        const Activation& activation = one.layer->activation;
        table.add({one.layer->name, operation_text(*one.layer), window_text(*one.layer),
                   activation.kind == ActivationKind::none ? "" : activation_text(activation),
                   dims_text(one.output->dims), grouped(one.macs.value()),
                   grouped(one.parameters.value()), grouped(one.output_bytes.value()),
                   grouped(one.live.value())});
    }
    table.add_rule();
    table.add({fmt::format("{} layers", facts.layers.size()), "", "", "", "",
               grouped(facts.macs.value()), grouped(facts.parameters.value()), "",
               "peak " + grouped(facts.peak.value())});
    return table.text();
}

/// The layers that no group can hold, which run as whole tensors; empty if there are none. Groups read
/// constants where they lie.
std::string outside_text(const NetworkFacts& facts) {
    constexpr size_t most = 12;
    std::vector<std::string> names;
    for (const LayerFacts& one : facts.layers) {
        if (!one.can_be_grouped && !is_constant(*one.layer))
            names.push_back(fmt::format("{} ({})", one.layer->name, operation_text(*one.layer)));
    }
    if (names.empty()) return "";
    const size_t count = names.size();
    if (count > most) {
        names.resize(most);
        names.push_back(fmt::format("{} more", count - most));
    }
    return fmt::format("{} of {} layers can be in no group: {}", count, facts.layers.size(),
                       fmt::join(names, ", "));
}

void print(const Network& network, const NetworkFacts& facts, const Output& output) {
    std::vector<std::string> ends;
    for (const TensorId id : network.inputs)
        ends.push_back("input " + tensor_text(network.tensor(id)));
    for (const TensorId id : network.outputs)
        ends.push_back("output " + tensor_text(network.tensor(id)));
    output.print(fmt::format("{} ({})\n{}\n\n{}\n", network.name, network_hash(network),
                             fmt::join(ends, "\n"), layers_table(facts)));
    output.print(fmt::format("layer by layer the activations take {} at their peak; parameters {}",
                             bytes_text(facts.peak.value()),
                             bytes_text(to_bytes(facts.parameters).value())));
    if (const std::string outside = outside_text(facts); !outside.empty()) output.print(outside);
    if (!network.folded.empty())
        output.print(fmt::format("fused away on import:\n  {}", fmt::join(network.folded, "\n  ")));
}

nlohmann::ordered_json json_of(const Network& network, const LayerFacts& one) {
    return {{"name", one.layer->name},
            {"onnx_name", one.layer->onnx_name},
            {"kind", operation_text(*one.layer)},
            {"activation", activation_text(one.layer->activation)},
            {"inputs", tensors_json(network, one.layer->inputs)},
            {"output", tensor_json(*one.output)},
            {"macs", one.macs.value()},
            {"parameters_elements", one.parameters.value()},
            {"output_bytes", one.output_bytes.value()},
            {"live_bytes", one.live.value()},
            {"can_be_grouped", one.can_be_grouped}};
}

nlohmann::ordered_json json_of(const Network& network, const NetworkFacts& facts) {
    auto layers = nlohmann::ordered_json::array();
    for (const LayerFacts& one : facts.layers) layers.push_back(json_of(network, one));
    return {{"schema", "laminate.info"},
            {"version", 1},
            {"network", network.name},
            {"network_hash", network_hash(network)},
            {"structure_hash", structure_hash(network)},
            {"inputs", tensors_json(network, network.inputs)},
            {"outputs", tensors_json(network, network.outputs)},
            {"layers", layers},
            {"macs", facts.macs.value()},
            {"parameters_elements", facts.parameters.value()},
            {"layer_by_layer_peak_bytes", facts.peak.value()},
            {"folded", network.folded}};
}

Exit info(const Network& network, const Output& output) {
    const NetworkFacts facts = facts_of(network);
    print(network, facts, output);
    output.json(json_of(network, facts));
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
        return info(to_run(argument->open()), output);
    });
}

}  // namespace laminate::cli
