#include "nets/onnx/space_to_depth.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nets/network/picture_views.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// An element of a tensor, by its place in memory.
struct Source {
    TensorId tensor = -1;
    int64_t element = 0;
};

/// A tensor whose element [0, z, i, j] is [0, channel, i block + row, j block + column] of a map.
struct Blocks {
    struct Channel {
        int64_t channel, row, column;
    };
    TensorId map = -1;
    bool has_channels_last = false;  ///< the map has its channels behind its pixels
    int64_t block = 1;
    std::vector<Channel> channels;
};

class BlocksOfPixels {
public:
    explicit BlocksOfPixels(RawNetwork& raw) : raw_(raw), producer_(writers_of(raw)) {}

    void run() {
        for (RawLayer& reader : raw_.layers) {
            Layer& layer = reader.layer;
            if (layer.kind != LayerKind::conv || reader.affine || layer.groups != 1 ||
                layer.window.dilation != std::array<int64_t, 2>{1, 1})
                continue;
            const std::optional<Blocks> blocks = blocks_of(layer.inputs[0]);
            if (!blocks) continue;
            const RawLayer& last = raw_.layers[static_cast<size_t>(producer_of(layer.inputs[0]))];
            raw_.folded.push_back(last.op + " " + last.label + " into " + reader.op + " " +
                                  reader.label);
            read_map(layer, *blocks);
        }
        insert_transposes();
    }

    void recognise() {
        for (RawLayer& raw : raw_.layers) {
            if (!copies(raw.layer) || raw_.dims(raw.layer.output).size() != 4) continue;
            for (TensorId map = raw.layer.inputs[0];; ) {
                const auto blocks = blocks_of(raw.layer.output, map);
                if (const auto op = layer_of(blocks)) {
                    raw.layer.general = *op;
                    raw.layer.inputs[0] = map_of(*blocks);
                    break;
                }
                if (producer_of(map) < 0) break;
                const Layer& before = raw_.layers[static_cast<size_t>(producer_of(map))].layer;
                if (!copies(before)) break;
                map = before.inputs[0];
            }
        }
        insert_transposes();
    }

private:
    /// Whether a layer is a Reshape or Transpose or the like.
    static bool copies(const Layer& layer) {
        return layer.kind == LayerKind::general && (layer.general.kind == GeneralKind::view ||
                                                    layer.general.kind == GeneralKind::reshape);
    }
    /// GeneralKind::blocks of these blocks, unless they are the map itself or in another order.
    static std::optional<GeneralOperator> layer_of(const std::optional<Blocks>& blocks) {
        if (!blocks || blocks->channels.size() < 2) return {};
        const int64_t b = blocks->block, channels = std::ssize(blocks->channels);
        const auto place = [&](int64_t z) {
            const auto& [channel, row, column] = blocks->channels[static_cast<size_t>(z)];
            return (channel * b + row) * b + column;
        };
        if (place(1) < 1 || channels % place(1) != 0) return {};
        const int64_t shuffle = place(1) == 1 ? 1 : channels / place(1);
        if (b == 1 && shuffle == 1) return {};
        for (int64_t z = 0; z < channels; ++z) {
            if (place(z) != place_before_shuffle(z, channels, shuffle)) return {};
        }
        return laminate::blocks_of(b, shuffle);
    }

    [[nodiscard]] int producer_of(TensorId id) const { return producer_[static_cast<size_t>(id)]; }

    /// The element of an earlier tensor that one of `id` is a copy of, as far back as its layers copy
    /// and at most to `last`.
    [[nodiscard]] Source source_of(Source at, TensorId last) const {
        while (producer_of(at.tensor) >= 0 && at.tensor != last) {
            const Layer& layer = raw_.layers[static_cast<size_t>(producer_of(at.tensor))].layer;
            const GeneralOperator& op = layer.general;
            if (layer.kind == LayerKind::concat && layer.axis == 1 && raw_.dims(at.tensor)[0] == 1) {
                const int64_t plane = element_count(raw_.dims(at.tensor)) / raw_.dims(at.tensor)[1];
                size_t operand = 0;  // of one image: elements of the operands follow each other
                while (at.element >= raw_.dims(layer.inputs[operand])[1] * plane)
                    at.element -= raw_.dims(layer.inputs[operand++])[1] * plane;
                at.tensor = layer.inputs[operand];
                continue;
            }
            if (layer.kind != LayerKind::general) break;
            if (op.kind == GeneralKind::view) {
                int64_t rest = at.element;
                at.element = op.first;
                for (size_t d = op.dims.size(); d-- > 0; rest /= op.dims[d])
                    at.element += rest % op.dims[d] * op.steps[d];
            } else if (op.kind == GeneralKind::resample) {
                const std::optional<int64_t> element =
                    copied_element(op, raw_.dims(layer.inputs[0]), at.element);
                if (!element) break;
                at.element = *element;
            } else if (op.kind != GeneralKind::reshape) {
                break;
            }
            at.tensor = layer.inputs[0];
        }
        return at;
    }

    /// The element that one of a Gather's or Tile's result is a copy of.
    static std::optional<int64_t> copied_element(const GeneralOperator& op, const Dims& from,
                                                 int64_t element) {
        if (!op.factors.empty()) return {};
        const Dims own = row_major_steps(from);
        auto begin = op.sources.end();
        int64_t result = 0;
        for (size_t d = op.dims.size(); d-- > 0; element /= op.dims[d]) {
            if (op.tap_counts[d] != 1) return {};
            begin -= op.dims[d];
            const int64_t source = begin[element % op.dims[d]];
            if (source < 0) return {};
            result += source * own[d];
        }
        return result;
    }

    /// The elements of a tensor as blocks of a map with as many elements: `last`, or the first one that
    /// is copied.
    [[nodiscard]] std::optional<Blocks> blocks_of(TensorId y, TensorId last = -1) const {
        const std::optional<Blocks> blocks = blocks_of(y, last, false);
        return blocks ? blocks : blocks_of(y, last, true);
    }
    [[nodiscard]] std::optional<Blocks> blocks_of(TensorId y, TensorId last,
                                                  bool has_channels_last) const {
        const Dims& out = raw_.dims(y);
        if (producer_of(y) < 0 || out.size() != 4 || out[0] != 1) return {};
        Blocks blocks;
        blocks.map = source_of({y, 0}, last).tensor;
        blocks.has_channels_last = has_channels_last;
        if (blocks.map == y || raw_.dims(blocks.map).size() != 4) return {};
        const Dims in = dims_of_map(blocks);
        if (in[0] != 1 || in[2] % out[2] != 0) return {};
        blocks.block = in[2] / out[2];
        if (in[3] != out[3] * blocks.block || element_count(in) != element_count(out)) return {};
        // A Transpose to channels first alone stays what it is.
        if (has_channels_last && blocks.block == 1) return {};
        const int64_t pixels = in[2] * in[3], of_pixel = has_channels_last ? in[1] : 1;
        int64_t at = 0;
        for (int64_t z = 0; z < out[1]; ++z) {
            const Source first = source_of({y, at}, last);
            const int64_t pixel = first.element / of_pixel % pixels;
            blocks.channels.push_back(
                {has_channels_last ? first.element % of_pixel : first.element / pixels,
                 pixel / in[3], pixel % in[3]});
            const auto& [channel, row, column] = blocks.channels.back();
            if (row >= blocks.block || column >= blocks.block) return {};
            for (int64_t i = 0; i < out[2]; ++i) {
                for (int64_t j = 0; j < out[3]; ++j, ++at) {
                    const Source source = source_of({y, at}, last);
                    const int64_t expected =
                        first.element + (i * in[3] + j) * blocks.block * of_pixel;
                    if (source.tensor != blocks.map || source.element != expected) return {};
                }
            }
        }
        return blocks;
    }

    /// N, C, H and W.
    [[nodiscard]] Dims dims_of_map(const Blocks& blocks) const {
        const Dims& in = raw_.dims(blocks.map);
        return blocks.has_channels_last ? Dims{in[0], in[3], in[1], in[2]} : in;
    }

    /// The map with its channels first, which a Transpose makes of it if it has them last.
    TensorId map_of(const Blocks& blocks) {
        if (!blocks.has_channels_last) return blocks.map;
        const auto [known, is_new] =
            transposed_.try_emplace(blocks.map, static_cast<TensorId>(raw_.tensors.size()));
        if (is_new) {
            const std::string name = raw_.name_of(blocks.map);
            raw_.tensors.push_back({name + "_turned" + std::to_string(known->second),
                                    dims_of_map(blocks)});
            producer_.push_back(-1);
        }
        return known->second;
    }

    /// Puts each Transpose behind the layer whose result it reads, or before all layers.
    void insert_transposes() {
        std::vector<RawLayer> layers;
        std::swap(layers, raw_.layers);
        const auto insert = [&](TensorId from) {
            const auto found = transposed_.find(from);
            if (found == transposed_.end()) return;
            const Dims& to = raw_.dims(found->second);
            const int64_t pixels = to[2] * to[3];
            RawLayer turned{.layer = {.kind = LayerKind::general, .inputs = {from}},
                            .op = "Transpose",
                            .beside = true};
            turned.layer.output = found->second;
            turned.layer.general = {.kind = GeneralKind::view,
                                    .dims = to,
                                    .steps = {to[1] * pixels, 1, to[1] * to[3], to[1]}};
            raw_.layers.push_back(std::move(turned));
        };
        for (const TensorId id : raw_.inputs) insert(id);
        for (RawLayer& layer : layers) {
            const TensorId output = layer.layer.output;
            raw_.layers.push_back(std::move(layer));
            insert(output);
        }
        transposed_.clear();
    }

    void read_map(Layer& layer, const Blocks& blocks) {
        const Dims& of_blocks = layer.weights->dims;
        const int64_t b = blocks.block, channels = dims_of_map(blocks)[1];
        const Dims of_map{of_blocks[0], channels, of_blocks[2] * b, of_blocks[3] * b};
        raw_.charge(static_cast<size_t>(element_count(of_map)));
        std::vector<float> weights(static_cast<size_t>(element_count(of_map)), 0.0F);
        size_t from = 0;
        for (int64_t z = 0; z < of_blocks[0]; ++z) {
            for (const auto& [channel, row, column] : blocks.channels) {
                for (int64_t n = 0; n < of_blocks[2]; ++n) {
                    for (int64_t m = 0; m < of_blocks[3]; ++m, ++from) {
                        const int64_t to = ((z * channels + channel) * of_map[2] + n * b + row) *
                                               of_map[3] +
                                           m * b + column;
                        weights[static_cast<size_t>(to)] += layer.weights->values[from];
                    }
                }
            }
        }
        layer.weights = std::make_shared<const Constant>(Constant{of_map, std::move(weights)});
        layer.inputs[0] = map_of(blocks);
        Window& w = layer.window;
        for (const size_t axis : {size_t{0}, size_t{1}}) {
            for (int64_t* size : {&w.kernel[axis], &w.stride[axis], &w.pad_begin[axis],
                                  &w.pad_end[axis]})
                *size *= b;
        }
    }

    RawNetwork& raw_;
    std::vector<int> producer_;
    std::map<TensorId, TensorId> transposed_;  ///< of maps with channels last: those with them first
};

}  // namespace

void fold_blocks_into_convolutions(RawNetwork& raw) { BlocksOfPixels(raw).run(); }

void recognise_blocks(RawNetwork& raw) { BlocksOfPixels(raw).recognise(); }

}  // namespace laminate::onnx
