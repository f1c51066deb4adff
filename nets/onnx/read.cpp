// The ONNX graph around its nodes: operator sets, inputs, execution order, outputs. The files of
// the operator families (importer.h) import single nodes; canonical.cpp then folds layers into each
// other.
#include <algorithm>
#include <new>
#include <queue>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "nets/onnx/importer.h"
#include "nets/onnx/onnx.h"

namespace laminate::onnx {

namespace {

constexpr int64_t oldest_opset = 6;

const Handlers& handlers() {
    static const Handlers all = [] {
        Handlers made;
        add_convolutions(made);
        add_pooling(made);
        add_elementwise(made);
        add_matrix_products(made);
        add_reductions(made);
        add_shapes(made);
        add_resizing(made);
        add_branches(made);
        return made;
    }();
    return all;
}

/// Nullopt for a type that a running network neither reads nor writes.
std::optional<ElementType> element_type(int of_file) {
    if (is_real(of_file)) return ElementType::float32;
    switch (of_file) {
        case proto::TensorProto::UINT8:
            return ElementType::uint8;
        case proto::TensorProto::INT8:
            return ElementType::int8;
        default:
            return std::nullopt;
    }
}

/// As element_type(); integers and truth values enter and leave a network as floats.
std::optional<ElementType> held_type(int of_file) {
    return is_wide_integer(of_file) ? ElementType::float32 : element_type(of_file);
}

/// What to know of an input or output that the file has in another type than the network; empty if
/// it is the same.
std::string type_note(const std::string& label, int of_file, const char* verb) {
    if (of_file == proto::TensorProto::FLOAT || !held_type(of_file)) return "";
    const bool is_integer = is_wide_integer(of_file);
    if (!is_integer && !is_real(of_file)) return "";
    return label + " is " + type_name(of_file) + " in the file: " + verb + " as float32, " +
           (is_integer ? "which holds its integers" : "in which all is computed");
}

/// Some exporters write -1 for "any".
bool is_fixed(const proto::TensorShapeProto::Dimension& dim) {
    return dim.has_dim_value() && dim.dim_value() != -1;
}

const char* file_text(ElementType type) {
    return type == ElementType::uint8 ? "UINT8" : type == ElementType::int8 ? "INT8" : "FLOAT";
}

/// Operators that only move elements, so that their result has the type of their input.
const std::set<std::string> moving{
    "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherND",  "Identity", "Reshape",
    "Slice",  "SpaceToDepth", "Split",  "Squeeze", "Tile",   "Transpose", "Unsqueeze"};
/// Operators that read integers of 8 bits and return another type.
const std::set<std::string> converting{"Cast", "CastLike", "Shape", "Size"};
/// Operators that floats compute exactly on integers below 2^24, such as places in a tensor.
const std::set<std::string> exact_on_integers{"Abs", "Add", "Clip", "Max",  "Min",
                                              "Mul", "Neg", "Sub",  "Where"};
const std::set<std::string> comparing{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

}  // namespace

Importer::Importer(proto::ModelProto model, std::string where,
                   std::optional<std::filesystem::path> directory, const InputSizes& sizes)
    : model_(std::move(model)),
      where_(std::move(where)),
      directory_(std::move(directory)),
      sizes_(sizes) {}

Network Importer::run() {
    try {
        read_opset();
        read_initializers();
        read_inputs();
        std::vector<std::string> wanted;
        for (const auto& output : graph().output()) wanted.push_back(output.name());
        import_nodes(0, wanted);
        read_outputs();
        raw_.name =
            graph().name().empty() ? std::filesystem::path(where_).stem().string() : graph().name();
        return canonicalise(std::move(raw_));
    } catch (const InputError& error) {
        throw InputError(where_ + ": " + error.what());
    } catch (const std::overflow_error&) {
        throw InputError(where_ + ": sizes overflow 64 bits");
    } catch (const std::bad_alloc&) {
        throw InputError(where_ + ": there is not enough memory for its constants");
    }
}

void Importer::read_opset() {
    for (const auto& entry : model_.opset_import()) {
        if (entry.domain().empty() || entry.domain() == "ai.onnx") opset_ = entry.version();
    }
    if (opset_ == 0)
        throw InputError(
            "does not say which version of the ONNX operators it uses, or is truncated");
    if (opset_ < oldest_opset) {
        throw InputError("uses ONNX operators of version " + std::to_string(opset_) +
                         ", expected " + std::to_string(oldest_opset) + " or later");
    }
}

void Importer::read_initializers() {
    if (graph().sparse_initializer_size() > 0)
        throw InputError("has sparse initializers, which are not supported");
    for (int i = 0; i < graph().initializer_size(); ++i) {
        const std::string& name = graph().initializer(i).name();
        if (name.empty()) throw InputError("initializer " + std::to_string(i + 1) + " has no name");
        if (!initializers_.emplace(name, i).second)
            throw InputError("initializer " + in_quotes(name) + " is given twice");
    }
}

void Importer::read_inputs() {
    std::set<std::string> symbols;
    for (const auto& input : graph().input()) {
        if (initializers_.contains(input.name()))
            continue;  // IR version 3 listed initializers among the inputs
        const std::string label = "input " + in_quotes(input.name());
        if (input.name().empty()) throw InputError("an input has no name");
        if (values_.contains(input.name())) throw InputError(label + " is given twice");
        if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
            throw InputError(label + " is no tensor with a shape");
        const auto& type = input.type().tensor_type();
        const std::optional<ElementType> element = held_type(type.elem_type());
        if (!element)
            throw InputError(label + " is " + type_name(type.elem_type()) +
                             ", expected FLOAT, FLOAT16, BFLOAT16, DOUBLE, UINT8, INT8, INT64, "
                             "INT32 or BOOL");
        if (type.shape().dim_size() > static_cast<int>(most_dimensions)) {
            throw InputError(label + " has " + std::to_string(type.shape().dim_size()) +
                             " dimensions, expected at most " + std::to_string(most_dimensions));
        }
        Dims extents = input_extents(type.shape(), label, symbols);
        if (is_wide_integer(type.elem_type())) {
            if (const auto given = sizes_.integers.find(input.name());
                given != sizes_.integers.end()) {
                set_integers(input.name(), std::move(extents), given->second);
                continue;
            }
            mark_live_integer(input.name());
        }
        const bool is_scalar = extents.empty();
        raw_.inputs.push_back(add_tensor(input.name(), is_scalar ? Dims{1} : std::move(extents)));
        if (is_scalar) mark_scalar(raw_.inputs.back());
        raw_.tensors.back().type = *element;
        set_type(input.name(), *element);
        values_.emplace(input.name(), raw_.inputs.back());
        if (std::string note = type_note(label, type.elem_type(), "taken"); !note.empty())
            raw_.folded.push_back(std::move(note));
    }
    for (const auto& [name, values] : sizes_.integers) {
        const auto found = values_.find(name);
        if (found == values_.end() || !std::holds_alternative<IntegerConstant>(found->second))
            throw InputError("no input of integers is called " + in_quotes(name));
    }
    for (const auto& [symbol, value] : sizes_.symbols) {
        if (symbols.contains(symbol)) continue;
        std::string known;
        for (const std::string& s : symbols) known += (known.empty() ? "" : ", ") + in_quotes(s);
        throw InputError("no input has a dimension named " + in_quotes(symbol) + "; " +
                         (known.empty() ? "every dimension is fixed" : "there are " + known));
    }
}

Dims Importer::input_extents(const proto::TensorShapeProto& shape, const std::string& label,
                             std::set<std::string>& symbols) const {
    Dims extents;
    for (int i = 0; i < shape.dim_size(); ++i) {
        if (shape.dim(i).has_dim_param()) symbols.insert(shape.dim(i).dim_param());
        extents.push_back(input_extent(shape, i, label));
    }
    try {
        (void)element_count(extents);
    } catch (const InputError& error) {
        throw InputError(label + ": " + error.what());
    }
    return extents;
}

/// Whether a size that the caller chose for dimension `i` is one of another input at least.
bool Importer::is_open_elsewhere(int i) const {
    return std::any_of(graph().input().begin(), graph().input().end(), [&](const auto& input) {
        const auto& shape = input.type().tensor_type().shape();
        return shape.dim_size() > i && (i == 0 || shape.dim_size() == 4) && !is_fixed(shape.dim(i));
    });
}

/// The input is a constant of the values that the caller chose.
void Importer::set_integers(const std::string& name, Dims extents, const Dims& values) {
    const std::string label = "input " + in_quotes(name);
    if (element_count(extents) != std::ssize(values)) {
        throw InputError(label + " is to be " + std::to_string(values.size()) +
                         " integers, expected " + std::to_string(element_count(extents)));
    }
    raw_.folded.push_back(label + " removed: its values were given");
    values_.emplace(name, IntegerConstant{std::move(extents), values});
}

/// Extent of dimension `i` of an input: fixed in the file, or chosen by the caller.
int64_t Importer::input_extent(const proto::TensorShapeProto& shape, int i,
                               const std::string& label) const {
    const auto& dim = shape.dim(i);
    const std::string& symbol = dim.dim_param();
    const bool picture = shape.dim_size() == 4;
    const char* option = i == 0              ? "batch"
                         : picture && i == 2 ? "height"
                         : picture && i == 3 ? "width"
                                             : nullptr;
    std::optional<int64_t> chosen;
    if (const auto found = sizes_.symbols.find(symbol);
        !symbol.empty() && found != sizes_.symbols.end()) {
        chosen = found->second;
    } else if (option != nullptr) {
        chosen = i == 0 ? sizes_.batch : i == 2 ? sizes_.height : sizes_.width;
    }
    const std::string where =
        label + ": dimension " + std::to_string(i + 1) + " of " + std::to_string(shape.dim_size());
    if (chosen && *chosen < 1)
        throw InputError(where + " is to be " + std::to_string(*chosen) + ", expected at least 1");
    if (is_fixed(dim)) {
        if (chosen && *chosen != dim.dim_value() && !is_open_elsewhere(i)) {
            throw InputError(where + " is fixed to " + std::to_string(dim.dim_value()) +
                             ", it cannot be " + std::to_string(*chosen));
        }
        return dim.dim_value();
    }
    if (chosen) return *chosen;
    if (i == 0) return 1;
    throw InputError(where + " is symbolic" +
                     (symbol.empty() ? "" : " (" + in_quotes(symbol) + ")") + "; expected " +
                     (option != nullptr ? std::string("--") + option
                      : symbol.empty()  ? "a file that says it"
                                        : "--dim " + symbol + "=NUMBER"));
}

void Importer::import_nodes(int first, const std::vector<std::string>& wanted) {
    find_writers(first);
    for (const int index : execution_order(first, needed_nodes(first, wanted))) import_node(index);
}

void Importer::find_writers(int first) {
    for (int i = first; i < graph().node_size(); ++i) {
        for (const std::string& name : graph().node(i).output()) {
            if (name.empty()) continue;
            if (initializers_.contains(name) || values_.contains(name) ||
                !writer_.emplace(name, i).second) {
                Node(graph().node(i), static_cast<size_t>(i))
                    .fail("writes " + in_quotes(name) + ", which exists already");
            }
        }
    }
}

/// Nodes that the wanted values depend on, in file order. Nodes that no output needs may be of any
/// kind; exporters leave training and debugging branches behind.
std::vector<int> Importer::needed_nodes(int first, const std::vector<std::string>& wanted) {
    std::vector<bool> is_needed(static_cast<size_t>(graph().node_size() - first), false);
    std::vector<int> to_visit;
    const auto need = [&](const std::string& name) {
        const auto found = writer_.find(name);
        if (found == writer_.end() || found->second < first) return;
        const auto place = static_cast<size_t>(found->second - first);
        if (is_needed[place]) return;
        is_needed[place] = true;
        to_visit.push_back(found->second);
    };
    for (const std::string& name : wanted) need(name);
    while (!to_visit.empty()) {
        const int node = to_visit.back();
        to_visit.pop_back();
        for (const std::string& name : names_read(graph().node(node))) need(name);
    }
    std::vector<int> needed;
    for (int i = first; i < graph().node_size(); ++i) {
        if (is_needed[static_cast<size_t>(i - first)]) {
            needed.push_back(i);
        } else {
            const Node node(graph().node(i), static_cast<size_t>(i));
            raw_.folded.push_back(node.op() + " " + node.label() + " removed: no output needs it");
        }
    }
    return needed;
}

/// The nodes in an order in which every value is written before it is read. The file's order is
/// kept if it is one.
std::vector<int> Importer::execution_order(int first, const std::vector<int>& nodes) {
    const auto place = [&](int node) { return static_cast<size_t>(node - first); };
    const auto count = place(graph().node_size());
    std::vector<int> waiting(count, 0);
    std::vector<std::vector<int>> readers(count);
    for (const int i : nodes) {
        for (const std::string& name : names_read(graph().node(i))) {
            if (initializers_.contains(name) || values_.contains(name)) continue;
            const auto found = writer_.find(name);
            if (found != writer_.end() && found->second < first)
                continue;  // resolve() says why it has no value
            if (found == writer_.end()) {
                Node(graph().node(i), static_cast<size_t>(i))
                    .fail("reads " + in_quotes(name) +
                          ", which no node, initializer or input provides");
            }
            readers[place(found->second)].push_back(i);
            ++waiting[place(i)];
        }
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (const int i : nodes) {
        if (waiting[place(i)] == 0) ready.push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
        order.push_back(ready.top());
        ready.pop();
        for (const int reader : readers[place(order.back())]) {
            if (--waiting[place(reader)] == 0) ready.push(reader);
        }
    }
    if (order.size() != nodes.size()) report_cycle(first, waiting);
    return order;
}

/// Every waiting node waits for another waiting node, so walking back from any of them ends on the
/// cycle.
void Importer::report_cycle(int first, const std::vector<int>& waiting) const {
    const auto is_waiting = [&](int node) {
        return waiting[static_cast<size_t>(node - first)] > 0;
    };
    int at = first;
    while (!is_waiting(at)) ++at;
    std::unordered_set<int> seen;
    while (seen.insert(at).second) {
        for (const std::string& name : names_read(graph().node(at))) {
            const auto found = writer_.find(name);
            if (found == writer_.end() || found->second < first || !is_waiting(found->second))
                continue;
            at = found->second;
            break;
        }
    }
    Node(graph().node(at), static_cast<size_t>(at))
        .fail("needs its own result: the graph has a cycle");
}

void Importer::read_outputs() {
    if (raw_.inputs.empty()) throw InputError("has no inputs");
    // In ONNX the lists of inputs and outputs may name a tensor twice. In a Network a name belongs
    // to one tensor.
    std::unordered_set<std::string> taken;
    std::unordered_set<TensorId> given(raw_.inputs.begin(), raw_.inputs.end());
    for (const TensorId id : raw_.inputs) taken.insert(raw_.tensors[static_cast<size_t>(id)].name);
    for (const auto& output : graph().output()) {
        const std::string label = "output " + in_quotes(output.name());
        if (!values_.contains(output.name()) && !initializers_.contains(output.name()) &&
            !writer_.contains(output.name()))
            throw InputError(label + " is written by no node");
        const Value value = resolve(output.name());
        const ElementType found = type(output.name());
        if (const auto& declared = output.type().tensor_type(); declared.has_elem_type()) {
            const std::optional<ElementType> element = held_type(declared.elem_type());
            if (!element)
                throw InputError(label + " is " + type_name(declared.elem_type()) +
                                 ", expected FLOAT, FLOAT16, BFLOAT16, DOUBLE, UINT8, INT8, "
                                 "INT64, INT32 or BOOL");
            if (std::string note = type_note(label, declared.elem_type(), "given"); !note.empty())
                raw_.folded.push_back(std::move(note));
            if (*element != found && std::holds_alternative<TensorId>(value)) {
                throw InputError(label + " is " + file_text(found) +
                                 " where it is written, expected " + file_text(*element));
            }
        }
        if (std::holds_alternative<IntegerConstant>(value) ||
            std::holds_alternative<SmallIntegers>(value))
            throw InputError(label + " is a list of integers, expected FLOAT");
        std::string name = output.name();
        if (!taken.insert(name).second) {
            name = unused_name(name + "_output");
            taken.insert(name);
            raw_.folded.push_back(label + " is called " + in_quotes(name) +
                                  ": the first name is another tensor's");
        }
        if (const auto* constant = std::get_if<ConstantPtr>(&value)) {
            raw_.outputs.push_back(write_constant(*constant, name));
            continue;
        }
        TensorId id = std::get<TensorId>(value);
        if (!given.insert(id).second) {  // outputs are tensors of their own
            RawLayer copy{.layer = {.kind = LayerKind::general, .inputs = {id}},
                          .op = "Identity",
                          .label = "writing " + in_quotes(name)};
            copy.layer.general = {.kind = GeneralKind::reshape, .dims = dims(id)};
            id = add_raw(std::move(copy), dims(id));
        }
        raw_.tensors[static_cast<size_t>(id)].name = name;  // an Identity may have renamed it
        raw_.tensors[static_cast<size_t>(id)].type = found;
        raw_.outputs.push_back(id);
    }
    if (raw_.outputs.empty()) throw InputError("has no outputs");
}

/// The type of the results of a node that only moves elements, else float32. Refuses arithmetic on
/// integers of 8 bits, which would wrap around.
ElementType Importer::type_moved(const Node& node) const {
    const bool moves = moving.contains(node.op());
    for (int k = 0; k < node.inputs(); ++k) {
        if (!node.has_input(k)) continue;
        const ElementType found = type(node.input(k));
        const ElementType first = type(node.input(0));
        if (node.op() == "Concat" && found != first) {
            node.fail("input " + in_quotes(node.input(k)) + " is " + file_text(found) +
                      ", expected " + file_text(first) + " as the first");
        }
        if (moves || converting.contains(node.op())) continue;
        if (is_live_integer(node.input(k)) && !exact_on_integers.contains(node.op()) &&
            !comparing.contains(node.op())) {
            node.fail(
                "input " + in_quotes(node.input(k)) +
                " has integers that are computed when the network runs, expected FLOAT, which "
                "a Cast makes of it");
        }
        if (found == ElementType::float32) continue;
        node.fail("input " + in_quotes(node.input(k)) + " is " + file_text(found) +
                  " when the network runs, expected FLOAT, which a Cast makes of it");
    }
    return moves ? type(node.input(0)) : ElementType::float32;
}

void Importer::import_node(int index) {
    Node node(graph().node(index), static_cast<size_t>(index));
    const std::string& domain = node.file().domain();
    const bool standard = domain.empty() || domain == "ai.onnx";
    const auto handler = standard ? handlers().find(node.op()) : handlers().end();
    if (handler == handlers().end()) {
        std::string supported;
        for (const auto& [name, ignored] : handlers())
            supported += (supported.empty() ? "" : ", ") + name;
        const std::string op = in_quotes((standard ? "" : domain + ".") + node.op());
        throw InputError("node " + node.label() + ": operator " + op.substr(1, op.size() - 2) +
                         " is not supported; supported: " + supported);
    }
    if (node.file().output_size() < 1 || node.file().output(0).empty()) node.fail("has no output");
    made_before_ = std::ssize(raw_.tensors);
    try {
        const ElementType moved = type_moved(node);
        if (moving.contains(node.op()) && moves_integers(node)) {
            move_integers(node, handler->second);
        } else {
            handler->second(*this, node);
        }
        const bool keeps_integers =
            moving.contains(node.op()) || exact_on_integers.contains(node.op());
        const bool reads_integers =
            std::any_of(node.file().input().begin(), node.file().input().end(),
                        [&](const std::string& name) { return is_live_integer(name); });
        if (keeps_integers && reads_integers) mark_live_integer(node.file().output(0));
        for (int k = 0; k < node.file().output_size(); ++k) {
            if (!node.has_output(k) || moved == ElementType::float32) continue;
            if (std::holds_alternative<TensorId>(resolve(node.file().output(k))))
                set_type(node.file().output(k), moved);
        }
    } catch (const InputError& error) {
        // Errors from the shape rules name no node.
        const std::string message = error.what();
        const auto names_its_place = [&](const char* place) { return message.starts_with(place); };
        if (names_its_place("node ") || names_its_place("initializer ") ||
            names_its_place("value "))
            throw;
        node.fail(message);
    }
}

Network import_model(proto::ModelProto model, const std::string& where,
                     const std::optional<std::filesystem::path>& directory,
                     const InputSizes& sizes) {
    return Importer(std::move(model), where, directory, sizes).run();
}

}  // namespace laminate::onnx

namespace laminate {

Network load_onnx(const std::string& path, const InputSizes& sizes) {
    return onnx::import_model(onnx::parse_model(read_file(path), path), path,
                              std::filesystem::path(path).parent_path(), sizes);
}

Network parse_onnx(const std::string& bytes, const std::string& where, const InputSizes& sizes) {
    return onnx::import_model(onnx::parse_model(bytes, where), where, std::nullopt, sizes);
}

}  // namespace laminate
