#include "runtime/tensor_placement.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "runtime/arena_plan.h"

namespace laminate {
namespace {

/// Tensors of one storage: flatten and reshape change the dims of their input, not an element; what
/// is joined along the outermost dimension of more than one element is computed in its place within
/// the whole.
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
            if (is_alias(step))
                parent_[static_cast<size_t>(outputs_of(step)[0])] = {inputs_of(step)[0], 0};
        }
        // Then it is known what the caller's arrays hold.
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
    /// Whether the operands of a step lie one after the other in its output.
    static bool is_join(const Manifest& manifest, const Step& step) {
        const auto* layer_step = std::get_if<LayerStep>(&step);
        if (!layer_step || layer_step->layer.kind != LayerKind::concat) return false;
        const auto& dims = manifest.tensors[static_cast<size_t>(layer_step->layer.output)].dims;
        const int64_t axis = layer_step->layer.axis < 0 ? layer_step->layer.axis + std::ssize(dims)
                                                        : layer_step->layer.axis;
        // A copy with an activation of its own would apply it to what others read too.
        return layer_step->layer.activation.kind == ActivationKind::none &&
               std::all_of(dims.begin(), dims.begin() + axis, [](int64_t d) { return d == 1; });
    }
    [[nodiscard]] Position of(TensorId id) const {
        Position position{id, 0};
        while (parent_[static_cast<size_t>(position.root)].root != position.root) {
            const Position& next = parent_[static_cast<size_t>(position.root)];
            position = {next.root, position.offset_elements + next.offset_elements};
        }
        return position;
    }

    /// Whether what the step reads lies where its output is.
    [[nodiscard]] bool is_in_place(const Manifest& manifest, const Step& step) const {
        if (is_alias(step)) return true;
        if (!is_join(manifest, step)) return false;
        Position expected = of(outputs_of(step)[0]);
        for (const TensorId id : inputs_of(step)) {
            if (of(id) != expected) return false;
            expected.offset_elements +=
                element_count(manifest.tensors[static_cast<size_t>(id)].dims);
        }
        return true;
    }

private:
    void join(const Manifest& manifest, const Layer& layer) {
        const auto elements = [&](TensorId id) {
            return element_count(manifest.tensors[static_cast<size_t>(id)].dims);
        };
        // The caller's arrays stay apart.
        const auto is_callers = [&](TensorId root) {
            return std::any_of(manifest.inputs.begin(), manifest.inputs.end(),
                               [&](TensorId id) { return of(id).root == root; }) ||
                   std::any_of(manifest.outputs.begin(), manifest.outputs.end(),
                               [&](TensorId id) { return of(id).root == root; });
        };
        int64_t offset = 0;
        for (const TensorId id : layer.inputs) {
            const TensorId root = of(id).root;
            // Not what is joined already, by this step or by an earlier one: that is copied.
            if (root != layer.output && elements(root) == elements(id) && !is_callers(root))
                parent_[static_cast<size_t>(root)] = {layer.output, offset};
            offset += elements(id);
        }
    }

    std::vector<Position> parent_;
};

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
    std::vector<Use> uses(manifest.tensors.size());
    for (size_t k = 0; k < manifest.steps.size(); ++k) {
        if (Storages::is_alias(manifest.steps[k])) continue;
        for (const auto& ids : {inputs_of(manifest.steps[k]), outputs_of(manifest.steps[k])}) {
            for (TensorId id : ids) {
                Use& use = uses[static_cast<size_t>(storages.of(id).root)];
                if (use.first < 0) use.first = static_cast<int>(k);
                use.last = static_cast<int>(k);
            }
        }
    }

    TensorPlaces placement;
    std::vector<Place> by_root(manifest.tensors.size());
    std::vector<Lifetime> lifetimes;
    std::vector<TensorId> in_arena;
    for (TensorId id = 0; id < std::ssize(manifest.tensors); ++id) {
        if (storages.of(id).root != id) continue;
        Place& place = by_root[static_cast<size_t>(id)];
        if (const int64_t input = position(manifest.inputs, id); input >= 0) {
            place = {Place::In::input, input};
        } else if (const int64_t output = position(manifest.outputs, id); output >= 0) {
            place = {Place::In::output, output};
        } else if (const Use use = uses[static_cast<size_t>(id)]; use.first >= 0) {
            lifetimes.push_back(
                {element_count(manifest.tensors[static_cast<size_t>(id)].dims) * bytes_per_element,
                 use.first, use.last});
            in_arena.push_back(id);
        }
    }
    const ArenaPlan plan = plan_arena(lifetimes);
    for (size_t k = 0; k < in_arena.size(); ++k)
        by_root[static_cast<size_t>(in_arena[k])].at = plan.offsets[k];
    for (TensorId id = 0; id < std::ssize(manifest.tensors); ++id) {
        const Storages::Position in = storages.of(id);
        Place place = by_root[static_cast<size_t>(in.root)];
        (place.in == Place::In::arena ? place.at : place.offset_bytes) +=
            in.offset_elements * bytes_per_element;
        placement.places.push_back(place);
    }
    for (const Step& step : manifest.steps)
        placement.is_in_place.push_back(storages.is_in_place(manifest, step));
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
