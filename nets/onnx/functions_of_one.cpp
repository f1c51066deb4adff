#include "nets/onnx/functions_of_one.h"

#include <memory>
#include <optional>
#include <utility>

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// The number that x is raised to, if all of x is raised to one.
std::optional<float> exponent_of(const Layer& layer, const Dims& in, const Dims& out) {
    if (layer.inputs.size() == 2 && layer.inputs[0] == layer.inputs[1] &&
        layer.general.function == GeneralFunction::multiply)
        return 2;
    if (layer.general.function == GeneralFunction::power && layer.weights && in == out &&
        !layer.general.constant_first && layer.weights->values.size() == 1)
        return layer.weights->values[0];
    return {};
}

Activation raised_to(float exponent) {
    Activation activation{.kind = ActivationKind::unary};
    if (exponent == -1) {
        activation.function = GeneralFunction::reciprocal;
    } else {
        activation.function = GeneralFunction::power;
        activation.alpha = exponent;
    }
    return activation;
}

/// The constant as one value per channel of a tensor; none if it has another shape.
std::vector<float> per_channel(const Constant& constant, const Dims& dims) {
    std::vector<float> values(constant.values.begin(), constant.values.end());
    if (dims.size() < 2) return {};
    const auto channels = static_cast<size_t>(dims[1]);
    Dims shape(dims.size() - 1, 1);
    shape[0] = dims[1];
    Dims own = constant.dims;
    if (own.size() == dims.size() && own[0] == 1) own.erase(own.begin());
    if (values.size() != 1 && own != shape) return {};
    values.resize(channels, values[0]);
    return values;
}

class FunctionsOfOne {
public:
    explicit FunctionsOfOne(RawNetwork& raw) : raw_(raw) {}

    void run() {
        raw_.change_each([&](RawLayer& layer) { rewrite(layer); });
    }

private:

    void rewrite(RawLayer& raw) {
        Layer& layer = raw.layer;
        const GeneralOperator& op = layer.general;
        if (layer.kind != LayerKind::general || layer.inputs.empty()) return;
        if (op.kind == GeneralKind::unary && is_activation(op.function, op.alpha, op.beta)) {
            return apply(layer, {.kind = ActivationKind::unary,
                                 .function = op.function,
                                 .alpha = op.alpha,
                                 .beta = op.beta});
        }
        if (op.kind != GeneralKind::binary) return;
        const Dims &in = raw_.dims(layer.inputs[0]), &out = raw_.dims(layer.output);
        if (const auto exponent = exponent_of(layer, in, out);
            exponent && is_activation(GeneralFunction::power, *exponent, 0))
            return apply(layer, raised_to(*exponent));
        if (op.function == GeneralFunction::divide && op.constant_first && layer.weights &&
            in == out)
            divide(raw);
    }

    static void apply(Layer& layer, const Activation& activation) {
        layer.kind = LayerKind::activation;
        layer.activation = activation;
        layer.inputs.resize(1);
        layer.weights = nullptr;
        layer.general = {};
    }

    /// c / x as c (1 / x), but for the rounding.
    void divide(RawLayer& raw) {
        const std::vector<float> dividend =
            per_channel(*raw.layer.weights, raw_.dims(raw.layer.output));
        if (dividend.empty()) return;
        if (all_are(*raw.layer.weights, 1)) return apply(raw.layer, raised_to(-1));
        Layer first{.inputs = raw.layer.inputs};
        apply(first, raised_to(-1));
        const TensorId inverse =
            raw_.append_part(std::move(first), raw, raw_.dims(raw.layer.output),
                             raw_.name_of(raw.layer.output) + "_inverse");
        scale(raw, inverse, dividend);
    }

    void scale(RawLayer& raw, TensorId x, std::vector<float> factors) {
        raw_.charge(2 * factors.size());
        const auto channels = std::ssize(factors);
        const auto constant = [&](std::vector<float> values) {
            return std::make_shared<const Constant>(Constant{{channels}, std::move(values)});
        };
        Layer layer{.onnx_name = raw.layer.onnx_name, .kind = LayerKind::conv, .inputs = {x}};
        layer.output = raw.layer.output;
        layer.bias = constant(std::vector<float>(factors.size(), 0.0F));
        layer.weights = constant(std::move(factors));
        raw.layer = std::move(layer);
        raw.affine = true;
    }

    RawNetwork& raw_;
};

}  // namespace

void write_functions_as_activations(RawNetwork& raw) { FunctionsOfOne(raw).run(); }

}  // namespace laminate::onnx
