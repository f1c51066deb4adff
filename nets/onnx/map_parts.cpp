#include "nets/onnx/map_parts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "nets/network/picture_views.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// What a Slice takes along channels, rows and columns: output o is input first + o * step.
struct Steps {
    std::array<int64_t, 3> first{}, step{};
};

std::optional<Steps> steps_of(const GeneralOperator& op, const Dims& in) {
    const Dims whole = row_major_steps(in);
    if (op.dims[0] != in[0] || (in[0] > 1 && op.steps[0] != whole[0])) return {};
    Steps steps;
    int64_t rest = op.first;
    for (size_t d = 0; d < 3; ++d) {
        const int64_t each = whole[d + 1], outputs = op.dims[d + 1];
        steps.step[d] = outputs > 1 ? op.steps[d + 1] / each : 1;
        if (steps.step[d] == 0 || (outputs > 1 && op.steps[d + 1] % each != 0)) return {};
        steps.first[d] = rest / each;
        rest %= each;
        const int64_t last = steps.first[d] + (outputs - 1) * steps.step[d];
        if (last < 0 || last >= in[d + 1] || steps.first[d] >= in[d + 1]) return {};
    }
    return steps;
}

class MapParts {
public:
    explicit MapParts(RawNetwork& raw) : raw_(raw) {}

    void run() {
        raw_.change_each([&](RawLayer& layer) { rewrite(layer); });
    }

private:
    void rewrite(RawLayer& raw) {
        const Layer& layer = raw.layer;
        if (layer.kind != LayerKind::general || layer.inputs.size() != 1 ||
            raw_.dims(layer.inputs[0]).size() != 4 || raw_.dims(layer.output).size() != 4)
            return;
        if (layer.general.kind == GeneralKind::view) take_steps(raw);
        if (layer.general.kind == GeneralKind::resample) surround(raw);
    }

    void take_steps(RawLayer& raw) {
        Layer& layer = raw.layer;
        const Dims in = raw_.dims(layer.inputs[0]), out = raw_.dims(layer.output);
        const std::optional<Steps> steps = steps_of(layer.general, in);
        if (first_of_part(layer.general, in) || !steps) return;
        const int64_t step = steps->step[0];
        if (step < 1 || in[1] % step != 0) return;
        const bool has_all_pixels = steps->step[1] == 1 && steps->step[2] == 1 && out[2] == in[2] &&
                                    out[3] == in[3];
        const bool has_all_channels = step == 1 && out[1] == in[1];
        TensorId x = layer.inputs[0];
        if (!has_all_channels) {
            const Dims part{in[0], out[1], in[2], in[3]};
            const int64_t first = steps->first[0];
            const int64_t neighbours = in[1] / step;  // each `step`th channel, after the shuffle
            if (step > 1) x = add(raw, x, blocks_of(1, neighbours), in);
            const std::array<int64_t, 3> begin{first % step * neighbours + first / step, 0, 0};
            GeneralOperator taken = part_of(in, begin, {out[1], in[2], in[3]});
            if (has_all_pixels) return put(layer, x, std::move(taken));
            x = add(raw, x, std::move(taken), part);
        }
        GeneralOperator sampled{
            .kind = GeneralKind::resample, .dims = out, .tap_counts = {1, 1, 1, 1}};
        for (size_t d = 0; d < 4; ++d) {
            const int64_t first = d < 2 ? 0 : steps->first[d - 1];
            const int64_t each = d < 2 ? 1 : steps->step[d - 1];
            for (int64_t at = 0; at < out[d]; ++at) sampled.sources.push_back(first + at * each);
        }
        put(layer, x, std::move(sampled));
    }

    /// Channels of a constant before and behind those of x.
    void surround(RawLayer& raw) {
        Layer& layer = raw.layer;
        const Dims in = raw_.dims(layer.inputs[0]), out = raw_.dims(layer.output);
        if (!layer.general.factors.empty() || layer.general.tap_counts != Dims(4, 1)) return;
        const std::span<const int64_t> sources = sampled_axis(layer.general, 1).sources;
        const int64_t before = std::ranges::find(sources, 0) - sources.begin();
        if (out[1] == in[1] || before + in[1] > out[1]) return;
        for (int64_t at = 0; at < out[1]; ++at) {
            const int64_t channel = at - before;
            const bool is_inside = channel >= 0 && channel < in[1];
            if (sources[static_cast<size_t>(at)] != (is_inside ? channel : -1)) return;
        }
        TensorId x = layer.inputs[0];
        GeneralOperator pixels = layer.general;
        pixels.dims[1] = in[1];
        const auto channels = pixels.sources.begin() + out[0];
        pixels.sources.erase(channels, channels + out[1]);
        std::vector<int64_t> all(static_cast<size_t>(in[1]));
        std::iota(all.begin(), all.end(), 0);
        pixels.sources.insert(pixels.sources.begin() + out[0], all.begin(), all.end());
        const float value = layer.general.alpha;
        if (out[2] != in[2] || out[3] != in[3]) {
            Dims dims = out;
            dims[1] = in[1];
            x = add(raw, x, std::move(pixels), dims);
        }
        std::vector<TensorId> joined{x};
        if (before > 0) joined.insert(joined.begin(), constant(raw, value, before));
        if (const int64_t behind = out[1] - before - in[1]; behind > 0)
            joined.push_back(constant(raw, value, behind));
        layer.kind = LayerKind::concat;
        layer.axis = 1;
        layer.general = {};
        layer.inputs = std::move(joined);
    }

    static void put(Layer& layer, TensorId x, GeneralOperator op) {
        layer.inputs = {x};
        layer.general = std::move(op);
    }
    TensorId add(const RawLayer& end, TensorId x, GeneralOperator op, Dims dims) {
        return raw_.append_part(
            {.kind = LayerKind::general, .inputs = {x}, .general = std::move(op)}, end,
            std::move(dims), raw_.name_of(end.layer.output) + "_part");
    }
    /// A map of one value beside the output of `end`.
    TensorId constant(const RawLayer& end, float value, int64_t channels) {
        Dims dims = raw_.dims(end.layer.output);
        dims[1] = channels;
        const auto count = static_cast<size_t>(element_count(dims));
        raw_.charge(count);
        return raw_.append_constant(
            std::make_shared<const Constant>(Constant{dims, std::vector<float>(count, value)}), end,
            raw_.name_of(end.layer.output) + "_constant");
    }

    RawNetwork& raw_;
};

}  // namespace

void write_parts_as_layers(RawNetwork& raw) { MapParts(raw).run(); }

}  // namespace laminate::onnx
