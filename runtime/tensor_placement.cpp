#include "runtime/tensor_placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "nets/network/picture_views.h"
#include "runtime/arena_plan.h"

namespace laminate {
namespace {

/// Which tensors share one storage: a flattened or reshaped tensor with its input, and the operands
/// of a join with its output.
class Storages {
public:
    struct Position {
        TensorId root = -1;  ///< the tensor that stands for the storage
        int64_t offset_elements = 0;
        bool operator==(const Position&) const = default;
    };

    /// `joins`, by step: whether operands of this concat may lie within its output.
    Storages(const Manifest& manifest, const std::vector<bool>& joins) {
        for (TensorId id = 0; id < std::ssize(manifest.tensors); ++id) parent_.push_back({id, 0});
        for (const Step& step : manifest.steps) {
            if (is_alias(step)) parent_[outputs_of(step)[0]] = {inputs_of(step)[0], 0};
        }
        // Joins come second: they must know which tensors the caller's arrays hold.
        for (size_t k = 0; k < manifest.steps.size(); ++k) {
            if (joins[k]) join(manifest, std::get<LayerStep>(manifest.steps[k]).layer);
        }
    }
    /// True for a step that has nothing to do.
    static bool is_alias(const Step& step) {
        const auto* layer_step = std::get_if<LayerStep>(&step);
        if (!layer_step || layer_step->layer.activation.kind != ActivationKind::none) return false;
        const Layer& layer = layer_step->layer;
        return layer.kind == LayerKind::flatten ||
               (layer.kind == LayerKind::general && layer.general.kind == GeneralKind::reshape);
    }
    /// Whether the operands of a step lie one after the other in its output. A concat with an
    /// activation does not count: it would apply the activation to what others read too.
    static bool is_join(const Manifest& manifest, const Step& step) {
        const auto* layer_step = std::get_if<LayerStep>(&step);
        if (!layer_step || layer_step->layer.kind != LayerKind::concat) return false;
        const auto& dims = manifest.tensor(layer_step->layer.output).dims;
        const int64_t axis = layer_step->layer.axis < 0 ? layer_step->layer.axis + std::ssize(dims)
                                                        : layer_step->layer.axis;
        return layer_step->layer.activation.kind == ActivationKind::none &&
               std::all_of(dims.begin(), dims.begin() + axis, [](int64_t d) { return d == 1; });
    }
    [[nodiscard]] Position of(TensorId id) const {
        Position position{id, 0};
        while (parent_[position.root].root != position.root) {
            const Position& next = parent_[position.root];
            position = {next.root, position.offset_elements + next.offset_elements};
        }
        return position;
    }

    /// Whether the inputs of the step already lie where its output is.
    [[nodiscard]] bool is_in_place(const Manifest& manifest, const Step& step) const {
        if (is_alias(step)) return true;
        if (!is_join(manifest, step)) return false;
        Position expected = of(outputs_of(step)[0]);
        for (const TensorId id : inputs_of(step)) {
            if (of(id) != expected) return false;
            expected.offset_elements += element_count(manifest.tensor(id).dims);
        }
        return true;
    }

private:
    void join(const Manifest& manifest, const Layer& layer) {
        const auto elements = [&](TensorId id) { return element_count(manifest.tensor(id).dims); };
        const auto is_callers = [&](TensorId root) {
            return std::any_of(manifest.inputs.begin(), manifest.inputs.end(),
                               [&](TensorId id) { return of(id).root == root; }) ||
                   std::any_of(manifest.outputs.begin(), manifest.outputs.end(),
                               [&](TensorId id) { return of(id).root == root; });
        };
        int64_t offset = 0;
        for (const TensorId id : layer.inputs) {
            const TensorId root = of(id).root;
            // The caller's arrays stay where they are. An operand that is part of a join already
            // is copied.
            if (root != layer.output && elements(root) == elements(id) && !is_callers(root))
                parent_[root] = {layer.output, offset};
            offset += elements(id);
        }
    }

    IndexVector<Position, TensorId> parent_;
};

/// Where a step's constant map begins in the block of constants; nullopt for other steps.
std::optional<int64_t> constant_offset_bytes(const Step& step) {
    const auto* layer_step = std::get_if<LayerStep>(&step);
    if (!layer_step || !layer_step->weights) return {};
    const Layer& layer = layer_step->layer;
    if (!is_constant(layer) || layer.activation.kind != ActivationKind::none) return {};
    return layer_step->weights->offset_elements * bytes_per_element;
}

TensorPlaces place_tensors(const Manifest& manifest, const std::vector<bool>& joins) {
    const Storages storages(manifest, joins);
    const auto position = [&](const std::vector<TensorId>& ids, TensorId root) {
        for (size_t k = 0; k < ids.size(); ++k) {
            if (storages.of(ids[k]).root == root) return static_cast<int64_t>(k);
        }
        return int64_t{-1};
    };
    struct Use {
        int first = -1, last = -1;
    };
    IndexVector<Use, TensorId> uses(manifest.tensors.size());
    for (size_t k = 0; k < manifest.steps.size(); ++k) {
        if (Storages::is_alias(manifest.steps[k])) continue;
        for (const auto& ids : {inputs_of(manifest.steps[k]), outputs_of(manifest.steps[k])}) {
            for (TensorId id : ids) {
                Use& use = uses[storages.of(id).root];
                if (use.first < 0) use.first = static_cast<int>(k);
                use.last = static_cast<int>(k);
            }
        }
    }

    IndexVector<std::optional<int64_t>, TensorId> constants(manifest.tensors.size());
    for (const Step& step : manifest.steps) {
        if (const auto offset = constant_offset_bytes(step)) constants[outputs_of(step)[0]] = offset;
    }

    TensorPlaces placement;
    IndexVector<Place, TensorId> by_root(manifest.tensors.size());
    std::vector<Lifetime> lifetimes;
    std::vector<TensorId> in_arena;
    for (TensorId id = 0; id < std::ssize(manifest.tensors); ++id) {
        if (storages.of(id).root != id) continue;
        Place& place = by_root[id];
        if (const int64_t input = position(manifest.inputs, id); input >= 0) {
            place = {Place::In::input, input};
        } else if (const int64_t output = position(manifest.outputs, id); output >= 0) {
            place = {Place::In::output, output};
        } else if (constants[id]) {
            place = {Place::In::constants, *constants[id]};
        } else if (const Use use = uses[id]; use.first >= 0) {
            lifetimes.push_back(
                {element_count(manifest.tensor(id).dims) * bytes_per_element, use.first, use.last});
            in_arena.push_back(id);
        }
    }
    const ArenaPlan plan = plan_arena(lifetimes);
    for (size_t k = 0; k < in_arena.size(); ++k) by_root[in_arena[k]].at = plan.offsets[k];
    for (TensorId id = 0; id < std::ssize(manifest.tensors); ++id) {
        const Storages::Position in = storages.of(id);
        Place place = by_root[in.root];
        (place.is_callers() ? place.offset_bytes : place.at) +=
            in.offset_elements * bytes_per_element;
        placement.places.push_back(place);
    }
    for (const Step& step : manifest.steps) {
        const bool is_there = placement.places[outputs_of(step)[0]].in == Place::In::constants;
        placement.is_in_place.push_back(is_there || storages.is_in_place(manifest, step));
    }
    placement.arena_bytes = plan.bytes;
    return placement;
}

}  // namespace

TensorPlaces place_tensors(const Manifest& manifest) {
    std::vector<bool> all, some(manifest.steps.size(), false);
    for (const Step& step : manifest.steps) all.push_back(Storages::is_join(manifest, step));
    TensorPlaces copied = place_tensors(manifest, some);
    TensorPlaces joined = place_tensors(manifest, all);
    if (joined.arena_bytes <= copied.arena_bytes) return joined;
    for (size_t k = 0; k < all.size(); ++k) {
        if (!all[k]) continue;
        some[k] = true;
        TensorPlaces with = place_tensors(manifest, some);
        some[k] = with.arena_bytes <= copied.arena_bytes;
        if (some[k]) copied = std::move(with);
    }
    return copied;
}

}  // namespace laminate
