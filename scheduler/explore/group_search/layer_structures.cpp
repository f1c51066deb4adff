#include "scheduler/explore/group_search/layer_structures.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace laminate::search {

namespace {

/// Everything about a structure that the layers before see. Only structures that agree in it can be
/// compared.
using Surroundings = std::tuple<std::array<Kind, 2>, Kind, bool, bool, WeightsLife,
                                std::array<bool, 2>, std::vector<ScopeLoop>>;

Surroundings surroundings(const LayerStructure& s, bool is_first) {
    return {s.kind,
            s.channel_kind,
            s.z_above,
            s.whole_calls,
            s.weights,
            s.disjoint,
            is_first ? std::vector<ScopeLoop>{} : s.scope};
}

/// Whether `a` is no worse than `b` for all tiles, given equal surroundings.
bool at_least_as_good(const LayerStructure& a, const LayerStructure& b) {
    for (size_t n = 0; n < 3; ++n) {
        if (a.fold[n] < b.fold[n]) return false;  // the body of an inner loop holds less
        if (a.output_holds[n] && !b.output_holds[n]) return false;
    }
    for (size_t n = 0; n < 2; ++n) {
        if (!a.weights_per_tile[n] && b.weights_per_tile[n]) return false;
    }
    if (a.weights_hold_z && !b.weights_hold_z) return false;
    if (a.weights_hold_i && !b.weights_hold_i) return false;
    if (!a.weights_below && b.weights_below) return false;
    return a.output_below || !b.output_below;
}

size_t position(const std::array<Dim, 4>& order, Dim d) {
    return static_cast<size_t>(std::find(order.begin(), order.end(), d) - order.begin());
}

class Enumerator {
public:
    Enumerator(const LayerProblem& problem, const LayerContext& context,
               const StructureLimits& limits)
        : problem_(problem), context_(context), limits_(limits), is_grouped_(problem.groups > 1) {}

    std::vector<LayerStructure> all() {
        const bool is_alone = context_.is_first && context_.is_last;
        const bool can_keep =
            !context_.scope.empty() &&
            std::none_of(context_.scope.begin(), context_.scope.end(),
                         [](ScopeLoop l) { return l.axis == ScopeLoop::channel; });
        LayerStructure s;
        s.order = {Dim::z, Dim::y, Dim::x, Dim::i};
        do {
            for (s.store = can_keep ? -1 : 0; s.store <= 4; ++s.store) {
                if (limits_.only_kept && can_keep && s.store >= 0) continue;
                const int deepest = is_grouped_ && problem_[Dim::i] > 1
                                        ? static_cast<int>(position(s.order, Dim::i))
                                        : 4;
                // An external input is computed as deep as legal. For a producer's output the level
                // is a choice.
                const int first = context_.is_first ? deepest : std::max(s.store, 0);
                for (s.compute = first; s.compute <= deepest && s.store <= s.compute; ++s.compute) {
                    if (!limits_.only_resident || is_alone) {
                        s.weights = WeightsLife::own;
                        for (s.weights_store = 0; s.weights_store <= 4; ++s.weights_store) offer(s);
                        s.weights_store = 0;
                        s.weights = WeightsLife::scope;
                        if (!context_.scope.empty()) offer(s);
                    }
                    s.weights = WeightsLife::resident;
                    if (!is_alone) offer(s);
                }
            }
        } while (!limits_.is_baseline && std::next_permutation(s.order.begin(), s.order.end()));
        std::vector<LayerStructure> result;
        for (auto& [key, structures] : found_)
            result.insert(result.end(), structures.begin(), structures.end());
        return result;
    }

private:
    void offer(LayerStructure s) {
        if (!derive(s)) return;
        // Offer it again for tiles with which nothing is shared, which fold further.
        for (const bool y : {false, true}) {
            for (const bool x : {false, true}) {
                if ((y && !can_be_disjoint(s, 0)) || (x && !can_be_disjoint(s, 1))) continue;
                s.disjoint = {y, x};
                keep(s);
            }
        }
    }

    [[nodiscard]] bool can_be_disjoint(const LayerStructure& s, size_t axis) const {
        const Sharing own = sharing(problem_.window[axis]);
        if (s.store >= 0) return own == Sharing::by_tile && s.kind[axis] == Kind::between;
        return own != Sharing::never && context_.may_be_apart[axis] &&
               std::any_of(s.scope.begin(), s.scope.end(),
                           [&](ScopeLoop l) { return l.axis == axis; });
    }

    void keep(LayerStructure s) {
        fold_input(s);
        auto& others = found_[surroundings(s, context_.is_first)];
        if (std::any_of(others.begin(), others.end(),
                        [&](const LayerStructure& o) { return at_least_as_good(o, s); }))
            return;
        std::erase_if(others, [&](const LayerStructure& o) { return at_least_as_good(s, o); });
        others.push_back(std::move(s));
    }

    /// Derives what costs depend on. Returns false if the space lacks the structure.
    bool derive(LayerStructure& s) const {
        const bool kept = s.store < 0;
        const auto kind = [&](Dim d) {
            const int at = static_cast<int>(position(s.order, d));
            if (at >= s.compute) return kept ? Kind::kept_below : Kind::below;
            if (kept) return Kind::kept_between;
            return at < s.store ? Kind::above : Kind::between;
        };
        s.kind = {kind(Dim::y), kind(Dim::x)};
        s.channel_kind = kind(is_grouped_ ? Dim::z : Dim::i);
        const Kind z = kind(Dim::z);
        s.z_above = !is_grouped_ && z == Kind::above;
        // Between the levels of an internal tensor, all trips of z but the first would find it
        // present.
        if (!context_.is_first && (z == Kind::between || z == Kind::kept_between)) return false;
        s.whole_calls = kept || s.weights == WeightsLife::scope;
        derive_weights(s);
        s.output_holds = {};
        const auto ii = position(s.order, Dim::i);
        if (context_.is_last) {
            const std::array<Dim, 3> dims{Dim::z, Dim::y, Dim::x};
            for (size_t n = 0; n < 3; ++n) s.output_holds[n] = position(s.order, dims[n]) > ii;
        }
        s.weights_below =
            !context_.is_first && s.weights == WeightsLife::own && s.weights_store > s.compute;
        s.output_below = !context_.is_first && context_.is_last && static_cast<int>(ii) > s.compute;
        s.scope = kept ? context_.scope : std::vector<ScopeLoop>{};
        for (int n = std::max(s.store, 0); n < s.compute; ++n) {
            const Dim d = s.order[static_cast<size_t>(n)];
            const bool is_channel = d == Dim::i || d == Dim::z;
            if (is_channel && (d == Dim::z) != is_grouped_) continue;
            const auto axis = is_channel    ? ScopeLoop::channel
                              : d == Dim::y ? ScopeLoop::y
                                            : ScopeLoop::x;
            const auto before = std::count_if(s.scope.begin(), s.scope.end(),
                                              [&](ScopeLoop l) { return l.axis == axis; });
            s.scope.push_back({axis, static_cast<int>(before) + 1});
        }
        return true;
    }

    /// Walks from the store level to the innermost loop: z and i fold to one channel until a loop
    /// over y or x visits all of them again.
    static void derive_weights(LayerStructure& s) {
        s.weights_per_tile = {};
        s.weights_hold_z = s.weights_hold_i = s.weights != WeightsLife::own;
        if (s.weights != WeightsLife::own) return;
        bool folds = true;
        for (size_t n = static_cast<size_t>(s.weights_store); n < 4; ++n) {
            const Dim d = s.order[n];
            if (d == Dim::y || d == Dim::x) {
                s.weights_per_tile[d == Dim::y ? 0 : 1] = true;
                folds = false;
            } else if (!folds) {
                (d == Dim::z ? s.weights_hold_z : s.weights_hold_i) = true;
            }
        }
    }

    /// Applies docs/counting.md section 5 as if every loop had several trips.
    void fold_input(LayerStructure& s) const {
        s.fold = {};
        const auto overlaps = [&](ScopeLoop::Axis axis) {
            if (axis == ScopeLoop::channel)
                return is_grouped_ && problem_[Dim::z] > problem_.groups;
            const auto n = static_cast<size_t>(axis);
            return sharing(problem_.window[n]) != Sharing::never && !s.disjoint[n];
        };
        std::vector<std::optional<ScopeLoop>> loops;  // nullopt: the loop does not index the input
        size_t own = s.store < 0 ? context_.scope.size() : 0;
        for (size_t n = 0; n < own; ++n) loops.emplace_back(s.scope[n]);
        for (int n = std::max(s.store, 0); n < s.compute; ++n) {
            const Dim d = s.order[static_cast<size_t>(n)];
            // It has one trip: X of a grouped layer lies outside a larger ii.
            if (d == Dim::i && is_grouped_) continue;
            if (d == Dim::z && !is_grouped_)
                loops.emplace_back();
            else
                loops.emplace_back(s.scope[own++]);
        }
        std::optional<ScopeLoop> run;
        const auto close_run = [&] {
            if (!run) return true;
            s.fold[run->axis] = run->level;
            return !overlaps(run->axis);
        };
        for (const auto& loop : loops) {
            if (run && (!loop || run->axis != loop->axis)) {
                if (!close_run()) return;
                run.reset();
            }
            if (!loop) return;
            run = loop;
        }
        close_run();
    }

    const LayerProblem& problem_;
    const LayerContext& context_;
    const StructureLimits& limits_;
    bool is_grouped_;
    std::map<Surroundings, std::vector<LayerStructure>> found_;
};

}  // namespace

Sharing sharing(const AxisWindow& w) {
    if (w.transposed && w.kernel == w.stride)
        return w.stride == 1 ? Sharing::never : Sharing::by_tile;
    // Schedulable transposed kernels are at least as large as the stride.
    if (w.transposed) return Sharing::always;
    return w.span() > w.stride ? Sharing::always : Sharing::never;
}

bool say_the_same(const LayerStructure& a, const LayerStructure& b) {
    return a.order == b.order && a.store == b.store && a.compute == b.compute &&
           a.weights == b.weights && a.weights_store == b.weights_store;
}

std::vector<LayerStructure> layer_structures(const LayerProblem& problem,
                                             const LayerContext& context,
                                             const StructureLimits& limits) {
    return Enumerator(problem, context, limits).all();
}

}  // namespace laminate::search
