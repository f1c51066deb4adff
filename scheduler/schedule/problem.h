// The loop problem of one schedulable layer: extents and window, free of ONNX detail.
// docs/counting.md section 1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/indexed.h"
#include "base/units.h"
#include "nets/network/network.h"

namespace laminate {

/// Loop dimensions of a layer: output channel, row, column; input channel within a group (D_z D_y
/// D_x D_i).
enum class Dim { z = 0, y = 1, x = 2, i = 3 };
/// One value per loop dimension, in the order z, y, x, i.
template <class T>
using PerDim = PerEnum<T, Dim, 4>;
inline constexpr PerDim<Dim> all_dims{Dim::z, Dim::y, Dim::x, Dim::i};

/// What a layer does with the inputs that it reads. All but the first have no weights and count no
/// MACs.
enum class Operation {
    multiply_accumulate,  ///< convolution, transposed convolution, Gemm
    max_pool,
    average_pool,  ///< global average pooling too: its window is the whole input
    add,           ///< of two or more tensors of one shape
    concat,        ///< along channels
    pointwise,     ///< an activation of its own
};

/// A tensor that a layer reads.
struct LayerInput {
    TensorId tensor = -1;
    std::string name;
    int64_t channels = 1;
    /// concat: the output channel that the operand's channel 0 becomes; else 0.
    int64_t first_output_channel = 0;
};

/// How one spatial axis of the output reads the input.
struct AxisWindow {
    bool transposed = false;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t dilation = 1;
    int64_t pad_begin = 0;
    int64_t in = 1;   ///< input extent
    int64_t out = 1;  ///< output extent (D_y or D_x)
    /// Input coordinate that output `out` multiplies with kernel position `tap`; none on padding
    /// and where a transposed window has no tap.
    [[nodiscard]] std::optional<int64_t> input(int64_t out, int64_t tap) const;
    /// Input coordinates from the first to the last tap of the kernel, both included.
    [[nodiscard]] int64_t span() const { return (kernel - 1) * dilation + 1; }
    friend bool operator==(const AxisWindow&, const AxisWindow&) = default;
};

struct LayerProblem {
    LayerId layer = -1;
    std::string name;
    Operation operation = Operation::multiply_accumulate;
    std::vector<LayerInput>
        inputs;  ///< add and concat: two or more, all read through the window of 1; else one
    TensorId output = -1;
    PerDim<int64_t> extent{1, 1, 1, 1};  ///< D_z, D_y, D_x, D_i
    std::array<AxisWindow, 2> window;    ///< y, x
    /// Without weights D_i is 1, and output channel z reads channel z of its input (concat: z -
    /// first_output_channel), as a depthwise convolution does: groups == D_z.
    int64_t groups = 1;

    [[nodiscard]] int64_t operator[](Dim d) const { return extent[d]; }
    [[nodiscard]] const AxisWindow& y() const { return window[0]; }
    [[nodiscard]] const AxisWindow& x() const { return window[1]; }
    [[nodiscard]] bool has_weights() const { return operation == Operation::multiply_accumulate; }
    [[nodiscard]] Elements weight_elements()
        const;  ///< kernel_y * kernel_x * D_i * D_z, 0 without weights
    [[nodiscard]] Elements output_elements() const;  ///< D_z * D_y * D_x
    [[nodiscard]] Elements input_elements() const;   ///< of all inputs together
};

/// The window of a layer along rows (axis 0) or columns (1), extents left out; of a layer without a
/// window the one that reads just its own place.
[[nodiscard]] AxisWindow axis_window(const Layer& layer, size_t axis);

/// True for the layers that a group may hold: conv, gemm, and conv_transpose whose kernel is at
/// least its stride and that is not both strided and dilated; pooling; add and concat (along
/// channels) of different tensors; activations of their own, all of feature maps. And of these only
/// where every output's window reaches a real input (no output depends on padding alone).
[[nodiscard]] bool is_schedulable(const Network& network, LayerId layer);
/// Schedulable, with weights: a schedule must cover these. The other schedulable layers may be in a
/// group; outside of groups they run on the reference operators and are not counted.
[[nodiscard]] bool must_be_scheduled(const Network& network, LayerId layer);
[[nodiscard]] LayerProblem layer_problem(const Network& network, LayerId layer);
[[nodiscard]] std::vector<LayerProblem> layer_problems(const Network& network,
                                                       const std::vector<LayerId>& layers);
/// Everything that counts depend on, layers and wiring, without names: groups of equal keys have
/// the same fronts up to the names of their layers.
[[nodiscard]] std::vector<int64_t> shape_key(const std::vector<LayerProblem>& problems);

/// A 3x3 convolution of stride 1 whose channels are enough for Winograd's minimal filtering to be
/// worth its transforms (generators/kernels/winograd.h); it wants rows by two.
[[nodiscard]] bool suits_winograd(const LayerProblem& problem);

/// Maximal chains of layers that must be scheduled: each layer but the last feeds exactly the next
/// one and is no network output. Every layer that must be scheduled is in exactly one chain.
[[nodiscard]] std::vector<std::vector<LayerId>> schedulable_chains(const Network& network);

}  // namespace laminate
