#include "nets/ncnn/translate.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "nets/ncnn/ncnn.h"
#include "nets/onnx/importer.h"

namespace laminate::ncnn {

namespace {

namespace proto = onnx::proto;
using onnx::in_quotes;

constexpr int64_t opset = 17, ir_version = 8;

const Handlers& handlers() {
    static const Handlers all = [] {
        Handlers made;
        add_weighted(made);
        add_moving(made);
        add_plain(made);
        add_normalising(made);
        return made;
    }();
    return all;
}

proto::AttributeProto& attribute(proto::NodeProto& node, const char* name,
                                 proto::AttributeProto::AttributeType type) {
    auto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
}

}  // namespace

void set(proto::NodeProto& node, const char* name, int64_t value) {
    attribute(node, name, proto::AttributeProto::INT).set_i(value);
}

void set(proto::NodeProto& node, const char* name, float value) {
    attribute(node, name, proto::AttributeProto::FLOAT).set_f(value);
}

void set(proto::NodeProto& node, const char* name, const char* value) {
    attribute(node, name, proto::AttributeProto::STRING).set_s(value);
}

void set(proto::NodeProto& node, const char* name, const std::vector<int64_t>& values) {
    auto& list = attribute(node, name, proto::AttributeProto::INTS);
    for (const int64_t value : values) list.add_ints(value);
}

Translator::Translator(WeightFile weights, const InputSizes& sizes, const std::string& name)
    : weights_(weights), sizes_(sizes), graph_(*model_.mutable_graph()) {
    model_.set_ir_version(ir_version);
    model_.add_opset_import()->set_version(opset);
    graph_.set_name(name);
}

proto::ModelProto Translator::run(std::vector<FileLayer> layers) {
    for (FileLayer& layer : layers) {
        const auto handler = handlers().find(layer.kind());
        if (handler == handlers().end()) {
            std::string supported;
            for (const auto& [name, ignored] : handlers())
                supported += (supported.empty() ? "" : ", ") + name;
            layer.fail("is not supported; supported: " + supported);
        }
        handler->second(*this, layer);
        layer.refuse_other_parameters();
    }
    if (weights_.bytes_left() != 0)
        throw InputError("the file of weights has " + std::to_string(weights_.bytes_left()) +
                         " bytes more than the layers read");
    add_outputs();
    return std::move(model_);
}

/// Blobs that no layer reads.
void Translator::add_outputs() {
    for (const std::string& name : order_) {
        if (read_.contains(name)) continue;
        if (const std::string& value = blobs_.at(name).value; value != name) {
            auto& node = *graph_.add_node();
            node.set_op_type("Identity");
            node.add_input(value);
            node.add_output(name);
        }
        graph_.add_output()->set_name(name);
    }
}

const Blob& Translator::input(const FileLayer& layer, size_t i) {
    if (i >= layer.inputs().size()) layer.fail("has no input " + std::to_string(i + 1));
    const std::string& name = layer.inputs()[i];
    const auto found = blobs_.find(name);
    if (found == blobs_.end())
        layer.fail("reads " + in_quotes(name) + ", which no layer before it writes");
    read_.insert(name);
    return found->second;
}

void Translator::learn_channels(const Blob& blob, int64_t channels) {
    if (blob.open_input < 0) return;
    auto& dim = *graph_.mutable_input(blob.open_input)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape()
                     ->mutable_dim(1);
    if (!dim.has_dim_value()) dim.set_dim_value(channels);
}

int64_t Translator::axis_of(const FileLayer& layer, const Blob& blob, int64_t axis) {
    const int64_t rank = blob.is_map ? 3 : 1;
    if (axis < -rank || axis >= rank)
        layer.fail("has axis " + std::to_string(axis) + " of a blob with " + std::to_string(rank) +
                   (rank == 1 ? " dimension" : " dimensions"));
    return (axis < 0 ? axis + rank : axis) + 1;
}

proto::NodeProto& Translator::add(const FileLayer& layer, const char* op, const Inputs& inputs,
                                  const std::string& output) {
    auto& node = *graph_.add_node();
    node.set_op_type(op);
    node.set_name(layer.name());
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
}

/// ncnn's names have no blanks, so this equals none of them.
std::string Translator::inner(const FileLayer& layer) {
    return layer.name() + " " + std::to_string(++inner_values_);
}

std::string Translator::floats(const FileLayer& layer, std::vector<int64_t> dims,
                               const std::vector<float>& values) {
    *graph_.add_initializer() = onnx::encode(dims, values, inner(layer));
    return graph_.initializer(graph_.initializer_size() - 1).name();
}

std::string Translator::integers(const FileLayer& layer, const std::vector<int64_t>& values) {
    auto& tensor = *graph_.add_initializer();
    tensor.set_name(inner(layer));
    tensor.set_data_type(proto::TensorProto::INT64);
    tensor.add_dims(std::ssize(values));
    for (const int64_t value : values) tensor.add_int64_data(value);
    return tensor.name();
}

std::string Translator::output(const FileLayer& layer, bool is_map) {
    if (layer.outputs().size() != 1)
        layer.fail("has " + std::to_string(layer.outputs().size()) + " outputs, expected 1");
    return output(layer, 0, {.value = layer.outputs()[0], .is_map = is_map});
}

std::string Translator::output(const FileLayer& layer, size_t i, Blob blob) {
    const std::string& name = layer.outputs().at(i);
    std::string value = blob.value;
    if (!blobs_.emplace(name, std::move(blob)).second)
        layer.fail("writes " + in_quotes(name) + ", which exists already");
    order_.push_back(name);
    return value;
}

void Translator::alias(const FileLayer& layer, size_t i, const Blob& blob) {
    output(layer, i, Blob(blob));
}

void Translator::add_input(const FileLayer& layer, const std::vector<int64_t>& extents) {
    layer.expect_blobs(0, 1);
    const std::string& name = layer.outputs()[0];
    const bool is_map = extents[0] == 0 || extents[1] != 0;
    if (is_map && extents[1] != 0 && extents[2] == 0) layer.fail("has two dimensions, expected 3");
    auto& input = *graph_.add_input();
    input.set_name(name);
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(proto::TensorProto::FLOAT);
    auto& shape = *type.mutable_shape();
    shape.add_dim()->set_dim_param("batch");
    const int64_t channels = is_map ? extents[2] : extents[0];
    if (channels != 0) {
        shape.add_dim()->set_dim_value(channels);
    } else {
        shape.add_dim()->set_dim_param("channels");
    }
    // What the file says is what the network was converted with; ncnn takes any size.
    const auto add_side = [&](int64_t extent, const auto& chosen, const char* symbol) {
        auto& dim = *shape.add_dim();
        const bool is_open = chosen || sizes_.symbols.contains(symbol) || extent == 0;
        if (is_open && is_map) {
            dim.set_dim_param(symbol);
        } else {
            dim.set_dim_value(is_map ? extent : 1);
        }
    };
    add_side(extents[1], sizes_.height, "height");
    add_side(extents[0], sizes_.width, "width");
    output(layer, 0,
           {.value = name,
            .is_map = is_map,
            .open_input = channels == 0 ? graph_.input_size() - 1 : -1});
}

}  // namespace laminate::ncnn

namespace laminate {

namespace {

constexpr std::string_view param_extension = ".param";

}  // namespace

bool is_ncnn_file(const std::string& path) { return path.ends_with(param_extension); }

Network parse_ncnn(std::string_view param, std::string_view weights, const std::string& where,
                   const InputSizes& sizes) {
    onnx::proto::ModelProto model;
    try {
        ncnn::Translator translator(ncnn::WeightFile(weights), sizes,
                                    std::filesystem::path(where).stem().string());
        model = translator.run(ncnn::parse_layers(param));
    } catch (const InputError& error) {
        throw InputError(where + ": " + error.what());
    }
    return onnx::import_model(std::move(model), where, std::nullopt, sizes);
}

Network load_ncnn(const std::string& path, const InputSizes& sizes) {
    const std::string weights = path.substr(0, path.size() - param_extension.size()) + ".bin";
    const std::string param = read_file(path);
    return parse_ncnn(param, read_file(weights), path, sizes);
}

}  // namespace laminate
