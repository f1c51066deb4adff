#include "nets/onnx/moves.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// An axis of a view: so many elements, one `step` apart in memory.
struct Axis {
    int64_t extent, step;
    friend bool operator==(const Axis&, const Axis&) = default;
};

/// The axes of a view of which none has one element or continues the one before it.
std::vector<Axis> merged_axes(const GeneralOperator& view) {
    std::vector<Axis> axes;
    for (size_t d = 0; d < view.dims.size(); ++d) {
        const int64_t extent = view.dims[d], step = view.steps[d];
        if (extent == 1) continue;
        if (!axes.empty() && axes.back().step == extent * step) {
            axes.back() = {axes.back().extent * extent, step};
        } else {
            axes.push_back({extent, step});
        }
    }
    return axes;
}

/// The map [N, C, H b, W b] that DepthToSpace makes of [N, C b b, H, W].
GeneralOperator depth_to_space_of(const Dims& in, int64_t block, bool is_crd) {
    const int64_t channels = in[1] / block / block, plane = in[2] * in[3];
    const int64_t of_column = is_crd ? plane : channels * plane;  // of one to the right in a block
    const int64_t of_channel = is_crd ? block * block * plane : plane;
    return {.kind = GeneralKind::view,
            .dims = {in[0], channels, in[2], block, in[3], block},
            .steps = {in[1] * plane, of_channel, in[3], block * of_column, 1, of_column}};
}

class Moves {
public:
    explicit Moves(RawNetwork& raw)
        : raw_(raw), producer_(writers_of(raw)), readers_(reader_counts(raw)) {}

    void recognise() {
        for (RawLayer& layer : raw_.layers) {
            if (is(layer.layer, GeneralKind::reshape) || is(layer.layer, GeneralKind::view)) {
                if (!recognise_depth_to_space(layer)) keep_pixels(layer);
            } else if (is(layer.layer, GeneralKind::binary) || layer.layer.kind == LayerKind::add) {
                read_before_expand(layer);
            }
        }
        std::erase_if(raw_.layers, [](const RawLayer& layer) { return layer.layer.output < 0; });
    }

private:
    static bool is(const Layer& layer, GeneralKind kind) {
        return layer.kind == LayerKind::general && layer.general.kind == kind;
    }
    /// The layer that writes a tensor, or null.
    [[nodiscard]] RawLayer* before(TensorId id) const {
        const int layer = producer_[static_cast<size_t>(id)];
        return layer < 0 ? nullptr : &raw_.layers[static_cast<size_t>(layer)];
    }
    /// Notes that `end` no longer reads `part`, which goes if nothing else reads it.
    void note(RawLayer& part, const RawLayer& end) {
        raw_.folded.push_back(part.op + " " + part.label + " into " + end.op + " " + end.label);
        part.beside = true;
    }

    /// `end` and the layers before it, as far as one view with any reshapes around it goes.
    bool recognise_depth_to_space(RawLayer& end) {
        const Dims& out = raw_.dims(end.layer.output);
        if (out.size() != 4) return false;
        const GeneralOperator* view = nullptr;
        std::vector<RawLayer*> parts;
        for (RawLayer* layer = &end; layer != nullptr; layer = before(layer->layer.inputs[0])) {
            if (is(layer->layer, GeneralKind::view) && view == nullptr) {
                view = &layer->layer.general;
            } else if (!is(layer->layer, GeneralKind::reshape)) {
                return false;
            }
            parts.push_back(layer);
            const TensorId x = layer->layer.inputs[0];
            const Dims& in = raw_.dims(x);
            if (view == nullptr || in.size() != 4) continue;
            const std::optional<Layer> whole = depth_to_space(in, out, *view);
            if (!whole) return false;
            for (size_t k = 1; k < parts.size(); ++k) note(*parts[k], end);
            const Layer last = std::exchange(end.layer, *whole);
            end.layer.onnx_name = last.onnx_name;
            end.layer.inputs = {x};
            end.layer.output = last.output;
            return true;
        }
        return false;
    }

    static std::optional<Layer> depth_to_space(const Dims& in, const Dims& out,
                                               const GeneralOperator& view) {
        const int64_t block = out[2] / in[2];
        if (block < 2 || in[0] != out[0] || in[1] != out[1] * block * block ||
            in[2] * block != out[2] || in[3] * block != out[3])
            return {};
        for (const bool is_crd : {true, false}) {
            if (!list_the_same(view, depth_to_space_of(in, block, is_crd))) continue;
            return Layer{.kind = LayerKind::depth_to_space,
                         .block = block,
                         .depth_to_space_crd = is_crd};
        }
        return {};
    }

    static bool is_pixel(const Dims& dims) { return dims.size() == 4 && dims[2] * dims[3] == 1; }

    /// Whether a tensor has one row of channels for each of `images` images.
    static bool is_row_of_image(const Dims& dims, int64_t images) {
        return dims.size() >= 2 && dims[0] == images &&
               std::all_of(dims.begin() + 2, dims.end(), [](int64_t extent) { return extent == 1; });
    }

    /// Makes dense layers between [N, C, 1, 1] and `end`, which makes that again, convolutions of one
    /// pixel: squeeze and excitation with Flatten, Gemm and Reshape.
    void keep_pixels(RawLayer& end) {
        if (!is(end.layer, GeneralKind::reshape) || !is_pixel(raw_.dims(end.layer.output))) return;
        const int64_t images = raw_.dims(end.layer.output)[0];
        std::vector<RawLayer*> chain, reshapes;
        RawLayer* layer = &end;
        bool has_dense = false;
        do {
            const TensorId x = layer->layer.inputs[0];
            layer = readers_[static_cast<size_t>(x)] == 1 ? before(x) : nullptr;
            if (layer == nullptr || !is_row_of_image(raw_.dims(x), images)) return;
            const bool is_dense = layer->layer.kind == LayerKind::gemm;
            const bool is_reshape = is(layer->layer, GeneralKind::reshape) ||
                                    layer->layer.kind == LayerKind::flatten;
            if (!is_dense && !is_reshape && layer->layer.kind != LayerKind::activation &&
                !layer->affine)
                return;
            (is_reshape ? reshapes : chain).push_back(layer);
            has_dense = has_dense || is_dense;
        } while (!is_pixel(raw_.dims(layer->layer.inputs[0])) ||
                 layer->layer.kind == LayerKind::activation || layer->affine);
        TensorId x = layer->layer.inputs[0];
        if (!has_dense || !is_row_of_image(raw_.dims(x), images)) return;
        for (RawLayer* part : reshapes) {
            note(*part, end);
            part->layer.output = -1;
        }
        for (size_t k = chain.size(); k-- > 0;) {
            Layer& one = chain[k]->layer;
            one.inputs = {x};
            x = k == 0 ? end.layer.output : one.output;
            one.output = x;
            const Dims& from = raw_.dims(one.inputs[0]);
            Dims to{from[0], from[1], 1, 1};
            if (one.kind == LayerKind::gemm) {
                one.kind = LayerKind::conv;
                raw_.charge(one.weights->values.size());
                to[1] = one.weights->dims[0];
                one.weights = std::make_shared<const Constant>(
                    Constant{{to[1], from[1], 1, 1}, one.weights->values});
            }
            raw_.tensors[static_cast<size_t>(x)].dims = to;
            producer_[static_cast<size_t>(x)] = static_cast<int>(chain[k] - raw_.layers.data());
        }
        note(end, *chain.front());
        end.layer.output = -1;
    }

    /// The shapes of a binary operator's operands broadcast, so that an operand need not be
    /// expanded before, unless nothing else has the extents that it is expanded to.
    void read_before_expand(RawLayer& reader) {
        if (reader.layer.inputs.size() != 2) return;
        for (const size_t k : {size_t{0}, size_t{1}}) {
            TensorId& operand = reader.layer.inputs[k];
            RawLayer* expand = before(operand);
            if (expand == nullptr || !is(expand->layer, GeneralKind::view)) continue;
            const TensorId x = expand->layer.inputs[0];
            const Dims& out = raw_.dims(reader.layer.output);
            if (raw_.dims(reader.layer.inputs[1 - k]) != out || !is_expanded(expand->layer.general, raw_.dims(x)))
                continue;
            note(*expand, reader);
            operand = x;
            if (reader.layer.kind != LayerKind::add) continue;
            reader.layer.kind = LayerKind::general;  // a sum of two shapes
            reader.layer.general = {.kind = GeneralKind::binary, .function = GeneralFunction::add};
        }
    }

    /// Whether a view repeats a tensor of these dims along axes in which it has one element.
    static bool is_expanded(const GeneralOperator& view, const Dims& from) {
        if (view.first != 0 || from.size() > view.dims.size()) return false;
        const Dims own = row_major_steps(from);
        const size_t added = view.dims.size() - from.size();
        for (size_t d = 0; d < view.dims.size(); ++d) {
            const int64_t extent = d < added ? 1 : from[d - added];
            const int64_t step = extent == 1 ? 0 : own[d - added];
            if ((extent != 1 && extent != view.dims[d]) || (view.dims[d] > 1 && view.steps[d] != step))
                return false;
        }
        return true;
    }

    RawNetwork& raw_;
    std::vector<int> producer_;
    std::vector<int> readers_;
};

}  // namespace

bool list_the_same(const GeneralOperator& view, const GeneralOperator& other) {
    return view.first == other.first && merged_axes(view) == merged_axes(other);
}

void recognise_moves(RawNetwork& raw) { Moves(raw).recognise(); }

}  // namespace laminate::onnx
