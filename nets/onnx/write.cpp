// Writes canonical networks as ONNX: one node per layer, and one more if the layer carries an
// activation.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "nets/network/picture_views.h"
#include "nets/onnx/model.h"
#include "nets/onnx/onnx.h"

namespace laminate::onnx {

namespace {

/// The lowest opset that suffices for most networks, so that older programs read the file. Some
/// layers need a later one.
constexpr int least_opset = 17;
constexpr int opset_of_mish = 18;
constexpr int opset_of_dilated_average_pool = 19;
constexpr int opset_of_gelu = 20;

proto::AttributeProto& attribute(proto::NodeProto& node, const char* name,
                                 proto::AttributeProto::AttributeType type) {
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
}
void set(proto::NodeProto& node, const char* name, int64_t value) {
    attribute(node, name, proto::AttributeProto::INT).set_i(value);
}
void set(proto::NodeProto& node, const char* name, float value) {
    attribute(node, name, proto::AttributeProto::FLOAT).set_f(value);
}
void set(proto::NodeProto& node, const char* name, const std::string& value) {
    attribute(node, name, proto::AttributeProto::STRING).set_s(value);
}
void set(proto::NodeProto& node, const char* name, const std::vector<int64_t>& values) {
    auto& a = attribute(node, name, proto::AttributeProto::INTS);
    for (const int64_t v : values) a.add_ints(v);
}

proto::TensorProto::DataType file_type(ElementType type) {
    return type == ElementType::uint8  ? proto::TensorProto::UINT8
           : type == ElementType::int8 ? proto::TensorProto::INT8
                                       : proto::TensorProto::FLOAT;
}

void describe(proto::ValueInfoProto& info, const Tensor& tensor) {
    info.set_name(tensor.name);
    auto* type = info.mutable_type()->mutable_tensor_type();
    type->set_elem_type(file_type(tensor.type));
    for (const int64_t d : tensor.dims) type->mutable_shape()->add_dim()->set_dim_value(d);
}

std::string unused(std::unordered_set<std::string>& names, std::string name) {
    while (!names.insert(name).second) name += "_";
    return name;
}

/// Shape in which ONNX broadcasts one value, or values along dimension 1 of a tensor of `rank`
/// dimensions.
std::vector<int64_t> broadcast_dims(const std::vector<int64_t>& dims, size_t count, size_t rank) {
    if (dims.size() + 1 == rank && dims.size() > 1) return dims;  // whole, without N
    std::vector<int64_t> shape(rank > 1 ? rank - 1 : 1, 1);
    shape[0] = static_cast<int64_t>(count);
    return shape;
}

std::vector<int64_t> to_list(const std::array<int64_t, 2>& pair) {
    return {pair[0], pair[1]};
}

/// The ONNX operator of a general layer of two maps that schedules cover, or null.
const char* binary_name(GeneralFunction function) {
    switch (function) {
        case GeneralFunction::add:
            return "Add";
        case GeneralFunction::subtract:
            return "Sub";
        case GeneralFunction::multiply:
            return "Mul";
        case GeneralFunction::divide:
            return "Div";
        case GeneralFunction::minimum:
            return "Min";
        case GeneralFunction::maximum:
            return "Max";
        case GeneralFunction::power:
            return "Pow";
        case GeneralFunction::prelu:
            return "PRelu";
        default:
            return nullptr;
    }
}

/// The ONNX operator of an activation that has no parameters, or null.
const char* operator_without_attributes(GeneralFunction function) {
    switch (function) {
        case GeneralFunction::absolute:
            return "Abs";
        case GeneralFunction::negative:
            return "Neg";
        case GeneralFunction::exponential:
            return "Exp";
        case GeneralFunction::logarithm:
            return "Log";
        case GeneralFunction::square_root:
            return "Sqrt";
        case GeneralFunction::reciprocal:
            return "Reciprocal";
        case GeneralFunction::floor:
            return "Floor";
        case GeneralFunction::ceil:
            return "Ceil";
        case GeneralFunction::round_to_even:
            return "Round";
        case GeneralFunction::sign:
            return "Sign";
        case GeneralFunction::error_function:
            return "Erf";
        case GeneralFunction::sine:
            return "Sin";
        case GeneralFunction::cosine:
            return "Cos";
        case GeneralFunction::tangent:
            return "Tan";
        case GeneralFunction::softplus:
            return "Softplus";
        case GeneralFunction::softsign:
            return "Softsign";
        case GeneralFunction::hard_swish:
            return "HardSwish";
        default:
            return nullptr;
    }
}

std::string mode_name(Padding::Mode mode) {
    return mode == Padding::Mode::constant  ? "constant"
           : mode == Padding::Mode::reflect ? "reflect"
                                            : "edge";
}

/// The dims and the order of axes of a Reshape and a Transpose before another Reshape, as PyTorch
/// writes pixel_unshuffle and ShuffleNet's shuffle: ONNX's SpaceToDepth has one order.
std::pair<std::vector<int64_t>, std::vector<int64_t>> blocks_by_transpose(
    const Layer& layer, const std::vector<int64_t>& out) {
    const int64_t b = layer.general.kernel[0], shuffle = layer.general.first;
    const int64_t channels = out[1] / (b * b);
    if (b == 1) return {{out[0], shuffle, out[1] / shuffle, out[2], out[3]}, {0, 2, 1, 3, 4}};
    const std::vector<int64_t> apart{out[0], channels, out[2], b, out[3], b};
    if (shuffle == 1) return {apart, {0, 1, 3, 5, 2, 4}};
    if (shuffle == channels) return {apart, {0, 3, 5, 1, 2, 4}};
    throw InputError(layer.name + ": blocks that are shuffled by " + std::to_string(shuffle) +
                     " cannot be written as ONNX; expected 1 or " + std::to_string(channels));
}

class Exporter {
public:
    explicit Exporter(const Network& network) : network_(network) {
        // Reserve the network's names first, so that names made up here do not clash with them.
        for (const Tensor& tensor : network.tensors) value_names_.insert(tensor.name);
        for (const Layer& layer : network.layers) node_names_.insert(layer.name);
    }

    proto::ModelProto run() {
        model_.set_producer_name("laminate");
        graph().set_name(network_.name.empty() ? "network" : network_.name);
        for (const TensorId id : network_.inputs) describe(*graph().add_input(), network_.tensor(id));
        for (const TensorId id : network_.outputs) describe(*graph().add_output(), network_.tensor(id));
        for (const TensorId id : network_.inputs)
            convert(network_.tensor(id).name, value(id), proto::TensorProto::FLOAT);
        for (const Layer& layer : network_.layers) write(layer);
        for (const TensorId id : network_.outputs)
            convert(value(id), network_.tensor(id).name, file_type(network_.tensor(id).type));
        auto* opset = model_.add_opset_import();
        opset->set_domain("");
        opset->set_version(opset_);
        model_.set_ir_version(opset_ < 19 ? 8 : 9);  // the version that came with each
        return std::move(model_);
    }

private:
    void need_opset(int version) { opset_ = std::max(opset_, version); }
    [[nodiscard]] proto::GraphProto& graph() { return *model_.mutable_graph(); }

    /// Name of the tensor's floats, which layers read and write. It differs from the tensor's name
    /// if the network's input or output has another type.
    const std::string& value(TensorId id) {
        const Tensor& tensor = network_.tensor(id);
        if (tensor.type == ElementType::float32) return tensor.name;
        std::string& name = floats_[id];
        if (name.empty()) name = unused(value_names_, tensor.name + "_float");
        return name;
    }

    void convert(const std::string& from, const std::string& to,
                 proto::TensorProto::DataType type) {
        if (from != to)
            set(add_node("Cast", unused(node_names_, to + "_cast"), {from}, to), "to",
                int64_t{type});
    }

    /// Name of the initializer that holds the constant in the given shape. Layers that share a
    /// constant share the initializer.
    std::string initializer(const ConstantPtr& constant, const std::vector<int64_t>& dims,
                            const std::string& wanted) {
        auto [known, is_new] = shared_.try_emplace({constant.get(), dims});
        if (is_new) {
            known->second = unused(value_names_, wanted);
            *graph().add_initializer() = encode(dims, constant->values, known->second);
        }
        return known->second;
    }

    std::string integers(const std::vector<int64_t>& values, const std::string& wanted) {
        auto& list = *graph().add_initializer();
        list.set_name(unused(value_names_, wanted));
        list.set_data_type(proto::TensorProto::INT64);
        list.add_dims(std::ssize(values));
        for (const int64_t value : values) list.add_int64_data(value);
        return list.name();
    }

    std::string scalar(float value, const std::string& wanted) {
        const std::string name = unused(value_names_, wanted);
        *graph().add_initializer() = encode({}, {value}, name);
        return name;
    }

    void write(const Layer& layer) {
        const std::string& output = value(layer.output);
        if (is_constant(layer)) {
            *graph().add_initializer() =
                encode(layer.weights->dims, layer.weights->values, output);
            return;
        }
        if (layer.kind == LayerKind::activation) {
            write_activation(layer, layer.name, value(layer.inputs[0]), output);
            return;
        }
        const bool activated = layer.activation.kind != ActivationKind::none;
        const std::string result =
            activated ? unused(value_names_, layer.name + "_linear") : output;
        write_linear(layer, result);
        if (activated)
            write_activation(
                layer, unused(node_names_, layer.name + "_" + activation_text(layer.activation)),
                result, output);
    }

    proto::NodeProto& add_node(const char* op, const std::string& name,
                               const std::vector<std::string>& inputs, const std::string& output) {
        auto& node = *graph().add_node();
        node.set_op_type(op);
        node.set_name(name);
        for (const std::string& input : inputs) node.add_input(input);
        node.add_output(output);
        return node;
    }

    void write_linear(const Layer& layer, const std::string& output) {
        std::vector<std::string> inputs;
        for (const TensorId id : layer.inputs) inputs.push_back(value(id));
        const auto& input_dims = network_.tensor(layer.inputs[0]).dims;
        switch (layer.kind) {
            case LayerKind::conv:
            case LayerKind::conv_transpose:
            case LayerKind::gemm: {
                inputs.push_back(
                    initializer(layer.weights, layer.weights->dims, layer.name + "_weights"));
                if (layer.bias != nullptr) {
                    inputs.push_back(initializer(layer.bias,
                                                 {static_cast<int64_t>(layer.bias->values.size())},
                                                 layer.name + "_bias"));
                }
                if (layer.kind == LayerKind::gemm) {
                    set(add_node("Gemm", layer.name, inputs, output), "transB", int64_t{1});
                    return;
                }
                auto& node = add_node(layer.kind == LayerKind::conv ? "Conv" : "ConvTranspose",
                                      layer.name, inputs, output);
                set_window(node, layer.window);
                set(node, "dilations", to_list(layer.window.dilation));
                set(node, "group", layer.groups);
                if (layer.kind == LayerKind::conv_transpose)
                    set(node, "output_padding", to_list(layer.window.output_padding));
                return;
            }
            case LayerKind::max_pool:
                write_max_pool(layer, inputs, output);
                return;
            case LayerKind::average_pool:
                write_average_pool(layer, inputs, output);
                return;
            case LayerKind::global_average_pool:
                add_node("GlobalAveragePool", layer.name, inputs, output);
                return;
            case LayerKind::add:
                if (layer.weights != nullptr) {
                    const auto dims = broadcast_dims(
                        layer.weights->dims, layer.weights->values.size(), input_dims.size());
                    inputs.push_back(initializer(layer.weights, dims, layer.name + "_operand"));
                }
                add_node("Add", layer.name, inputs, output);
                return;
            case LayerKind::concat:
                set(add_node("Concat", layer.name, inputs, output), "axis", layer.axis);
                return;
            case LayerKind::depth_to_space: {
                auto& node = add_node("DepthToSpace", layer.name, inputs, output);
                set(node, "blocksize", layer.block);
                set(node, "mode", std::string(layer.depth_to_space_crd ? "CRD" : "DCR"));
                return;
            }
            case LayerKind::flatten:
                set(add_node("Flatten", layer.name, inputs, output), "axis", layer.axis);
                return;
            case LayerKind::softmax:
                set(add_node("Softmax", layer.name, inputs, output), "axis", layer.axis);
                return;
            case LayerKind::general:
                write_general(layer, std::move(inputs), output);
                return;
            case LayerKind::activation:
                return;  // write() has dealt with it
        }
    }

    /// The general layers that schedules cover.
    void write_general(const Layer& layer, std::vector<std::string> inputs,
                       const std::string& output) {
        const GeneralOperator& general = layer.general;
        const std::vector<int64_t>& in = network_.tensor(layer.inputs.at(0)).dims;
        if (const char* name = inputs.size() == 2 ? binary_name(general.function) : nullptr) {
            add_node(name, layer.name, inputs, output);
            return;
        }
        if (const auto first = first_of_part(general, in)) {
            std::vector<int64_t> begin(first->begin(), first->end()), end = begin;
            for (size_t d = 0; d < end.size(); ++d) end[d] += general.dims[d + 1];
            for (const auto& [name, values] :
                 {std::pair{"_first", begin}, {"_end", end}, {"_axes", {1, 2, 3}}})
                inputs.push_back(integers(values, layer.name + name));
            add_node("Slice", layer.name, inputs, output);
            return;
        }
        if (const auto times = repetitions_of(general, in)) {
            inputs.emplace_back();  // no region of interest
            inputs.push_back(unused(value_names_, layer.name + "_scales"));
            *graph().add_initializer() =
                encode({4},
                       {1, 1, static_cast<float>((*times)[0]), static_cast<float>((*times)[1])},
                       inputs.back());
            auto& node = add_node("Resize", layer.name, inputs, output);
            set(node, "mode", std::string("nearest"));
            set(node, "coordinate_transformation_mode", std::string("asymmetric"));
            set(node, "nearest_mode", std::string("floor"));
            return;
        }
        if (const auto padding = padding_of(general, in)) {
            const std::vector<int64_t> pads{0, 0, padding->begin[0], padding->begin[1],
                                            0, 0, padding->end[0],   padding->end[1]};
            inputs.push_back(integers(pads, layer.name + "_pads"));
            const bool is_constant = padding->mode == Padding::Mode::constant;
            if (is_constant) {
                inputs.push_back(unused(value_names_, layer.name + "_value"));
                *graph().add_initializer() = encode({}, {padding->value}, inputs.back());
            }
            set(add_node("Pad", layer.name, inputs, output), "mode", mode_name(padding->mode));
            return;
        }
        if (general.kind == GeneralKind::resample &&
            general == interpolated(in, {general.dims[2], general.dims[3]})) {
            inputs.insert(inputs.end(), {"", ""});  // no region of interest, no scales
            inputs.push_back(integers(general.dims, layer.name + "_sizes"));
            set(add_node("Resize", layer.name, inputs, output), "mode", std::string("linear"));
            return;
        }
        if (general.kind == GeneralKind::blocks) return write_blocks(layer, inputs[0], output);
        if (normalisation_of(layer) == GeneralFunction::log_softmax)
            return set(add_node("LogSoftmax", layer.name, inputs, output), "axis", general.axes[0]);
        if (normalisation_of(layer) && general.function != GeneralFunction::softmax)
            return write_normalisation(layer, inputs[0], output);
        if (const auto extreme = extreme_of_channels(layer)) {
            const bool is_largest = *extreme == GeneralFunction::largest;
            const char* const name = is_largest ? "ReduceMax" : "ReduceMin";
            set(add_node(name, layer.name, inputs, output), "axes", general.axes);
            return;
        }
        throw InputError(layer.name + ": a general layer (" + operation_text(layer) +
                         ") cannot be written as ONNX; the file that it was read from holds it");
    }

    void write_blocks(const Layer& layer, const std::string& x, const std::string& output) {
        const std::vector<int64_t>& out = network_.tensor(layer.output).dims;
        const auto [apart, order] = blocks_by_transpose(layer, out);
        const std::string split = integers(apart, layer.name + "_split");
        auto& moved = part(layer, "Transpose",
                           {part(layer, "Reshape", {x, split}, "_apart").output(0)}, "_moved");
        set(moved, "perm", order);
        add_node("Reshape", layer.name, {moved.output(0), integers(out, layer.name + "_dims")}, output);
    }
    /// One of several nodes of a layer.
    proto::NodeProto& part(const Layer& layer, const char* op,
                           const std::vector<std::string>& inputs, const char* name) {
        return add_node(op, unused(node_names_, layer.name + name), inputs,
                        unused(value_names_, layer.name + name));
    }

    /// In the nodes that PyTorch writes: ONNX's own normalisations are of the last axes.
    void write_normalisation(const Layer& layer, std::string x, const std::string& output) {
        const auto mean = [&](const std::string& of, const char* name) {
            auto& node = part(layer, "ReduceMean", {of}, name);
            set(node, "axes", layer.general.axes);
            return node.output(0);
        };
        if (layer.general.function == GeneralFunction::standardise)
            x = part(layer, "Sub", {x, mean(x, "_mean")}, "_centred").output(0);
        const std::string square = part(layer, "Mul", {x, x}, "_square").output(0);
        const std::string epsilon = scalar(layer.general.alpha, layer.name + "_epsilon");
        const std::string sum =
            part(layer, "Add", {mean(square, "_variance"), epsilon}, "_sum").output(0);
        add_node("Div", layer.name, {x, part(layer, "Sqrt", {sum}, "_root").output(0)}, output);
    }

    void write_max_pool(const Layer& layer, const std::vector<std::string>& inputs,
                        const std::string& output) {
        auto& node = add_node("MaxPool", layer.name, inputs, output);
        set_window(node, layer.window);
        set(node, "dilations", to_list(layer.window.dilation));
    }

    void write_average_pool(const Layer& layer, const std::vector<std::string>& inputs,
                            const std::string& output) {
        auto& node = add_node("AveragePool", layer.name, inputs, output);
        set_window(node, layer.window);
        if (layer.window.dilation != std::array<int64_t, 2>{1, 1}) {
            need_opset(opset_of_dilated_average_pool);
            set(node, "dilations", to_list(layer.window.dilation));
        }
        set(node, "count_include_pad", int64_t{layer.count_include_pad});
    }

    static void set_window(proto::NodeProto& node, const Window& w) {
        set(node, "kernel_shape", to_list(w.kernel));
        set(node, "strides", to_list(w.stride));
        set(node, "pads", std::vector{w.pad_begin[0], w.pad_begin[1], w.pad_end[0], w.pad_end[1]});
    }

    void write_activation(const Layer& layer, const std::string& name, const std::string& input,
                          const std::string& output) {
        const Activation& a = layer.activation;
        switch (a.kind) {
            case ActivationKind::none:
                return;
            case ActivationKind::relu:
                add_node("Relu", name, {input}, output);
                return;
            case ActivationKind::sigmoid:
                add_node("Sigmoid", name, {input}, output);
                return;
            case ActivationKind::tanh:
                add_node("Tanh", name, {input}, output);
                return;
            case ActivationKind::leaky_relu:
                set(add_node("LeakyRelu", name, {input}, output), "alpha", a.alpha);
                return;
            case ActivationKind::prelu: {
                const size_t count = a.slope->values.size();
                const auto dims = broadcast_dims({static_cast<int64_t>(count)}, count,
                                                 network_.tensor(layer.output).dims.size());
                add_node("PRelu", name, {input, initializer(a.slope, dims, name + "_slope")},
                         output);
                return;
            }
            case ActivationKind::clip:
                add_node("Clip", name,
                         {input, scalar(a.low, name + "_min"), scalar(a.high, name + "_max")},
                         output);
                return;
            case ActivationKind::unary:
                write_unary(a, name, input, output);
                return;
        }
    }

    void write_unary(const Activation& a, const std::string& name, const std::string& input,
                     const std::string& output) {
        const auto node = [&](const char* op) -> proto::NodeProto& {
            return add_node(op, name, {input}, output);
        };
        const auto with_two = [&](const char* op, const char* alpha, const char* beta) {
            auto& two = node(op);
            set(two, alpha, a.alpha);
            set(two, beta, a.beta);
        };
        if (const char* op = operator_without_attributes(a.function)) {
            node(op);
            return;
        }
        switch (a.function) {
            case GeneralFunction::thresholded_relu:
                set(node("ThresholdedRelu"), "alpha", a.alpha);
                return;
            case GeneralFunction::shrink:
                return with_two("Shrink", "lambd", "bias");
            case GeneralFunction::power:
                add_node("Pow", name, {input, scalar(a.alpha, name + "_exponent")}, output);
                return;
            case GeneralFunction::elu:
                set(node("Elu"), "alpha", a.alpha);
                return;
            case GeneralFunction::selu:
                return with_two("Selu", "alpha", "gamma");
            case GeneralFunction::celu:
                set(node("Celu"), "alpha", a.alpha);
                return;
            case GeneralFunction::hard_sigmoid:
                return with_two("HardSigmoid", "alpha", "beta");
            case GeneralFunction::mish:
                need_opset(opset_of_mish);
                node("Mish");
                return;
            case GeneralFunction::gelu:
            case GeneralFunction::gelu_tanh:
                need_opset(opset_of_gelu);
                set(node("Gelu"), "approximate",
                    std::string(a.function == GeneralFunction::gelu_tanh ? "tanh" : "none"));
                return;
            case GeneralFunction::swish: {  // an operator from opset 24 on; its three nodes are
                                            // read as one layer again
                std::string scaled = input;
                if (a.alpha != 1) {
                    scaled = unused(value_names_, name + "_scaled");
                    add_node("Mul", unused(node_names_, name + "_scale"),
                             {input, scalar(a.alpha, name + "_alpha")}, scaled);
                }
                const std::string factor = unused(value_names_, name + "_factor");
                add_node("Sigmoid", unused(node_names_, name + "_sigmoid"), {scaled}, factor);
                add_node("Mul", name, {input, factor}, output);
                return;
            }
            default:
                throw std::logic_error(std::string(to_string(a.function)) + " is no activation");
        }
    }

    const Network& network_;
    proto::ModelProto model_;
    int opset_ = least_opset;
    std::unordered_set<std::string> value_names_;
    std::unordered_set<std::string> node_names_;
    std::unordered_map<TensorId, std::string> floats_;
    std::map<std::pair<const Constant*, std::vector<int64_t>>, std::string> shared_;
};

}  // namespace

}  // namespace laminate::onnx

namespace laminate {

void save_onnx(const Network& network, const std::string& path) {
    check(network);
    const auto model = onnx::Exporter(network).run();
    if (model.ByteSizeLong() > INT32_MAX)
        throw InputError(
            path + ": the network has more than 2 GiB of weights, which one ONNX file cannot hold");
    write_file_atomically(path, [&](const std::filesystem::path& aside) {
        errno = 0;
        std::ofstream out(aside, std::ios::binary | std::ios::trunc);
        const bool written = model.SerializeToOstream(&out);
        out.close();
        if (!written || !out)
            throw InputError(path + ": cannot be written" +
                             (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
    });
}

}  // namespace laminate
