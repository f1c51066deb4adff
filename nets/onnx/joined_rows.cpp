#include "nets/onnx/joined_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nets/network/picture_views.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// Maps side by side along an axis.
struct Join {
    std::vector<TensorId> maps;
    size_t axis = 2;
};

class JoinedRows {
public:
    explicit JoinedRows(RawNetwork& raw) : raw_(raw), readers_(readers_of(raw)) {}

    void run() {
        raw_.rewrite_each([&](RawLayer& layer) {
            constexpr std::ptrdiff_t most = 4;
            const std::optional<Join> join = join_of(layer.layer);
            const bool is_read = !readers_[static_cast<size_t>(layer.layer.output)].empty();
            if (join && is_read && std::ssize(join->maps) <= most) {
                write(*join, std::move(layer));
            } else {
                raw_.layers.push_back(std::move(layer));
            }
        });
    }

private:

    [[nodiscard]] std::optional<Join> join_of(const Layer& layer) const {
        if (raw_.dims(layer.output).size() != 4 || layer.activation.kind != ActivationKind::none) return {};
        if (layer.kind == LayerKind::concat && layer.axis >= 2 && layer.inputs.size() > 1)
            return Join{layer.inputs, static_cast<size_t>(layer.axis)};
        if (layer.kind != LayerKind::general || layer.general.kind != GeneralKind::resample) return {};
        return tile_of(layer);
    }

    /// A Tile along one axis of several rows or columns.
    [[nodiscard]] std::optional<Join> tile_of(const Layer& layer) const {
        const Dims &in = raw_.dims(layer.inputs[0]), &out = raw_.dims(layer.output);
        const GeneralOperator& op = layer.general;
        if (!op.factors.empty() || op.tap_counts != Dims(4, 1)) return {};
        std::optional<Join> tile;
        for (size_t d = 0; d < 4; ++d) {
            const SampledAxis along = sampled_axis(op, d);
            for (int64_t at = 0; at < out[d]; ++at) {
                if (along.sources[static_cast<size_t>(at)] != at % in[d]) return {};
            }
            if (out[d] == in[d]) continue;
            if (d < 2 || in[d] == 1 || out[d] % in[d] != 0 || tile) return {};
            const auto times = static_cast<size_t>(out[d] / in[d]);
            tile = Join{std::vector<TensorId>(times, layer.inputs[0]), d};
        }
        return tile;
    }

    TensorId add(Layer layer, const RawLayer& end) {
        const TensorId whole = end.layer.output;
        return raw_.append_part(std::move(layer), end, raw_.dims(whole), raw_.name_of(whole) + "_part");
    }

    void write(const Join& join, RawLayer end) {
        const int64_t extent = raw_.dims(end.layer.output)[join.axis];
        int64_t first = 0;
        std::vector<TensorId> placed;
        for (const TensorId map : join.maps) {
            const Dims in = raw_.dims(map);
            Padding padding;
            padding.begin[join.axis - 2] = first;
            first += in[join.axis];
            padding.end[join.axis - 2] = extent - first;
            placed.push_back(
                add({.kind = LayerKind::general, .inputs = {map}, .general = padded(in, padding)}, end));
        }
        TensorId sum = placed[0];
        for (size_t k = 1; k + 1 < placed.size(); ++k)
            sum = add({.kind = LayerKind::add, .inputs = {sum, placed[k]}}, end);
        Layer last{.onnx_name = end.layer.onnx_name,
                   .kind = LayerKind::add,
                   .inputs = {sum, placed.back()}};
        last.output = end.layer.output;
        end.layer = std::move(last);
        raw_.layers.push_back(std::move(end));
    }

    RawNetwork& raw_;
    std::vector<std::vector<size_t>> readers_;
};

}  // namespace

void write_joined_rows_as_sums(RawNetwork& raw) { JoinedRows(raw).run(); }

}  // namespace laminate::onnx
