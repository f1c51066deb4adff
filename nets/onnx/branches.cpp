// If on a condition that is known before the run. Exporters leave such nodes behind where the rank
// or an extent of a tensor decides. The taken branch becomes part of the graph around it; the other
// one is ignored.
#include <algorithm>
#include <utility>

#include "nets/onnx/importer.h"

namespace laminate::onnx {

namespace {

using Names = std::map<std::string, std::string>;

template <class Visit>
void for_each_inner_graph(const proto::NodeProto& node, const Visit& visit) {
    for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) visit(attribute.g());
        for (const auto& graph : attribute.graphs()) visit(graph);
    }
}

/// Names that the graph itself defines.
std::unordered_set<std::string> names_defined(const proto::GraphProto& graph) {
    std::unordered_set<std::string> names;
    for (const auto& input : graph.input()) names.insert(input.name());
    for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
    for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
    names.erase("");
    return names;
}

/// Adds the names that the graph reads from the graphs around it.
void add_free_names(const proto::GraphProto& graph, std::vector<std::string>& names) {
    const std::unordered_set<std::string> own = names_defined(graph);
    std::vector<std::string> read;
    for (const auto& node : graph.node()) {
        const std::vector<std::string> of_node = names_read(node);
        read.insert(read.end(), of_node.begin(), of_node.end());
    }
    for (const auto& output : graph.output()) read.push_back(output.name());
    std::copy_if(read.begin(), read.end(), std::back_inserter(names),
                 [&](const std::string& name) { return !own.contains(name); });
}

void rename(google::protobuf::RepeatedPtrField<std::string>* list, const Names& names) {
    for (std::string& name : *list) {
        if (const auto found = names.find(name); found != names.end()) name = found->second;
    }
}

void rename(proto::GraphProto& graph, const Names& names) {
    if (names.empty()) return;
    for (auto& tensor : *graph.mutable_initializer()) {
        if (const auto found = names.find(tensor.name()); found != names.end())
            tensor.set_name(found->second);
    }
    for (auto& output : *graph.mutable_output()) {
        if (const auto found = names.find(output.name()); found != names.end())
            output.set_name(found->second);
    }
    for (auto& node : *graph.mutable_node()) {
        rename(node.mutable_input(), names);
        rename(node.mutable_output(), names);
        const auto rename_inner = [&](proto::GraphProto& inner) {
            const std::unordered_set<std::string> own = names_defined(inner);
            const auto is_hidden = [&](const std::string& name) { return names.contains(name); };
            if (std::none_of(own.begin(), own.end(), is_hidden)) return rename(inner, names);
            Names outer = names;
            for (const std::string& name : own) outer.erase(name);
            rename(inner, outer);
        };
        for (auto& attribute : *node.mutable_attribute()) {
            if (attribute.has_g()) rename_inner(*attribute.mutable_g());
            for (auto& inner : *attribute.mutable_graphs()) rename_inner(inner);
        }
    }
}

void if_node(Importer& importer, Node& node) {
    node.expect_inputs(1, 1);
    const auto* then_branch = node.any("then_branch");
    const auto* else_branch = node.any("else_branch");
    if (then_branch == nullptr || !then_branch->has_g() || else_branch == nullptr ||
        !else_branch->has_g())
        node.fail("has no then_branch or no else_branch");
    const std::optional<bool> holds = importer.truth(node, 0);
    if (!holds)
        node.fail("condition " + in_quotes(node.input(0)) +
                  " is not known before the run, expected one constant truth value" + importer.how_to_know());
    importer.take_over(node, *holds ? then_branch->g() : else_branch->g());
}

}  // namespace

std::vector<std::string> names_read(const proto::NodeProto& node) {
    std::vector<std::string> names;
    std::copy_if(node.input().begin(), node.input().end(), std::back_inserter(names),
                 [](const std::string& name) { return !name.empty(); });
    for_each_inner_graph(node,
                         [&](const proto::GraphProto& graph) { add_free_names(graph, names); });
    return names;
}

void Importer::take_over(const Node& node, const proto::GraphProto& inner) {
    if (inner.input_size() > 0) node.fail("has a branch with inputs");
    if (inner.sparse_initializer_size() > 0)
        node.fail("has sparse initializers, which are not supported");
    if (inner.output_size() != node.file().output_size()) {
        node.fail("has a branch with " + std::to_string(inner.output_size()) +
                  " outputs, expected " + std::to_string(node.file().output_size()));
    }
    // Every name must belong to one tensor. Reserve the names that the branch keeps first, so that
    // no new name equals them.
    proto::GraphProto graph = inner;
    Names changed;
    for (const std::string& name : names_defined(graph)) {
        if (is_used(name)) {
            changed.emplace(name, "");
        } else {
            made_names_.insert(name);
        }
    }
    for (auto& [name, other] : changed) other = unused_name(name);
    rename(graph, changed);

    auto& whole = *model_.mutable_graph();
    for (auto& tensor : *graph.mutable_initializer()) {
        if (tensor.name().empty() ||
            !initializers_.emplace(tensor.name(), whole.initializer_size()).second)
            node.fail("has a branch with initializer " + in_quotes(tensor.name()) +
                      ", which has no name or exists already");
        whole.add_initializer()->Swap(&tensor);
    }
    const int first = whole.node_size();
    for (auto& each : *graph.mutable_node()) whole.add_node()->Swap(&each);
    std::vector<std::string> wanted;
    for (const auto& output : graph.output()) wanted.push_back(output.name());
    raw_.folded.push_back(node.op() + " " + node.label() +
                          " replaced by the branch that its condition takes");
    import_nodes(first, wanted);
    for (int k = 0; k < graph.output_size(); ++k) {
        if (!node.has_output(k)) continue;
        define(node, resolve(wanted[static_cast<size_t>(k)]), k);
        set_type(node.file().output(k), type(wanted[static_cast<size_t>(k)]));
        if (is_live_integer(wanted[static_cast<size_t>(k)]))
            mark_live_integer(node.file().output(k));
    }
}

void add_branches(Handlers& handlers) { handlers["If"] = if_node; }

}  // namespace laminate::onnx
