#include "nets/zoo/builder.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.h"

namespace laminate::zoo {

namespace {

// Weights are bit for bit the same on every machine. They come from integer arithmetic and single,
// correctly rounded operations: nothing that a compiler may contract, and no libm function whose
// last bit differs between systems.

/// A number in (-1, 1).
double symmetric(Rng& rng) { return (static_cast<double>(rng.next() >> 12) + 0.5) / 0x1p51 - 1.0; }

constexpr uint64_t numbers_per_normal = 2;

/// Roughly normal, mean 0, variance 1: the sum of eight 16-bit uniform numbers (within +-4.9).
double normal(Rng& rng) {
    int64_t sum = 0;
    for (uint64_t half = 0; half < numbers_per_normal; ++half) {
        for (uint64_t bits = rng.next(), i = 0; i < 4; ++i, bits >>= 16)
            sum += static_cast<int64_t>(bits & 0xffff);
    }
    // A uniform number over 0 .. 65535 has mean 65535 / 2 and variance (65536^2 - 1) / 12.
    static const double deviation = std::sqrt(8 * (0x1p32 - 1) / 12);
    return (static_cast<double>(sum) - 8 * 65535 / 2.0) / deviation;
}

/// `count` numbers, each made from `draws` draws of the generator. They are made when first read;
/// the generator skips past them at once.
template <class Draw>
ConstantValues drawn(Rng& rng, size_t count, uint64_t numbers_each, Draw draw) {
    ConstantValues values(count, [rng, count, draw] {
        Rng own = rng;
        std::vector<float> made(count);
        for (float& value : made) value = draw(own);
        return made;
    });
    rng.skip(numbers_each * count);
    return values;
}

ConstantPtr constant(std::vector<int64_t> dims, ConstantValues values) {
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

}  // namespace

Builder::Builder(std::string name, const ZooOptions& options)
    : options_(options), rng_(options.seed) {
    network_.name = std::move(name);
}

TensorId Builder::input(int64_t channels, int64_t height, int64_t width) {
    network_.inputs.push_back(
        tensor("input", {options_.batch, channels, options_.height.value_or(height),
                         options_.width.value_or(width)}));
    return network_.inputs.back();
}

TensorId Builder::conv(const std::string& name, TensorId x, const ConvShape& shape,
                       Activation activation) {
    return convolution(LayerKind::conv, name, x, shape, std::move(activation));
}

TensorId Builder::conv_transpose(const std::string& name, TensorId x, const ConvShape& shape) {
    return convolution(LayerKind::conv_transpose, name, x, shape, {});
}

TensorId Builder::select(const std::string& name, TensorId x, int64_t out, int64_t kernel,
                         int64_t stride) {
    Layer layer{.name = name, .kind = LayerKind::conv, .inputs = {x}};
    layer.window = {.kernel = {kernel, kernel}, .stride = {stride, stride}};
    layer.groups = dims(x)[1];
    std::vector<float> values(static_cast<size_t>(out * kernel * kernel));
    for (int64_t z = 0; z < out; ++z)
        values[static_cast<size_t>((z * kernel + kernel / 2) * kernel + kernel / 2)] = 1;
    layer.weights = constant({out, 1, kernel, kernel}, std::move(values));
    return append(std::move(layer));
}

TensorId Builder::gemm(const std::string& name, TensorId x, int64_t out, Activation activation) {
    const int64_t in = dims(x)[1];
    Layer layer{.name = name, .kind = LayerKind::gemm, .inputs = {x}};
    layer.weights = weights({out, in}, static_cast<double>(in), activation.kind, 1);
    layer.bias = bias(out);
    layer.activation = std::move(activation);
    return append(std::move(layer));
}

TensorId Builder::max_pool(const std::string& name, TensorId x, int64_t kernel, int64_t stride,
                           int64_t pad) {
    Layer layer{.name = name, .kind = LayerKind::max_pool, .inputs = {x}};
    layer.window = {.kernel = {kernel, kernel},
                    .stride = {stride, stride},
                    .pad_begin = {pad, pad},
                    .pad_end = {pad, pad}};
    return append(std::move(layer));
}

TensorId Builder::max_pool_same(const std::string& name, TensorId x, int64_t kernel,
                                int64_t stride) {
    Layer layer{.name = name, .kind = LayerKind::max_pool, .inputs = {x}};
    layer.window = {.kernel = {kernel, kernel}, .stride = {stride, stride}};
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t size = dims(x)[2 + axis];
        const int64_t out = (size + stride - 1) / stride;
        const int64_t pad = std::max<int64_t>(0, (out - 1) * stride + kernel - size);
        layer.window.pad_begin[axis] = pad / 2;
        layer.window.pad_end[axis] = pad - pad / 2;
    }
    return append(std::move(layer));
}

TensorId Builder::max_pool_ceil(const std::string& name, TensorId x, int64_t kernel,
                                int64_t stride) {
    Layer layer{.name = name, .kind = LayerKind::max_pool, .inputs = {x}};
    layer.window = {.kernel = {kernel, kernel}, .stride = {stride, stride}};
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t size = dims(x)[2 + axis];
        const int64_t last =
            std::max<int64_t>(0, size - kernel + stride - 1) / stride;  // index of the last window
        layer.window.pad_end[axis] = std::max<int64_t>(0, last * stride + kernel - size);
    }
    return append(std::move(layer));
}

TensorId Builder::average_pool_same(const std::string& name, TensorId x, int64_t kernel,
                                    int64_t stride) {
    Layer layer{.name = name, .kind = LayerKind::average_pool, .inputs = {x}};
    const int64_t pad = kernel / 2;
    layer.window = {.kernel = {kernel, kernel},
                    .stride = {stride, stride},
                    .pad_begin = {pad, pad},
                    .pad_end = {pad, pad}};
    return append(std::move(layer));
}

TensorId Builder::add(const std::string& name, TensorId a, TensorId b, Activation activation) {
    return append({.name = name,
                   .kind = LayerKind::add,
                   .inputs = {a, b},
                   .activation = std::move(activation)});
}

TensorId Builder::concat(const std::string& name, std::vector<TensorId> parts) {
    return append({.name = name, .kind = LayerKind::concat, .inputs = std::move(parts), .axis = 1});
}

TensorId Builder::activation(const std::string& name, TensorId x, Activation activation) {
    return append({.name = name,
                   .kind = LayerKind::activation,
                   .inputs = {x},
                   .activation = std::move(activation)});
}

TensorId Builder::simple(LayerKind kind, const std::string& name, TensorId x) {
    return append({.name = name, .kind = kind, .inputs = {x}});
}

TensorId Builder::classifier(TensorId x, int64_t classes) {
    const TensorId pooled = simple(LayerKind::global_average_pool, "average", x);
    return simple(LayerKind::softmax, "softmax",
                  gemm("fc", simple(LayerKind::flatten, "flatten", pooled), classes));
}

Activation Builder::prelu(int64_t channels) {
    ConstantValues slopes = drawn(rng_, static_cast<size_t>(channels), 1, [](Rng& rng) {
        return 0.25f + static_cast<float>(0.15 * symmetric(rng));
    });
    return {.kind = ActivationKind::prelu, .slope = constant({channels}, std::move(slopes))};
}

Network Builder::finish(TensorId output) {
    network_.outputs = {output};
    check(network_);
    return std::move(network_);
}

TensorId Builder::tensor(const std::string& name, std::vector<int64_t> tensor_dims) {
    network_.tensors.push_back({name, std::move(tensor_dims)});
    return static_cast<TensorId>(network_.tensors.size() - 1);
}

TensorId Builder::append(Layer layer) {
    std::vector<std::vector<int64_t>> input_dims;
    for (const TensorId id : layer.inputs) input_dims.push_back(dims(id));
    try {
        layer.output = tensor(layer.name + "_out", infer_output_dims(layer, input_dims));
    } catch (const InputError& error) {
        throw InputError("zoo:" + network_.name + ": input " + dims_text(dims(network_.inputs[0])) +
                         ": " + error.what());
    }
    layer.onnx_name = layer.name;
    network_.layers.push_back(std::move(layer));
    return network_.layers.back().output;
}

TensorId Builder::convolution(LayerKind kind, const std::string& name, TensorId x,
                              const ConvShape& shape, Activation activation) {
    const bool transposed = kind == LayerKind::conv_transpose;
    const int64_t in = dims(x)[1];
    const auto [rows, columns] = shape.kernel.yx;
    Layer layer{.name = name, .kind = kind, .inputs = {x}};
    layer.window = {.kernel = shape.kernel.yx,
                    .stride = {shape.stride, shape.stride},
                    .pad_begin = shape.pad.yx,
                    .pad_end = shape.pad.yx,
                    .output_padding = {shape.output_padding, shape.output_padding}};
    layer.groups = shape.groups;
    // A transposed convolution of stride S sums only 1 / S^2 of its taps into each output.
    const double fan_in = static_cast<double>(in / shape.groups * rows * columns) /
                          static_cast<double>(transposed ? shape.stride * shape.stride : 1);
    layer.weights = weights(transposed ? std::vector{in, shape.out / shape.groups, rows, columns}
                                       : std::vector{shape.out, in / shape.groups, rows, columns},
                            fan_in, activation.kind, shape.variance);
    if (shape.bias) layer.bias = bias(shape.out);
    layer.activation = std::move(activation);
    return append(std::move(layer));
}

/// Variance 2 / fan-in before a rectifier, 1 / fan-in otherwise (He, Zhang, Ren, Sun: Delving deep
/// into rectifiers, 2015).
ConstantPtr Builder::weights(std::vector<int64_t> weight_dims, double fan_in, ActivationKind after,
                             double variance) {
    const double deviation =
        std::sqrt((after == ActivationKind::none ? 1.0 : 2.0) * variance / fan_in);
    const auto count = static_cast<size_t>(element_count(weight_dims));
    return constant(std::move(weight_dims),
                    drawn(rng_, count, numbers_per_normal, [deviation](Rng& rng) {
                        return static_cast<float>(normal(rng) * deviation);
                    }));
}

ConstantPtr Builder::bias(int64_t channels) {
    return constant({channels}, drawn(rng_, static_cast<size_t>(channels), 1, [](Rng& rng) {
                        return static_cast<float>(0.05 * symmetric(rng));
                    }));
}

}  // namespace laminate::zoo
