// Operators on tensors of any rank: what a layer of LayerKind::general computes. Schedules cover the
// few that picture_views.h and is_schedulable() name. The reference operators
// (nets/operators/general_operators.h) run each of the others alone, on whole tensors; nothing is
// fused into or out of them.
//
// A few kinds cover most of ONNX: slices, transposes and broadcasts are views; padding, resizing
// and gathering are resamplings. The fields that a kind reads are listed beside it; the others keep
// their defaults. All tensors are dense and row major.
#pragma once

#include <cstdint>
#include <vector>

namespace laminate {

enum class GeneralKind {
    constant,  ///< inputs {}: the layer's `weights`
    reshape,   ///< inputs {x}: the elements in their order, as `dims`
    view,      ///< inputs {x}: `dims`, first, steps
    resample,  ///< inputs {x}: `dims`, tap_counts, sources, factors; alpha where a source is
               ///< outside
    unary,     ///< inputs {x}: function; alpha, beta
    binary,  ///< inputs {a, b}, shapes broadcast as in numpy, or one input and `weights`: function,
             ///< constant_first
    select,  ///< inputs {condition, a, b}, shapes broadcast: a where the condition is not 0, else b
    reduce,  ///< inputs {x}: function over axes, which keep an extent of 1
    normalise,    ///< inputs {x}: function over axes together; alpha (epsilon)
    matmul,       ///< inputs {a, b} as numpy.matmul, or one input and `weights`: constant_first;
                  ///< optional bias, one value per column
    convolution,  ///< inputs {x [N,C,...]}, weights [z][i][...], bias, Layer::groups, window, any
                  ///< number of axes
    transposed_convolution,  ///< inputs {x [N,C,...]}, weights [i][z][...], bias, Layer::groups,
                             ///< window; spatial extents in `dims`
    max_pool,                ///< inputs {x [N,C,...]}, window
    average_pool,            ///< inputs {x [N,C,...]}, window, count_include_pad
    power_pool,              ///< inputs {x [N,C,...]}, window: (sum of |x|^alpha)^(1 / alpha)
    local_response,  ///< inputs {x [N,C,...]}: x / (gamma + alpha / size * sum of squares of `size`
                     ///< = kernel[0] neighbour channels)^beta
    running_sum,  ///< inputs {x}: sums along the one axis in `axes` up to each element; alpha (1: from
                  ///< the end on), beta (1: without the element itself)
    order,   ///< inputs {x}: function over the one axis in `axes`; `dims`; constant_first (of
             ///< equals, the one with the last coordinate comes first); alpha (1: NaN comes first,
             ///< 0: NaN is the largest value)
    sample,  ///< inputs {x [N,C,...], grid [N,...,axes]}: function (interpolation) at the grid's
             ///< points, which are given as x, y, z in -1 .. 1; alpha (GridPadding), beta (1: -1
             ///< and 1 are the centres of the border elements, 0: their outer edges)
    blocks,  ///< inputs {x [N,C,H,W]}: SpaceToDepth and channel shuffles. kernel[0] (rows and
             ///< columns of a block, b) and first (shuffle, s): output [z, i, j] is input
             ///< [p / b^2, i b + p % b^2 / b, j b + p % b], where p = z % s * (C b^2 / s) + z / s
};

/// What a unary, binary, reduce, normalise, order or sample operator computes, as ONNX defines it.
enum class GeneralFunction {
    none,
    // unary
    absolute,
    negative,
    exponential,
    logarithm,
    square_root,
    reciprocal,
    floor,
    ceil,
    round_to_even,
    sign,
    error_function,
    sine,
    cosine,
    tangent,
    elu,   ///< alpha
    selu,  ///< alpha, beta (gamma in ONNX)
    celu,  ///< alpha
    softplus,
    softsign,
    hard_sigmoid,  ///< alpha, beta
    hard_swish,
    mish,
    swish,             ///< alpha: x * sigmoid(alpha * x)
    thresholded_relu,  ///< alpha
    shrink,            ///< alpha (lambd), beta (bias)
    gelu,
    gelu_tanh,
    is_zero,  ///< 1 or 0: logical not
    // binary
    add,
    subtract,
    multiply,
    divide,
    power,
    minimum,
    maximum,
    prelu,  ///< a where a >= 0, else a * b
    equal,
    less,
    less_or_equal,
    greater,
    greater_or_equal,  ///< 1 or 0
    // reduce
    sum,
    mean,
    product,
    largest,
    smallest,
    norm_1,
    norm_2,
    log_sum,
    log_sum_exp,
    sum_of_squares,
    // normalise
    softmax,
    log_softmax,
    hardmax,
    standardise,       ///< (x - mean) / sqrt(variance + alpha)
    root_mean_square,  ///< x / sqrt(mean of squares + alpha)
    // binary
    remainder,  ///< of the division of a by b, with the sign of a
    // order: the first along the axis of the values sorted, or where they stood
    largest_values,
    largest_places,
    smallest_values,
    smallest_places,
    // sample
    nearest,
    linear,
    cubic,  ///< Keys' kernel with a = -0.75
    // reduce
    variance,  ///< mean of (x - mean)^2
};

/// What `sample` reads outside its input.
enum class GridPadding { zeros, border, reflection };
[[nodiscard]] const char* to_string(GeneralKind kind);
[[nodiscard]] const char* to_string(GeneralFunction function);
/// Whether a layer can apply the function to its finished sums, so that generated code computes it
/// in vectors (generators/ir/activations.h): a unary function, or `power`, which is then x^alpha. Alpha
/// and beta must be finite, alpha of celu positive, and exponents between -16 and 16, but for 0 and 1.
[[nodiscard]] bool is_activation(GeneralFunction function, float alpha, float beta);
/// Whether small differences of the function's arguments become large ones somewhere: where it jumps,
/// next to a pole, or because it grows without bound. Rounding errors of the sums to which code applies
/// such a function are judged element by element (generators/compile/error_bounds.h).
[[nodiscard]] bool is_steep(GeneralFunction function);
inline constexpr int general_kind_count = static_cast<int>(GeneralKind::blocks) + 1;
inline constexpr int general_function_count = static_cast<int>(GeneralFunction::variance) + 1;

struct GeneralOperator {
    GeneralKind kind = GeneralKind::reshape;
    GeneralFunction function = GeneralFunction::none;
    std::vector<int64_t> dims{};  ///< of the output; transposed_convolution: its spatial extents
    std::vector<int64_t> axes{};  ///< ascending, from 0
    /// view: output element o is input element first + sum over d of o[d] * steps[d]; a step may be
    /// 0 or negative.
    int64_t first = 0;
    std::vector<int64_t> steps{};
    /// resample: along each axis d, output coordinate o is a weighted sum of tap_counts[d] input
    /// coordinates, sources[begin + o * tap_counts[d] + t], where `begin` is the start of the axis'
    /// share of the list. A source of -1 is outside the input; the element is then alpha. Empty
    /// factors mean that all are 1.
    std::vector<int64_t> tap_counts{};
    std::vector<int64_t> sources{};
    std::vector<float> factors{};
    // Windows: one value per spatial axis.
    std::vector<int64_t> kernel{};
    std::vector<int64_t> stride{};
    std::vector<int64_t> dilation{};
    std::vector<int64_t> pad_begin{};
    std::vector<int64_t> pad_end{};
    /// Pooling: keeps a last window that starts in the input or its leading padding and ends beyond
    /// the trailing padding. Elements beyond the trailing padding never count in an average.
    bool ceil_mode = false;
    bool count_include_pad = false;
    bool constant_first = false;
    float alpha = 0;
    float beta = 0;
    float gamma = 0;

    friend bool operator==(const GeneralOperator&, const GeneralOperator&) = default;
};

/// Calls visit("name", field) for every field except kind and function, in a fixed order. Files and
/// hashes hold these fields.
template <class Operator, class Visit>
void for_each_field(Operator& op, const Visit& visit) {
    visit("dims", op.dims);
    visit("axes", op.axes);
    visit("first", op.first);
    visit("steps", op.steps);
    visit("tap_counts", op.tap_counts);
    visit("sources", op.sources);
    visit("factors", op.factors);
    visit("kernel", op.kernel);
    visit("stride", op.stride);
    visit("dilation", op.dilation);
    visit("pad_begin", op.pad_begin);
    visit("pad_end", op.pad_end);
    visit("ceil_mode", op.ceil_mode);
    visit("count_include_pad", op.count_include_pad);
    visit("constant_first", op.constant_first);
    visit("alpha", op.alpha);
    visit("beta", op.beta);
    visit("gamma", op.gamma);
}

struct Layer;

/// Output dims of a layer of LayerKind::general. Throws InputError, without the layer's name,
/// unless every field fits the inputs, so callers that run the operator need not check again.
[[nodiscard]] std::vector<int64_t> general_output_dims(
    const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims);

/// Multiply-accumulates of convolutions and matrix products, as layer_macs() counts them; 0 for the
/// other kinds.
[[nodiscard]] int64_t general_macs(const Layer& layer,
                                   const std::vector<std::vector<int64_t>>& input_dims,
                                   const std::vector<int64_t>& output_dims);

/// Shapes aligned at their ends, extents equal or 1; throws InputError.
[[nodiscard]] std::vector<int64_t> broadcast_dims(const std::vector<int64_t>& a,
                                                  const std::vector<int64_t>& b);

/// Elements between neighbours along each axis of a row-major tensor.
[[nodiscard]] std::vector<int64_t> row_major_steps(const std::vector<int64_t>& dims);

}  // namespace laminate
