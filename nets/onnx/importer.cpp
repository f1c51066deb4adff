#include "nets/onnx/importer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "nets/operators/reference_operators.h"

namespace laminate::onnx {

// ---- nodes

Node::Node(const proto::NodeProto& node, size_t position) : node_(node) {
    label_ = !node.name().empty()     ? in_quotes(node.name())
             : node.output_size() > 0 ? "writing " + in_quotes(node.output(0))
                                      : "number " + std::to_string(position + 1);
    for (const auto& attribute : node.attribute()) {
        if (!attributes_.emplace(attribute.name(), &attribute).second)
            fail("attribute " + in_quotes(attribute.name()) + " is given twice");
    }
}

void Node::fail(const std::string& message) const {
    const std::string op = in_quotes(node_.op_type());
    throw InputError("node " + label_ + " (" + op.substr(1, op.size() - 2) + "): " + message);
}

const std::string& Node::input(int i) const {
    if (!has_input(i)) fail("has no input " + std::to_string(i + 1));
    return node_.input(i);
}

void Node::expect_inputs(int low, int high) const {
    if (node_.input_size() < low || node_.input_size() > high) {
        fail("has " + std::to_string(node_.input_size()) + " inputs, expected " +
             std::to_string(low) + (high == low ? "" : " to " + std::to_string(high)));
    }
}

int64_t Node::integer(const char* name, int64_t otherwise) {
    const auto* a = take(name, proto::AttributeProto::INT);
    return a == nullptr ? otherwise : a->i();
}

float Node::real(const char* name, float otherwise) {
    const auto* a = take(name, proto::AttributeProto::FLOAT);
    return a == nullptr ? otherwise : a->f();
}

std::string Node::text(const char* name, const std::string& otherwise) {
    const auto* a = take(name, proto::AttributeProto::STRING);
    return a == nullptr ? otherwise : a->s();
}

std::optional<std::vector<int64_t>> Node::integers(const char* name) {
    const auto* a = take(name, proto::AttributeProto::INTS);
    if (a == nullptr) return std::nullopt;
    return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

std::optional<std::vector<float>> Node::reals(const char* name) {
    const auto* a = take(name, proto::AttributeProto::FLOATS);
    if (a == nullptr) return std::nullopt;
    return std::vector<float>(a->floats().begin(), a->floats().end());
}

const proto::AttributeProto* Node::any(const char* name) {
    const auto found = attributes_.find(name);
    if (found == attributes_.end()) return nullptr;
    const auto* attribute = found->second;
    attributes_.erase(found);
    return attribute;
}

void Node::refuse_other_attributes() const {
    if (!attributes_.empty())
        fail("attribute " + in_quotes(attributes_.begin()->first) + " is not supported");
}

const proto::AttributeProto* Node::take(const char* name,
                                        proto::AttributeProto::AttributeType type) {
    const auto* attribute = any(name);
    // IR version 1 had no type field.
    if (attribute != nullptr && attribute->has_type() && attribute->type() != type) {
        fail(std::string("attribute \"") + name + "\" has the wrong type");
    }
    return attribute;
}

// ---- what a node reads

Value Importer::resolve(const std::string& name) {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    if (const auto found = initializers_.find(name); found != initializers_.end()) {
        auto& tensor = *model_.mutable_graph()->mutable_initializer(found->second);
        const std::string label = "initializer " + in_quotes(name);
        const Value value =
            std::visit([](auto v) -> Value { return v; }, decode(tensor, label, directory_));
        if (const auto* list = std::get_if<IntegerConstant>(&value);
            list != nullptr && list->values.size() > most_shape_values) {
            throw InputError(label + " has " + std::to_string(list->values.size()) +
                             " integers, expected at most " + std::to_string(most_shape_values));
        }
        if (const auto* constant = std::get_if<ConstantPtr>(&value))
            raw_.weights_read((*constant)->values.size());
        if (const auto* small = std::get_if<SmallIntegers>(&value))
            raw_.weights_read(small->values->values.size());
        tensor.clear_raw_data();  // large models: do not hold the weights twice
        tensor.clear_float_data();
        values_.emplace(name, value);
        return value;
    }
    throw InputError("value " + in_quotes(name) +
                     " is a second result of its node, which is not supported");
}

Value Importer::value(const Node& node, int i) {
    if (moved_integers_) {
        const auto found = moved_integers_->stand_ins.find(i);
        if (found != moved_integers_->stand_ins.end()) return found->second;
    }
    return resolve(node.input(i));
}

bool Importer::is_integer(const Node& node, int i) {
    return std::holds_alternative<IntegerConstant>(value(node, i));
}

TensorId Importer::tensor(const Node& node, int i) {
    return tensor_of(node, value(node, i), node.input(i));
}

TensorId Importer::tensor_of(const Node& node, const Value& value, const std::string& name) {
    if (std::holds_alternative<IntegerConstant>(value))
        node.fail("input " + in_quotes(name) + " is a list of integers, expected a FLOAT tensor");
    if (std::holds_alternative<SmallIntegers>(value))
        node.fail("input " + in_quotes(name) +
                  " has integers of 8 or 16 bits, expected a FLOAT tensor; Cast and "
                  "DequantizeLinear make it that");
    if (const auto* id = std::get_if<TensorId>(&value)) return *id;
    return constant_tensor(node, std::get<ConstantPtr>(value));
}

TensorId Importer::number_tensor(const Node& node, int i) {
    const Value given = value(node, i);
    if (const auto* small = std::get_if<SmallIntegers>(&given))
        return constant_tensor(node, small->values);
    const auto* list = std::get_if<IntegerConstant>(&given);
    if (list == nullptr) return tensor(node, i);
    return constant_tensor(
        node, std::make_shared<const Constant>(Constant{
                  list->dims, std::vector<float>(list->values.begin(), list->values.end())}));
}

std::optional<bool> Importer::truth(const Node& node, int i) {
    const Value given = value(node, i);
    if (const auto* list = std::get_if<IntegerConstant>(&given);
        list != nullptr && list->values.size() == 1)
        return list->values[0] != 0;
    if (const auto* constant = std::get_if<ConstantPtr>(&given);
        constant != nullptr &&
        (*constant)->values.size() == 1)  // a folded comparison of floats is 1 or 0
        return (*constant)->values[0] != 0;
    return std::nullopt;
}

TensorId Importer::constant_tensor(const Node& node, ConstantPtr constant) {
    if (constant->values.empty()) node.fail("reads an empty tensor, " + dims_text(constant->dims));
    const bool is_scalar = constant->dims.empty();
    const TensorId id = add_tensor("", is_scalar ? Dims{1} : constant->dims);
    if (is_scalar) mark_scalar(id);
    constants_.emplace(id, std::move(constant));
    return id;
}

ConstantPtr Importer::known(TensorId id) const {
    const auto found = constants_.find(id);
    return found == constants_.end() ? nullptr : found->second;
}

ConstantPtr Importer::constant(const Node& node, int i) {
    const Value given = value(node, i);
    if (const auto* id = std::get_if<TensorId>(&given)) {
        const bool is_input =
            std::find(raw_.inputs.begin(), raw_.inputs.end(), *id) != raw_.inputs.end();
        node.fail("input " + in_quotes(node.input(i)) + " is " +
                  (is_input ? "an input of the network" : "computed when the network runs") +
                  ", expected a constant FLOAT tensor (an initializer)");
    }
    if (!std::holds_alternative<ConstantPtr>(given))
        node.fail("input " + in_quotes(node.input(i)) +
                  " has integers, expected a constant FLOAT tensor");
    const auto constant = std::get<ConstantPtr>(given);
    if (constant->values.empty()) node.fail("input " + in_quotes(node.input(i)) + " is empty");
    return constant;
}

float Importer::scalar(const Node& node, int i, float otherwise) {
    if (!node.has_input(i)) return otherwise;
    const auto given = constant(node, i);
    if (given->values.size() != 1)
        node.fail("input " + in_quotes(node.input(i)) + " has " +
                  std::to_string(given->values.size()) + " values, expected 1");
    return given->values[0];
}

IntegerConstant Importer::integers(const Node& node, int i) {
    const Value given = value(node, i);
    if (!std::holds_alternative<IntegerConstant>(given))
        node.fail("input " + in_quotes(node.input(i)) +
                  " is not known before the run, expected constant integers" + how_to_know());
    return std::get<IntegerConstant>(given);
}

std::string Importer::how_to_know() const {
    for (const TensorId id : raw_.inputs) {
        const std::string& name = raw_.tensors[static_cast<size_t>(id)].name;
        if (is_live_integer(name))
            return "; --integers NAME=N,... gives those of input " + in_quotes(name);
    }
    return "";
}

std::optional<std::vector<int64_t>> Importer::integers_of(Node& node, const char* attribute,
                                                          int i) {
    auto values = node.integers(attribute);
    if (!values && node.has_input(i)) values = integers(node, i).values;
    return values;
}

ElementType Importer::type(const std::string& name) const {
    const auto found = types_.find(name);
    return found == types_.end() ? ElementType::float32 : found->second;
}

void Importer::set_type(const std::string& name, ElementType type) {
    if (type != ElementType::float32) types_[name] = type;
}

Dims Importer::file_dims(const Value& value) const {
    if (const auto* id = std::get_if<TensorId>(&value)) return file_dims(*id);
    if (const auto* list = std::get_if<IntegerConstant>(&value)) return list->dims;
    if (const auto* small = std::get_if<SmallIntegers>(&value)) return small->values->dims;
    return std::get<ConstantPtr>(value)->dims;
}

int64_t Importer::checked_axis(const Node& node, int64_t axis, size_t rank, const char* what) {
    const auto r = static_cast<int64_t>(rank);
    if (axis < -r || axis >= r)
        node.fail(std::string(what) + " " + std::to_string(axis) + " of a tensor with " +
                  std::to_string(rank) + " dimensions");
    return axis < 0 ? axis + r : axis;
}

// ---- what a node writes

TensorId Importer::add_tensor(const std::string& name, Dims extents) {
    raw_.tensors.push_back({name, std::move(extents)});
    return static_cast<TensorId>(raw_.tensors.size() - 1);
}

bool Importer::is_used(const std::string& name) const {
    return writer_.contains(name) || values_.contains(name) || initializers_.contains(name) ||
           made_names_.contains(name);
}

std::string Importer::unused_name(const std::string& name) {
    std::string unused = name;
    // The count goes on where it ended: 50,000 outputs may ask for one name.
    for (int& count = copies_of_[name]; is_used(unused); ++count)
        unused = name + (count == 0 ? "_" : "_" + std::to_string(count + 1));
    made_names_.insert(unused);
    return unused;
}

TensorId Importer::add_raw(RawLayer raw, Dims output_dims) {
    raw.layer.output = add_tensor("", std::move(output_dims));
    raw_.layers.push_back(std::move(raw));
    return raw_.layers.back().layer.output;
}

TensorId Importer::write_constant(const ConstantPtr& constant, const std::string& name) {
    RawLayer raw{.layer = {.kind = LayerKind::general},
                 .op = "Constant",
                 .label = "writing " + in_quotes(name)};
    raw.layer.general = {.kind = GeneralKind::constant};
    raw.layer.weights = constant->dims.empty()
                            ? std::make_shared<const Constant>(Constant{{1}, constant->values})
                            : constant;
    raw.layer.name = "constant " + in_quotes(name);
    const TensorId id = add_raw(raw, infer_output_dims(raw.layer, {}));
    raw_.tensors[static_cast<size_t>(id)].name = name;
    return id;
}

void Importer::define(const Node& node, Value value, int output) {
    node.refuse_other_attributes();
    if (const auto* id = std::get_if<TensorId>(&value)) {
        const ConstantPtr constant = known(*id);
        if (constant && scalars_.contains(*id) && !constant->dims.empty()) {
            value = std::make_shared<const Constant>(Constant{{}, constant->values});
        } else if (constant) {
            value = constant;
        }
    }
    if (moved_integers_ && std::holds_alternative<ConstantPtr>(value))
        value = moved_integers_->at(std::get<ConstantPtr>(value));
    if (const auto* list = std::get_if<IntegerConstant>(&value)) {
        if (list->values.size() > most_shape_values)
            node.fail("makes " + std::to_string(list->values.size()) +
                      " integers, expected at most " + std::to_string(most_shape_values));
        charge(2 * list->values.size());  // they have 64 bits
    }
    values_[node.file().output(output)] = std::move(value);
}

void Importer::define_integers(const Node& node, TensorId id, int output) {
    const ConstantPtr constant = known(id);
    if (!constant) {
        mark_live_integer(node.file().output(output));
        if (output == 0) return define_like(node, id, id);
        return define(node, id, output);
    }
    IntegerConstant result{file_dims(id), {}};
    for (const float value : constant->values) result.values.push_back(static_cast<int64_t>(value));
    define(node, result, output);
}

void Importer::alias(const Node& node, TensorId id) {
    if (!known(id)) raw_.folded.push_back(node.op() + " " + node.label() + " removed");
    define(node, id);
}

namespace {

/// Constants are evaluated while the file is read, and a small file must not cause hours of work.
void refuse_long_work(const Node& node, const Layer& layer, const std::vector<Dims>& in,
                      const Dims& out) {
    constexpr double most_work = 1e10;
    double each = 1;  // elements read for one element of the result
    if (layer.weights && !layer.weights->dims.empty())
        each = static_cast<double>(layer.weights->values.size()) /
               static_cast<double>(layer.weights->dims[0]);
    if (layer.kind == LayerKind::general && layer.general.kind == GeneralKind::matmul)
        each = static_cast<double>(in[0].back());
    for (const int64_t k : layer.window.kernel) each *= static_cast<double>(k);
    for (const Dims* list : {&layer.general.kernel, &layer.general.tap_counts}) {
        for (const int64_t k : *list) each *= static_cast<double>(k);
    }
    if (each * static_cast<double>(element_count(out)) > most_work)
        node.fail("of constants takes too long to evaluate: makes " + dims_text(out));
}

}  // namespace

TensorId Importer::add_layer(const Node& node, Layer layer) {
    layer.name = "node " + node.label();  // for the messages of infer_output_dims
    std::vector<Dims> input_dims;
    for (const TensorId id : layer.inputs) input_dims.push_back(dims(id));
    Dims output_dims = infer_output_dims(layer, input_dims);
    const auto is_known = [&](TensorId id) { return known(id) != nullptr; };
    if (std::all_of(layer.inputs.begin(), layer.inputs.end(), is_known)) {
        refuse_long_work(node, layer, input_dims, output_dims);
        charge(static_cast<size_t>(element_count(output_dims)));
        std::vector<float> result(static_cast<size_t>(element_count(output_dims)));
        std::vector<const float*> arrays;
        for (const TensorId id : layer.inputs) arrays.push_back(known(id)->values.data());
        run_reference_layer(layer, input_dims, arrays, output_dims, result.data(), 1);
        return constant_tensor(
            node, std::make_shared<const Constant>(Constant{output_dims, std::move(result)}));
    }
    const bool has_constant_operand =
        layer.kind == LayerKind::general && layer.inputs.size() == 2 &&
        (layer.general.kind == GeneralKind::binary || layer.general.kind == GeneralKind::matmul);
    for (size_t k = 0; k < layer.inputs.size(); ++k) {
        const ConstantPtr constant = known(layer.inputs[k]);
        if (!constant) continue;
        if (has_constant_operand) {
            layer.general.constant_first = k == 0;
            layer.weights = constant->dims.empty()
                                ? std::make_shared<const Constant>(Constant{{1}, constant->values})
                                : constant;
            layer.inputs.erase(layer.inputs.begin() + static_cast<std::ptrdiff_t>(k));
            break;
        }
        const std::string name =
            node.inputs() > static_cast<int>(k) ? node.input(static_cast<int>(k)) : "constant";
        layer.inputs[k] = write_constant(constant, unused_name(name + "_written"));
    }
    const TensorId output =
        add_raw({.layer = std::move(layer), .op = node.op(), .label = node.label(), .beside = true},
                std::move(output_dims));
    raw_.tensors[static_cast<size_t>(output)].name = unused_name(node.file().output(0) + "_part");
    return output;
}

TensorId Importer::add_general(const Node& node, GeneralOperator op, std::vector<TensorId> inputs) {
    bool is_scalar = op.kind == GeneralKind::unary || op.kind == GeneralKind::binary ||
                     op.kind == GeneralKind::select;
    for (const TensorId id : inputs) is_scalar = is_scalar && scalars_.contains(id);
    const TensorId output = add_layer(
        node, {.kind = LayerKind::general, .inputs = std::move(inputs), .general = std::move(op)});
    if (is_scalar) mark_scalar(output);
    return output;
}

/// Gives the layer that writes `id` the node's name, and the tensor the name of the node's result.
void Importer::name_result(const Node& node, TensorId id) {
    if (known(id) || id < made_before_) return;  // another node's result keeps its name
    raw_.tensors[static_cast<size_t>(id)].name = node.file().output(0);
    name_last_layer(node, id);
}

void Importer::name_last_layer(const Node& node, TensorId id) {
    if (raw_.layers.empty() || raw_.layers.back().layer.output != id) return;
    raw_.layers.back().layer.onnx_name = node.name();
    raw_.layers.back().beside = false;
}

void Importer::append(const Node& node, Layer layer) {
    const TensorId id = add_layer(node, std::move(layer));
    name_result(node, id);
    define(node, id);
}

void Importer::append(const Node& node, GeneralOperator op, std::vector<TensorId> inputs) {
    const TensorId id = add_general(node, std::move(op), std::move(inputs));
    name_result(node, id);
    define(node, id);
}

void Importer::append_affine(const Node& node, TensorId given, ConstantPtr scale,
                             ConstantPtr shift) {
    if (const ConstantPtr constant = known(given)) {
        charge(constant->values.size());
        const size_t channels = scale->values.size();
        const auto run = static_cast<size_t>(element_count(dims(given)) / dims(given)[0]) / channels;
        std::vector<float> result(constant->values.begin(), constant->values.end());
        for (size_t k = 0; k < result.size(); ++k) {
            const size_t channel = k / run % channels;
            result[k] = scale->values[channel] * result[k] + shift->values[channel];
        }
        const TensorId id = constant_tensor(
            node, std::make_shared<const Constant>(Constant{constant->dims, std::move(result)}));
        return define_like(node, given, id);
    }
    const TensorId x = picture_if_lifted(given);
    RawLayer raw{.layer = {.kind = LayerKind::conv, .inputs = {x}},
                 .op = node.op(),
                 .label = node.label(),
                 .affine = true};
    raw.layer.onnx_name = node.name();
    raw.layer.weights = std::move(scale);
    raw.layer.bias = std::move(shift);
    const TensorId id = add_raw(std::move(raw), dims(x));
    raw_.tensors[static_cast<size_t>(id)].name =
        x == given ? node.file().output(0) : unused_name(node.file().output(0) + "_part");
    define_like(node, given, id);
}

TensorId Importer::reshaped(const Node& node, TensorId x, const Dims& target) {
    if (dims(x) == target) return x;
    return add_general(node, {.kind = GeneralKind::reshape, .dims = target}, {x});
}

// ---- one spatial axis as two

TensorId Importer::picture(const Node& node, TensorId x) {
    if (dims(x).size() != 3) return x;
    if (const TensorId lifted = picture_if_lifted(x); lifted != x) return lifted;
    const Dims& line = dims(x);
    const TensorId lifted = reshaped(node, x, {line[0], line[1], 1, line[2]});
    pictures_.emplace(x, lifted);
    return lifted;
}

TensorId Importer::picture_if_lifted(TensorId x) const {
    const auto found = pictures_.find(x);
    return found == pictures_.end() ? x : found->second;
}

void Importer::append_like(const Node& node, TensorId x, Layer layer) {
    const TensorId result = add_layer(node, std::move(layer));
    if (scalars_.contains(x)) mark_scalar(result);
    define_like(node, x, result);
}

void Importer::define_like(const Node& node, TensorId x, TensorId result) {
    if (dims(x).size() == dims(result).size()) {
        name_result(node, result);
        return define(node, result);
    }
    if (!known(result)) name_last_layer(node, result);
    const Dims& wide = dims(result);
    const TensorId line = reshaped(node, result, {wide[0], wide[1], wide[3]});
    pictures_.emplace(line, result);
    if (!known(line)) raw_.tensors[static_cast<size_t>(line)].name = node.file().output(0);
    define(node, line);
}

// ---- transposes

TensorId Importer::transposed(const Node& node, TensorId x, const Dims& perm) {
    Permuted whole{x, perm};
    if (const auto before = permuted_.find(x); before != permuted_.end()) {
        whole.source = before->second.source;
        for (int64_t& axis : whole.perm) axis = before->second.perm[static_cast<size_t>(axis)];
    }
    const Dims& from = dims(whole.source);
    Dims target;
    GeneralOperator view{.kind = GeneralKind::view};
    const Dims steps = row_major_steps(from);
    Dims moved;  // axes that are more than 1 long, in their new order
    for (const int64_t axis : whole.perm) {
        view.dims.push_back(from[static_cast<size_t>(axis)]);
        view.steps.push_back(steps[static_cast<size_t>(axis)]);
        if (view.dims.back() > 1) moved.push_back(axis);
    }
    // Moving an axis of extent 1 moves no element.
    if (std::is_sorted(moved.begin(), moved.end())) return reshaped(node, whole.source, view.dims);
    const TensorId result = add_general(node, std::move(view), {whole.source});
    permuted_.emplace(result, std::move(whole));
    return result;
}

}  // namespace laminate::onnx
