// A convolutional network as Laminate sees it: a DAG of layers on tensors, in canonical form.
//
// Canonical means: constants folded, batch normalisation folded into the convolution before it, an
// activation folded into the layer that feeds only it, Dropout and Identity removed, Gemm written
// as `weights [out][in]`. Importers (onnx.h) and the zoo (zoo.h) build only canonical networks.
// Every shape is known.
//
// Index orders (row major, last index fastest): feature maps NCHW; convolution weights [z][i][n][m]
// with z the output channel, i the input channel *within its group*, n the kernel row, m the kernel
// column; transposed-convolution weights as in ONNX, [input channel][output channel within its
// group][n][m]; Gemm weights [output feature][input feature].
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nets/network/constant_values.h"
#include "nets/network/general_operator.h"

namespace laminate {

using TensorId = int;
using LayerId = int;

struct Constant {
    std::vector<int64_t> dims;
    ConstantValues values;
};
using ConstantPtr = std::shared_ptr<const Constant>;

/// Element type of a tensor as seen from outside the network. Inside, every tensor holds 32-bit
/// floats, which represent 8-bit integers exactly.
enum class ElementType { float32, uint8, int8 };
/// NumPy's name: "float32", "uint8", "int8".
[[nodiscard]] const char* to_string(ElementType type);

struct Tensor {
    std::string name;  ///< as in the ONNX file
    /// N,C,H,W for feature maps; N,F after Flatten and Gemm; anything for general layers. All
    /// extents are known and positive. An ONNX scalar is {1}.
    std::vector<int64_t> dims;
    /// Only inputs and outputs may differ from float32. They then hold integers of that type,
    /// stored as floats. A uint8 input takes a picture's samples unchanged, 0 to 255; a float32
    /// input takes them divided by 255.
    ElementType type = ElementType::float32;
};

/// The spatial window of a convolution or pooling; index 0 is y (rows, n), index 1 is x (columns,
/// m).
struct Window {
    std::array<int64_t, 2> kernel{1, 1};
    std::array<int64_t, 2> stride{1, 1};
    std::array<int64_t, 2> dilation{1, 1};
    std::array<int64_t, 2> pad_begin{0, 0};
    std::array<int64_t, 2> pad_end{0, 0};
    std::array<int64_t, 2> output_padding{0, 0};  ///< transposed convolution only
};

enum class ActivationKind { none, relu, leaky_relu, prelu, clip, sigmoid, tanh, unary };

struct Activation {
    ActivationKind kind = ActivationKind::none;
    GeneralFunction function = GeneralFunction::none;  ///< unary: one that is_activation() allows
    float alpha = 0;      ///< leaky_relu: slope for x < 0; unary: the function's
    float beta = 0;       ///< unary: the function's
    float low = 0;        ///< clip
    float high = 0;       ///< clip
    ConstantPtr slope{};  ///< prelu: one value, or one per output channel
    friend bool operator==(const Activation&, const Activation&) = default;
};

enum class LayerKind {
    conv,  ///< inputs {x}; weights, optional bias; groups (depthwise when groups == channels)
    conv_transpose,       ///< inputs {x}; weights, optional bias; groups
    gemm,                 ///< inputs {x [N,F]}; weights [out][in], optional bias
    max_pool,             ///< inputs {x}
    average_pool,         ///< inputs {x}; count_include_pad
    global_average_pool,  ///< inputs {x}
    add,     ///< inputs {a, b}, equal shapes; or {a}: constant operand in `weights`, {1}, {C} or
             ///< {C,H,W}
    concat,  ///< inputs {a, b, ...} along `axis`
    depth_to_space,  ///< inputs {x}; block, depth_to_space_crd
    flatten,         ///< inputs {x}; axis
    softmax,         ///< inputs {x}; axis
    activation,      ///< inputs {x}: an activation that could not be folded into its producer
    general,         ///< any other operator, on tensors of any rank: see general_operator.h; few
                     ///< are scheduled
};
[[nodiscard]] const char* to_string(LayerKind kind);
[[nodiscard]] const char* to_string(ActivationKind kind);

struct Layer {
    std::string name{};       ///< identifier [A-Za-z_][A-Za-z0-9_]*, unique in the network; used in
                              ///< schedule texts
    std::string onnx_name{};  ///< the node's own name, for messages
    LayerKind kind = LayerKind::conv;
    std::vector<TensorId> inputs{};
    TensorId output = -1;
    Window window{};
    int64_t groups = 1;
    ConstantPtr weights{};
    ConstantPtr bias{};       ///< one value per output channel, or null
    Activation activation{};  ///< applied to the finished output; conv, conv_transpose, gemm, add
                              ///< and activation only
    int64_t axis = 1;
    int64_t block = 1;
    bool depth_to_space_crd = false;  ///< ONNX mode CRD instead of DCR
    bool count_include_pad = false;
    GeneralOperator general{};  ///< general only
};
/// What the layer does, for people: its kind, or the function or kind of a general layer.
[[nodiscard]] const char* operation_text(const Layer& layer);
/// Likewise for an activation: its kind, or the function of a unary one.
[[nodiscard]] const char* activation_text(const Activation& activation);

struct Network {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<Layer> layers;  ///< topological order
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
    std::vector<std::string>
        folded;  ///< what canonicalisation fused away, one line each, for `laminate info`

    [[nodiscard]] const Tensor& tensor(TensorId id) const {
        return tensors.at(static_cast<size_t>(id));
    }
    [[nodiscard]] const Layer& layer(LayerId id) const {
        return layers.at(static_cast<size_t>(id));
    }
    /// Layer that writes the tensor, or -1 for a network input.
    [[nodiscard]] LayerId producer(TensorId id) const;
    /// Layers that read the tensor, in order.
    [[nodiscard]] std::vector<LayerId> consumers(TensorId id) const;
    [[nodiscard]] bool is_output(TensorId id) const;
    /// -1 when there is none.
    [[nodiscard]] LayerId find_layer(const std::string& layer_name) const;
};

/// Throws InputError for a dimension below 1 or above 2^31 - 1, and for more than 2^40 elements.
[[nodiscard]] int64_t element_count(const std::vector<int64_t>& dims);
/// [A-Za-z_][A-Za-z0-9_]*
[[nodiscard]] bool is_identifier(const std::string& text);
/// "1x64x56x56".
[[nodiscard]] std::string dims_text(const std::vector<int64_t>& dims);
/// "x 1x3x224x224", with its type where that is not float32: "x 1x3x224x224 uint8".
[[nodiscard]] std::string tensor_text(const Tensor& tensor);

/// Multiply-accumulates of one layer for the whole batch (design 4). A convolution counts every tap
/// of the kernel for every output element, including taps that fall on zero padding. A transposed
/// convolution counts, for every output element o, the taps k with o + pad - k * dilation divisible
/// by the stride. Layers without weights count 0.
[[nodiscard]] int64_t layer_macs(const Network& network, LayerId layer);

/// Taps of one axis of a transposed convolution: pairs of an output coordinate o and a kernel
/// coordinate k with o + pad - k * dilation divisible by the stride.
[[nodiscard]] int64_t transposed_taps(int64_t kernel, int64_t stride, int64_t dilation,
                                      int64_t pad_begin, int64_t out);

/// Checks every rule above and recomputes every shape from the shapes of the inputs. Checks also
/// that names of tensors and layers are unique, that every tensor is written once, and that every
/// tensor a layer writes is read or is an output. Throws InputError naming the layer.
void check(const Network& network);

/// Output dims of a layer from its inputs' dims; throws InputError naming the layer.
[[nodiscard]] std::vector<int64_t> infer_output_dims(
    const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims);

/// 16 hex digits over everything that compiled code depends on: structure, layer names (schedules
/// use them), shapes, attributes and the values of all constants. Names of tensors and of the
/// network do not count. The hash is the same on every machine.
[[nodiscard]] std::string network_hash(const Network& network);
/// As network_hash(), without the values of constants; their shapes count. Schedules, counts and
/// costs depend on nothing else, so files of schedules and fronts carry this hash.
[[nodiscard]] std::string structure_hash(const Network& network);

}  // namespace laminate
