// Private to nets: turns the nodes of an ONNX graph into layers, one operator at a time. read.cpp
// walks the graph. Each family of operators has its own file, whose functions turn one node into
// layers, or into constants if all its inputs are known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "nets/onnx/canonical.h"
#include "nets/onnx/model.h"
#include "nets/open.h"

namespace laminate::onnx {

using Dims = std::vector<int64_t>;

inline constexpr int64_t largest_parameter =
    (int64_t{1} << 31) - 1;  ///< of a window; keeps sums and products within 64 bits
/// Integers that a constant on the way to a shape may have: the grids of detectors have one for
/// each element of a map.
inline constexpr size_t most_shape_values = size_t{1} << 20;
inline constexpr size_t most_dimensions = 8;

/// What an ONNX value name stands for.
using Value = std::variant<TensorId, ConstantPtr, IntegerConstant, SmallIntegers>;

/// A node with checked access to its attributes. Attributes that its handler did not ask for are
/// refused.
class Node {
public:
    Node(const proto::NodeProto& node, size_t position);

    [[nodiscard]] const std::string& op() const { return node_.op_type(); }
    [[nodiscard]] const std::string& name() const { return node_.name(); }
    /// The node in messages: its name in quotes, or else the name of what it writes.
    [[nodiscard]] const std::string& label() const { return label_; }
    [[nodiscard]] const proto::NodeProto& file() const { return node_; }

    [[noreturn]] void fail(const std::string& message) const;

    [[nodiscard]] int inputs() const { return node_.input_size(); }
    [[nodiscard]] bool has_input(int i) const {
        return i < node_.input_size() && !node_.input(i).empty();
    }
    [[nodiscard]] const std::string& input(int i) const;
    [[nodiscard]] bool has_output(int i) const {
        return i < node_.output_size() && !node_.output(i).empty();
    }
    void expect_inputs(int low, int high) const;

    int64_t integer(const char* name, int64_t otherwise);
    float real(const char* name, float otherwise);
    std::string text(const char* name, const std::string& otherwise);
    std::optional<std::vector<int64_t>> integers(const char* name);
    std::optional<std::vector<float>> reals(const char* name);
    const proto::AttributeProto* any(const char* name);
    void ignore(const char* name) { attributes_.erase(name); }
    void refuse_other_attributes() const;

private:
    const proto::AttributeProto* take(const char* name, proto::AttributeProto::AttributeType type);

    const proto::NodeProto& node_;
    std::string label_;
    std::map<std::string, const proto::AttributeProto*> attributes_;
};

/// Names of the values that the node reads: its inputs, and what the graphs inside it (branches of
/// If) read from the graphs around them.
[[nodiscard]] std::vector<std::string> names_read(
    const proto::NodeProto& node);  // onnx_branches.cpp

/// Integers combined element by element, with broadcasting. Fails where a result needs more than 64
/// bits.
[[nodiscard]] IntegerConstant combined(const Node& node, GeneralFunction function,
                                       const IntegerConstant& a, const IntegerConstant& b);
/// Where, of integers.
[[nodiscard]] IntegerConstant chosen(const Node& node, const IntegerConstant& condition,
                                     const IntegerConstant& a, const IntegerConstant& b);

/// The network of a model. `where` begins each message; external data must lie in `directory`.
[[nodiscard]] Network import_model(proto::ModelProto model, const std::string& where,
                                   const std::optional<std::filesystem::path>& directory,
                                   const InputSizes& sizes);

class Importer;
using Handler = void (*)(Importer&, Node&);
using Handlers = std::map<std::string, Handler>;

void add_convolutions(Handlers& handlers);     // onnx_convolutions.cpp
void add_pooling(Handlers& handlers);          // onnx_pooling.cpp
void add_elementwise(Handlers& handlers);      // onnx_elementwise.cpp
void add_matrix_products(Handlers& handlers);  // onnx_matrices.cpp
void add_reductions(
    Handlers& handlers);  // onnx_reductions.cpp: reductions, softmax, normalisations
void add_shapes(
    Handlers& handlers);  // onnx_shapes.cpp: what only moves elements, and what computes shapes
void add_resizing(Handlers& handlers);  // onnx_resizing.cpp: padding, resizing, gathering
void add_branches(Handlers& handlers);  // onnx_branches.cpp: If

class Importer {
public:
    Importer(proto::ModelProto model, std::string where,
             std::optional<std::filesystem::path> directory, const InputSizes& sizes);
    Network run();

    [[nodiscard]] int64_t opset() const { return opset_; }

    // ---- what a node reads
    [[nodiscard]] Value value(const Node& node, int i);
    [[nodiscard]] bool is_integer(const Node& node, int i);
    /// A FLOAT tensor. A constant becomes a tensor too, so that handlers need not distinguish them.
    [[nodiscard]] TensorId tensor(const Node& node, int i);
    [[nodiscard]] TensorId tensor_of(const Node& node, const Value& value, const std::string& name);
    /// As tensor(), with integers converted to FLOAT.
    [[nodiscard]] TensorId number_tensor(const Node& node, int i);
    /// The value of a condition that is known before the run, or nullopt.
    [[nodiscard]] std::optional<bool> truth(const Node& node, int i);
    [[nodiscard]] ConstantPtr constant(const Node& node, int i);
    [[nodiscard]] float scalar(const Node& node, int i, float otherwise);
    [[nodiscard]] IntegerConstant integers(const Node& node, int i);
    /// For messages on a value that is not constant: how to give those that it may depend on.
    [[nodiscard]] std::string how_to_know() const;
    /// Reads a list that is an attribute in older operator sets and an input in newer ones
    /// (`axes`).
    [[nodiscard]] std::optional<std::vector<int64_t>> integers_of(Node& node, const char* attribute,
                                                                  int i);
    /// The type in the file of a value that is computed when the network runs. Integers of 8 bits
    /// are held as floats.
    [[nodiscard]] ElementType type(const std::string& name) const;
    void set_type(const std::string& name, ElementType type);
    /// Whether a value that is computed when the network runs is INT64 or INT32 in the file: places
    /// that ArgMax and TopK find. Floats hold it.
    [[nodiscard]] bool is_live_integer(const std::string& name) const {
        return live_integers_.contains(name);
    }
    void mark_live_integer(const std::string& name) { live_integers_.insert(name); }

    [[nodiscard]] const Dims& dims(TensorId id) const {
        return raw_.tensors[static_cast<size_t>(id)].dims;
    }
    /// The dims in the file: {} for a scalar, which a Tensor holds as {1}.
    [[nodiscard]] Dims file_dims(TensorId id) const {
        return scalars_.contains(id) ? Dims{} : dims(id);
    }
    [[nodiscard]] Dims file_dims(const Value& value) const;
    /// Null for a tensor that is computed.
    [[nodiscard]] ConstantPtr known(TensorId id) const;

    // ---- what a node writes
    /// Ends the node: refuses attributes that its handler did not ask for.
    void define(const Node& node, Value value, int output = 0);
    /// The node's result is an integer of the file, which floats hold.
    void define_integers(const Node& node, TensorId id, int output = 0);
    /// The node's result is its input.
    void alias(const Node& node, TensorId id);
    /// A layer whose result only this node knows. Evaluated at once if all its inputs are constant.
    [[nodiscard]] TensorId add_layer(const Node& node, Layer layer);
    [[nodiscard]] TensorId add_general(const Node& node, GeneralOperator op,
                                       std::vector<TensorId> inputs);
    /// add_layer() as the node's result.
    void append(const Node& node, Layer layer);
    void append(const Node& node, GeneralOperator op, std::vector<TensorId> inputs);
    /// y = scale[c] * x + shift[c] per channel, which may fold into the layer before it.
    void append_affine(const Node& node, TensorId x, ConstantPtr scale, ConstantPtr shift);
    [[nodiscard]] TensorId reshaped(const Node& node, TensorId x, const Dims& target);
    void mark_scalar(TensorId id) { scalars_.insert(id); }
    [[nodiscard]] TensorId constant_tensor(const Node& node, ConstantPtr constant);
    /// Counts values that folding makes; throws InputError when they are too many.
    void charge(size_t values) { raw_.charge(values); }
    /// Likewise for values that ConstantOfShape makes.
    void fill(size_t values);
    [[nodiscard]] const std::optional<std::filesystem::path>& directory() const {
        return directory_;
    }

    // ---- one spatial axis as two
    /// N x C x L as N x C x 1 x L, so that layers on lines become layers on pictures. A tensor of
    /// four dimensions stays as it is.
    [[nodiscard]] TensorId picture(const Node& node, TensorId x);
    /// The picture that the line was made from, if any, so that chains of layers stay pictures;
    /// else x.
    [[nodiscard]] TensorId picture_if_lifted(TensorId x) const;
    /// As append(), for a layer that reads picture(x) or picture_if_lifted(x). The result gets the
    /// rank of x.
    void append_like(const Node& node, TensorId x, Layer layer);
    void define_like(const Node& node, TensorId x, TensorId result);

    // ---- graphs in nodes
    /// Moves the nodes of a graph inside `node` into the model; its results become those of `node`.
    void take_over(const Node& node, const proto::GraphProto& inner);

    /// `x` transposed by `perm`. Consecutive transposes become one, or none.
    [[nodiscard]] TensorId transposed(const Node& node, TensorId x, const Dims& perm);

    static int64_t checked_axis(const Node& node, int64_t axis, size_t rank, const char* what);

private:
    [[nodiscard]] const proto::GraphProto& graph() const { return model_.graph(); }
    void read_opset();
    void read_initializers();
    void read_inputs();
    /// Adds the symbols of the shape to `symbols`.
    [[nodiscard]] Dims input_extents(const proto::TensorShapeProto& shape, const std::string& label,
                                     std::set<std::string>& symbols) const;
    [[nodiscard]] int64_t input_extent(const proto::TensorShapeProto& shape, int i,
                                       const std::string& label) const;
    [[nodiscard]] bool is_open_elsewhere(int i) const;
    void set_integers(const std::string& name, Dims extents, const Dims& values);
    /// Imports the nodes from number `first` on that the wanted values depend on.
    void import_nodes(int first, const std::vector<std::string>& wanted);
    void find_writers(int first);
    [[nodiscard]] std::vector<int> needed_nodes(int first, const std::vector<std::string>& wanted);
    [[nodiscard]] std::vector<int> execution_order(int first, const std::vector<int>& nodes);
    [[noreturn]] void report_cycle(int first, const std::vector<int>& waiting) const;
    void read_outputs();
    void import_node(int index);
    [[nodiscard]] bool moves_integers(const Node& node);
    /// Runs the handler of an operator that only moves elements on constant integers.
    void move_integers(Node& node, Handler handler);
    [[nodiscard]] ElementType type_moved(const Node& node) const;

    TensorId add_tensor(const std::string& name, Dims extents);
    Value resolve(const std::string& name);
    [[nodiscard]] TensorId add_raw(RawLayer raw, Dims output_dims);
    void name_result(const Node& node, TensorId id);
    void name_last_layer(const Node& node, TensorId id);
    [[nodiscard]] bool is_used(const std::string& name) const;
    [[nodiscard]] std::string unused_name(const std::string& name);
    /// A layer without inputs that writes the constant, for outputs and for layers that have no
    /// other place for a constant operand.
    [[nodiscard]] TensorId write_constant(const ConstantPtr& constant, const std::string& name);

    proto::ModelProto model_;
    std::string where_;
    std::optional<std::filesystem::path> directory_;
    const InputSizes& sizes_;
    int64_t opset_ = 0;
    RawNetwork raw_;
    std::ptrdiff_t made_before_ = 0;  ///< tensors that earlier nodes made
    int64_t filled_ = 0;
    std::unordered_map<std::string, Value> values_;
    std::unordered_map<std::string, int>
        initializers_;  // name to index in the file; decoded when first read
    std::unordered_map<std::string, int> writer_;  // name to node
    std::unordered_map<std::string, ElementType>
        types_;  // of values that are not FLOAT when the network runs
    std::unordered_set<std::string> live_integers_;
    /// While move_integers() runs a handler: what stands for its inputs, and the integers.
    struct MovedIntegers {
        std::map<int, ConstantPtr> stand_ins;
        std::vector<int64_t> values;
        bool are_small = false;  ///< the stand-ins are the integers themselves
        [[nodiscard]] Value at(const ConstantPtr& positions) const;
    };
    std::optional<MovedIntegers> moved_integers_;
    std::unordered_set<std::string> made_names_;
    std::unordered_map<std::string, int> copies_of_;
    std::unordered_map<TensorId, ConstantPtr>
        constants_;  // tensors that are constant and that no layer writes
    std::unordered_set<TensorId> scalars_;
    std::unordered_map<TensorId, TensorId>
        pictures_;  // N x C x L to the N x C x 1 x L that it was made of
    struct Permuted {
        TensorId source;
        Dims perm;
    };
    std::unordered_map<TensorId, Permuted> permuted_;
};

}  // namespace laminate::onnx
