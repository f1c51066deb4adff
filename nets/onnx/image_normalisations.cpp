#include "nets/onnx/image_normalisations.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// A normalisation of a map: how many groups of channels have statistics of their own.
struct OfImages {
    TensorId map = -1;
    int64_t groups = 1;
};

class ImageNormalisations {
public:
    explicit ImageNormalisations(RawNetwork& raw)
        : raw_(raw), readers_(reader_counts(raw)), producer_(writers_of(raw)) {}

    void run() {
        std::vector<RawLayer> layers;
        std::swap(layers, raw_.layers);
        for (const RawLayer& layer : layers) {
            const RawLayer* normalisation = ended_by(layer, layers);
            const std::optional<OfImages> found =
                normalisation == nullptr ? std::nullopt : of_images(*normalisation, layer, layers);
            if (!found) {
                raw_.layers.push_back(layer);
                continue;
            }
            if (normalisation != &layer) {
                raw_.folded.push_back(normalisation->op + " " + normalisation->label + " into " +
                                      layer.op + " " + layer.label);
                const TensorId inside = normalisation->layer.inputs[0];
                for (RawLayer& before : raw_.layers) {  // what nothing reads from now on
                    if (before.layer.output == inside || before.layer.output == layer.layer.inputs[0])
                        before.beside = true;
                }
            }
            write(*found, normalisation->layer.general, layer);
        }
    }

private:
    static bool is(const Layer& layer, GeneralKind kind) {
        return layer.kind == LayerKind::general && layer.general.kind == kind;
    }
    static bool normalises(const Layer& layer) {
        return is(layer, GeneralKind::normalise) &&
               (layer.general.function == GeneralFunction::standardise ||
                layer.general.function == GeneralFunction::root_mean_square);
    }
    /// The layer that writes a tensor, if one other layer alone reads it, or null.
    [[nodiscard]] const RawLayer* before(TensorId id, const std::vector<RawLayer>& layers) const {
        const auto t = static_cast<size_t>(id);
        return producer_[t] >= 0 && readers_[t] == 1
                   ? &layers[static_cast<size_t>(producer_[t])]
                   : nullptr;
    }

    /// The normalisation whose result a layer makes a map: itself, or the one that it reshapes.
    [[nodiscard]] const RawLayer* ended_by(const RawLayer& end,
                                           const std::vector<RawLayer>& layers) const {
        if (raw_.dims(end.layer.output).size() != 4) return nullptr;
        if (normalises(end.layer)) return &end;
        if (!is(end.layer, GeneralKind::reshape)) return nullptr;
        const RawLayer* inner = before(end.layer.inputs[0], layers);
        return inner != nullptr && normalises(inner->layer) ? inner : nullptr;
    }

    [[nodiscard]] std::optional<OfImages> of_images(const RawLayer& normalisation,
                                                    const RawLayer& end,
                                                    const std::vector<RawLayer>& layers) const {
        const TensorId x = normalisation.layer.inputs[0];
        const Dims& axes = normalisation.layer.general.axes;
        if (&normalisation == &end) {
            if (axes == Dims{2, 3}) return OfImages{x, raw_.dims(x)[1]};
            if (axes == Dims{1, 2, 3}) return OfImages{x, 1};
            return {};
        }
        // Reshaped to [N, groups, ...], over all that follows, and back.
        const RawLayer* reshape = before(x, layers);
        if (reshape == nullptr || !is(reshape->layer, GeneralKind::reshape)) return {};
        const TensorId map = reshape->layer.inputs[0];
        const Dims &split = raw_.dims(x), &whole = raw_.dims(map);
        const bool over_the_rest = std::ssize(axes) == std::ssize(split) - 2 && !axes.empty() &&
                                   axes.front() == 2;
        if (whole != raw_.dims(end.layer.output) || split[0] != whole[0] || !over_the_rest ||
            whole[1] % split[1] != 0)
            return {};
        return OfImages{map, split[1]};
    }

    TensorId add(Layer layer, const RawLayer& end, const Dims& output) {
        return raw_.append_part(std::move(layer), end, output,
                                raw_.name_of(end.layer.output) + "_part");
    }
    static ConstantPtr constant(Dims shape, float value) {
        const auto count = static_cast<size_t>(element_count(shape));
        return std::make_shared<const Constant>(
            Constant{std::move(shape), std::vector<float>(count, value)});
    }
    static Layer binary(GeneralFunction function, TensorId a, TensorId b) {
        return {.kind = LayerKind::general,
                .inputs = {a, b},
                .general = {.kind = GeneralKind::binary, .function = function}};
    }
    static Layer raised(TensorId x, float exponent) {
        return {.kind = LayerKind::activation,
                .inputs = {x},
                .activation = {.kind = ActivationKind::unary,
                               .function = GeneralFunction::power,
                               .alpha = exponent}};
    }

    /// The mean over the channels of each group, for each channel.
    TensorId mean_of_groups(TensorId x, int64_t groups, const RawLayer& end) {
        const Dims pixel = raw_.dims(x);
        const int64_t channels = pixel[1], in_group = channels / groups;
        if (in_group == 1) return x;
        raw_.charge(static_cast<size_t>(channels * in_group));
        return add({.kind = LayerKind::conv,
                    .inputs = {x},
                    .groups = groups,
                    .weights = constant({channels, in_group, 1, 1},
                                        1 / static_cast<float>(in_group))},
                   end, pixel);
    }

    void write(const OfImages& of, const GeneralOperator& op, RawLayer end) {
        // One group has all channels, whose statistics are one number of an image.
        const bool is_one = of.groups == 1;
        const Dims map = raw_.dims(of.map), pixel{map[0], is_one ? 1 : map[1], 1, 1};
        const auto reduced = [&](GeneralFunction function) {
            return Layer{.kind = LayerKind::general,
                         .inputs = {of.map},
                         .general = {.kind = GeneralKind::reduce,
                                     .function = function,
                                     .axes = is_one ? Dims{1, 2, 3} : Dims{2, 3}}};
        };
        const bool is_centred = op.function == GeneralFunction::standardise;
        TensorId x = of.map, spread = -1;
        float scale = 1;
        if (is_centred) {
            const TensorId mean =
                add(is_one ? reduced(GeneralFunction::mean)
                           : Layer{.kind = LayerKind::global_average_pool, .inputs = {x}},
                    end, pixel);
            const TensorId of_group = mean_of_groups(mean, of.groups, end);
            spread = add(reduced(GeneralFunction::variance), end, pixel);
            if (of_group != mean) {
                // A group's variance is the mean of its channels' variances and squared distances.
                const TensorId distance =
                    add(binary(GeneralFunction::subtract, mean, of_group), end, pixel);
                const TensorId square = add(raised(distance, 2), end, pixel);
                spread = add({.kind = LayerKind::add, .inputs = {spread, square}}, end, pixel);
            }
            x = add(binary(GeneralFunction::subtract, x, of_group), end, map);
        } else {
            spread = add(reduced(GeneralFunction::sum_of_squares), end, pixel);
            scale = 1 / static_cast<float>((is_one ? map[1] : 1) * map[2] * map[3]);
        }
        spread = mean_of_groups(spread, of.groups, end);
        raw_.charge(static_cast<size_t>(2 * pixel[1]));
        const Layer with_epsilon{.kind = LayerKind::conv,
                                 .inputs = {spread},
                                 .weights = constant({pixel[1]}, scale),
                                 .bias = constant({pixel[1]}, op.alpha)};
        const TensorId variance = add(with_epsilon, end, pixel);
        raw_.layers.back().affine = true;
        const TensorId factor = add(raised(variance, -0.5F), end, pixel);
        Layer product = binary(GeneralFunction::multiply, x, factor);
        product.onnx_name = end.layer.onnx_name;
        product.output = end.layer.output;
        end.layer = std::move(product);
        raw_.layers.push_back(std::move(end));
    }

    RawNetwork& raw_;
    std::vector<int> readers_;
    std::vector<int> producer_;
};

}  // namespace

void write_image_normalisations(RawNetwork& raw) { ImageNormalisations(raw).run(); }

}  // namespace laminate::onnx
