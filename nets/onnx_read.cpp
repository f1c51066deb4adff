// ONNX nodes to layers, one to one where a node computes on feature maps; nodes that compute shapes or only rename are
// evaluated here. Folding of layers into each other comes after, in onnx_canonical.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "nets/onnx.h"
#include "nets/onnx_canonical.h"
#include "nets/onnx_model.h"

namespace laminate::onnx {

namespace {

constexpr int64_t oldest_opset = 7;
constexpr int64_t largest_parameter = (int64_t{1} << 31) - 1;  // of a window; keeps sums and products within 64 bits
constexpr size_t most_shape_values = 4096;  // integers that a constant on the way to a shape may have
constexpr size_t most_dimensions = 8;

/// What an ONNX value name stands for.
using Value = std::variant<TensorId, ConstantPtr, IntegerConstant>;

/// A node with checked access to its attributes; attributes that nobody asked for are refused.
class Node {
public:
    Node(const proto::NodeProto& node, size_t position) : node_(node) {
        label_ = !node.name().empty()     ? in_quotes(node.name())
                 : node.output_size() > 0 ? "writing " + in_quotes(node.output(0))
                                          : "number " + std::to_string(position + 1);
        for (const auto& attribute : node.attribute()) {
            if (!attributes_.emplace(attribute.name(), &attribute).second)
                fail("attribute " + in_quotes(attribute.name()) + " is given twice");
        }
    }

    [[nodiscard]] const std::string& op() const { return node_.op_type(); }
    [[nodiscard]] const std::string& name() const { return node_.name(); }
    /// How messages call it: "conv1" in quotes, or by what it writes.
    [[nodiscard]] const std::string& label() const { return label_; }
    [[nodiscard]] const proto::NodeProto& file() const { return node_; }

    [[noreturn]] void fail(const std::string& message) const {
        throw InputError("node " + label_ + " (" + quoted_op() + "): " + message);
    }

    [[nodiscard]] bool has_input(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
    [[nodiscard]] const std::string& input(int i) const {
        if (!has_input(i)) fail("has no input " + std::to_string(i + 1));
        return node_.input(i);
    }
    void expect_inputs(int low, int high) const {
        if (node_.input_size() < low || node_.input_size() > high) {
            fail("has " + std::to_string(node_.input_size()) + " inputs, expected " + std::to_string(low) +
                 (high == low ? "" : " to " + std::to_string(high)));
        }
    }

    int64_t integer(const char* name, int64_t otherwise) {
        const auto* a = take(name, proto::AttributeProto::INT);
        return a == nullptr ? otherwise : a->i();
    }
    float real(const char* name, float otherwise) {
        const auto* a = take(name, proto::AttributeProto::FLOAT);
        return a == nullptr ? otherwise : a->f();
    }
    std::string text(const char* name, const std::string& otherwise) {
        const auto* a = take(name, proto::AttributeProto::STRING);
        return a == nullptr ? otherwise : a->s();
    }
    std::optional<std::vector<int64_t>> integers(const char* name) {
        const auto* a = take(name, proto::AttributeProto::INTS);
        if (a == nullptr) return std::nullopt;
        return std::vector<int64_t>(a->ints().begin(), a->ints().end());
    }
    const proto::AttributeProto* any(const char* name) {
        const auto found = attributes_.find(name);
        if (found == attributes_.end()) return nullptr;
        const auto* attribute = found->second;
        attributes_.erase(found);
        return attribute;
    }
    void ignore(const char* name) { attributes_.erase(name); }

    void refuse_other_attributes() const {
        if (!attributes_.empty()) fail("attribute " + in_quotes(attributes_.begin()->first) + " is not supported");
    }

private:
    const proto::AttributeProto* take(const char* name, proto::AttributeProto::AttributeType type) {
        const auto* attribute = any(name);
        // IR version 1 had no type field.
        if (attribute != nullptr && attribute->has_type() && attribute->type() != type) {
            fail(std::string("attribute \"") + name + "\" has the wrong type");
        }
        return attribute;
    }
    [[nodiscard]] std::string quoted_op() const {
        const std::string text = in_quotes(node_.op_type());
        return text.substr(1, text.size() - 2);
    }

    const proto::NodeProto& node_;
    std::string label_;
    std::map<std::string, const proto::AttributeProto*> attributes_;
};

std::vector<int64_t> spatial(const std::vector<int64_t>& dims) { return {dims.begin() + 2, dims.end()}; }

/// `constant` spread over an operand of shape `dims`, if it is one value ({1}), one per channel ({C}) or whole (dims
/// without N). Shapes are aligned at their ends, as ONNX broadcasts.
std::optional<ConstantPtr> per_channel_or_whole(const ConstantPtr& constant, const std::vector<int64_t>& dims) {
    if (constant->dims.size() > dims.size()) return std::nullopt;
    std::vector<int64_t> aligned(dims.size() - constant->dims.size(), 1);
    aligned.insert(aligned.end(), constant->dims.begin(), constant->dims.end());
    const auto reshaped = [&](std::vector<int64_t> to) {
        return std::make_shared<const Constant>(Constant{std::move(to), constant->values});
    };
    if (constant->values.size() == 1) return reshaped({1});
    if (aligned[0] != 1) return std::nullopt;
    std::vector<int64_t> channels(dims.size(), 1);
    if (dims.size() > 1) channels[1] = dims[1];
    if (aligned == channels) return reshaped({dims[1]});
    if (std::equal(aligned.begin() + 1, aligned.end(), dims.begin() + 1))
        return reshaped({dims.begin() + 1, dims.end()});
    return std::nullopt;
}

class Importer {
public:
    Importer(proto::ModelProto model, std::string where, std::optional<std::filesystem::path> directory,
             const InputSizes& sizes)
        : model_(std::move(model)), where_(std::move(where)), directory_(std::move(directory)), sizes_(sizes) {}

    Network run() {
        try {
            read_opset();
            read_initializers();
            read_inputs();
            for (const int index : execution_order()) import_node(index);
            read_outputs();
            raw_.name = graph().name().empty() ? std::filesystem::path(where_).stem().string() : graph().name();
            return canonicalise(std::move(raw_));
        } catch (const InputError& error) {
            throw InputError(where_ + ": " + error.what());
        }
    }

private:
    using Handler = void (Importer::*)(Node&);
    static const std::map<std::string, Handler>& handlers();

    [[nodiscard]] const proto::GraphProto& graph() const { return model_.graph(); }
    [[nodiscard]] const std::vector<int64_t>& dims(TensorId id) const {
        return raw_.tensors[static_cast<size_t>(id)].dims;
    }

    // --- the graph around the nodes -------------------------------------------------------------------------------

    void read_opset() {
        for (const auto& entry : model_.opset_import()) {
            if (entry.domain().empty() || entry.domain() == "ai.onnx") opset_ = entry.version();
        }
        if (opset_ == 0) throw InputError("does not say which version of the ONNX operators it uses, or is truncated");
        if (opset_ < oldest_opset) {
            throw InputError("uses ONNX operators of version " + std::to_string(opset_) + ", expected " +
                             std::to_string(oldest_opset) + " or later");
        }
    }

    void read_initializers() {
        if (graph().sparse_initializer_size() > 0) throw InputError("has sparse initializers, which are not supported");
        for (int i = 0; i < graph().initializer_size(); ++i) {
            const std::string& name = graph().initializer(i).name();
            if (name.empty()) throw InputError("initializer " + std::to_string(i + 1) + " has no name");
            if (!initializers_.emplace(name, i).second)
                throw InputError("initializer " + in_quotes(name) + " is given twice");
        }
    }

    void read_inputs() {
        std::set<std::string> symbols;
        for (const auto& input : graph().input()) {
            if (initializers_.contains(input.name())) continue;  // IR version 3 listed initializers among the inputs
            const std::string label = "input " + in_quotes(input.name());
            if (input.name().empty()) throw InputError("an input has no name");
            if (values_.contains(input.name())) throw InputError(label + " is given twice");
            if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
                throw InputError(label + " is no tensor with a shape");
            const auto& type = input.type().tensor_type();
            if (type.elem_type() != proto::TensorProto::FLOAT) throw InputError(label + " is not FLOAT");
            if (type.shape().dim_size() < 1 || type.shape().dim_size() > static_cast<int>(most_dimensions)) {
                throw InputError(label + " has " + std::to_string(type.shape().dim_size()) +
                                 " dimensions, expected 1 to " + std::to_string(most_dimensions));
            }
            std::vector<int64_t> extents;
            for (int i = 0; i < type.shape().dim_size(); ++i) {
                if (type.shape().dim(i).has_dim_param()) symbols.insert(type.shape().dim(i).dim_param());
                extents.push_back(input_extent(type.shape(), i, label));
            }
            try {
                (void)element_count(extents);
            } catch (const InputError& error) {
                throw InputError(label + ": " + error.what());
            }
            raw_.inputs.push_back(add_tensor(input.name(), std::move(extents)));
            values_.emplace(input.name(), raw_.inputs.back());
        }
        for (const auto& [symbol, value] : sizes_.symbols) {
            if (symbols.contains(symbol)) continue;
            std::string known;
            for (const std::string& s : symbols) known += (known.empty() ? "" : ", ") + in_quotes(s);
            throw InputError("no input has a dimension named " + in_quotes(symbol) + "; " +
                             (known.empty() ? "every dimension is fixed" : "there are " + known));
        }
    }

    /// Extent of dimension `i` of an input: fixed in the file, or chosen by the caller.
    [[nodiscard]] int64_t input_extent(const proto::TensorShapeProto& shape, int i, const std::string& label) const {
        const auto& dim = shape.dim(i);
        const std::string& symbol = dim.dim_param();
        const bool picture = shape.dim_size() == 4;
        const char* option = i == 0 ? "batch" : picture && i == 2 ? "height" : picture && i == 3 ? "width" : nullptr;
        std::optional<int64_t> chosen;
        if (const auto found = sizes_.symbols.find(symbol); !symbol.empty() && found != sizes_.symbols.end()) {
            chosen = found->second;
        } else if (option != nullptr) {
            chosen = i == 0 ? sizes_.batch : i == 2 ? sizes_.height : sizes_.width;
        }
        const std::string where =
            label + ": dimension " + std::to_string(i + 1) + " of " + std::to_string(shape.dim_size());
        if (chosen && *chosen < 1)
            throw InputError(where + " is to be " + std::to_string(*chosen) + ", expected at least 1");
        // Some exporters write -1 for "any".
        if (dim.has_dim_value() && dim.dim_value() != -1) {
            if (chosen && *chosen != dim.dim_value()) {
                throw InputError(where + " is fixed to " + std::to_string(dim.dim_value()) + ", it cannot be " +
                                 std::to_string(*chosen));
            }
            return dim.dim_value();
        }
        if (chosen) return *chosen;
        if (i == 0) return 1;
        throw InputError(where + " is symbolic" + (symbol.empty() ? "" : " (" + in_quotes(symbol) + ")") +
                         "; expected " + (option != nullptr ? std::string("--") + option : "a value for it"));
    }

    /// Nodes in an order in which every value is written before it is read; the file's own order where that is one.
    std::vector<int> execution_order() {
        const int count = graph().node_size();
        for (int i = 0; i < count; ++i) {
            for (const std::string& name : graph().node(i).output()) {
                if (name.empty()) continue;
                if (initializers_.contains(name) || values_.contains(name) || !writer_.emplace(name, i).second) {
                    Node(graph().node(i), static_cast<size_t>(i))
                        .fail("writes " + in_quotes(name) + ", which exists already");
                }
            }
        }
        std::vector<int> waiting(static_cast<size_t>(count), 0);
        std::vector<std::vector<int>> readers(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            for (const std::string& name : graph().node(i).input()) {
                if (name.empty() || initializers_.contains(name) || values_.contains(name)) continue;
                const auto found = writer_.find(name);
                if (found == writer_.end()) {
                    Node(graph().node(i), static_cast<size_t>(i))
                        .fail("reads " + in_quotes(name) + ", which no node, initializer or input provides");
                }
                readers[static_cast<size_t>(found->second)].push_back(i);
                ++waiting[static_cast<size_t>(i)];
            }
        }
        std::priority_queue<int, std::vector<int>, std::greater<>> ready;
        for (int i = 0; i < count; ++i) {
            if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
        }
        std::vector<int> order;
        while (!ready.empty()) {
            order.push_back(ready.top());
            ready.pop();
            for (const int reader : readers[static_cast<size_t>(order.back())]) {
                if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
            }
        }
        if (order.size() != static_cast<size_t>(count)) report_cycle(waiting);
        return order;
    }

    /// Every waiting node waits for another one; going back from any of them ends on the cycle.
    [[noreturn]] void report_cycle(const std::vector<int>& waiting) const {
        auto at = static_cast<int>(std::find_if(waiting.begin(), waiting.end(), [](int n) { return n > 0; }) -
                                   waiting.begin());
        std::unordered_set<int> seen;
        while (seen.insert(at).second) {
            for (const std::string& name : graph().node(at).input()) {
                const auto found = writer_.find(name);
                if (found == writer_.end() || waiting[static_cast<size_t>(found->second)] == 0) continue;
                at = found->second;
                break;
            }
        }
        Node(graph().node(at), static_cast<size_t>(at)).fail("needs its own result: the graph has a cycle");
    }

    void read_outputs() {
        for (const auto& output : graph().output()) {
            const std::string label = "output " + in_quotes(output.name());
            if (!values_.contains(output.name()) && !initializers_.contains(output.name()))
                throw InputError(label + " is written by no node");
            const Value value = resolve(output.name());
            if (!std::holds_alternative<TensorId>(value))
                throw InputError(label + " is a constant, which is not supported");
            const TensorId id = std::get<TensorId>(value);
            if (std::find(raw_.inputs.begin(), raw_.inputs.end(), id) != raw_.inputs.end())
                throw InputError(label + " is an input as it came");
            if (std::find(raw_.outputs.begin(), raw_.outputs.end(), id) != raw_.outputs.end()) {
                throw InputError(label + " is the same tensor as output " +
                                 in_quotes(raw_.tensors[static_cast<size_t>(id)].name));
            }
            raw_.tensors[static_cast<size_t>(id)].name = output.name();  // an Identity may have renamed it
            raw_.outputs.push_back(id);
        }
        if (raw_.outputs.empty()) throw InputError("has no outputs");
        if (raw_.inputs.empty()) throw InputError("has no inputs");
    }

    void import_node(int index) {
        Node node(graph().node(index), static_cast<size_t>(index));
        const std::string& domain = node.file().domain();
        const bool standard = domain.empty() || domain == "ai.onnx";
        const auto handler = standard ? handlers().find(node.op()) : handlers().end();
        if (handler == handlers().end()) {
            std::string supported;
            for (const auto& [name, ignored] : handlers()) supported += (supported.empty() ? "" : ", ") + name;
            const std::string op = in_quotes((standard ? "" : domain + ".") + node.op());
            throw InputError("node " + node.label() + ": operator " + op.substr(1, op.size() - 2) +
                             " is not supported; supported: " + supported);
        }
        if (node.file().output_size() < 1 || node.file().output(0).empty()) node.fail("has no output");
        (this->*handler->second)(node);
    }

    // --- values ---------------------------------------------------------------------------------------------------

    TensorId add_tensor(const std::string& name, std::vector<int64_t> extents) {
        raw_.tensors.push_back({name, std::move(extents)});
        return static_cast<TensorId>(raw_.tensors.size() - 1);
    }

    Value resolve(const std::string& name) {
        if (const auto found = values_.find(name); found != values_.end()) return found->second;
        if (const auto found = initializers_.find(name); found != initializers_.end()) {
            auto& tensor = *model_.mutable_graph()->mutable_initializer(found->second);
            const std::string label = "initializer " + in_quotes(name);
            const Value value = std::visit([](auto v) -> Value { return v; }, decode(tensor, label, directory_));
            if (const auto* list = std::get_if<IntegerConstant>(&value);
                list != nullptr && list->values.size() > most_shape_values) {
                throw InputError(label + " has " + std::to_string(list->values.size()) +
                                 " integers, expected at most " + std::to_string(most_shape_values));
            }
            if (const auto* constant = std::get_if<ConstantPtr>(&value)) raw_.weights_read((*constant)->values.size());
            tensor.clear_raw_data();  // large models: do not hold the weights twice
            tensor.clear_float_data();
            values_.emplace(name, value);
            return value;
        }
        throw InputError("value " + in_quotes(name) + " is a second result of its node, which is not supported");
    }

    Value input_value(const Node& node, int i) { return resolve(node.input(i)); }

    TensorId tensor_input(const Node& node, int i) {
        const Value value = input_value(node, i);
        if (!std::holds_alternative<TensorId>(value))
            node.fail("input " + in_quotes(node.input(i)) + " is a constant, expected a computed tensor");
        return std::get<TensorId>(value);
    }

    ConstantPtr constant_input(const Node& node, int i) {
        const Value value = input_value(node, i);
        if (!std::holds_alternative<ConstantPtr>(value))
            node.fail("input " + in_quotes(node.input(i)) + " is not a constant FLOAT tensor");
        const auto constant = std::get<ConstantPtr>(value);
        if (constant->values.empty()) node.fail("input " + in_quotes(node.input(i)) + " is empty");
        return constant;
    }

    float scalar_input(const Node& node, int i, float otherwise) {
        if (!node.has_input(i)) return otherwise;
        const auto constant = constant_input(node, i);
        if (constant->values.size() != 1)
            node.fail("input " + in_quotes(node.input(i)) + " has " + std::to_string(constant->values.size()) +
                      " values, expected 1");
        return constant->values[0];
    }

    IntegerConstant integer_input(const Node& node, int i) {
        const Value value = input_value(node, i);
        if (!std::holds_alternative<IntegerConstant>(value))
            node.fail("input " + in_quotes(node.input(i)) + " is not known before the run, expected constant integers");
        return std::get<IntegerConstant>(value);
    }

    /// `axes` and the like moved from attributes to inputs over the versions.
    std::optional<std::vector<int64_t>> integers_of(Node& node, const char* attribute, int i) {
        auto values = node.integers(attribute);
        if (!values && node.has_input(i)) values = integer_input(node, i).values;
        return values;
    }

    void define(const Node& node, Value value) {
        if (const auto* list = std::get_if<IntegerConstant>(&value);
            list != nullptr && list->values.size() > most_shape_values) {
            node.fail("makes " + std::to_string(list->values.size()) + " integers, expected at most " +
                      std::to_string(most_shape_values));
        }
        node.refuse_other_attributes();
        values_[node.file().output(0)] = std::move(value);
    }

    /// The node's result is its input.
    void alias(const Node& node, TensorId id) {
        raw_.folded.push_back(node.op() + " " + node.label() + " removed");
        define(node, id);
    }

    void append(const Node& node, Layer layer) {
        RawLayer raw{std::move(layer), node.op(), node.label()};
        raw.layer.onnx_name = node.name();
        raw.layer.name = "node " + node.label();  // for the messages of infer_output_dims
        std::vector<std::vector<int64_t>> input_dims;
        for (const TensorId id : raw.layer.inputs) input_dims.push_back(dims(id));
        append(node, std::move(raw), infer_output_dims(raw.layer, input_dims));
    }

    void append(const Node& node, RawLayer raw, std::vector<int64_t> output_dims) {
        raw.layer.output = add_tensor(node.file().output(0), std::move(output_dims));
        const TensorId output = raw.layer.output;
        raw_.layers.push_back(std::move(raw));
        define(node, output);
    }

    static int64_t checked_axis(const Node& node, int64_t axis, size_t rank, const char* what) {
        const auto r = static_cast<int64_t>(rank);
        if (axis < -r || axis >= r)
            node.fail(std::string(what) + " " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) +
                      " dimensions");
        return axis < 0 ? axis + r : axis;
    }

    // --- windows --------------------------------------------------------------------------------------------------

    static std::optional<std::array<int64_t, 2>> pair_of(Node& node, const char* name, int64_t low) {
        const auto values = node.integers(name);
        if (!values) return std::nullopt;
        if (values->size() != 2)
            node.fail(std::string(name) + " has " + std::to_string(values->size()) +
                      " values, expected 2 (two spatial dimensions)");
        for (const int64_t v : *values) check_parameter(node, name, v, low);
        return std::array<int64_t, 2>{(*values)[0], (*values)[1]};
    }

    static void check_parameter(const Node& node, const char* name, int64_t value, int64_t low) {
        if (value < low || value > largest_parameter) {
            node.fail(std::string(name) + " contains " + std::to_string(value) + ", expected " + std::to_string(low) +
                      " to " + std::to_string(largest_parameter));
        }
    }

    /// Four dimensions, or a message that says how many spatial ones are supported.
    const std::vector<int64_t>& picture_dims(const Node& node, TensorId x) const {
        const auto& extents = dims(x);
        if (extents.size() != 4) {
            node.fail("input is " + dims_text(extents) + " (" +
                      std::to_string(static_cast<int64_t>(extents.size()) - 2) +
                      " spatial dimensions), expected NxCxHxW");
        }
        return extents;
    }

    /// Kernel, strides, dilations and explicit pads; returns auto_pad.
    std::string read_window(Node& node, Window& window, std::optional<std::array<int64_t, 2>> weights_kernel) {
        const auto kernel = pair_of(node, "kernel_shape", 1);
        if (!kernel && !weights_kernel) node.fail("has no kernel_shape");
        if (kernel && weights_kernel && *kernel != *weights_kernel) {
            node.fail("kernel_shape is " + std::to_string((*kernel)[0]) + "x" + std::to_string((*kernel)[1]) +
                      ", the weights have " + std::to_string((*weights_kernel)[0]) + "x" +
                      std::to_string((*weights_kernel)[1]));
        }
        window.kernel = kernel ? *kernel : *weights_kernel;
        for (const int64_t k : window.kernel) check_parameter(node, "kernel_shape", k, 1);
        window.stride = pair_of(node, "strides", 1).value_or(std::array<int64_t, 2>{1, 1});
        window.dilation = pair_of(node, "dilations", 1).value_or(std::array<int64_t, 2>{1, 1});
        const auto pads = node.integers("pads");
        const std::string mode = node.text("auto_pad", "NOTSET");
        if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
            node.fail("auto_pad is " + in_quotes(mode));
        if (pads) {
            if (pads->size() != 4) node.fail("pads has " + std::to_string(pads->size()) + " values, expected 4");
            for (const int64_t p : *pads) check_parameter(node, "pads", p, 0);
            if (mode == "NOTSET") {
                window.pad_begin = {(*pads)[0], (*pads)[1]};
                window.pad_end = {(*pads)[2], (*pads)[3]};
            }
        }
        return mode;
    }

    /// Padding that makes the output ceil(input / stride); the odd element goes to the end for SAME_UPPER.
    static void pad_same(Window& window, const std::vector<int64_t>& in, bool upper) {
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t span = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
            const int64_t out = (in[axis] - 1) / window.stride[axis] + 1;
            const int64_t total = std::max<int64_t>(0, (out - 1) * window.stride[axis] + span - in[axis]);
            window.pad_begin[axis] = upper ? total / 2 : total - total / 2;
            window.pad_end[axis] = total - window.pad_begin[axis];
        }
    }

    ConstantPtr convolution_weights(const Node& node) {
        const auto weights = constant_input(node, 1);
        if (weights->dims.size() != 4) {
            node.fail("weights are " + dims_text(weights->dims) + " (" +
                      std::to_string(static_cast<int64_t>(weights->dims.size()) - 2) +
                      " spatial dimensions), expected 2 spatial dimensions");
        }
        return weights;
    }

    void read_bias(const Node& node, Layer& layer) {
        if (node.has_input(2)) layer.bias = constant_input(node, 2);
    }

    // --- operators on feature maps --------------------------------------------------------------------------------

    void conv(Node& node) {
        node.expect_inputs(2, 3);
        Layer layer{.kind = LayerKind::conv, .inputs = {tensor_input(node, 0)}};
        layer.weights = convolution_weights(node);
        const auto extents = spatial(picture_dims(node, layer.inputs[0]));
        const std::string mode =
            read_window(node, layer.window, std::array{layer.weights->dims[2], layer.weights->dims[3]});
        if (mode.starts_with("SAME")) pad_same(layer.window, extents, mode == "SAME_UPPER");
        layer.groups = node.integer("group", 1);
        read_bias(node, layer);
        append(node, std::move(layer));
    }

    void conv_transpose(Node& node) {
        node.expect_inputs(2, 3);
        Layer layer{.kind = LayerKind::conv_transpose, .inputs = {tensor_input(node, 0)}};
        layer.weights = convolution_weights(node);
        Window& w = layer.window;
        const auto extents = spatial(picture_dims(node, layer.inputs[0]));
        const std::string mode = read_window(node, w, std::array{layer.weights->dims[2], layer.weights->dims[3]});
        w.output_padding = pair_of(node, "output_padding", 0).value_or(std::array<int64_t, 2>{0, 0});
        const auto wanted = pair_of(node, "output_shape", 1);
        if (wanted || mode.starts_with("SAME")) {
            // The padding follows from the output; ConvTranspose gives the odd element to the end unless SAME_UPPER
            // (ONNX, ConvTranspose).
            for (size_t axis = 0; axis < 2; ++axis) {
                const int64_t span = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
                const int64_t out = wanted ? (*wanted)[axis] : extents[axis] * w.stride[axis];
                const int64_t total = (extents[axis] - 1) * w.stride[axis] + w.output_padding[axis] + span - out;
                if (total < 0) {
                    node.fail("output of " + std::to_string(out) + " is larger than an input of " +
                              std::to_string(extents[axis]) + " gives without padding");
                }
                w.pad_begin[axis] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
                w.pad_end[axis] = total - w.pad_begin[axis];
            }
        }
        layer.groups = node.integer("group", 1);
        read_bias(node, layer);
        append(node, std::move(layer));
    }

    void batch_normalization(Node& node) {
        node.expect_inputs(5, 5);
        const TensorId x = tensor_input(node, 0);
        const double epsilon = node.real("epsilon", 1e-5f);
        node.ignore("momentum");
        if (node.integer("training_mode", 0) != 0 || node.integer("spatial", 1) != 1)
            node.fail("training mode or spatial = 0 is not supported");
        if (dims(x).size() < 2) node.fail("input is " + dims_text(dims(x)) + ", expected at least 2 dimensions");
        const auto channels = static_cast<size_t>(dims(x)[1]);
        std::array<ConstantPtr, 4> statistics;  // scale, shift, mean, variance
        for (size_t i = 0; i < 4; ++i) {
            statistics[i] = constant_input(node, static_cast<int>(i) + 1);
            if (statistics[i]->values.size() != channels) {
                node.fail("input " + in_quotes(node.input(static_cast<int>(i) + 1)) + " has " +
                          std::to_string(statistics[i]->values.size()) + " values for " + std::to_string(channels) +
                          " channels");
            }
        }
        Constant scale{{static_cast<int64_t>(channels)}, std::vector<float>(channels)};
        Constant shift = scale;
        for (size_t c = 0; c < channels; ++c) {
            const double factor = statistics[0]->values[c] / std::sqrt(statistics[3]->values[c] + epsilon);
            if (!std::isfinite(factor))
                node.fail("variance of channel " + std::to_string(c) + " is " +
                          std::to_string(statistics[3]->values[c]));
            scale.values[c] = static_cast<float>(factor);
            shift.values[c] = static_cast<float>(statistics[1]->values[c] - statistics[2]->values[c] * factor);
        }
        RawLayer raw{
            .layer = {.kind = LayerKind::conv, .inputs = {x}}, .op = node.op(), .label = node.label(), .affine = true};
        raw.layer.onnx_name = node.name();
        raw.layer.weights = std::make_shared<const Constant>(std::move(scale));
        raw.layer.bias = std::make_shared<const Constant>(std::move(shift));
        append(node, std::move(raw), dims(x));
    }

    void activation(Node& node, Activation activation) {
        append(node,
               {.kind = LayerKind::activation, .inputs = {tensor_input(node, 0)}, .activation = std::move(activation)});
    }

    void relu(Node& node) { activation(node, {.kind = ActivationKind::relu}); }
    void sigmoid(Node& node) { activation(node, {.kind = ActivationKind::sigmoid}); }
    void tanh(Node& node) { activation(node, {.kind = ActivationKind::tanh}); }
    void leaky_relu(Node& node) {
        activation(node, {.kind = ActivationKind::leaky_relu, .alpha = node.real("alpha", 0.01f)});
    }

    void prelu(Node& node) {
        node.expect_inputs(2, 2);
        const auto slope = constant_input(node, 1);
        const auto& extents = dims(tensor_input(node, 0));
        const auto spread = per_channel_or_whole(slope, extents);
        const auto count = spread ? (*spread)->values.size() : 0;
        if (!spread || (count != 1 && (extents.size() < 2 || (*spread)->dims != std::vector{extents[1]}))) {
            node.fail("slopes are " + dims_text(slope->dims) + " for an input of " + dims_text(extents) +
                      ", expected one value or one per channel (Cx1x1)");
        }
        activation(node, {.kind = ActivationKind::prelu, .slope = *spread});
    }

    void clip(Node& node) {
        constexpr float lowest = std::numeric_limits<float>::lowest();
        constexpr float highest = std::numeric_limits<float>::max();
        Activation a{.kind = ActivationKind::clip};
        if (opset_ < 11) {
            a.low = node.real("min", lowest);
            a.high = node.real("max", highest);
        } else {
            node.expect_inputs(1, 3);
            a.low = scalar_input(node, 1, lowest);
            a.high = scalar_input(node, 2, highest);
        }
        if (a.low == 0 && a.high >= highest) a = {.kind = ActivationKind::relu};
        activation(node, std::move(a));
    }

    void add(Node& node) {
        node.expect_inputs(2, 2);
        std::array<Value, 2> operands{input_value(node, 0), input_value(node, 1)};
        if (!std::holds_alternative<TensorId>(operands[0])) std::swap(operands[0], operands[1]);  // a sum does not mind
        if (std::holds_alternative<IntegerConstant>(operands[0]) &&
            std::holds_alternative<IntegerConstant>(operands[1])) {
            return integer_arithmetic(node);
        }
        if (!std::holds_alternative<TensorId>(operands[0]))
            node.fail("adds constants only, which is supported for shapes only");
        Layer layer{.kind = LayerKind::add, .inputs = {std::get<TensorId>(operands[0])}};
        if (std::holds_alternative<TensorId>(operands[1])) {
            layer.inputs.push_back(std::get<TensorId>(operands[1]));
            return append(node, std::move(layer));
        }
        const auto* constant = std::get_if<ConstantPtr>(&operands[1]);
        if (constant == nullptr) node.fail("adds integers to a FLOAT tensor");
        const auto spread = per_channel_or_whole(*constant, dims(layer.inputs[0]));
        if (!spread) {
            node.fail("adds a constant of shape " + dims_text((*constant)->dims) + " to " +
                      dims_text(dims(layer.inputs[0])) +
                      ", expected one value, one per channel (Cx1x1) or the whole shape");
        }
        raw_.charge((*spread)->values.size());
        layer.weights = *spread;
        append(node, std::move(layer));
    }

    void pool(Node& node, LayerKind kind) {
        node.expect_inputs(1, 1);
        Layer layer{.kind = kind, .inputs = {tensor_input(node, 0)}};
        Window& w = layer.window;
        const auto extents = spatial(picture_dims(node, layer.inputs[0]));
        const std::string mode = read_window(node, w, std::nullopt);
        if (mode.starts_with("SAME")) pad_same(w, extents, mode == "SAME_UPPER");
        const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
        bool count_pads = kind == LayerKind::average_pool && node.integer("count_include_pad", 0) != 0;
        const std::array<int64_t, 2> none{0, 0};
        const bool padded = w.pad_begin != none || w.pad_end != none;
        count_pads = count_pads && padded;
        if (ceil_mode && mode == "NOTSET" && extend_for_ceil(w, extents) && count_pads) {
            // The divisor would have to count the given padding but not the extension.
            node.fail("ceil_mode that adds a window, together with padding and count_include_pad, is not supported");
        }
        layer.count_include_pad = count_pads;
        append(node, std::move(layer));
    }

    /// ceil_mode as trailing padding: room for a last, partial window, unless it would start in the padding. True when
    /// it adds any.
    static bool extend_for_ceil(Window& w, const std::vector<int64_t>& in) {
        bool extended = false;
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t span = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
            const int64_t padded = in[axis] + w.pad_begin[axis] + w.pad_end[axis];
            if (padded < span) continue;  // refused later, as without ceil_mode
            int64_t last = ((padded - span + w.stride[axis] - 1) / w.stride[axis]) * w.stride[axis];
            if (last >= in[axis] + w.pad_begin[axis]) last -= w.stride[axis];
            const int64_t missing = last + span - padded;
            if (missing <= 0) continue;
            w.pad_end[axis] += missing;
            extended = true;
        }
        return extended;
    }

    void max_pool(Node& node) {
        node.ignore("storage_order");  // concerns only the indices, which are refused when anything reads them
        pool(node, LayerKind::max_pool);
    }
    void average_pool(Node& node) { pool(node, LayerKind::average_pool); }

    void global_average_pool(Node& node) {
        node.expect_inputs(1, 1);
        append(node, {.kind = LayerKind::global_average_pool, .inputs = {tensor_input(node, 0)}});
    }

    /// The mean over rows and columns, as some exporters write global average pooling.
    void reduce_mean(Node& node) {
        node.expect_inputs(1, 2);
        const TensorId x = tensor_input(node, 0);
        auto axes = integers_of(node, "axes", 1).value_or(std::vector<int64_t>{});
        for (int64_t& axis : axes) axis = checked_axis(node, axis, dims(x).size(), "axis");
        std::sort(axes.begin(), axes.end());
        if (dims(x).size() != 4 || axes != std::vector<int64_t>{2, 3})
            node.fail("is supported over the rows and columns of NxCxHxW only (axes 2, 3)");
        const bool keep = node.integer("keepdims", 1) != 0;
        node.ignore("noop_with_empty_axes");
        append(node, {.kind = LayerKind::global_average_pool, .inputs = {x}});
        if (keep) return;
        // The pooled tensor takes a name of its own, since the node's name goes to the flattened one.
        const TensorId pooled = raw_.layers.back().layer.output;
        raw_.tensors[static_cast<size_t>(pooled)].name = unused_name(node.file().output(0) + "_pooled");
        raw_.layers.back().layer.onnx_name.clear();
        append(node, {.kind = LayerKind::flatten, .inputs = {pooled}});
    }

    [[nodiscard]] std::string unused_name(std::string name) const {
        while (writer_.contains(name) || values_.contains(name) || initializers_.contains(name)) name += "_";
        return name;
    }

    void gemm(Node& node) {
        node.expect_inputs(2, 3);
        Layer layer{.kind = LayerKind::gemm, .inputs = {tensor_input(node, 0)}};
        const float alpha = node.real("alpha", 1.0f);
        const float beta = node.real("beta", 1.0f);
        if (node.integer("transA", 0) != 0) node.fail("transA = 1 on a computed tensor is not supported");
        layer.weights = matrix(node, constant_input(node, 1), node.integer("transB", 0) != 0, alpha);
        if (node.has_input(2)) {
            const auto c = constant_input(node, 2);
            const auto out = static_cast<size_t>(layer.weights->dims[0]);
            const size_t count = c->values.size();
            if (count != 1 && (count != out || c->dims.back() != layer.weights->dims[0])) {
                node.fail("C is " + dims_text(c->dims) + ", expected one value or one per output feature (" +
                          std::to_string(out) + ")");
            }
            Constant bias{{layer.weights->dims[0]}, std::vector<float>(out)};
            for (size_t i = 0; i < out; ++i) bias.values[i] = beta * c->values[count == 1 ? 0 : i];
            layer.bias = std::make_shared<const Constant>(std::move(bias));
        }
        append(node, std::move(layer));
    }

    void mat_mul(Node& node) {
        node.expect_inputs(2, 2);
        Layer layer{.kind = LayerKind::gemm, .inputs = {tensor_input(node, 0)}};
        layer.weights = matrix(node, constant_input(node, 1), false, 1.0f);
        append(node, std::move(layer));
    }

    /// alpha * b as [out][in].
    ConstantPtr matrix(const Node& node, const ConstantPtr& b, bool transposed, float alpha) {
        if (b->dims.size() != 2) node.fail("right side is " + dims_text(b->dims) + ", expected a matrix");
        if (transposed && alpha == 1.0f) return b;
        raw_.charge(b->values.size());
        const auto rows = static_cast<size_t>(b->dims[0]);
        const auto columns = static_cast<size_t>(b->dims[1]);
        Constant result{transposed ? b->dims : std::vector{b->dims[1], b->dims[0]},
                        std::vector<float>(b->values.size())};
        for (size_t r = 0; r < rows; ++r) {
            for (size_t c = 0; c < columns; ++c) {
                result.values[transposed ? r * columns + c : c * rows + r] = alpha * b->values[r * columns + c];
            }
        }
        return std::make_shared<const Constant>(std::move(result));
    }

    void softmax(Node& node) {
        const TensorId x = tensor_input(node, 0);
        const auto& extents = dims(x);
        int64_t axis = checked_axis(node, node.integer("axis", opset_ < 13 ? 1 : -1), extents.size(), "axis");
        if (opset_ < 13) {
            // Before opset 13 it normalised over all dimensions from the axis on; the same when all but one of them are
            // 1.
            int64_t wide = axis;
            int count = 0;
            for (auto i = static_cast<size_t>(axis); i < extents.size(); ++i) {
                if (extents[i] == 1) continue;
                wide = static_cast<int64_t>(i);
                ++count;
            }
            if (count > 1)
                node.fail("over several dimensions of " + dims_text(extents) +
                          " at once (opset below 13) is not supported");
            axis = wide;
        }
        append(node, {.kind = LayerKind::softmax, .inputs = {x}, .axis = axis});
    }

    void concat(Node& node) {
        node.expect_inputs(1, std::numeric_limits<int>::max());
        if (std::holds_alternative<IntegerConstant>(input_value(node, 0))) return concat_shapes(node);
        Layer layer{.kind = LayerKind::concat};
        for (int i = 0; i < node.file().input_size(); ++i) layer.inputs.push_back(tensor_input(node, i));
        layer.axis = checked_axis(node, node.integer("axis", 1), dims(layer.inputs[0]).size(), "axis");
        if (layer.inputs.size() == 1) return alias(node, layer.inputs[0]);
        append(node, std::move(layer));
    }

    void depth_to_space(Node& node) {
        node.expect_inputs(1, 1);
        Layer layer{.kind = LayerKind::depth_to_space, .inputs = {tensor_input(node, 0)}};
        layer.block = node.integer("blocksize", 0);
        const std::string mode = node.text("mode", "DCR");
        if (mode != "DCR" && mode != "CRD") node.fail("mode is " + in_quotes(mode) + ", expected DCR or CRD");
        layer.depth_to_space_crd = mode == "CRD";
        append(node, std::move(layer));
    }

    void dropout(Node& node) {
        node.ignore("ratio");
        node.ignore("seed");
        node.ignore("is_test");
        if (node.has_input(2)) {
            const auto training = integer_input(node, 2).values;
            if (training.size() != 1 || training[0] != 0) node.fail("training mode is not supported");
        }
        alias(node, tensor_input(node, 0));
    }

    void identity(Node& node) {
        const Value value = input_value(node, 0);
        if (std::holds_alternative<TensorId>(value)) return alias(node, std::get<TensorId>(value));
        define(node, value);
    }

    void cast(Node& node) {
        const int64_t to = node.integer("to", 0);
        const Value value = input_value(node, 0);
        const bool integers = std::holds_alternative<IntegerConstant>(value);
        if (integers ? to != proto::TensorProto::INT64 && to != proto::TensorProto::INT32
                     : to != proto::TensorProto::FLOAT) {
            node.fail("is supported only where it changes nothing: shapes to INT64 or INT32, tensors to FLOAT");
        }
        identity(node);
    }

    // --- shapes ---------------------------------------------------------------------------------------------------

    /// A tensor in another shape; supported where that is no change or a flattening to two dimensions.
    void reshape_to(Node& node, TensorId x, const std::vector<int64_t>& target) {
        const auto& from = dims(x);
        if (target == from) return alias(node, x);
        if (target.size() == 2) {
            // Axis 1 first: among several axes that fit (extents of 1), the usual one.
            std::vector<size_t> axes{1};
            for (size_t axis = 0; axis <= from.size(); ++axis) axes.push_back(axis);
            for (const size_t axis : axes) {
                if (axis > from.size()) continue;
                const auto middle = from.begin() + static_cast<std::ptrdiff_t>(axis);
                if (element_count({from.begin(), middle}) != target[0] ||
                    element_count({middle, from.end()}) != target[1])
                    continue;
                return append(node, {.kind = LayerKind::flatten, .inputs = {x}, .axis = static_cast<int64_t>(axis)});
            }
        }
        node.fail("changes " + dims_text(from) + " to " + dims_text(target) +
                  ", which is supported only where it flattens to two dimensions");
    }

    /// Gives `value`, whatever it is, the shape `target`, which has as many elements.
    void reshape_value(Node& node, const Value& value, const std::vector<int64_t>& target) {
        if (target.size() > most_dimensions) node.fail("makes " + std::to_string(target.size()) + " dimensions");
        if (const auto* id = std::get_if<TensorId>(&value)) return reshape_to(node, *id, target);
        if (const auto* list = std::get_if<IntegerConstant>(&value))
            return define(node, IntegerConstant{target, list->values});
        const auto& constant = std::get<ConstantPtr>(value);
        raw_.charge(constant->values.size());
        define(node, std::make_shared<const Constant>(Constant{target, constant->values}));
    }

    [[nodiscard]] std::vector<int64_t> dims_of(const Value& value) const {
        if (const auto* id = std::get_if<TensorId>(&value)) return dims(*id);
        if (const auto* list = std::get_if<IntegerConstant>(&value)) return list->dims;
        return std::get<ConstantPtr>(value)->dims;
    }

    static int64_t product(const std::vector<int64_t>& extents) {
        return std::find(extents.begin(), extents.end(), 0) != extents.end() ? 0 : element_count(extents);
    }

    void reshape(Node& node) {
        node.expect_inputs(1, 2);
        const Value value = input_value(node, 0);
        const auto from = dims_of(value);
        auto target = integers_of(node, "shape", 1);
        if (!target) node.fail("has no shape");
        const bool zero_is_zero = node.integer("allowzero", 0) != 0;
        if (target->size() > most_dimensions) node.fail("makes " + std::to_string(target->size()) + " dimensions");
        const std::string given = dims_text(*target);
        std::optional<size_t> open;
        int64_t known = 1;
        for (size_t i = 0; i < target->size(); ++i) {
            int64_t& extent = (*target)[i];
            if (extent == 0 && !zero_is_zero) extent = i < from.size() ? from[i] : 0;
            if (extent == -1 && !open) {
                open = i;
                continue;
            }
            if (extent < 1 || extent > product(from) / known)
                node.fail("shape " + given + " does not fit " + dims_text(from));
            known *= extent;
        }
        if (open) {
            if (product(from) % known != 0) node.fail("shape " + given + " does not fit " + dims_text(from));
            (*target)[*open] = product(from) / known;
        } else if (known != product(from)) {
            node.fail("shape " + given + " does not fit " + dims_text(from));
        }
        reshape_value(node, value, *target);
    }

    void flatten(Node& node) {
        node.expect_inputs(1, 1);
        const TensorId x = tensor_input(node, 0);
        const auto rank = static_cast<int64_t>(dims(x).size());
        int64_t axis = node.integer("axis", 1);
        if (axis < -rank || axis > rank)
            node.fail("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) + " dimensions");
        if (axis < 0) axis += rank;
        if (rank == 2 && axis == 1) return alias(node, x);
        append(node, {.kind = LayerKind::flatten, .inputs = {x}, .axis = axis});
    }

    void squeeze(Node& node) {
        node.expect_inputs(1, 2);
        const Value value = input_value(node, 0);
        const auto from = dims_of(value);
        std::set<int64_t> axes;
        if (const auto given = integers_of(node, "axes", 1)) {
            for (const int64_t axis : *given) axes.insert(checked_axis(node, axis, from.size(), "axis"));
        } else {
            for (size_t i = 0; i < from.size(); ++i) {
                if (from[i] == 1) axes.insert(static_cast<int64_t>(i));
            }
        }
        std::vector<int64_t> target;
        for (size_t i = 0; i < from.size(); ++i) {
            if (!axes.contains(static_cast<int64_t>(i))) {
                target.push_back(from[i]);
            } else if (from[i] != 1) {
                node.fail("axis " + std::to_string(i) + " of " + dims_text(from) + " is not 1");
            }
        }
        reshape_value(node, value, target);
    }

    void unsqueeze(Node& node) {
        node.expect_inputs(1, 2);
        const Value value = input_value(node, 0);
        auto target = dims_of(value);
        auto axes = integers_of(node, "axes", 1);
        if (!axes) node.fail("has no axes");
        const size_t rank = target.size() + axes->size();
        if (rank > most_dimensions) node.fail("makes " + std::to_string(rank) + " dimensions");
        for (int64_t& axis : *axes) axis = checked_axis(node, axis, rank, "axis");
        std::sort(axes->begin(), axes->end());
        if (std::adjacent_find(axes->begin(), axes->end()) != axes->end()) node.fail("names an axis twice");
        for (const int64_t axis : *axes) target.insert(target.begin() + axis, 1);
        reshape_value(node, value, target);
    }

    void transpose(Node& node) {
        const auto matrix_in = constant_input(node, 0);
        const auto order = node.integers("perm");
        if (matrix_in->dims.size() != 2 || (order && *order != std::vector<int64_t>{1, 0}))
            node.fail("is supported for constant matrices only");
        define(node, matrix(node, matrix_in, false, 1.0f));
    }

    void constant(Node& node) {
        if (const auto* value = node.any("value"); value != nullptr && value->has_t()) {
            return define(node, std::visit([](auto v) -> Value { return v; },
                                           decode(value->t(), "node " + node.label() + " (Constant)", directory_)));
        }
        if (const auto* value = node.any("value_float"))
            return define(node, std::make_shared<const Constant>(Constant{{}, {value->f()}}));
        if (const auto* value = node.any("value_floats")) {
            return define(node, std::make_shared<const Constant>(Constant{
                                    {value->floats_size()}, {value->floats().begin(), value->floats().end()}}));
        }
        if (const auto* value = node.any("value_int")) return define(node, IntegerConstant{{}, {value->i()}});
        if (const auto list = node.integers("value_ints"))
            return define(node, IntegerConstant{{static_cast<int64_t>(list->size())}, *list});
        node.fail("has no tensor, float or integer value");
    }

    void shape(Node& node) {
        const auto extents = dims_of(input_value(node, 0));
        const auto rank = static_cast<int64_t>(extents.size());
        const auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
        const int64_t start = clamp(node.integer("start", 0));
        const int64_t end = std::max(start, clamp(node.integer("end", rank)));
        define(node, IntegerConstant{{end - start}, {extents.begin() + start, extents.begin() + end}});
    }

    void gather(Node& node) {
        node.expect_inputs(2, 2);
        const auto data = integer_input(node, 0);
        const auto indices = integer_input(node, 1);
        if (data.dims.size() != 1 || indices.dims.size() > 1 || node.integer("axis", 0) != 0)
            node.fail("is supported on shapes only");
        IntegerConstant result{indices.dims, {}};
        for (const int64_t index : indices.values) {
            result.values.push_back(
                data.values[static_cast<size_t>(checked_axis(node, index, data.values.size(), "index"))]);
        }
        define(node, result);
    }

    void concat_shapes(Node& node) {
        IntegerConstant result;
        for (int i = 0; i < node.file().input_size(); ++i) {
            const auto part = integer_input(node, i);
            if (part.dims.size() != 1) node.fail("input " + in_quotes(node.input(i)) + " is no list of integers");
            result.values.insert(result.values.end(), part.values.begin(), part.values.end());
            if (result.values.size() > most_shape_values) break;  // define() refuses it
        }
        (void)checked_axis(node, node.integer("axis", 0), 1, "axis");
        result.dims = {static_cast<int64_t>(result.values.size())};
        define(node, result);
    }

    void slice(Node& node) {
        const auto data = integer_input(node, 0);
        const auto starts = integers_of(node, "starts", 1);
        const auto ends = integers_of(node, "ends", 2);
        const auto axes = integers_of(node, "axes", 3).value_or(std::vector<int64_t>{0});
        const auto steps = node.has_input(4) ? integer_input(node, 4).values : std::vector<int64_t>{1};
        const std::vector<int64_t> one{1};
        if (data.dims.size() != 1 || !starts || !ends || starts->size() != 1 || ends->size() != 1 ||
            axes != std::vector<int64_t>{0} || steps != one) {
            node.fail("is supported on shapes only, one piece with step 1");
        }
        const auto count = static_cast<int64_t>(data.values.size());
        const auto clamp = [&](int64_t at) {
            return std::clamp<int64_t>(at < 0 ? std::max(at, -count) + count : at, 0, count);
        };
        const int64_t start = clamp((*starts)[0]);
        const int64_t end = std::max(start, clamp((*ends)[0]));
        define(node, IntegerConstant{{end - start}, {data.values.begin() + start, data.values.begin() + end}});
    }

    void integer_arithmetic(Node& node) {
        node.expect_inputs(2, 2);
        const auto a = integer_input(node, 0);
        const auto b = integer_input(node, 1);
        const size_t count = std::max(a.values.size(), b.values.size());
        if ((a.values.size() != count && a.values.size() != 1) || (b.values.size() != count && b.values.size() != 1)) {
            node.fail("operands are " + dims_text(a.dims) + " and " + dims_text(b.dims));
        }
        IntegerConstant result{a.values.size() == count ? a.dims : b.dims, std::vector<int64_t>(count)};
        for (size_t i = 0; i < count; ++i) {
            const int64_t x = a.values[a.values.size() == 1 ? 0 : i];
            const int64_t y = b.values[b.values.size() == 1 ? 0 : i];
            const bool wraps = node.op() == "Mul" ? __builtin_mul_overflow(x, y, &result.values[i])
                                                  : __builtin_add_overflow(x, y, &result.values[i]);
            if (wraps) node.fail("overflows 64 bits");
        }
        define(node, result);
    }

    void mul(Node& node) {
        node.expect_inputs(2, 2);
        for (const int i : {0, 1}) {
            if (!std::holds_alternative<IntegerConstant>(input_value(node, i)))
                node.fail("is supported on shapes only");
        }
        integer_arithmetic(node);
    }

    proto::ModelProto model_;
    std::string where_;
    std::optional<std::filesystem::path> directory_;
    const InputSizes& sizes_;
    int64_t opset_ = 0;
    RawNetwork raw_;
    std::unordered_map<std::string, Value> values_;
    std::unordered_map<std::string, int> initializers_;  // name to index in the file; decoded when first read
    std::unordered_map<std::string, int> writer_;        // name to node
};

const std::map<std::string, Importer::Handler>& Importer::handlers() {
    static const std::map<std::string, Handler> all{
        {"Add", &Importer::add},
        {"AveragePool", &Importer::average_pool},
        {"BatchNormalization", &Importer::batch_normalization},
        {"Cast", &Importer::cast},
        {"Clip", &Importer::clip},
        {"Concat", &Importer::concat},
        {"Constant", &Importer::constant},
        {"Conv", &Importer::conv},
        {"ConvTranspose", &Importer::conv_transpose},
        {"DepthToSpace", &Importer::depth_to_space},
        {"Dropout", &Importer::dropout},
        {"Flatten", &Importer::flatten},
        {"Gather", &Importer::gather},
        {"Gemm", &Importer::gemm},
        {"GlobalAveragePool", &Importer::global_average_pool},
        {"Identity", &Importer::identity},
        {"LeakyRelu", &Importer::leaky_relu},
        {"MatMul", &Importer::mat_mul},
        {"MaxPool", &Importer::max_pool},
        {"Mul", &Importer::mul},
        {"PRelu", &Importer::prelu},
        {"ReduceMean", &Importer::reduce_mean},
        {"Relu", &Importer::relu},
        {"Reshape", &Importer::reshape},
        {"Shape", &Importer::shape},
        {"Sigmoid", &Importer::sigmoid},
        {"Slice", &Importer::slice},
        {"Softmax", &Importer::softmax},
        {"Squeeze", &Importer::squeeze},
        {"Tanh", &Importer::tanh},
        {"Transpose", &Importer::transpose},
        {"Unsqueeze", &Importer::unsqueeze},
    };
    return all;
}

Network import_model(proto::ModelProto model, const std::string& where,
                     const std::optional<std::filesystem::path>& directory, const InputSizes& sizes) {
    return Importer(std::move(model), where, directory, sizes).run();
}

}  // namespace

}  // namespace laminate::onnx

namespace laminate {

Network load_onnx(const std::string& path, const InputSizes& sizes) {
    return onnx::import_model(onnx::parse_model(read_file(path), path), path, std::filesystem::path(path).parent_path(),
                              sizes);
}

Network parse_onnx(const std::string& bytes, const std::string& where, const InputSizes& sizes) {
    return onnx::import_model(onnx::parse_model(bytes, where), where, std::nullopt, sizes);
}

}  // namespace laminate
