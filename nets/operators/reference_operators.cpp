#include "nets/operators/reference_operators.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/shared_loop.h"
#include "base/units.h"
#include "base/vector_width.h"
#include "nets/operators/general_operators.h"
#include "nets/operators/row_functions.h"

namespace laminate {
namespace {

using Dims = std::vector<int64_t>;

/// Product of a feature map's dims from index 2 on; 1 for N x F.
int64_t plane_elements(const Dims& dims) {
    return std::accumulate(dims.begin() + std::min<int64_t>(2, std::ssize(dims)), dims.end(),
                           int64_t{1}, std::multiplies<>());
}

int64_t channels_of(const Dims& dims) { return dims.size() > 1 ? dims[1] : 1; }

void activate_row(const Activation& activation, int64_t channel, float* values, int64_t count) {
    if (activation.kind != ActivationKind::none)
        apply_activation_row(activation, channel, values, values, count);
}

// ---- convolutions

/// Output channels and columns that one call of the inner kernel computes. 4 x 32 sums stay in the
/// first-level cache and use each input element four times. Narrow maps use 16 columns, so that a
/// map of 14 or 7 columns wastes less.
constexpr int tile_channels = 4;
constexpr int wide_columns = 32;
constexpr int narrow_columns = 16;

/// One tile: up to tile_channels output channels of some outputs of one row. Output j reads
/// column_step * j columns to the right of output 0. Neighbouring outputs of a convolution read
/// columns `stride` apart. For a transposed convolution a tile holds every stride-th output (one
/// phase), and those read neighbouring columns.
struct TileProblem {
    const float* input;                               ///< channel 0 of the group, of this image
    int64_t rows, columns;                            ///< of the input
    int64_t in_channels;                              ///< within the group
    const float* weights;                             ///< of the tile's first output channel
    int64_t output_channel_step, input_channel_step;  ///< in `weights`
    int64_t kernel_rows, kernel_columns;
    bool transposed;
    int64_t stride_y, dilation_y, pad_y, stride_x, dilation_x, pad_x;
    int64_t row;          ///< output row
    int64_t column;       ///< output column of the tile's first output
    int64_t column_step;  ///< between the inputs of neighbouring outputs of the tile

    /// Sets `at` to the input coordinate that output coordinate `o` reads through kernel element
    /// `k`. Returns false if it reads none.
    static bool source(bool transposed, int64_t o, int64_t k, int64_t stride, int64_t dilation,
                       int64_t pad, int64_t* at) {
        const int64_t reach = transposed ? o + pad - k * dilation : o * stride + k * dilation - pad;
        if (transposed && reach % stride != 0) return false;
        *at = transposed ? reach / stride : reach;
        return true;
    }
};

template <int channels, int columns>
[[gnu::always_inline]] inline void accumulate_tile(const TileProblem& p, int count, float* result) {
    float sum[channels][columns] = {};
    for (int64_t i = 0; i < p.in_channels; ++i) {
        for (int64_t n = 0; n < p.kernel_rows; ++n) {
            int64_t y = 0;
            if (!TileProblem::source(p.transposed, p.row, n, p.stride_y, p.dilation_y, p.pad_y, &y))
                continue;
            if (y < 0 || y >= p.rows) continue;
            const float* line = p.input + (i * p.rows + y) * p.columns;
            for (int64_t m = 0; m < p.kernel_columns; ++m) {
                int64_t x = 0;
                if (!TileProblem::source(p.transposed, p.column, m, p.stride_x, p.dilation_x,
                                         p.pad_x, &x))
                    continue;
                float gathered[columns];
                const float* source = gathered;
                const int64_t step = p.column_step;
                if (step == 1 && x >= 0 && x + columns <= p.columns) {
                    source = line + x;
                } else {
                    // Outputs [begin, end) of the tile read inside the row, the others read zeros.
                    const int64_t begin = x < 0 ? (-x + step - 1) / step : 0;
                    const int64_t end =
                        x < p.columns ? std::min<int64_t>(count, (p.columns - 1 - x) / step + 1)
                                      : 0;
                    for (int j = 0; j < columns; ++j) gathered[j] = 0.0f;
                    for (int64_t j = begin; j < end; ++j) gathered[j] = line[x + j * step];
                }
                const float* w = p.weights + i * p.input_channel_step + n * p.kernel_columns + m;
                for (int c = 0; c < channels; ++c) {
                    const float weight = w[c * p.output_channel_step];
                    for (int j = 0; j < columns; ++j) sum[c][j] += weight * source[j];
                }
            }
        }
    }
    std::memcpy(result, sum, sizeof sum);
}

/// `result` is [channels][columns].
LAMINATE_FOR_EACH_VECTOR_WIDTH
void accumulate(const TileProblem& p, int channels, int columns, int count, float* result) {
    if (columns == wide_columns) {
        switch (channels) {
            case 1:
                return accumulate_tile<1, wide_columns>(p, count, result);
            case 2:
                return accumulate_tile<2, wide_columns>(p, count, result);
            case 3:
                return accumulate_tile<3, wide_columns>(p, count, result);
            default:
                return accumulate_tile<4, wide_columns>(p, count, result);
        }
    }
    switch (channels) {
        case 1:
            return accumulate_tile<1, narrow_columns>(p, count, result);
        case 2:
            return accumulate_tile<2, narrow_columns>(p, count, result);
        case 3:
            return accumulate_tile<3, narrow_columns>(p, count, result);
        default:
            return accumulate_tile<4, narrow_columns>(p, count, result);
    }
}

void run_convolution(const Layer& layer, const Dims& in, const float* input, const Dims& out,
                     float* output, int threads) {
    const bool transposed = layer.kind == LayerKind::conv_transpose;
    const Window& window = layer.window;
    const int64_t group_in = in[1] / layer.groups, group_out = out[1] / layer.groups;
    const int64_t taps = window.kernel[0] * window.kernel[1];
    const int64_t blocks = (group_out + tile_channels - 1) / tile_channels;
    const int64_t rows = out[2], columns = out[3];
    const int64_t phases = transposed ? window.stride[1] : 1;
    const int tile =
        (columns + phases - 1) / phases <= narrow_columns ? narrow_columns : wide_columns;

    TileProblem shared{};
    shared.rows = in[2];
    shared.columns = in[3];
    shared.in_channels = group_in;
    shared.output_channel_step = transposed ? taps : group_in * taps;
    shared.input_channel_step = transposed ? group_out * taps : taps;
    shared.kernel_rows = window.kernel[0];
    shared.kernel_columns = window.kernel[1];
    shared.transposed = transposed;
    shared.stride_y = window.stride[0], shared.stride_x = window.stride[1];
    shared.dilation_y = window.dilation[0], shared.dilation_x = window.dilation[1];
    shared.pad_y = window.pad_begin[0], shared.pad_x = window.pad_begin[1];
    shared.column_step = transposed ? 1 : window.stride[1];

    const int64_t calls = out[0] * layer.groups * rows * blocks;
    parallel_for(calls, threads, [&](int64_t call) {
        // Blocks of output channels are innermost because they read the same input rows.
        const int64_t block = call % blocks, row = call / blocks % rows;
        const int64_t group = call / blocks / rows % layer.groups,
                      image = call / blocks / rows / layer.groups;
        const int64_t first = block * tile_channels;  // output channel within the group
        const int channels = static_cast<int>(std::min<int64_t>(tile_channels, group_out - first));
        TileProblem p = shared;
        p.row = row;
        p.input = input + (image * in[1] + group * group_in) * in[2] * in[3];
        p.weights = layer.weights->values.data() +
                    (transposed ? group * group_in * group_out * taps + first * taps
                                : (group * group_out + first) * group_in * taps);
        alignas(64) float sums[tile_channels * wide_columns];
        for (int64_t phase = 0; phase < std::min(phases, columns); ++phase) {
            const int64_t phase_columns = (columns - phase + phases - 1) / phases;
            for (int64_t begin = 0; begin < phase_columns; begin += tile) {
                const int count = static_cast<int>(std::min<int64_t>(tile, phase_columns - begin));
                p.column = phase + begin * phases;
                accumulate(p, channels, tile, count, sums);
                for (int c = 0; c < channels; ++c) {
                    const int64_t z = group * group_out + first + c;
                    const float bias =
                        layer.bias ? layer.bias->values[static_cast<size_t>(z)] : 0.0f;
                    float* finished = sums + c * tile;
                    for (int j = 0; j < count; ++j) finished[j] += bias;
                    activate_row(layer.activation, z, finished, count);
                    float* line = output + ((image * out[1] + z) * rows + row) * columns + p.column;
                    for (int j = 0; j < count; ++j) line[j * phases] = finished[j];
                }
            }
        }
    });
}

LAMINATE_FOR_EACH_VECTOR_WIDTH
float dot(const float* a, const float* b, int64_t count) {
    constexpr int lanes = 32;
    float sum[lanes] = {};
    int64_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        for (int j = 0; j < lanes; ++j) sum[j] += a[k + j] * b[k + j];
    }
    float total = 0;
    for (; k < count; ++k) total += a[k] * b[k];
    for (int j = 0; j < lanes; ++j) total += sum[j];
    return total;
}

void run_gemm(const Layer& layer, const Dims& in, const float* input, const Dims& out,
              float* output, int threads) {
    const int64_t features = in[1], results = out[1];
    const float* weights = layer.weights->values.data();
    parallel_for(out[0] * results, threads, [&](int64_t k) {
        const int64_t image = k / results, z = k % results;
        const float bias = layer.bias ? layer.bias->values[static_cast<size_t>(z)] : 0.0f;
        output[k] = apply_activation(
            layer.activation,
            dot(input + image * features, weights + z * features, features) + bias, z);
    });
}

// ---- pooling

/// A tap of the window and the outputs [first, end) of its axis that read an input element by it.
struct Tap {
    int64_t tap = 0, first = 0, end = 0;
};

Tap outputs_with_tap(const Window& window, size_t axis, int64_t tap, int64_t in, int64_t out) {
    const int64_t offset = tap * window.dilation[axis] - window.pad_begin[axis];
    const int64_t stride = window.stride[axis];
    const int64_t first = offset >= 0 ? 0 : ceil_div(-offset, stride);
    const int64_t end = offset >= in ? 0 : (in - 1 - offset) / stride + 1;
    return {tap, first, std::max(first, std::min(end, out))};
}

/// Taps [first, second) of the window of output `o` that read an input element. Clipped by
/// division, so that a window of 2^31 taps takes no longer than the input is wide.
std::pair<int64_t, int64_t> taps_inside(const Window& window, size_t axis, int64_t o, int64_t in) {
    const int64_t begin = o * window.stride[axis] - window.pad_begin[axis];
    const auto taps_before = [&](int64_t coordinate) {
        return coordinate <= begin ? 0
                                   : std::min(window.kernel[axis],
                                              ceil_div(coordinate - begin, window.dilation[axis]));
    };
    return {taps_before(0), taps_before(in)};
}

/// Every tap of an axis that reads an input element for some output, in order.
std::vector<Tap> taps_of_axis(const Window& window, size_t axis, int64_t in, int64_t out) {
    std::vector<Tap> taps;
    int64_t next = 0;
    for (int64_t o = out; o-- > 0;) {  // the last output's window begins with the first taps
        const auto [begin, end] = taps_inside(window, axis, o, in);
        for (next = std::max(next, begin); next < end; ++next)
            taps.push_back(outputs_with_tap(window, axis, next, in, out));
    }
    return taps;
}

/// Adds one tap of the window to a row of outputs. Each kind and each common stride has a loop of
/// its own, so that the compiler vectorises it; pooling would otherwise dominate whole networks.
LAMINATE_FOR_EACH_VECTOR_WIDTH
void take_tap(bool is_max, const float* __restrict from, int64_t stride, float* __restrict row,
              int64_t count) {
    // NaN wins, as onnxruntime and PyTorch have it.
    const auto larger = [](float a, float b) {
        const float most = a < b ? b : a;
        return b != b ? b : most;
    };
    if (is_max && stride == 1) {
        for (int64_t x = 0; x < count; ++x) row[x] = larger(row[x], from[x]);
    } else if (is_max && stride == 2) {
        for (int64_t x = 0; x < count; ++x) row[x] = larger(row[x], from[2 * x]);
    } else if (is_max) {
        for (int64_t x = 0; x < count; ++x) row[x] = larger(row[x], from[stride * x]);
    } else if (stride == 1) {
        for (int64_t x = 0; x < count; ++x) row[x] += from[x];
    } else if (stride == 2) {
        for (int64_t x = 0; x < count; ++x) row[x] += from[2 * x];
    } else {
        for (int64_t x = 0; x < count; ++x) row[x] += from[stride * x];
    }
}

/// Computes one row of outputs at a time, tap by tap.
void run_pool(const Layer& layer, const Dims& in, const float* input, const Dims& out,
              float* output, int threads) {
    const Window& window = layer.window;
    const bool is_max = layer.kind == LayerKind::max_pool;
    // A divisor of all taps may exceed 32 bits; as a float it is rounded once.
    const double taps =
        static_cast<double>(window.kernel[0]) * static_cast<double>(window.kernel[1]);
    const int64_t stride = window.stride[1];
    const std::vector<Tap> columns = taps_of_axis(window, 1, in[3], out[3]);
    std::vector<int64_t> columns_inside;
    for (int64_t x = 0; x < out[3]; ++x) {
        const auto [first, end] = taps_inside(window, 1, x, in[3]);
        columns_inside.push_back(end - first);
    }
    parallel_for(out[0] * out[1], threads, [&](int64_t plane) {
        const float* source = input + plane * in[2] * in[3];
        float* target = output + plane * out[2] * out[3];
        for (int64_t y = 0; y < out[2]; ++y) {
            float* row_out = target + y * out[3];
            std::fill_n(row_out, out[3], is_max ? -std::numeric_limits<float>::infinity() : 0.0F);
            const auto [first_row, end_row] = taps_inside(window, 0, y, in[2]);
            for (int64_t n = first_row; n < end_row; ++n) {
                const int64_t row =
                    y * window.stride[0] + n * window.dilation[0] - window.pad_begin[0];
                for (const Tap& column : columns) {
                    const int64_t from = row * in[3] + column.tap * window.dilation[1] -
                                         window.pad_begin[1] + column.first * stride;
                    take_tap(is_max, source + from, stride, row_out + column.first,
                             column.end - column.first);
                }
            }
            if (is_max) continue;
            // Padding counts in a mean only if the layer says so.
            for (int64_t x = 0; x < out[3]; ++x) {
                const int64_t inside =
                    (end_row - first_row) * columns_inside[static_cast<size_t>(x)];
                row_out[x] /=
                    layer.count_include_pad ? static_cast<float>(taps) : static_cast<float>(inside);
            }
        }
        activate_row(layer.activation, plane % out[1], target, out[2] * out[3]);
    });
}

/// Sum in double precision, in eight lanes.
LAMINATE_FOR_EACH_VECTOR_WIDTH
double plane_sum(const float* values, int64_t count) {
    constexpr int lanes = 8;
    double sum[lanes] = {};
    int64_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        for (int j = 0; j < lanes; ++j) sum[j] += static_cast<double>(values[k + j]);
    }
    double total = 0;
    for (; k < count; ++k) total += static_cast<double>(values[k]);
    for (int j = 0; j < lanes; ++j) total += sum[j];
    return total;
}

void run_global_average_pool(const Layer& layer, const Dims& in, const float* input, float* output,
                             int threads) {
    const int64_t count = plane_elements(in);
    parallel_for(in[0] * in[1], threads, [&](int64_t plane) {
        const double sum = plane_sum(input + plane * count, count);
        output[plane] = apply_activation(
            layer.activation, static_cast<float>(sum / static_cast<double>(count)), plane % in[1]);
    });
}

// ---- element-wise and moving

/// Calls body(first element, channel, elements) for every image and channel of a map, in parallel.
template <class Body>
void for_each_plane(const Dims& dims, int threads, const Body& body) {
    const int64_t count = plane_elements(dims), channels = channels_of(dims);
    parallel_for(dims[0] * channels, threads,
                 [&](int64_t plane) { body(plane * count, plane % channels, count); });
}

void run_add(const Layer& layer, const std::vector<const float*>& inputs, const Dims& out,
             float* output, int threads) {
    const Constant* constant = layer.weights.get();
    const bool one_value = constant && constant->values.size() == 1;
    const bool per_channel = constant && !one_value && constant->dims.size() == 1;
    const int64_t image_elements = channels_of(out) * plane_elements(out);
    for_each_plane(out, threads, [&](int64_t first, int64_t channel, int64_t count) {
        const float* a = inputs[0] + first;
        float* sum = output + first;
        if (!constant) {
            const float* b = inputs[1] + first;
            for (int64_t k = 0; k < count; ++k) sum[k] = a[k] + b[k];
        } else if (one_value || per_channel) {
            const float b = constant->values[one_value ? 0 : static_cast<size_t>(channel)];
            for (int64_t k = 0; k < count; ++k) sum[k] = a[k] + b;
        } else {
            const float* b = constant->values.data() + first % image_elements;
            for (int64_t k = 0; k < count; ++k) sum[k] = a[k] + b[k];
        }
        activate_row(layer.activation, channel, sum, count);
    });
}

/// Elements before, at and after a dimension. A negative axis counts from the end.
struct AxisSplit {
    int64_t outer = 1, extent = 1, inner = 1;
    AxisSplit(const Dims& dims, int64_t axis) {
        if (axis < 0) axis += std::ssize(dims);
        for (int64_t d = 0; d < std::ssize(dims); ++d) {
            int64_t& part = d < axis ? outer : d == axis ? extent : inner;
            part *= dims[static_cast<size_t>(d)];
        }
    }
};

void activate(const Layer& layer, const Dims& out, float* output, int threads) {
    if (layer.activation.kind == ActivationKind::none) return;
    for_each_plane(out, threads, [&](int64_t first, int64_t channel, int64_t count) {
        activate_row(layer.activation, channel, output + first, count);
    });
}

void run_concat(const Layer& layer, const std::vector<Dims>& in,
                const std::vector<const float*>& inputs, const Dims& out, float* output,
                int threads) {
    const AxisSplit split(out, layer.axis);
    int64_t begin = 0;
    for (size_t k = 0; k < inputs.size(); ++k) {
        const AxisSplit part(in[k], layer.axis);
        const int64_t run = part.extent * part.inner;
        for (int64_t o = 0; o < split.outer; ++o) {
            float* to = output + (o * split.extent + begin) * split.inner;
            if (to != inputs[k] + o * run) std::copy_n(inputs[k] + o * run, run, to);
        }
        begin += part.extent;
    }
    activate(layer, out, output, threads);
}

void run_depth_to_space(const Layer& layer, const Dims& in, const float* input, const Dims& out,
                        float* output, int threads) {
    const int64_t block = layer.block;
    for_each_plane(out, threads, [&](int64_t first, int64_t channel, int64_t count) {
        const int64_t image = first / (out[1] * count);
        for (int64_t y = 0; y < out[2]; ++y) {
            for (int64_t x = 0; x < out[3]; ++x) {
                const int64_t corner = y % block * block + x % block;
                const int64_t source = layer.depth_to_space_crd ? channel * block * block + corner
                                                                : corner * out[1] + channel;
                output[first + y * out[3] + x] = apply_activation(
                    layer.activation,
                    input[((image * in[1] + source) * in[2] + y / block) * in[3] + x / block],
                    channel);
            }
        }
    });
}

void run_softmax(const Layer& layer, const Dims& in, const float* input, float* output,
                 int threads) {
    const AxisSplit split(in, layer.axis);
    run_softmax_along(split.outer, split.extent, split.inner, input, output, threads);
    activate(layer, in, output, threads);
}

void run_activation(const Layer& layer, const float* input, const Dims& out, float* output,
                    int threads) {
    constexpr int64_t longest = 1 << 12;  // of what one thread takes at once
    const int64_t count = plane_elements(out), parts = ceil_div(count, longest);
    const int64_t channels = channels_of(out);
    parallel_for(out[0] * channels * parts, threads, [&](int64_t part) {
        const int64_t plane = part / parts, begin = part % parts * longest,
                      first = plane * count + begin;
        apply_activation_row(layer.activation, plane % channels, input + first, output + first,
                             std::min(longest, count - begin));
    });
}

}  // namespace

float apply_activation(const Activation& activation, float value, int64_t channel) {
    switch (activation.kind) {
        case ActivationKind::none:
            return value;
        case ActivationKind::relu:
            return std::max(value, 0.0f);
        case ActivationKind::leaky_relu:
            return value < 0 ? activation.alpha * value : value;
        case ActivationKind::prelu: {
            const std::vector<float>& slope = activation.slope->values;
            return value < 0 ? slope[slope.size() == 1 ? 0 : static_cast<size_t>(channel)] * value
                             : value;
        }
        case ActivationKind::clip:
            return std::min(std::max(value, activation.low), activation.high);
        case ActivationKind::sigmoid:
            return 1.0f / (1.0f + std::exp(-value));
        case ActivationKind::tanh:
            return std::tanh(value);
        case ActivationKind::unary:
            return apply_unary(activation.function, value, activation.alpha, activation.beta);
    }
    return value;
}

void run_reference_layer(const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims,
                         const std::vector<const float*>& inputs,
                         const std::vector<int64_t>& output_dims, float* output, int threads) {
    switch (layer.kind) {
        case LayerKind::conv:
        case LayerKind::conv_transpose:
            return run_convolution(layer, input_dims[0], inputs[0], output_dims, output, threads);
        case LayerKind::gemm:
            return run_gemm(layer, input_dims[0], inputs[0], output_dims, output, threads);
        case LayerKind::max_pool:
        case LayerKind::average_pool:
            return run_pool(layer, input_dims[0], inputs[0], output_dims, output, threads);
        case LayerKind::global_average_pool:
            return run_global_average_pool(layer, input_dims[0], inputs[0], output, threads);
        case LayerKind::add:
            return run_add(layer, inputs, output_dims, output, threads);
        case LayerKind::concat:
            return run_concat(layer, input_dims, inputs, output_dims, output, threads);
        case LayerKind::depth_to_space:
            return run_depth_to_space(layer, input_dims[0], inputs[0], output_dims, output,
                                      threads);
        case LayerKind::flatten:
            if (inputs[0] != output) std::copy_n(inputs[0], element_count(output_dims), output);
            return activate(layer, output_dims, output, threads);
        case LayerKind::softmax:
            return run_softmax(layer, input_dims[0], inputs[0], output, threads);
        case LayerKind::activation:
            return run_activation(layer, inputs[0], output_dims, output, threads);
        case LayerKind::general:
            return run_general_layer(layer, input_dims, inputs, output_dims, output, threads);
    }
}

std::vector<std::vector<float>> run_reference_network(const Network& network,
                                                      const std::vector<std::vector<float>>& inputs,
                                                      const std::vector<TensorId>& requested,
                                                      int threads) {
    const std::string where = "network " + network.name + ": ";
    if (inputs.size() != network.inputs.size()) {
        throw InputError(where + "found " + std::to_string(inputs.size()) + " inputs, expected " +
                         std::to_string(network.inputs.size()));
    }
    const std::vector<TensorId>& wanted = requested.empty() ? network.outputs : requested;
    std::vector<int> uses(network.tensors.size(),
                          0);  // readers still to come; a wanted tensor never reaches zero
    for (const Layer& layer : network.layers) {
        for (TensorId id : layer.inputs) ++uses.at(static_cast<size_t>(id));
    }
    for (TensorId id : wanted) {
        if (id < 0 || id >= std::ssize(network.tensors)) {
            throw InputError(where + "requested tensor " + std::to_string(id) + ", expected 0 to " +
                             std::to_string(network.tensors.size() - 1));
        }
        ++uses[static_cast<size_t>(id)];
    }

    std::vector<std::vector<float>> values(network.tensors.size());
    for (size_t k = 0; k < inputs.size(); ++k) {
        const Tensor& tensor = network.tensor(network.inputs[k]);
        if (std::ssize(inputs[k]) != element_count(tensor.dims)) {
            throw InputError(where + "input " + tensor.name + ": found " +
                             std::to_string(inputs[k].size()) + " elements, expected " +
                             dims_text(tensor.dims));
        }
        values[static_cast<size_t>(network.inputs[k])] = inputs[k];
    }
    for (const Layer& layer : network.layers) {
        std::vector<Dims> dims;
        std::vector<const float*> arrays;
        for (TensorId id : layer.inputs) {
            dims.push_back(network.tensor(id).dims);
            arrays.push_back(values[static_cast<size_t>(id)].data());
        }
        std::vector<float>& result = values[static_cast<size_t>(layer.output)];
        result.resize(static_cast<size_t>(element_count(network.tensor(layer.output).dims)));
        run_reference_layer(layer, dims, arrays, network.tensor(layer.output).dims, result.data(),
                            threads);
        for (TensorId id : layer.inputs) {
            if (--uses[static_cast<size_t>(id)] == 0) values[static_cast<size_t>(id)] = {};
        }
    }
    std::vector<std::vector<float>> answer;
    for (TensorId id : wanted) {
        std::vector<float>& value = values[static_cast<size_t>(id)];
        // The last request takes the array itself.
        if (--uses[static_cast<size_t>(id)] == 0) {
            answer.push_back(std::move(value));
        } else {
            answer.push_back(value);
        }
    }
    return answer;
}

}  // namespace laminate
