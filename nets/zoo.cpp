#include "nets/zoo.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"

namespace laminate {

namespace {

/// Seeded values, bit for bit the same on every machine: integer arithmetic and single, correctly rounded
/// operations (nothing a compiler may contract, no libm function whose last bit differs between systems).
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    /// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
    uint64_t next() {
        uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// In (-1, 1).
    double symmetric() { return (static_cast<double>(next() >> 12) + 0.5) / 0x1p51 - 1.0; }

    /// Normal to the eye, mean 0, variance 1: the sum of eight 16-bit uniform numbers (within +-4.9).
    double normal() {
        int64_t sum = 0;
        for (int half = 0; half < 2; ++half) {
            for (uint64_t bits = next(), i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<int64_t>(bits & 0xffff);
        }
        // A uniform number over 0 .. 65535 has mean 65535 / 2 and variance (65536^2 - 1) / 12.
        static const double deviation = std::sqrt(8 * (0x1p32 - 1) / 12);
        return (static_cast<double>(sum) - 8 * 65535 / 2.0) / deviation;
    }

private:
    uint64_t state_;
};

ConstantPtr constant(std::vector<int64_t> dims, std::vector<float> values) {
    return std::make_shared<const Constant>(Constant{std::move(dims), std::move(values)});
}

Activation relu() { return {.kind = ActivationKind::relu}; }
Activation relu6() { return {.kind = ActivationKind::clip, .low = 0, .high = 6}; }

/// What a convolution of the zoo is made of; `out` channels, `kernel` rows and columns.
struct ConvShape {
    int64_t out = 1;
    int64_t kernel = 3;
    int64_t stride = 1;
    int64_t pad = 0;
    int64_t groups = 1;
    int64_t output_padding = 0;  ///< transposed only
    bool bias = true;
    /// Further factor on the variance of the weights: the last convolution of each of n residual branches takes 1/n, so
    /// that their sum stays as large as the network's input.
    double variance = 1;
};

/// Writes networks layer by layer; every method returns the tensor that its layer writes.
class Builder {
public:
    Builder(std::string name, const ZooOptions& options) : options_(options), random_(options.seed) {
        network_.name = std::move(name);
    }

    TensorId input(int64_t channels, int64_t height, int64_t width) {
        network_.inputs.push_back(tensor(
            "input", {options_.batch, channels, options_.height.value_or(height), options_.width.value_or(width)}));
        return network_.inputs.back();
    }

    TensorId conv(const std::string& name, TensorId x, const ConvShape& shape, Activation activation = {}) {
        return convolution(LayerKind::conv, name, x, shape, std::move(activation));
    }

    TensorId conv_transpose(const std::string& name, TensorId x, const ConvShape& shape) {
        return convolution(LayerKind::conv_transpose, name, x, shape, {});
    }

    /// Slopes between 0.1 and 0.4, one per channel.
    Activation prelu(int64_t channels) {
        std::vector<float> slopes(static_cast<size_t>(channels));
        for (float& slope : slopes) slope = 0.25f + static_cast<float>(0.15 * random_.symmetric());
        return {.kind = ActivationKind::prelu, .slope = constant({channels}, std::move(slopes))};
    }

    TensorId max_pool(const std::string& name, TensorId x, int64_t kernel, int64_t stride, int64_t pad = 0) {
        Layer layer{.name = name, .kind = LayerKind::max_pool, .inputs = {x}};
        layer.window = {
            .kernel = {kernel, kernel}, .stride = {stride, stride}, .pad_begin = {pad, pad}, .pad_end = {pad, pad}};
        return append(std::move(layer));
    }

    TensorId add(const std::string& name, TensorId a, TensorId b, Activation activation = {}) {
        return append({.name = name, .kind = LayerKind::add, .inputs = {a, b}, .activation = std::move(activation)});
    }

    TensorId gemm(const std::string& name, TensorId x, int64_t out, Activation activation = {}) {
        const int64_t in = dims(x)[1];
        Layer layer{.name = name, .kind = LayerKind::gemm, .inputs = {x}};
        layer.weights = weights({out, in}, static_cast<double>(in), activation.kind, 1);
        layer.bias = bias(out);
        layer.activation = std::move(activation);
        return append(std::move(layer));
    }

    TensorId simple(LayerKind kind, const std::string& name, TensorId x) {
        return append({.name = name, .kind = kind, .inputs = {x}});
    }

    /// Global average, 1000 classes, probabilities.
    TensorId classifier(TensorId x) {
        const TensorId pooled = simple(LayerKind::global_average_pool, "average", x);
        return simple(LayerKind::softmax, "softmax", gemm("fc", simple(LayerKind::flatten, "flatten", pooled), 1000));
    }

    [[nodiscard]] const std::vector<int64_t>& dims(TensorId id) const { return network_.tensor(id).dims; }

    Network finish(TensorId output) {
        network_.outputs = {output};
        check(network_);
        return std::move(network_);
    }

private:
    TensorId tensor(const std::string& name, std::vector<int64_t> tensor_dims) {
        network_.tensors.push_back({name, std::move(tensor_dims)});
        return static_cast<TensorId>(network_.tensors.size() - 1);
    }

    TensorId append(Layer layer) {
        std::vector<std::vector<int64_t>> input_dims;
        for (const TensorId id : layer.inputs) input_dims.push_back(dims(id));
        try {
            layer.output = tensor(layer.name + "_out", infer_output_dims(layer, input_dims));
        } catch (const InputError& error) {
            throw InputError("zoo:" + network_.name + ": input " + dims_text(dims(network_.inputs[0])) + ": " +
                             error.what());
        }
        layer.onnx_name = layer.name;
        network_.layers.push_back(std::move(layer));
        return network_.layers.back().output;
    }

    /// He, Zhang, Ren, Sun: Delving deep into rectifiers (2015): variance 2 / fan-in before a rectifier, 1 / fan-in
    /// otherwise.
    ConstantPtr weights(std::vector<int64_t> weight_dims, double fan_in, ActivationKind after, double variance) {
        const double deviation = std::sqrt((after == ActivationKind::none ? 1.0 : 2.0) * variance / fan_in);
        std::vector<float> values(static_cast<size_t>(element_count(weight_dims)));
        for (float& value : values) value = static_cast<float>(random_.normal() * deviation);
        return constant(std::move(weight_dims), std::move(values));
    }

    ConstantPtr bias(int64_t channels) {
        std::vector<float> values(static_cast<size_t>(channels));
        for (float& value : values) value = static_cast<float>(0.05 * random_.symmetric());
        return constant({channels}, std::move(values));
    }

    TensorId convolution(LayerKind kind, const std::string& name, TensorId x, const ConvShape& shape,
                         Activation activation) {
        const bool transposed = kind == LayerKind::conv_transpose;
        const int64_t in = dims(x)[1];
        const int64_t k = shape.kernel;
        Layer layer{.name = name, .kind = kind, .inputs = {x}};
        layer.window = {.kernel = {k, k},
                        .stride = {shape.stride, shape.stride},
                        .pad_begin = {shape.pad, shape.pad},
                        .pad_end = {shape.pad, shape.pad},
                        .output_padding = {shape.output_padding, shape.output_padding}};
        layer.groups = shape.groups;
        // A transposed convolution of stride S sums only 1 / S^2 of its taps into each output.
        const double fan_in = static_cast<double>(in / shape.groups * k * k) /
                              static_cast<double>(transposed ? shape.stride * shape.stride : 1);
        layer.weights = weights(transposed ? std::vector{in, shape.out / shape.groups, k, k}
                                           : std::vector{shape.out, in / shape.groups, k, k},
                                fan_in, activation.kind, shape.variance);
        if (shape.bias) layer.bias = bias(shape.out);
        layer.activation = std::move(activation);
        return append(std::move(layer));
    }

    ZooOptions options_;
    Random random_;
    Network network_;
};

/// Nets of ConvFusion Table 6: 3x3 convolutions, no padding, no bias, no activation; `maps` output channels each.
Network convfusion(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
                   const std::vector<int64_t>& maps) {
    Builder b(name, options);
    TensorId x = b.input(3, height, width);
    for (size_t i = 0; i < maps.size(); ++i)
        x = b.conv("conv" + std::to_string(i + 1), x, {.out = maps[i], .bias = false});
    return b.finish(x);
}

Network fsrcnn(const std::string& name, const ZooOptions& options, int64_t height, int64_t width, bool upscale) {
    Builder b(name, options);
    const auto block = [&](const std::string& layer, TensorId x, int64_t out, int64_t kernel) {
        return b.conv(layer, x, {.out = out, .kernel = kernel, .pad = kernel / 2}, b.prelu(out));
    };
    TensorId x = block("feature", b.input(1, height, width), 56, 5);
    x = block("shrink", x, 12, 1);
    for (int i = 1; i <= 4; ++i) x = block("map" + std::to_string(i), x, 12, 3);
    x = block("expand", x, 56, 1);
    if (upscale)
        return b.finish(
            b.conv_transpose("deconv", x, {.out = 1, .kernel = 9, .stride = 2, .pad = 4, .output_padding = 1}));
    return b.finish(b.conv("reconstruct", x, {.out = 1, .kernel = 9, .pad = 4}));
}

/// `depth` 3x3 "same" convolutions with ReLU between, the last one linear.
Network plain_trunk(const std::string& name, const ZooOptions& options, int64_t in, int64_t height, int64_t width,
                    int depth, int64_t maps, int64_t out) {
    Builder b(name, options);
    TensorId x = b.input(in, height, width);
    for (int i = 1; i < depth; ++i) x = b.conv("conv" + std::to_string(i), x, {.out = maps, .pad = 1}, relu());
    return b.finish(b.conv("conv" + std::to_string(depth), x, {.out = out, .pad = 1}));
}

Network vgg16(const std::string& name, const ZooOptions& options, int64_t height, int64_t width) {
    Builder b(name, options);
    TensorId x = b.input(3, height, width);
    const std::array<std::pair<int, int64_t>, 5> stages{{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};
    for (size_t s = 0; s < stages.size(); ++s) {
        const std::string stage = std::to_string(s + 1);
        for (int i = 1; i <= stages[s].first; ++i) {
            x = b.conv("conv" + stage + "_" + std::to_string(i), x, {.out = stages[s].second, .pad = 1}, relu());
        }
        x = b.max_pool("pool" + stage, x, 2, 2);
    }
    x = b.simple(LayerKind::flatten, "flatten", x);
    x = b.gemm("fc6", x, 4096, relu());
    x = b.gemm("fc7", x, 4096, relu());
    return b.finish(b.simple(LayerKind::softmax, "softmax", b.gemm("fc8", x, 1000)));
}

/// `blocks[s]` residual blocks of stage s; basic (two 3x3) or bottleneck (1x1, 3x3 with the stride, 1x1 to four times
/// the width).
Network resnet(const std::string& name, const ZooOptions& options, int64_t height, int64_t width,
               const std::array<int, 4>& blocks, bool bottleneck) {
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width), {.out = 64, .kernel = 7, .stride = 2, .pad = 3}, relu());
    x = b.max_pool("pool1", x, 3, 2, 1);
    const double branch_variance = 1.0 / (blocks[0] + blocks[1] + blocks[2] + blocks[3]);
    const int64_t expansion = bottleneck ? 4 : 1;
    for (size_t s = 0; s < 4; ++s) {
        const int64_t maps = int64_t{64} << s;
        for (int i = 0; i < blocks[s]; ++i) {
            const std::string block = "layer" + std::to_string(s + 1) + "_" + std::to_string(i) + "_";
            const int64_t stride = s > 0 && i == 0 ? 2 : 1;
            TensorId y = x;
            if (bottleneck) {
                y = b.conv(block + "conv1", y, {.out = maps, .kernel = 1}, relu());
                y = b.conv(block + "conv2", y, {.out = maps, .stride = stride, .pad = 1}, relu());
                y = b.conv(block + "conv3", y, {.out = maps * expansion, .kernel = 1, .variance = branch_variance});
            } else {
                y = b.conv(block + "conv1", y, {.out = maps, .stride = stride, .pad = 1}, relu());
                y = b.conv(block + "conv2", y, {.out = maps, .pad = 1, .variance = branch_variance});
            }
            if (b.dims(x)[1] != maps * expansion || stride != 1) {
                x = b.conv(block + "shortcut", x, {.out = maps * expansion, .kernel = 1, .stride = stride});
            }
            x = b.add(block + "add", x, y, relu());
        }
    }
    return b.finish(b.classifier(x));
}

Network mobilenet_v1(const std::string& name, const ZooOptions& options, int64_t height, int64_t width) {
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width), {.out = 32, .stride = 2, .pad = 1}, relu6());
    const std::array<std::pair<int64_t, int64_t>, 13> blocks{{{64, 1},
                                                              {128, 2},
                                                              {128, 1},
                                                              {256, 2},
                                                              {256, 1},
                                                              {512, 2},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {1024, 2},
                                                              {1024, 1}}};
    for (size_t i = 0; i < blocks.size(); ++i) {
        const std::string number = std::to_string(i + 1);
        const int64_t channels = b.dims(x)[1];
        x = b.conv("depthwise" + number, x, {.out = channels, .stride = blocks[i].second, .pad = 1, .groups = channels},
                   relu6());
        x = b.conv("pointwise" + number, x, {.out = blocks[i].first, .kernel = 1}, relu6());
    }
    return b.finish(b.classifier(x));
}

Network mobilenet_v2(const std::string& name, const ZooOptions& options, int64_t height, int64_t width) {
    struct Stage {
        int64_t expansion, out;
        int repeats;
        int64_t stride;
    };
    Builder b(name, options);
    TensorId x = b.conv("conv1", b.input(3, height, width), {.out = 32, .stride = 2, .pad = 1}, relu6());
    int number = 0;
    for (const Stage& stage : {Stage{1, 16, 1, 1}, Stage{6, 24, 2, 2}, Stage{6, 32, 3, 2}, Stage{6, 64, 4, 2},
                               Stage{6, 96, 3, 1}, Stage{6, 160, 3, 2}, Stage{6, 320, 1, 1}}) {
        for (int i = 0; i < stage.repeats; ++i) {
            const std::string block = "block" + std::to_string(++number) + "_";
            const int64_t in = b.dims(x)[1];
            const int64_t inner = in * stage.expansion;
            const bool residual = i > 0;
            TensorId y = x;
            if (stage.expansion != 1) y = b.conv(block + "expand", y, {.out = inner, .kernel = 1}, relu6());
            y = b.conv(block + "depthwise", y,
                       {.out = inner, .stride = i == 0 ? stage.stride : 1, .pad = 1, .groups = inner}, relu6());
            y = b.conv(block + "project", y,
                       {.out = stage.out, .kernel = 1, .variance = residual ? 0.1 : 1.0});  // 10 residual blocks
            x = residual ? b.add(block + "add", x, y) : y;
        }
    }
    x = b.conv("conv_last", x, {.out = 1280, .kernel = 1}, relu6());
    return b.finish(b.classifier(x));
}

using Build = std::function<Network(const std::string& name, const ZooOptions& options, int64_t height, int64_t width)>;

struct Recipe {
    ZooEntry entry;
    Build build;
};

Build convfusion_of(std::vector<int64_t> maps) {
    return [maps = std::move(maps)](const std::string& name, const ZooOptions& options, int64_t height, int64_t width) {
        return convfusion(name, options, height, width, maps);
    };
}

const std::vector<Recipe>& recipes() {
    using S = const std::string&;
    using O = const ZooOptions&;
    static const std::vector<Recipe> all{
        {{"l2net", {}, "two 3x3 convolutions, 3-4-4 maps (ConvFusion, Table 6)", 20, 20}, convfusion_of({4, 4})},
        {{"l3net", {}, "three 3x3 convolutions, 3-4-4-4 maps (ConvFusion, Table 6)", 22, 22}, convfusion_of({4, 4, 4})},
        {{"l2net-4k", {"4k"}, "l2net on a 4K picture (ConvFusion, Table 6)", 2160, 3840}, convfusion_of({4, 4})},
        {{"l3net-4k", {}, "l3net on a 4K picture (ConvFusion, Table 6)", 2160, 3840}, convfusion_of({4, 4, 4})},
        {{"l2net-wide", {"wide"}, "l2net with 1024 maps between (ConvFusion, Table 6)", 20, 20},
         convfusion_of({1024, 4})},
        {{"l3net-wide", {}, "l3net with 1024 maps between (ConvFusion, Table 6)", 22, 22},
         convfusion_of({1024, 1024, 4})},
        {{"fsrcnn", {}, "FSRCNN(56,12,4), all convolutions, last one 9x9 (Dong et al., ECCV 2016)", 540, 960},
         [](S n, O o, int64_t h, int64_t w) { return fsrcnn(n, o, h, w, false); }},
        {{"fsrcnn-x2", {}, "FSRCNN(56,12,4), x2 by a 9x9 transposed convolution (Dong et al., ECCV 2016)", 540, 960},
         [](S n, O o, int64_t h, int64_t w) { return fsrcnn(n, o, h, w, true); }},
        {{"dmcnn-vd", {}, "DMCNN-VD demosaicing, 20 3x3 convolutions, 64 maps (Syu et al., 2018)", 540, 960},
         [](S n, O o, int64_t h, int64_t w) { return plain_trunk(n, o, 3, h, w, 20, 64, 3); }},
        {{"mc-cnn",
          {},
          "MC-CNN fast trunk with 32 maps, four 3x3 convolutions (after Zbontar and LeCun, JMLR 2016)",
          540,
          960},
         [](S n, O o, int64_t h, int64_t w) { return plain_trunk(n, o, 1, h, w, 4, 32, 32); }},
        {{"mc-cnn-64",
          {},
          "MC-CNN fast trunk with 64 maps, KITTI size (Zbontar and LeCun, JMLR 2016; as in DeFiNES)",
          376,
          1242},
         [](S n, O o, int64_t h, int64_t w) { return plain_trunk(n, o, 1, h, w, 4, 64, 64); }},
        {{"vgg16", {}, "VGG16 with head (Simonyan and Zisserman, 2014)", 224, 224}, vgg16},
        {{"resnet18", {}, "ResNet18, batch norm folded (He et al., CVPR 2016)", 224, 224},
         [](S n, O o, int64_t h, int64_t w) {
             return resnet(n, o, h, w, {2, 2, 2, 2}, false);
         }},
        {{"resnet50",
          {},
          "ResNet50, stride in the 3x3 convolution, batch norm folded (He et al., CVPR 2016)",
          224,
          224},
         [](S n, O o, int64_t h, int64_t w) {
             return resnet(n, o, h, w, {3, 4, 6, 3}, true);
         }},
        {{"mobilenetv1", {}, "MobileNetV1 1.0, batch norm folded (Howard et al., 2017)", 224, 224}, mobilenet_v1},
        {{"mobilenetv2", {}, "MobileNetV2 1.0, batch norm folded (Sandler et al., CVPR 2018)", 224, 224}, mobilenet_v2},
    };
    return all;
}

}  // namespace

const std::vector<ZooEntry>& zoo_entries() {
    static const std::vector<ZooEntry> entries = [] {
        std::vector<ZooEntry> list;
        for (const Recipe& recipe : recipes()) list.push_back(recipe.entry);
        return list;
    }();
    return entries;
}

Network zoo_network(const std::string& name, const ZooOptions& options) {
    std::string known;
    for (const Recipe& recipe : recipes()) {
        const auto& aliases = recipe.entry.aliases;
        if (recipe.entry.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
            std::string identifier = recipe.entry.name;
            std::replace(identifier.begin(), identifier.end(), '-', '_');
            try {
                (void)element_count({options.batch, options.height.value_or(recipe.entry.height),
                                     options.width.value_or(recipe.entry.width)});
            } catch (const InputError& error) {
                throw InputError("zoo:" + recipe.entry.name + ": batch, height, width: " + error.what());
            }
            return recipe.build(identifier, options, recipe.entry.height, recipe.entry.width);
        }
        known += (known.empty() ? "" : ", ") + recipe.entry.name;
    }
    throw InputError("zoo:" + name + ": no such network; known: " + known);
}

}  // namespace laminate
