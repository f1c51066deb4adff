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
#include "nets/operators/convolution.h"
#include "nets/operators/general_operators.h"
#include "nets/operators/pooling.h"
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

FinishRow finish_of(const Layer& layer) {
    if (layer.activation.kind == ActivationKind::none) return {};
    return [&layer](int64_t channel, float* values, int64_t count) {
        activate_row(layer.activation, channel, values, count);
    };
}

// ---- windows

Dims list_of(const std::array<int64_t, 2>& axes) { return {axes.begin(), axes.end()}; }

void run_convolution(const Layer& layer, const Dims& in, const float* input, const Dims& out,
                     float* output, int threads) {
    const Window& w = layer.window;
    convolve({.transposed = layer.kind == LayerKind::conv_transpose,
              .groups = layer.groups,
              .in = in,
              .out = out,
              .kernel = list_of(w.kernel),
              .stride = list_of(w.stride),
              .dilation = list_of(w.dilation),
              .pad_begin = list_of(w.pad_begin),
              .weights = layer.weights->values.data(),
              .bias = layer.bias ? layer.bias->values.data() : nullptr,
              .finish = finish_of(layer)},
             input, output, threads);
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

void run_pool(const Layer& layer, const Dims& in, const float* input, const Dims& out,
              float* output, int threads) {
    const Window& w = layer.window;
    pool_windows({.kind = layer.kind == LayerKind::max_pool ? GeneralKind::max_pool
                                                            : GeneralKind::average_pool,
                  .in = in,
                  .out = out,
                  .kernel = list_of(w.kernel),
                  .stride = list_of(w.stride),
                  .dilation = list_of(w.dilation),
                  .pad_begin = list_of(w.pad_begin),
                  .pad_end = {w.kernel[0] * w.dilation[0], w.kernel[1] * w.dilation[1]},  // all count
                  .count_include_pad = layer.count_include_pad,
                  .finish = finish_of(layer)},
                 input, output, threads);
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

/// A call of the library takes as long as a copy of some dozen elements.
void copy_run(const float* from, int64_t count, float* to) {
    constexpr int64_t lanes = 16;
    if (count < lanes || count > 8 * lanes) {
        std::copy_n(from, count, to);
        return;
    }
    for (int64_t at = 0; at < count; at += lanes) {
        const int64_t last = std::min(at, count - lanes);  // overlaps the one before
        std::memcpy(to + last, from + last, lanes * sizeof(float));
    }
}

void run_concat(const Layer& layer, const std::vector<Dims>& in,
                const std::vector<const float*>& inputs, const Dims& out, float* output,
                int threads) {
    const AxisSplit split(out, layer.axis);
    int64_t begin = 0;
    for (size_t k = 0; k < inputs.size(); ++k) {
        constexpr int64_t elements = 1 << 13;  // that a thread copies at once
        const AxisSplit part(in[k], layer.axis);
        const int64_t run = part.extent * part.inner, pieces = ceil_div(run, elements);
        const int64_t together =
            std::max<int64_t>(1, elements / run);  // runs, where they are short
        parallel_for(ceil_div(split.outer, together) * pieces, threads, [&](int64_t n) {
            const int64_t first = n / pieces * together, at = n % pieces * elements;
            for (int64_t o = first; o < std::min(split.outer, first + together); ++o) {
                const float* from = inputs[k] + o * run + at;
                float* to = output + (o * split.extent + begin) * split.inner + at;
                if (to != from) copy_run(from, std::min(elements, run - at), to);
            }
        });
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
    run_softmax_along(false, split.outer, split.extent, split.inner, input, output, threads);
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
