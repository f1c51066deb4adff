#include "runtime/manifest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/indexed.h"
#include "base/parse_json.h"
#include "nets/network/picture_views.h"

namespace laminate {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* schema_name = "laminate.manifest";
constexpr int schema_version = 1;
/// More than any machine has per thread; keeps sums of sizes far from overflow.
constexpr int64_t most_scratch_bytes = int64_t{1} << 40;
constexpr const char* positive_infinity = "infinity";
constexpr const char* negative_infinity = "-infinity";

constexpr std::array layer_kinds{
    LayerKind::conv,     LayerKind::conv_transpose, LayerKind::gemm,
    LayerKind::max_pool, LayerKind::average_pool,   LayerKind::global_average_pool,
    LayerKind::add,      LayerKind::concat,         LayerKind::depth_to_space,
    LayerKind::flatten,  LayerKind::softmax,        LayerKind::activation,
    LayerKind::general};
constexpr std::array activation_kinds{ActivationKind::none,       ActivationKind::relu,
                                      ActivationKind::leaky_relu, ActivationKind::prelu,
                                      ActivationKind::clip,       ActivationKind::sigmoid,
                                      ActivationKind::tanh,       ActivationKind::unary};
constexpr std::array buffer_roles{LAMINATE_INPUT, LAMINATE_WEIGHTS, LAMINATE_INTERMEDIATE,
                                  LAMINATE_OUTPUT};
constexpr std::array element_types{ElementType::float32, ElementType::uint8, ElementType::int8};

// ---- reading

/// A JSON value with its path in the document, for messages.
class Node {
public:
    Node(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

    [[noreturn]] void fail(const std::string& message) const {
        throw InputError(where_ + ": " + message);
    }

    [[nodiscard]] bool has(const char* key) const { return object().contains(key); }
    [[nodiscard]] Node operator[](const char* key) const {
        const auto found = object().find(key);
        if (found == object().end()) fail(std::string("has no \"") + key + "\"");
        return {*found, where_ + "." + key};
    }
    [[nodiscard]] std::vector<Node> elements() const {
        if (!json_->is_array())
            fail(std::string("is ") + json_->type_name() + ", expected an array");
        std::vector<Node> nodes;
        for (size_t k = 0; k < json_->size(); ++k)
            nodes.emplace_back((*json_)[k], where_ + "[" + std::to_string(k) + "]");
        return nodes;
    }
    [[nodiscard]] std::string text() const {
        if (!json_->is_string())
            fail(std::string("is ") + json_->type_name() + ", expected a string");
        return json_->get<std::string>();
    }
    [[nodiscard]] int64_t integer(int64_t low,
                                  int64_t high = std::numeric_limits<int64_t>::max()) const {
        const bool fits = json_->is_number_integer() &&
                          (!json_->is_number_unsigned() ||
                           json_->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
        const int64_t value = fits ? json_->get<int64_t>() : 0;
        if (!fits || value < low || value > high) {
            fail("is " + json_->dump(-1, ' ', false, Json::error_handler_t::replace) +
                 ", expected an integer " +
                 (high == std::numeric_limits<int64_t>::max()
                      ? "from " + std::to_string(low)
                      : std::to_string(low) + " to " + std::to_string(high)));
        }
        return value;
    }
    [[nodiscard]] int32_t integer32(int32_t low) const {
        return static_cast<int32_t>(integer(low, std::numeric_limits<int32_t>::max()));
    }
    /// A number, or "infinity" or "-infinity", the open ends of a clip, for which JSON has no
    /// number.
    [[nodiscard]] float real() const {
        if (*json_ == positive_infinity) return std::numeric_limits<float>::infinity();
        if (*json_ == negative_infinity) return -std::numeric_limits<float>::infinity();
        if (!json_->is_number())
            fail(std::string("is ") + json_->type_name() + ", expected a number");
        return json_->get<float>();
    }
    [[nodiscard]] bool boolean() const {
        if (!json_->is_boolean())
            fail(std::string("is ") + json_->type_name() + ", expected true or false");
        return json_->get<bool>();
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> values;
        for (const Node& node : elements()) values.push_back(node.text());
        return values;
    }
    [[nodiscard]] std::vector<int64_t> integers(int64_t low) const {
        std::vector<int64_t> values;
        for (const Node& node : elements()) values.push_back(node.integer(low));
        return values;
    }
    [[nodiscard]] std::vector<TensorId> ids() const {
        std::vector<TensorId> values;
        for (const Node& node : elements()) values.push_back(node.integer32(0));
        return values;
    }
    [[nodiscard]] std::array<int64_t, 2> pair(int64_t low) const {
        const std::vector<int64_t> values = integers(low);
        if (values.size() != 2)
            fail("has " + std::to_string(values.size()) + " elements, expected 2, y and x");
        return {values[0], values[1]};
    }
    [[nodiscard]] SizeFormula formula() const { return parse_size_formula(text(), where_); }
    [[nodiscard]] ConstantRange range() const {
        return {(*this)["offset_elements"].integer(0), (*this)["dims"].integers(1)};
    }

private:
    [[nodiscard]] const Json& object() const {
        if (!json_->is_object())
            fail(std::string("is ") + json_->type_name() + ", expected an object");
        return *json_;
    }

    const Json* json_;
    std::string where_;
};

template <class Kind, int count>
constexpr std::array<Kind, count> all_kinds() {
    std::array<Kind, count> kinds{};
    for (int k = 0; k < count; ++k) kinds[static_cast<size_t>(k)] = static_cast<Kind>(k);
    return kinds;
}
constexpr auto general_kinds = all_kinds<GeneralKind, general_kind_count>();
constexpr auto general_functions = all_kinds<GeneralFunction, general_function_count>();

/// The kind whose text is at `node`.
template <class Kind, size_t count>
Kind kind_at(const Node& node, const std::array<Kind, count>& kinds) {
    const std::string text = node.text();
    std::string known;
    for (const Kind kind : kinds) {
        if (text == to_string(kind)) return kind;
        known += (known.empty() ? "" : ", ") + std::string(to_string(kind));
    }
    node.fail("is \"" + text + "\", expected one of " + known);
}

GeneralOperator read_general_operator(const Node& node) {
    GeneralOperator op;
    op.kind = kind_at(node["kind"], general_kinds);
    if (node.has("function")) op.function = kind_at(node["function"], general_functions);
    for_each_field(op, [&](const char* name, auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if (!node.has(name)) return;
        constexpr int64_t low = std::numeric_limits<int64_t>::min();
        if constexpr (std::is_same_v<Field, std::vector<int64_t>>) {
            field = node[name].integers(low);
        } else if constexpr (std::is_same_v<Field, std::vector<float>>) {
            for (const Node& value : node[name].elements()) field.push_back(value.real());
        } else if constexpr (std::is_same_v<Field, bool>) {
            field = node[name].boolean();
        } else if constexpr (std::is_same_v<Field, float>) {
            field = node[name].real();
        } else {
            field = node[name].integer(low);
        }
    });
    return op;
}

LayerStep read_layer_step(const Node& node) {
    LayerStep step;
    Layer& layer = step.layer;
    const Node from = node["layer"];
    layer.name = from["name"].text();
    layer.kind = kind_at(from["kind"], layer_kinds);
    layer.inputs = node["inputs"].ids();
    layer.output = node["output"].integer32(0);
    if (from.has("onnx_name")) layer.onnx_name = from["onnx_name"].text();
    if (from.has("window")) {
        const Node window = from["window"];
        const auto read = [&](const char* key, std::array<int64_t, 2>& value, int64_t low) {
            if (window.has(key)) value = window[key].pair(low);
        };
        read("kernel", layer.window.kernel, 1);
        read("stride", layer.window.stride, 1);
        read("dilation", layer.window.dilation, 1);
        read("pad_begin", layer.window.pad_begin, 0);
        read("pad_end", layer.window.pad_end, 0);
        read("output_padding", layer.window.output_padding, 0);
    }
    if (from.has("groups")) layer.groups = from["groups"].integer(1);
    if (from.has("axis")) layer.axis = from["axis"].integer(0);
    if (from.has("block")) layer.block = from["block"].integer(1);
    if (from.has("depth_to_space_crd"))
        layer.depth_to_space_crd = from["depth_to_space_crd"].boolean();
    if (from.has("count_include_pad"))
        layer.count_include_pad = from["count_include_pad"].boolean();
    if (layer.kind == LayerKind::general) layer.general = read_general_operator(from["general"]);
    if (from.has("activation")) {
        const Node activation = from["activation"];
        layer.activation.kind = kind_at(activation["kind"], activation_kinds);
        if (activation.has("function"))
            layer.activation.function = kind_at(activation["function"], general_functions);
        if (activation.has("alpha")) layer.activation.alpha = activation["alpha"].real();
        if (activation.has("beta")) layer.activation.beta = activation["beta"].real();
        if (activation.has("low")) layer.activation.low = activation["low"].real();
        if (activation.has("high")) layer.activation.high = activation["high"].real();
        if (activation.has("slope")) step.slope = activation["slope"].range();
    }
    if (from.has("weights")) step.weights = from["weights"].range();
    if (from.has("bias")) step.bias = from["bias"].range();
    return step;
}

PromisedBuffer read_buffer(const Node& node) {
    const auto triple = [&](const char* key, int64_t low) {
        const std::vector<int64_t> values = node[key].integers(low);
        if (values.size() != 3)
            node[key].fail("has " + std::to_string(values.size()) + " elements, expected 3");
        return std::array<int64_t, 3>{values[0], values[1], values[2]};
    };
    return {kind_at(node["role"], buffer_roles),
            node["layer"].text(),
            node["tensor"].text(),
            triple("dims", 1),
            triple("extent", 0),
            node["reads"].integer(0),
            node["writes"].integer(0)};
}

GroupPromise read_promise(const Node& node) {
    GroupPromise promise;
    promise.live_total_elements = node["live_total_elements"].integer(0);
    for (const Node& buffer : node["buffers"].elements())
        promise.buffers.push_back(read_buffer(buffer));
    for (const Node& nest : node["nests"].elements()) {
        promise.nests.push_back({nest["layer"].text(), nest["macs"].integer(0),
                                 nest["kernel"].pair(1), nest["stride"].pair(1),
                                 nest["dilation"].pair(1), nest["pad_begin"].pair(0),
                                 nest["transposed"].boolean()});
    }
    return promise;
}

/// Longest picture, and most rows that a seam repeats.
constexpr int64_t longest = int64_t{1} << 24;

std::optional<StripRule> read_strip_rule(const Node& node, const char* axis) {
    if (!node.has(axis)) return std::nullopt;
    const Node rule = node[axis];
    StripRule read{rule["extent"].formula(), rule["unit"].integer(1, longest), 0, 0};
    if (rule.has("repeated")) read.repeated = rule["repeated"].integer(0, longest);
    if (rule.has("most")) read.most = rule["most"].integer(1, longest);
    return read;
}

OpenStep read_open_step(const Node& node) {
    return {node["scratch_bytes"].formula(), read_strip_rule(node, "rows"),
            read_strip_rule(node, "columns")};
}

OpenSizes read_open_sizes(const Node& node) {
    OpenSizes open;
    open.reference = {.images = node["images"].integer(1, longest),
                      .rows = node["rows"].integer(1, longest),
                      .columns = node["columns"].integer(1, longest)};
    open.least_rows = node["least_rows"].integer(1, longest);
    open.least_columns = node["least_columns"].integer(1, longest);
    for (const Node& tensor : node["dims"].elements()) {
        open.dims.emplace_back();
        for (const Node& dim : tensor.elements()) open.dims.back().push_back(dim.formula());
    }
    return open;
}

GroupStep read_group_step(const Node& node) {
    GroupStep step;
    step.group = node["group"].integer32(0);
    step.name = node["name"].text();
    step.layers = node["layers"].texts();
    step.schedule = node["schedule"].text();
    step.inputs = node["inputs"].ids();
    step.outputs = node["outputs"].ids();
    step.constants_offset_elements = node["constants_offset_elements"].integer(0);
    step.constants_count_elements = node["constants_count_elements"].integer(0);
    step.scratch_bytes = node["scratch_bytes"].integer(0);
    step.strips = node["strips"].integer32(1);
    if (node.has("strips_together")) step.strips_together = node["strips_together"].integer32(1);
    if (node.has("trace")) step.trace = read_promise(node["trace"]);
    if (node.has("any_size")) step.open = read_open_step(node["any_size"]);
    return step;
}

// ---- writing

Json json_of(const ConstantRange& range) {
    return {{"offset_elements", range.offset_elements}, {"dims", range.dims}};
}

Json json_of(float value) {
    if (std::isinf(value)) return value > 0 ? positive_infinity : negative_infinity;
    return value;
}

Json json_of(const GeneralOperator& op) {
    const GeneralOperator plain;
    Json out{{"kind", to_string(op.kind)}};
    if (op.function != plain.function) out["function"] = to_string(op.function);
    for_each_field(op, [&](const char* name, const auto& field) {
        using Field = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, std::vector<float>>) {
            if (field.empty()) return;
            Json list = Json::array();
            for (const float value : field) list.push_back(json_of(value));
            out[name] = list;
        } else if constexpr (std::is_same_v<Field, float>) {
            if (field != 0) out[name] = json_of(field);
        } else {
            if (field != Field{}) out[name] = field;
        }
    });
    return out;
}

Json json_of(const LayerStep& step) {
    const Layer& layer = step.layer;
    const Layer plain;
    Json out{{"name", layer.name}, {"kind", to_string(layer.kind)}};
    const auto put = [](Json& json, const char* key, const auto& value, const auto& usual) {
        if (value != usual) json[key] = value;
    };
    put(out, "onnx_name", layer.onnx_name, plain.onnx_name);
    Json window = Json::object();
    put(window, "kernel", layer.window.kernel, plain.window.kernel);
    put(window, "stride", layer.window.stride, plain.window.stride);
    put(window, "dilation", layer.window.dilation, plain.window.dilation);
    put(window, "pad_begin", layer.window.pad_begin, plain.window.pad_begin);
    put(window, "pad_end", layer.window.pad_end, plain.window.pad_end);
    put(window, "output_padding", layer.window.output_padding, plain.window.output_padding);
    if (!window.empty()) out["window"] = window;
    put(out, "groups", layer.groups, plain.groups);
    put(out, "axis", layer.axis, plain.axis);
    put(out, "block", layer.block, plain.block);
    put(out, "depth_to_space_crd", layer.depth_to_space_crd, plain.depth_to_space_crd);
    put(out, "count_include_pad", layer.count_include_pad, plain.count_include_pad);
    if (layer.activation.kind != ActivationKind::none) {
        Json activation{{"kind", to_string(layer.activation.kind)}};
        if (layer.activation.function != plain.activation.function)
            activation["function"] = to_string(layer.activation.function);
        if (layer.activation.alpha != plain.activation.alpha)
            activation["alpha"] = json_of(layer.activation.alpha);
        if (layer.activation.beta != plain.activation.beta)
            activation["beta"] = json_of(layer.activation.beta);
        if (layer.activation.low != plain.activation.low)
            activation["low"] = json_of(layer.activation.low);
        if (layer.activation.high != plain.activation.high)
            activation["high"] = json_of(layer.activation.high);
        if (step.slope) activation["slope"] = json_of(*step.slope);
        out["activation"] = activation;
    }
    if (layer.kind == LayerKind::general) out["general"] = json_of(layer.general);
    if (step.weights) out["weights"] = json_of(*step.weights);
    if (step.bias) out["bias"] = json_of(*step.bias);
    return {{"kind", "layer"}, {"layer", out}, {"inputs", layer.inputs}, {"output", layer.output}};
}

Json json_of(const GroupPromise& promise) {
    Json buffers = Json::array(), nests = Json::array();
    for (const PromisedBuffer& buffer : promise.buffers) {
        buffers.push_back({{"role", to_string(buffer.role)},
                           {"layer", buffer.layer},
                           {"tensor", buffer.tensor},
                           {"dims", buffer.dims},
                           {"extent", buffer.extent},
                           {"reads", buffer.reads},
                           {"writes", buffer.writes}});
    }
    for (const PromisedNest& nest : promise.nests) {
        nests.push_back({{"layer", nest.layer},
                         {"macs", nest.macs},
                         {"kernel", nest.kernel},
                         {"stride", nest.stride},
                         {"dilation", nest.dilation},
                         {"pad_begin", nest.pad_begin},
                         {"transposed", nest.transposed}});
    }
    return {{"live_total_elements", promise.live_total_elements},
            {"buffers", buffers},
            {"nests", nests}};
}

Json json_of(const OpenStep& step) {
    Json out{{"scratch_bytes", to_text(step.scratch_bytes)}};
    const auto put = [&](const char* axis, const std::optional<StripRule>& rule) {
        if (!rule) return;
        out[axis] = {{"extent", to_text(rule->extent)}, {"unit", rule->unit}};
        if (rule->repeated != 0) out[axis]["repeated"] = rule->repeated;
        if (rule->most != 0) out[axis]["most"] = rule->most;
    };
    put("rows", step.rows);
    put("columns", step.columns);
    return out;
}

Json json_of(const OpenSizes& open) {
    Json dims = Json::array();
    for (const std::vector<SizeFormula>& tensor : open.dims) {
        dims.push_back(Json::array());
        for (const SizeFormula& dim : tensor) dims.back().push_back(to_text(dim));
    }
    return {{"images", open.reference.images},
            {"rows", open.reference.rows},
            {"columns", open.reference.columns},
            {"least_rows", open.least_rows},
            {"least_columns", open.least_columns},
            {"dims", dims}};
}

Json json_of(const GroupStep& step) {
    Json out{{"kind", "group"},
             {"group", step.group},
             {"name", step.name},
             {"layers", step.layers},
             {"schedule", step.schedule},
             {"inputs", step.inputs},
             {"outputs", step.outputs},
             {"constants_offset_elements", step.constants_offset_elements},
             {"constants_count_elements", step.constants_count_elements},
             {"scratch_bytes", step.scratch_bytes},
             {"strips", step.strips}};
    if (step.strips_together > 1) out["strips_together"] = step.strips_together;
    if (step.trace) out["trace"] = json_of(*step.trace);
    if (step.open) out["any_size"] = json_of(*step.open);
    return out;
}

// ---- constants

ConstantRange append(const Constant& constant, std::vector<float>& constants) {
    constexpr size_t boundary = 64 / sizeof(float);
    constants.resize((constants.size() + boundary - 1) / boundary * boundary);
    const ConstantRange range{std::ssize(constants), constant.dims};
    constants.insert(constants.end(), constant.values.begin(), constant.values.end());
    return range;
}

ConstantPtr extract(const ConstantRange& range, const std::string& where, const float* constants,
                    int64_t constant_count) {
    const int64_t count = element_count(range.dims);
    if (range.offset_elements > constant_count - count) {
        throw InputError(where + " are " + dims_text(range.dims) + " at element " +
                         std::to_string(range.offset_elements) +
                         " of the constants, expected an end at or before " +
                         std::to_string(constant_count));
    }
    const float* first = constants + range.offset_elements;
    return std::make_shared<const Constant>(
        Constant{range.dims, std::vector<float>(first, first + count)});
}

}  // namespace

const char* to_string(laminate_buffer_role role) {
    switch (role) {
        case LAMINATE_INPUT:
            return "X";
        case LAMINATE_WEIGHTS:
            return "W";
        case LAMINATE_INTERMEDIATE:
            return "intermediate";
        case LAMINATE_OUTPUT:
            return "Y";
    }
    return "";
}

FileIdentity identity_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    XxHash64 hash;
    FileIdentity identity;
    std::vector<char> buffer(size_t{64} << 10);
    while (in.read(buffer.data(), std::ssize(buffer)) || in.gcount() > 0) {
        hash.add({buffer.data(), static_cast<size_t>(in.gcount())});
        identity.bytes += in.gcount();
    }
    if (!in.eof()) throw InputError(file.string() + ": cannot be read");
    identity.xxh64 = hash.text();
    return identity;
}

LayerStep layer_step(const Layer& layer, std::vector<float>& constants) {
    LayerStep step;
    step.layer = layer;
    if (layer.weights) step.weights = append(*layer.weights, constants);
    if (layer.bias) step.bias = append(*layer.bias, constants);
    if (layer.activation.slope) step.slope = append(*layer.activation.slope, constants);
    step.layer.weights = step.layer.bias = step.layer.activation.slope = nullptr;
    return step;
}

Layer restored_layer(const LayerStep& step, const float* constants, int64_t constant_count) {
    Layer layer = step.layer;
    const auto restore = [&](const std::optional<ConstantRange>& range, const char* what,
                             ConstantPtr& target) {
        if (range) target = extract(*range, layer.name + ": " + what, constants, constant_count);
    };
    restore(step.weights, "weights", layer.weights);
    restore(step.bias, "bias values", layer.bias);
    restore(step.slope, "slopes", layer.activation.slope);
    return layer;
}

std::vector<TensorId> inputs_of(const Step& step) {
    if (const auto* group = std::get_if<GroupStep>(&step)) return group->inputs;
    return std::get<LayerStep>(step).layer.inputs;
}

std::vector<TensorId> outputs_of(const Step& step) {
    if (const auto* group = std::get_if<GroupStep>(&step)) return group->outputs;
    return {std::get<LayerStep>(step).layer.output};
}

const std::string& name_of(const Step& step) {
    if (const auto* group = std::get_if<GroupStep>(&step)) return group->name;
    return std::get<LayerStep>(step).layer.name;
}

std::vector<Tensor> Manifest::tensors_of(const std::vector<TensorId>& ids) const {
    std::vector<Tensor> found;
    for (const TensorId id : ids) found.push_back(tensor(id));
    return found;
}

namespace {

/// Checks of one manifest; every message begins with `where`.
class Checker {
public:
    Checker(const Manifest& manifest, const std::string& where)
        : manifest_(manifest), where_(where), written_(manifest.tensors.size()) {}

    void check_tensors() const {
        for (const Tensor& tensor : manifest_.tensors) {
            if (tensor.dims.empty())
                fail("tensor " + tensor.name + " has no dimensions, expected at least the batch");
            try {
                (void)element_count(tensor.dims);
            } catch (const InputError& error) {
                fail("tensor " + tensor.name + ": " + error.what());
            }
        }
    }

    /// Formulas are of as many dims as the tensors have, and give them at the reference size.
    void check_open() const {
        for (const Step& step : manifest_.steps) {
            const auto* group = std::get_if<GroupStep>(&step);
            if (group != nullptr && group->open && !manifest_.open)
                fail("step " + group->name + " is of any size, expected \"any_size\"");
        }
        if (!manifest_.open) return;
        const OpenSizes& open = *manifest_.open;
        if (open.dims.size() != manifest_.tensors.size())
            fail("any_size has dims of " + std::to_string(open.dims.size()) + " tensors of " +
                 std::to_string(manifest_.tensors.size()));
        for (size_t n = 0; n < open.dims.size(); ++n) {
            const Tensor& tensor = manifest_.tensors[n];
            std::vector<int64_t> dims;
            try {
                for (const SizeFormula& dim : open.dims[n]) dims.push_back(dim.at(open.reference));
            } catch (const std::overflow_error& error) {
                fail("any_size: dims of tensor " + tensor.name + ": " + error.what());
            }
            if (dims != tensor.dims)
                fail("any_size: tensor " + tensor.name + " is " + dims_text(tensor.dims) +
                     ", its formulas give " + dims_text(dims));
        }
    }

    /// Every tensor is written once, before it is read.
    void check_order() {
        for (const TensorId id : manifest_.inputs) write(id, "inputs");
        for (const Step& step : manifest_.steps) check_step(step);
        if (manifest_.outputs.empty()) fail("has no outputs");
        for (const TensorId id : manifest_.outputs) read(id, "outputs");
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw InputError(where_ + ": " + message);
    }

private:
    void check_step(const Step& step) {
        const std::string user = "step " + name_of(step);
        const std::vector<TensorId> inputs = inputs_of(step), outputs = outputs_of(step);
        const auto* layer = std::get_if<LayerStep>(&step);
        const bool needs_none = layer && is_constant(layer->layer);
        if (inputs.empty() && !needs_none) fail(user + " has no inputs");
        if (outputs.empty()) fail(user + " has no outputs");
        for (const TensorId id : inputs) read(id, user);
        for (const TensorId id : outputs) write(id, user);
        if (const auto* group = std::get_if<GroupStep>(&step)) check_group(*group, user);
    }

    void check_promise(const GroupPromise& promise, const std::string& user) const {
        const auto has_layer = [&](const std::string& layer) {
            return std::any_of(promise.nests.begin(), promise.nests.end(),
                               [&](const PromisedNest& nest) { return nest.layer == layer; });
        };
        for (const PromisedBuffer& buffer : promise.buffers) {
            const std::string what = user + ": buffer of " + buffer.tensor;
            if (!has_layer(buffer.layer))
                fail(what + " is of " + buffer.layer + ", which is no nest");
            try {
                (void)element_count({buffer.dims.begin(), buffer.dims.end()});
            } catch (const InputError& error) {
                fail(what + ": " + error.what());
            }
            for (size_t d = 0; d < buffer.dims.size(); ++d) {
                if (buffer.extent[d] <= buffer.dims[d]) continue;
                fail(what + " has an extent of " + std::to_string(buffer.extent[d]) +
                     ", expected at most " + std::to_string(buffer.dims[d]));
            }
        }
    }

    void check_group(const GroupStep& group, const std::string& user) const {
        if (group.trace.has_value() && !manifest_.instrumented)
            fail(user + " has a trace, expected \"instrumented\"");
        if (group.trace) check_promise(*group.trace, user);
        if (group.group < 0 || group.strips < 1 || group.constants_offset_elements < 0 ||
            group.constants_count_elements < 0) {
            fail(user + " has a negative number, or no strips");
        }
        if (group.strips_together < 1 || group.strips % group.strips_together != 0) {
            fail(user + " has " + std::to_string(group.strips_together) + " of " +
                 std::to_string(group.strips) + " strips together, expected a divisor");
        }
        if (group.scratch_bytes < 0 || group.scratch_bytes > most_scratch_bytes) {
            fail(user + " needs " + std::to_string(group.scratch_bytes) +
                 " bytes of scratch, expected at most " + std::to_string(most_scratch_bytes));
        }
        const int64_t batch = manifest_.tensor(group.inputs[0]).dims[0];
        for (const auto& ids : {group.inputs, group.outputs}) {
            for (const TensorId id : ids) {
                const std::vector<int64_t>& dims = manifest_.tensor(id).dims;
                if (dims[0] != batch) {
                    fail(user + ": " + name(id) + " is " + dims_text(dims) +
                         ", expected a batch of " + std::to_string(batch));
                }
            }
        }
    }

    void write(TensorId id, const std::string& user) {
        check_id(id, user);
        if (written_[id]) fail(user + " writes " + name(id) + ", which is already written");
        written_[id] = true;
    }
    void read(TensorId id, const std::string& user) const {
        check_id(id, user);
        if (!written_[id]) fail(user + " reads " + name(id) + ", which is not yet written");
    }
    void check_id(TensorId id, const std::string& user) const {
        if (id < 0 || id >= std::ssize(manifest_.tensors)) {
            fail(user + " names tensor " + std::to_string(id) + " of " +
                 std::to_string(manifest_.tensors.size()));
        }
    }
    [[nodiscard]] std::string name(TensorId id) const {
        return "tensor " + manifest_.tensor(id).name;
    }

    const Manifest& manifest_;
    const std::string& where_;
    IndexVector<bool, TensorId> written_;
};

}  // namespace

void check(const Manifest& manifest, const std::string& where) {
    Checker checker(manifest, where);
    if (!is_identifier(manifest.library)) {
        checker.fail("library is \"" + manifest.library +
                     "\", expected a name of letters, digits and _");
    }
    checker.check_tensors();
    checker.check_open();
    checker.check_order();
}

std::string to_json(const Manifest& manifest) {
    Json tensors = Json::array();
    for (const Tensor& tensor : manifest.tensors) {
        tensors.push_back({{"name", tensor.name}, {"dims", tensor.dims}});
        if (tensor.type != ElementType::float32) tensors.back()["type"] = to_string(tensor.type);
    }
    Json steps = Json::array();
    for (const Step& step : manifest.steps) {
        steps.push_back(std::visit([](const auto& s) { return json_of(s); }, step));
    }
    Json out{{"schema", schema_name},
             {"version", schema_version},
             {"network", manifest.network},
             {"network_hash", manifest.network_hash},
             {"library", manifest.library},
             {"target", manifest.target},
             {"halide_version", manifest.halide_version},
             {"cpu_features", manifest.cpu_features},
             {"tensors", tensors},
             {"inputs", manifest.inputs},
             {"outputs", manifest.outputs},
             {"steps", steps}};
    if (!manifest.replaced_groups.empty()) out["replaced_groups"] = manifest.replaced_groups;
    if (manifest.instrumented) out["instrumented"] = true;
    if (manifest.strict) out["strict"] = true;
    if (manifest.open) out["any_size"] = json_of(*manifest.open);
    if (manifest.library_file)
        out["library_file"] = {{"bytes", manifest.library_file->bytes},
                               {"xxh64", manifest.library_file->xxh64}};
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
    Json document;
    if (nests_too_deep(text)) throw InputError(where + ": " + too_deep_text);
    try {
        document = Json::parse(text);
    } catch (const Json::exception& error) {
        std::string message = error.what();
        std::replace(message.begin(), message.end(), '\n', ' ');
        throw InputError(where + ": is not JSON: " + message);
    }
    const Node root(document, where);
    if (const std::string schema = root["schema"].text(); schema != schema_name) {
        root.fail("schema is \"" + schema + "\", expected \"" + schema_name + "\"");
    }
    if (const int64_t version = root["version"].integer(1); version != schema_version) {
        root.fail("version is " + std::to_string(version) + ", expected " +
                  std::to_string(schema_version));
    }
    Manifest manifest;
    manifest.network = root["network"].text();
    manifest.network_hash = root["network_hash"].text();
    manifest.library = root["library"].text();
    manifest.target = root["target"].text();
    manifest.halide_version = root["halide_version"].text();
    manifest.cpu_features = root["cpu_features"].texts();
    for (const Node& node : root["tensors"].elements()) {
        manifest.tensors.push_back({node["name"].text(), node["dims"].integers(1)});
        if (node.has("type")) manifest.tensors.back().type = kind_at(node["type"], element_types);
    }
    manifest.inputs = root["inputs"].ids();
    manifest.outputs = root["outputs"].ids();
    for (const Node& node : root["steps"].elements()) {
        const std::string kind = node["kind"].text();
        if (kind == "group") {
            manifest.steps.emplace_back(read_group_step(node));
        } else if (kind == "layer") {
            manifest.steps.emplace_back(read_layer_step(node));
        } else {
            node.fail("kind is \"" + kind + "\", expected group or layer");
        }
    }
    if (root.has("replaced_groups")) manifest.replaced_groups = root["replaced_groups"].texts();
    if (root.has("instrumented")) manifest.instrumented = root["instrumented"].boolean();
    if (root.has("strict")) manifest.strict = root["strict"].boolean();
    if (root.has("any_size")) manifest.open = read_open_sizes(root["any_size"]);
    if (root.has("library_file")) {
        const Node file = root["library_file"];
        manifest.library_file = FileIdentity{file["bytes"].integer(0), file["xxh64"].text()};
    }
    check(manifest, where);
    return manifest;
}

std::string shared_library_file(const Manifest& manifest) {
    return "lib" + manifest.library + ".so";
}

}  // namespace laminate
