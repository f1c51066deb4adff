#include "nets/onnx/layers_in_nodes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <memory>
#include <utility>
#include <vector>

namespace laminate::onnx {

namespace {

/// The layers of a network, of which some are read by one other alone.
class Nodes {
public:
    explicit Nodes(RawNetwork& raw)
        : raw_(raw), readers_(reader_counts(raw)), producer_(writers_of(raw)) {}

    /// The layer that writes `id` if `id` has exactly one reader, or null.
    [[nodiscard]] RawLayer* before(TensorId id) const {
        const auto t = static_cast<size_t>(id);
        return producer_[t] >= 0 && readers_[t] == 1
                   ? &raw_.layers[static_cast<size_t>(producer_[t])]
                   : nullptr;
    }
    [[nodiscard]] RawLayer* before(const RawLayer& layer) const {
        return layer.layer.inputs.empty() ? nullptr : before(layer.layer.inputs[0]);
    }

    static bool is(const RawLayer* layer, GeneralKind kind, GeneralFunction function) {
        return layer != nullptr && layer->layer.kind == LayerKind::general &&
               layer->layer.general.kind == kind && layer->layer.general.function == function;
    }
    /// Whether both operands are tensors.
    static bool is_binary(const RawLayer* layer, GeneralFunction function) {
        return is(layer, GeneralKind::binary, function) && layer->layer.inputs.size() == 2;
    }
    static bool is(const RawLayer* layer, ActivationKind kind) {
        return layer != nullptr && layer->layer.kind == LayerKind::activation &&
               layer->layer.activation.kind == kind;
    }
    static bool is(const RawLayer* layer, GeneralFunction function) {
        return is(layer, ActivationKind::unary) && layer->layer.activation.function == function;
    }
    /// The factor s if the layer is y = s * x with one s for all channels, or 0.
    static float scale_of(const RawLayer& layer) {
        const Constant& scales = *layer.layer.weights;
        const float scale = scales.values[0];
        return all_are(scales, scale) && all_are(*layer.layer.bias, 0) ? scale : 0;
    }
    static bool adds(const RawLayer* sum, float value) {
        return sum != nullptr && sum->layer.kind == LayerKind::add && sum->layer.weights &&
               all_are(*sum->layer.weights, value);
    }
    /// Whether two constants are one; files have them to few digits.
    static bool is_close(float found, float wanted) {
        return std::abs(found - wanted) <= 1e-6f * std::abs(wanted);
    }

    /// A product in nodes: scale times the factors, each as often as it occurs.
    struct Product {
        float scale = 1;
        std::vector<TensorId> factors;
        std::vector<RawLayer*> layers;  ///< from the last to the first
    };
    static bool is_product(const RawLayer* layer) {
        return layer != nullptr &&
               ((layer->affine && scale_of(*layer) != 0) ||
                is_binary(layer, GeneralFunction::multiply) || power_of(layer) > 1);
    }
    /// The exponent of a square or cube, or 0.
    static int power_of(const RawLayer* layer) {
        if (!is(layer, GeneralKind::binary, GeneralFunction::power) || !layer->layer.weights ||
            layer->layer.general.constant_first || layer->layer.weights->values.size() != 1 ||
            layer->layer.weights->dims.size() > 1)
            return 0;
        const float exponent = layer->layer.weights->values[0];
        return exponent == 2 ? 2 : exponent == 3 ? 3 : 0;
    }
    /// Adds what `layer` multiplies `times` times, as far as nothing else reads the products.
    void take_factors(RawLayer* layer, Product& product) const {
        product.layers.push_back(layer);
        if (layer->affine) product.scale *= scale_of(*layer);
        constexpr size_t most_layers = 8;  // more than any of these functions has
        const int times = std::max(1, power_of(layer));
        for (const TensorId id : layer->layer.inputs) {
            RawLayer* inner = before(id);
            if (times == 1 && product.layers.size() < most_layers && is_product(inner)) {
                take_factors(inner, product);
            } else {
                product.factors.insert(product.factors.end(), static_cast<size_t>(times), id);
            }
        }
    }
    /// The product that ends in a tensor; nothing else reads it.
    [[nodiscard]] Product product_of(TensorId id) const {
        Product product;
        if (RawLayer* layer = before(id); is_product(layer)) {
            take_factors(layer, product);
        } else {
            product.factors = {id};
        }
        return product;
    }
    void become(RawLayer& end, TensorId x, const std::vector<RawLayer*>& between,
                const Activation& activation) {
        become(end, x, between, {.kind = LayerKind::activation, .activation = activation});
    }
    /// Turns `end` into a layer that reads `x` and removes the layers between them.
    void become(RawLayer& end, TensorId x, const std::vector<RawLayer*>& between, Layer layer) {
        for (RawLayer* part : between) {
            raw_.folded.push_back(part->op + " " + part->label + " into " + end.op + " " +
                                  end.label);
            for (const TensorId id : part->layer.inputs) --readers_[static_cast<size_t>(id)];
            part->layer.output = -1;
        }
        for (const TensorId id : end.layer.inputs) --readers_[static_cast<size_t>(id)];
        ++readers_[static_cast<size_t>(x)];
        layer.onnx_name = end.layer.onnx_name;
        layer.inputs = {x};
        layer.output = end.layer.output;
        end.layer = std::move(layer);
        end.affine = false;
    }

protected:
    RawNetwork& raw_;
    std::vector<int> readers_;
    std::vector<int> producer_;
};

/// Looks at each layer as the last of several.
class LayersInNodes : private Nodes {
public:
    explicit LayersInNodes(RawNetwork& raw) : Nodes(raw) {}

    void recognise() {
        for (RawLayer& layer : raw_.layers) {
            if (is_product(&layer) && recognise_gelu(layer)) continue;
            if (layer.affine && scale_of(layer) == 1.0f / 6) {
                recognise_sixth(layer);
            } else if (is_binary(&layer, GeneralFunction::multiply)) {
                recognise_product(layer);
            } else if (is_binary(&layer, GeneralFunction::divide)) {
                recognise_quotient(layer, layer.layer.inputs[0], before(layer.layer.inputs[1]), {});
            } else if (is_binary(&layer, GeneralFunction::maximum)) {
                recognise_maximum(layer);
            } else if (is(&layer, GeneralFunction::logarithm)) {
                recognise_softplus(layer);
            } else if (is(&layer, GeneralKind::reduce, GeneralFunction::mean)) {
                recognise_mean_of_means(layer);
            } else {
                recognise_prelu(layer);
            }
        }
        std::erase_if(raw_.layers, [](const RawLayer& layer) { return layer.layer.output < 0; });
    }

private:
    /// The tensor x if `clip` ends min(max(x + 3, 0), 6) and nothing else reads either layer, or
    /// -1.
    [[nodiscard]] TensorId shifted_and_clipped(const RawLayer* clip) const {
        if (!is(clip, ActivationKind::clip) || clip->layer.activation.low != 0 ||
            clip->layer.activation.high != 6)
            return -1;
        const RawLayer* sum = before(*clip);
        return adds(sum, 3) ? sum->layer.inputs[0] : -1;
    }

    /// Recognises min(max(x + 3, 0), 6) / 6 and x * min(max(x + 3, 0), 6) / 6.
    void recognise_sixth(RawLayer& sixth) {
        RawLayer* last = before(sixth);
        if (const TensorId x = shifted_and_clipped(last); x >= 0) {
            return become(sixth, x, {last, before(*last)},
                          {.kind = ActivationKind::unary,
                           .function = GeneralFunction::hard_sigmoid,
                           .alpha = 1.0f / 6,
                           .beta = 0.5f});
        }
        if (!is_binary(last, GeneralFunction::multiply)) return;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = last->layer.inputs[1 - k];
            RawLayer* clip = before(last->layer.inputs[k]);
            if (shifted_and_clipped(clip) != x) continue;
            return become(sixth, x, {last, clip, before(*clip)},
                          {.kind = ActivationKind::unary, .function = GeneralFunction::hard_swish});
        }
    }

    /// Adds the layers of `part` to those of `whole` if it is scale * x^times.
    static bool takes_power(const Product& part, float scale, TensorId x, size_t times,
                            std::vector<RawLayer*>& whole) {
        if (!is_close(part.scale, scale) || part.factors != std::vector(times, x)) return false;
        whole.insert(whole.end(), part.layers.begin(), part.layers.end());
        return true;
    }

    /// Whether `id` is sqrt(2 / pi) (x + 0.044715 x^3), in any order of its products.
    [[nodiscard]] bool is_inside_of_tanh(TensorId id, TensorId x,
                                         std::vector<RawLayer*>& layers) const {
        constexpr float outer = 0.7978845608f, cubic = 0.044715f;
        const Product product = product_of(id);
        if (!is_close(product.scale, outer)) return false;
        layers.insert(layers.end(), product.layers.begin(), product.layers.end());
        if (product.factors.size() == 1) {
            RawLayer* sum = before(product.factors[0]);
            if (sum == nullptr || sum->layer.kind != LayerKind::add || sum->layer.inputs.size() != 2)
                return false;
            layers.push_back(sum);
            const auto& [a, b] = std::pair(sum->layer.inputs[0], sum->layer.inputs[1]);
            return (a == x && takes_power(product_of(b), cubic, x, 3, layers)) ||
                   (b == x && takes_power(product_of(a), cubic, x, 3, layers));
        }
        // x (1 + 0.044715 x^2)
        for (const size_t k : {size_t{0}, size_t{1}}) {
            if (product.factors.size() != 2 || product.factors[1 - k] != x) continue;
            RawLayer* sum = before(product.factors[k]);
            if (!adds(sum, 1)) continue;
            layers.push_back(sum);
            return takes_power(product_of(sum->layer.inputs[0]), cubic, x, 2, layers);
        }
        return false;
    }

    /// Recognises x / 2 * (1 + erf(x / sqrt(2))) and x / 2 * (1 + tanh(...)), in any order.
    bool recognise_gelu(RawLayer& end) {
        Product product;
        take_factors(&end, product);
        if (product.factors.size() != 2 || product.scale != 0.5f) return false;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = product.factors[1 - k];
            RawLayer* sum = before(product.factors[k]);
            RawLayer* inner = adds(sum, 1) ? before(*sum) : nullptr;
            std::vector<RawLayer*> layers(product.layers.begin() + 1, product.layers.end());
            layers.insert(layers.end(), {sum, inner});
            const bool is_exact = is(inner, GeneralFunction::error_function);
            const bool is_known =
                is_exact ? takes_power(product_of(inner->layer.inputs[0]),
                                       1 / std::numbers::sqrt2_v<float>, x, 1, layers)
                         : is(inner, ActivationKind::tanh) &&
                               is_inside_of_tanh(inner->layer.inputs[0], x, layers);
            if (!is_known) continue;
            become(end, x, layers,
                   {.kind = ActivationKind::unary,
                    .function = is_exact ? GeneralFunction::gelu : GeneralFunction::gelu_tanh});
            return true;
        }
        return false;
    }

    /// Recognises max(x, s x) with 0 < s < 1.
    void recognise_maximum(RawLayer& end) {
        for (const size_t k : {size_t{0}, size_t{1}}) {
            RawLayer* scaled = before(end.layer.inputs[k]);
            const TensorId x = end.layer.inputs[1 - k];
            if (scaled == nullptr || !scaled->affine || scaled->layer.inputs[0] != x) continue;
            const float slope = scale_of(*scaled);
            if (slope <= 0 || slope >= 1) continue;
            return become(end, x, {scaled},
                          {.kind = ActivationKind::leaky_relu, .alpha = slope});
        }
    }

    /// Recognises log(e^x + 1).
    void recognise_softplus(RawLayer& end) {
        RawLayer* sum = before(end);
        RawLayer* power = adds(sum, 1) ? before(*sum) : nullptr;
        if (!is(power, GeneralFunction::exponential)) return;
        become(end, power->layer.inputs[0], {sum, power},
               {.kind = ActivationKind::unary, .function = GeneralFunction::softplus});
    }

    /// Recognises max(x, 0) + s[c] max(-x, 0) and max(x, 0) + s[c] (x - |x|), or differences, as
    /// TensorFlow and Keras have PRelu.
    void recognise_prelu(RawLayer& end) {
        const bool is_sum = end.layer.kind == LayerKind::add && end.layer.inputs.size() == 2;
        const bool is_difference = is_binary(&end, GeneralFunction::subtract);
        if (!is_sum && !is_difference) return;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            RawLayer* positive = before(end.layer.inputs[k]);
            if (!is(positive, ActivationKind::relu) || (is_difference && k == 1)) continue;
            const TensorId x = positive->layer.inputs[0];
            std::vector<RawLayer*> layers{positive};
            std::vector<float> slopes;
            RawLayer* part = before(end.layer.inputs[1 - k]);
            for (; part != nullptr && part->affine; part = before(*part)) {
                if (!all_are(*part->layer.bias, 0)) return;
                const std::vector<float>& scales = part->layer.weights->values;
                slopes.resize(scales.size(), 1.0F);
                for (size_t c = 0; c < scales.size(); ++c) slopes[c] *= scales[c];
                layers.push_back(part);
            }
            if (slopes.empty() || part == nullptr) return;
            RawLayer* inner = part->layer.inputs.empty() ? nullptr : before(part->layer.inputs.back());
            float factor = is_difference ? -1.0F : 1.0F;
            layers.insert(layers.end(), {part, inner});
            if (is(part, ActivationKind::relu) && is(inner, GeneralFunction::negative) &&
                inner->layer.inputs[0] == x) {
                factor = -factor;  // of -x
            } else if (is_binary(part, GeneralFunction::subtract) &&
                       part->layer.inputs[0] == x && is(inner, GeneralFunction::absolute) &&
                       inner->layer.inputs[0] == x) {
                factor *= 2;
            } else {
                return;
            }
            for (float& slope : slopes) slope *= factor;
            const auto channels = static_cast<int64_t>(slopes.size());
            return become(end, x, layers,
                          {.kind = ActivationKind::prelu,
                           .slope = std::make_shared<const Constant>(
                               Constant{{channels}, std::move(slopes)})});
        }
    }

    /// Recognises a mean over some axes of a mean over others.
    void recognise_mean_of_means(RawLayer& end) {
        RawLayer* inner = before(end);
        if (!is(inner, GeneralKind::reduce, GeneralFunction::mean)) return;
        const TensorId x = inner->layer.inputs[0];
        std::vector<int64_t> axes = end.layer.general.axes;
        axes.insert(axes.end(), inner->layer.general.axes.begin(), inner->layer.general.axes.end());
        std::ranges::sort(axes);
        axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
        const size_t rank = raw_.dims(x).size();
        Layer whole{.kind = LayerKind::general,
                    .general = {.kind = GeneralKind::reduce,
                                .function = GeneralFunction::mean,
                                .axes = axes}};
        if (rank == 4 && axes == std::vector<int64_t>{2, 3})
            whole = {.kind = LayerKind::global_average_pool};
        become(end, x, {inner}, std::move(whole));
    }

    /// Recognises x * f(x): swish, hard_swish, mish and gelu.
    void recognise_product(RawLayer& product) {
        for (const size_t k : {size_t{0}, size_t{1}}) {
            const TensorId x = product.layer.inputs[1 - k];
            RawLayer* last = before(product.layer.inputs[k]);
            if (last == nullptr) continue;
            RawLayer* inner = before(*last);
            const bool is_inverse =
                is(last, GeneralFunction::reciprocal) ||
                (is(last, GeneralKind::binary, GeneralFunction::divide) && last->layer.weights &&
                 last->layer.general.constant_first && all_are(*last->layer.weights, 1));
            if (is_inverse && recognise_quotient(product, x, inner, {last})) return;
            const auto reads_x = [&](const RawLayer* layer) { return layer->layer.inputs[0] == x; };
            Activation whole{.kind = ActivationKind::unary};
            if (is(last, ActivationKind::sigmoid)) {
                whole.function = GeneralFunction::swish;
                whole.alpha = 1;
                if (reads_x(last)) return become(product, x, {last}, whole);
                whole.alpha = inner != nullptr && inner->affine ? scale_of(*inner) : 0;
                if (whole.alpha != 0 && reads_x(inner))
                    return become(product, x, {last, inner}, whole);
            } else if (is(last, GeneralFunction::hard_sigmoid) && reads_x(last) &&
                       last->layer.activation.alpha == 1.0f / 6 &&
                       last->layer.activation.beta == 0.5f) {
                whole.function = GeneralFunction::hard_swish;
                return become(product, x, {last}, whole);
            } else if (is(last, ActivationKind::tanh) && is(inner, GeneralFunction::softplus) &&
                       reads_x(inner)) {
                whole.function = GeneralFunction::mish;
                return become(product, x, {last, inner}, whole);
            }
        }
    }

    /// The tensor whose square `layer` computes, and how often it reads it; -1 for other layers.
    static std::pair<TensorId, int> squared(const RawLayer* layer) {
        if (is_binary(layer, GeneralFunction::multiply) &&
            layer->layer.inputs[0] == layer->layer.inputs[1])
            return {layer->layer.inputs[0], 2};
        if (power_of(layer) == 2) return {layer->layer.inputs[0], 1};
        return {-1, 0};
    }

    /// The axes of a mean; empty for other layers.
    static std::vector<int64_t> mean_axes(const RawLayer* layer) {
        if (is(layer, GeneralKind::reduce, GeneralFunction::mean)) return layer->layer.general.axes;
        const bool is_pooling =
            layer != nullptr && layer->layer.kind == LayerKind::global_average_pool;
        return is_pooling ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{};
    }
    static bool is_root(const RawLayer* layer) {
        return is(layer, GeneralFunction::square_root) ||
               (is(layer, GeneralKind::binary, GeneralFunction::power) && layer->layer.weights &&
                !layer->layer.general.constant_first && all_are(*layer->layer.weights, 0.5f));
    }

    /// Recognises c / sqrt(mean(c^2) + epsilon), with c = x - mean(x) or any other tensor. `between`
    /// are the layers from `end` to the root.
    bool recognise_quotient(RawLayer& end, TensorId centred, RawLayer* root,
                            std::vector<RawLayer*> between) {
        if (!is_root(root)) return false;
        RawLayer* sum = before(*root);
        if (sum == nullptr || sum->layer.kind != LayerKind::add || sum->layer.weights == nullptr ||
            sum->layer.weights->values.size() != 1 || sum->layer.weights->values[0] <= 0)
            return false;
        RawLayer* variance = before(*sum);
        const std::vector<int64_t> axes = mean_axes(variance);
        if (axes.empty()) return false;
        RawLayer* square = before(*variance);
        const auto [of, reads] = squared(square);
        if (of != centred) return false;
        GeneralOperator op{.kind = GeneralKind::normalise,
                           .function = GeneralFunction::root_mean_square,
                           .axes = axes,
                           .alpha = sum->layer.weights->values[0]};
        between.insert(between.end(), {root, sum, variance, square});
        TensorId x = centred;
        const auto c = static_cast<size_t>(centred);
        RawLayer* difference =
            producer_[c] < 0 ? nullptr : &raw_.layers[static_cast<size_t>(producer_[c])];
        if (is_binary(difference, GeneralFunction::subtract) && readers_[c] == reads + 1) {
            RawLayer* mean = before(difference->layer.inputs[1]);
            if (mean_axes(mean) == axes && mean->layer.inputs[0] == difference->layer.inputs[0]) {
                x = mean->layer.inputs[0];
                op.function = GeneralFunction::standardise;
                between.insert(between.end(), {difference, mean});
            }
        }
        become(end, x, between, {.kind = LayerKind::general, .general = std::move(op)});
        return true;
    }

};

}  // namespace

void recognise_layers_in_nodes(RawNetwork& raw) { LayersInNodes(raw).recognise(); }

}  // namespace laminate::onnx
