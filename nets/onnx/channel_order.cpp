#include "nets/onnx/channel_order.h"

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "nets/network/picture_views.h"

namespace laminate::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// A channel of a tensor.
struct Place {
    TensorId tensor = -1;
    int64_t channel = 0;
    auto operator<=>(const Place&) const = default;
};

/// Neighbouring channels of a tensor.
struct Run {
    Place first;
    int64_t channels = 0;
    auto operator<=>(const Run&) const = default;
};

/// Where the channels of a map lie in memory.
struct Channels {
    std::vector<Place> places;
    bool is_shuffled = false;
};

class ShuffledChannels {
public:
    explicit ShuffledChannels(RawNetwork& raw) : raw_(raw) {
        for (const std::vector<size_t>& readers : readers_of(raw)) {
            takes_any_order_.push_back(!readers.empty() && std::ranges::all_of(readers, [&](size_t k) {
                return is_plain_convolution(raw.layers[k]) && raw.layers[k].layer.groups == 1;
            }));
        }
        for (const TensorId id : raw.outputs) takes_any_order_[static_cast<size_t>(id)] = false;
    }

    void run() {
        std::vector<RawLayer> layers;
        std::swap(layers, raw_.layers);
        for (RawLayer& layer : layers) {
            follow(layer);
            raw_.layers.push_back(std::move(layer));
        }
    }

private:
    [[nodiscard]] Channels channels_of(TensorId id) const {
        if (const auto found = moved_.find(id); found != moved_.end()) return found->second;
        Channels all;
        for (int64_t c = 0; c < raw_.dims(id)[1]; ++c) all.places.push_back({id, c});
        return all;
    }

    /// Notes what a layer that copies channels does with them, and lets a convolution take them.
    void follow(RawLayer& raw) {
        Layer& layer = raw.layer;
        if (layer.inputs.empty() || raw_.dims(layer.inputs[0]).size() != 4) return;
        if (layer.kind == LayerKind::concat && layer.axis == 1) {
            Channels joined;
            for (const TensorId id : layer.inputs) {
                const Channels part = channels_of(id);
                joined.is_shuffled = joined.is_shuffled || part.is_shuffled;
                joined.places.insert(joined.places.end(), part.places.begin(), part.places.end());
            }
            moved_[layer.output] = std::move(joined);
        } else if (layer.kind == LayerKind::general) {
            follow_general(layer);
        } else if (is_plain_convolution(raw)) {
            take(raw);
        }
    }

    void follow_general(const Layer& layer) {
        const Dims &in = raw_.dims(layer.inputs[0]), &out = raw_.dims(layer.output);
        const Channels before = channels_of(layer.inputs[0]);
        if (layer.general.kind == GeneralKind::blocks && layer.general.kernel[0] == 1) {
            Channels shuffled;
            shuffled.is_shuffled = true;
            for (int64_t z = 0; z < in[1]; ++z)
                shuffled.places.push_back(before.places[static_cast<size_t>(
                    place_before_shuffle(z, in[1], layer.general.first))]);
            moved_[layer.output] = std::move(shuffled);
            return;
        }
        const auto first = first_of_part(layer.general, in);
        if (layer.inputs.size() != 1 || !first || out[2] != in[2] || out[3] != in[3]) return;
        const auto begin = before.places.begin() + (*first)[0];
        moved_[layer.output] = {{begin, begin + out[1]}, before.is_shuffled};
    }

    static bool is_plain_convolution(const RawLayer& raw) {
        return raw.layer.kind == LayerKind::conv && !raw.affine;
    }
    [[nodiscard]] bool is_depthwise(const Layer& layer) const {
        return layer.groups == raw_.dims(layer.inputs[0])[1] && layer.groups == layer.weights->dims[0] &&
               layer.activation.kind != ActivationKind::prelu;
    }
    /// Whether nothing but convolutions that may take their channels in any order reads a tensor.
    [[nodiscard]] bool is_read_in_any_order(TensorId id) const {
        return takes_any_order_[static_cast<size_t>(id)];
    }

    void take(RawLayer& raw) {
        Layer& layer = raw.layer;
        const Channels in = channels_of(layer.inputs[0]);
        const bool keeps_channels = layer.groups > 1;
        if (!in.is_shuffled ||
            (keeps_channels && !(is_depthwise(layer) && is_read_in_any_order(layer.output))))
            return;
        std::vector<size_t> order(in.places.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::ranges::sort(order, {}, [&](size_t c) { return in.places[c]; });
        const std::optional<TensorId> taken = joined_runs(raw, in.places, order);
        if (!taken) return;
        raw_.charge(layer.weights->values.size());
        layer.inputs[0] = *taken;
        layer.weights = reordered(layer.weights, keeps_channels ? 0 : 1, order);
        if (!keeps_channels) return;
        if (layer.bias) layer.bias = reordered(layer.bias, 0, order);
        Channels out{.places = std::vector<Place>(order.size()), .is_shuffled = true};
        for (size_t at = 0; at < order.size(); ++at)
            out.places[order[at]] = {layer.output, static_cast<int64_t>(at)};
        moved_[layer.output] = std::move(out);
    }

    /// Weights of which index `order[n]` along an axis becomes index n.
    static ConstantPtr reordered(const ConstantPtr& weights, size_t axis,
                                 const std::vector<size_t>& order) {
        const std::vector<float> from = weights->values;
        size_t inner = from.size();
        for (size_t d = 0; d <= axis; ++d) inner /= static_cast<size_t>(weights->dims[d]);
        std::vector<float> to;
        for (size_t outer = 0; outer < from.size(); outer += inner * order.size()) {
            for (const size_t n : order) {
                const auto begin = from.begin() + static_cast<int64_t>(outer + n * inner);
                to.insert(to.end(), begin, begin + static_cast<int64_t>(inner));
            }
        }
        return std::make_shared<const Constant>(Constant{weights->dims, std::move(to)});
    }

    /// A tensor with the channels in this order, made before `reader`. None where it would be in too
    /// many pieces, or have a channel twice.
    std::optional<TensorId> joined_runs(const RawLayer& reader, const std::vector<Place>& places,
                                        const std::vector<size_t>& order) {
        std::vector<Run> runs;
        for (const size_t c : order) {
            const Place& place = places[c];
            const Run* last = runs.empty() ? nullptr : &runs.back();
            const int64_t behind = last == nullptr ? 0 : last->first.channel + last->channels;
            const bool is_of_last = last != nullptr && last->first.tensor == place.tensor;
            if (is_of_last && place.channel < behind) return {};
            if (is_of_last && place.channel == behind)
                ++runs.back().channels;
            else
                runs.push_back({place, 1});
        }
        constexpr size_t most_runs = 12;
        if (runs.size() > most_runs) return {};
        const auto [found, is_new] = joined_.try_emplace(runs, -1);
        if (is_new) found->second = join(reader, runs);
        return found->second;
    }

    TensorId join(const RawLayer& reader, const std::vector<Run>& runs) {
        const TensorId first = runs[0].first.tensor;
        std::vector<TensorId> parts;
        for (const Run& run : runs) {
            const Dims& map = raw_.dims(run.first.tensor);
            if (run.channels == map[1]) {
                parts.push_back(run.first.tensor);
                continue;
            }
            const GeneralOperator part =
                part_of(map, {run.first.channel, 0, 0}, {run.channels, map[2], map[3]});
            parts.push_back(append(reader, {.kind = LayerKind::general,
                                            .inputs = {run.first.tensor},
                                            .general = part},
                                   part.dims));
        }
        if (parts.size() == 1) return parts[0];
        Dims all = raw_.dims(first);
        all[1] = std::accumulate(runs.begin(), runs.end(), int64_t{0},
                                 [](int64_t sum, const Run& run) { return sum + run.channels; });
        return append(reader, {.kind = LayerKind::concat, .inputs = parts, .axis = 1}, all);
    }

    TensorId append(const RawLayer& reader, Layer layer, const Dims& out) {
        const std::string name = raw_.name_of(reader.layer.output) + "_channels";
        return raw_.append_part(std::move(layer), reader, out, name);
    }

    RawNetwork& raw_;
    std::vector<bool> takes_any_order_;
    std::map<TensorId, Channels> moved_;
    std::map<std::vector<Run>, TensorId> joined_;
};

}  // namespace

void take_shuffled_channels(RawNetwork& raw) { ShuffledChannels(raw).run(); }

}  // namespace laminate::onnx
