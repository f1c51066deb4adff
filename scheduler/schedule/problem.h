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

/// Loop dimensions of a layer: output channel, row and column, and input channel within a group
/// (D_z, D_y, D_x, D_i).
enum class Dim { z = 0, y = 1, x = 2, i = 3 };
/// One value per loop dimension, in the order z, y, x, i.
template <class T>
using PerDim = PerEnum<T, Dim, 4>;
inline constexpr PerDim<Dim> all_dims{Dim::z, Dim::y, Dim::x, Dim::i};
inline constexpr PerDim<char> dim_letters{'z', 'y', 'x', 'i'};
[[nodiscard]] constexpr char letter_of(Dim d) { return dim_letters[d]; }

/// What a layer does with its inputs. Only the first kind has weights and counts MACs.
enum class Operation {
    multiply_accumulate,  ///< convolution, transposed convolution, Gemm
    max_pool,
    average_pool,  ///< includes global average pooling, whose window is the whole input
    add,           ///< of two or more tensors of one shape, or one that is repeated (LayerInput)
    subtract,      ///< the first of two tensors less the second
    multiply,      ///< of two tensors
    divide,        ///< the first of two tensors by the second
    minimum,       ///< of two tensors
    maximum,       ///< of two tensors
    power,         ///< the first of two tensors to the power of the second
    prelu,         ///< the first of two tensors, times the second where it is below 0
    concat,        ///< along channels; of one tensor: a part of it (Split, Slice, Crop)
    pointwise,     ///< an activation of its own
    rearrange,     ///< DepthToSpace, SpaceToDepth, channel shuffles, repeated rows and columns: an
                   ///< output is one of its tap's inputs
    resample,      ///< Pad, Resize: weighted sums of rows and columns, by sampled windows
    normalise,     ///< softmax, its logarithm or standardisation over the channels of each pixel
    largest_channel,   ///< of the channels of each pixel, which become one
    smallest_channel,  ///< likewise
};
/// Whether an output is computed from the elements of two or more tensors in its place.
[[nodiscard]] constexpr bool is_elementwise(Operation operation) {
    return operation >= Operation::add && operation <= Operation::prelu;
}
/// Whether an output is the largest or smallest channel of its pixel.
[[nodiscard]] constexpr bool is_extreme_of_channels(Operation operation) {
    return operation == Operation::largest_channel || operation == Operation::smallest_channel;
}

/// A tensor that a layer reads.
struct LayerInput {
    TensorId tensor = -1;
    std::string name;
    int64_t channels = 1;
    /// concat: the output channel that the operand's channel 0 becomes, below 0 if it is left out;
    /// else 0.
    int64_t first_output_channel = 0;
    /// Elementwise operations: one element for all rows and columns (a factor per channel), and one
    /// channel for all channels (a factor per position).
    bool is_pixel = false;
    bool is_plane = false;
};

/// Which input coordinates an output of a sampled window reads: with n, d the numerator and
/// denominator, output o reads from (o * n + first) / d to (o * n + last) / d, both rounded down
/// and included, and both moved into the input. What reflects at a border reads further into the
/// input than it moves there: the first `whole_begin` coordinates behind the first one come with
/// the first output, and the last ones with `whole_end` before it stay to the last output.
struct Sampling {
    int64_t numerator = 0;  ///< 0: the window is no sampled one
    int64_t denominator = 1;
    int64_t first = 0;
    int64_t last = 0;
    int64_t whole_begin = 0;
    int64_t whole_end = 0;
    friend bool operator==(const Sampling&, const Sampling&) = default;
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
    /// Of Pad and Resize. The kernel is then as large as the largest interval, and the stride the
    /// numerator over the denominator, rounded up.
    Sampling sampling;
    [[nodiscard]] bool is_sampled() const { return sampling.numerator > 0; }
    /// What outputs [begin, end) of a sampled window read: one interval without gaps between the
    /// intervals of its outputs.
    [[nodiscard]] int64_t sampled_begin(int64_t begin) const;
    [[nodiscard]] int64_t sampled_end(int64_t end) const;
    /// Input coordinate that output `out` multiplies with kernel position `tap`, or nullopt if that
    /// is padding or a transposed window has no such tap.
    [[nodiscard]] std::optional<int64_t> input(int64_t out, int64_t tap) const;
    /// Input coordinates from the first to the last tap of the kernel, both included.
    [[nodiscard]] int64_t span() const { return (kernel - 1) * dilation + 1; }
    friend bool operator==(const AxisWindow&, const AxisWindow&) = default;
};

struct LayerProblem {
    LayerId layer = -1;
    std::string name;
    Operation operation = Operation::multiply_accumulate;
    /// Elementwise operations and concat read two or more, each through a window of 1; other
    /// operations, and a concat that takes a part of a tensor, read one.
    std::vector<LayerInput> inputs;
    TensorId output = -1;
    PerDim<int64_t> extent{1, 1, 1, 1};  ///< D_z, D_y, D_x, D_i
    std::array<AxisWindow, 2> window;    ///< y, x
    /// Groups of channels. A layer without weights has D_i = 1 and groups == D_z: like a depthwise
    /// convolution, its output channel z reads channel z of the input (concat: z -
    /// first_output_channel). Two have a larger D_i. The windows of rearrange are transposed with
    /// kernel == stride, so an output has one tap, whose number among the kernel_y * kernel_x says
    /// which of the D_i channels it is. An output of normalise, largest_channel or smallest_channel
    /// reads all channels of its pixel.
    /// Those of blocks (GeneralKind::blocks) are windows of kernel == stride, of which an output has
    /// one tap. Shuffled, they read channels from all over: groups = 1 and D_i is all of them.
    int64_t groups = 1;
    int64_t shuffle = 1;  ///< of blocks

    [[nodiscard]] int64_t operator[](Dim d) const { return extent[d]; }
    [[nodiscard]] const AxisWindow& y() const { return window[0]; }
    [[nodiscard]] const AxisWindow& x() const { return window[1]; }
    [[nodiscard]] bool has_weights() const { return operation == Operation::multiply_accumulate; }
    /// Whether an iteration of `ii` computes nothing of its own: it reads channels that are no box
    /// (grouped convolutions), or nothing but in one of them (rearrange, normalise, extremes of
    /// channels). X then comes in outside of it.
    [[nodiscard]] bool reads_all_of_i() const {
        return extent[Dim::i] > 1 && (groups > 1 || !has_weights());
    }
    /// Whether output channels read the channels of their own group, so that a loop over z goes
    /// along the channels of the input; else all outputs read all channels, and a loop over i does.
    [[nodiscard]] bool is_grouped() const {
        return groups > 1 || (!has_weights() && extent[Dim::i] == 1);
    }
    /// Whether it rearranges blocks of pixels as channels, or channels alone.
    [[nodiscard]] bool makes_blocks() const {
        return operation == Operation::rearrange && !y().transposed;
    }
    /// Output channels of a group of channels.
    [[nodiscard]] int64_t group_outputs() const { return extent[Dim::z] / groups; }
    /// Whether an operand has one element along an axis of the output, which all outputs read.
    [[nodiscard]] bool repeats(int operand, Dim axis) const {
        const LayerInput& input = inputs[static_cast<size_t>(operand)];
        return axis == Dim::z ? input.is_plane : input.is_pixel;
    }
    /// Channels, rows and columns of an operand.
    [[nodiscard]] std::array<int64_t, 3> operand_extents(int operand) const;
    [[nodiscard]] Elements weight_elements()
        const;  ///< kernel_y * kernel_x * D_i * D_z, 0 without weights
    [[nodiscard]] Elements output_elements() const;  ///< D_z * D_y * D_x
    [[nodiscard]] Elements input_elements() const;   ///< sum over all inputs
};

/// The window of a layer along rows (axis 0) or columns (axis 1), without its extents. A layer
/// without a window gets the one that reads only its own position.
[[nodiscard]] AxisWindow axis_window(const Network& network, const Layer& layer, size_t axis);

/// Whether a group may hold the layer. It may be a conv or gemm; a conv_transpose whose kernel is
/// at least its stride and that is not both strided and dilated; pooling; a sum, difference,
/// product, quotient, minimum, maximum or power of different tensors or a PRelu by one, one of which
/// may have one pixel or one channel; a concat along channels; a part of a tensor; a depth_to_space,
/// blocks or repeated rows and columns; a Pad or Resize of rows and columns; a normalisation over the
/// channels of each pixel, or the largest or smallest of them; or a separate activation, all of
/// feature maps. The window of every output must reach a real input: no output depends on padding
/// alone.
[[nodiscard]] bool is_schedulable(const Network& network, LayerId layer);
/// Whether the layer is schedulable and has weights. A schedule must cover these layers. Other
/// schedulable layers may be in a group; outside groups they run on the reference operators and are
/// not counted.
[[nodiscard]] bool must_be_scheduled(const Network& network, LayerId layer);
[[nodiscard]] LayerProblem layer_problem(const Network& network, LayerId layer);
[[nodiscard]] std::vector<LayerProblem> layer_problems(const Network& network,
                                                       const std::vector<LayerId>& layers);
/// Appends all numbers of a window.
void append_window(std::vector<int64_t>& key, const AxisWindow& window);
/// Key of everything that counts depend on: layers and wiring, without names. Groups with equal
/// keys have the same fronts up to the names of their layers.
[[nodiscard]] std::vector<int64_t> shape_key(const std::vector<LayerProblem>& problems);

/// Maximal chains of layers that must be scheduled. Each layer but the last feeds only the next one
/// and is not a network output. Every layer that must be scheduled is in exactly one chain.
[[nodiscard]] std::vector<std::vector<LayerId>> schedulable_chains(const Network& network);

}  // namespace laminate
