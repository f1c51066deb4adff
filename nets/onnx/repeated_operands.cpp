#include "nets/onnx/repeated_operands.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "nets/network/picture_views.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

class RepeatedOperands {
public:
    explicit RepeatedOperands(RawNetwork& raw) : raw_(raw) {}

    void run() {
        raw_.change_each([&](RawLayer& layer) {
            if (!layer.layer.inputs.empty() && raw_.dims(layer.layer.inputs[0]).size() == 4) rewrite(layer);
        });
    }

private:

    void rewrite(RawLayer& raw) {
        Layer& layer = raw.layer;
        const bool is_binary =
            layer.kind == LayerKind::general && layer.general.kind == GeneralKind::binary;
        if (const int64_t times = repeats(layer);
            times > 1 && layer.activation.kind == ActivationKind::none)
            return repeat_channels(raw, times);
        const bool joins = layer.kind == LayerKind::concat ? layer.axis == 1 : is_binary;
        for (size_t k = 1; joins && k < layer.inputs.size(); ++k) {
            TensorId& input = layer.inputs[k];
            const auto before = layer.inputs.begin() + static_cast<int64_t>(k);
            if (raw_.dims(input).size() == 4 && std::find(layer.inputs.begin(), before, input) != before)
                input = repeated(raw, input, 1);
        }
    }

    /// How often a layer repeats the channels of its only map one after the other.
    [[nodiscard]] int64_t repeats(const Layer& layer) const {
        const TensorId x = layer.inputs[0];
        if (layer.kind == LayerKind::concat && layer.axis == 1) {
            const bool are_all = std::ranges::all_of(layer.inputs, [x](TensorId id) { return id == x; });
            return are_all ? std::ssize(layer.inputs) : 1;
        }
        const Dims &in = raw_.dims(x), &out = raw_.dims(layer.output);
        const GeneralOperator& op = layer.general;
        if (layer.kind != LayerKind::general || op.kind != GeneralKind::resample || out.size() != 4 ||
            !op.factors.empty() || op.tap_counts != Dims(4, 1))
            return 1;
        size_t begin = 0;
        for (size_t d = 0; d < 4; ++d) {
            if (d != 1 && out[d] != in[d]) return 1;
            for (int64_t at = 0; at < out[d]; ++at, ++begin) {
                if (op.sources[begin] != at % in[d]) return 1;
            }
        }
        return out[1] / in[1];
    }

    /// Channel z of a tiled map is channel z mod C; a grouped convolution makes the copies of a channel
    /// neighbours.
    void repeat_channels(RawLayer& raw, int64_t times) {
        const int64_t channels = raw_.dims(raw.layer.inputs[0])[1];
        const TensorId x = raw.layer.inputs[0];
        Layer layer = raw.layer;
        if (channels == 1) {
            layer = copies(x, channels, times);
        } else {
            layer.kind = LayerKind::general;
            layer.inputs = {repeated(raw, x, times)};
            layer.general = blocks_of(1, channels);
        }
        layer.onnx_name = raw.layer.onnx_name;
        layer.output = raw.layer.output;
        raw.layer = std::move(layer);
    }

    static Layer copies(TensorId x, int64_t channels, int64_t times) {
        const auto count = static_cast<size_t>(channels * times);
        return {.kind = LayerKind::conv,
                .inputs = {x},
                .groups = channels,
                .weights = std::make_shared<const Constant>(
                    Constant{{channels * times, 1, 1, 1}, std::vector<float>(count, 1.0F)})};
    }

    /// Returns a map of which each channel stands so often, made before `reader`.
    TensorId repeated(const RawLayer& reader, TensorId x, int64_t times) {
        Dims all = raw_.dims(x);
        const int64_t channels = all[1];
        all[1] *= times;
        raw_.charge(static_cast<size_t>(all[1]));
        return raw_.append_part(copies(x, channels, times), reader, std::move(all),
                                raw_.name_of(x) + "_copy");
    }

    RawNetwork& raw_;
};

}  // namespace

void copy_repeated_operands(RawNetwork& raw) { RepeatedOperands(raw).run(); }

}  // namespace laminate::onnx
