#include "scheduler/explore/group_search/group_space.h"

#include <algorithm>
#include <tuple>

#include "base/units.h"

namespace laminate::search {

namespace {

int64_t taps_of_whole(const AxisWindow& w) {
    const AxisPatterns patterns({w});
    return patterns.facts(1, patterns.whole()).taps;
}

}  // namespace

StructureSet::StructureSet(std::vector<LayerStructure> structures) : all(std::move(structures)) {
    std::array<std::map<SpatialUse, size_t>, 2> spatial;
    std::map<std::tuple<bool, bool, WeightsLife, bool, bool, Kind, int>, size_t> output;
    std::map<std::tuple<Kind, int, bool, bool>, size_t> input;
    std::map<std::tuple<bool, WeightsLife, bool, bool>, size_t> plan;
    const auto number = [](auto& numbers, const auto& key) {
        return numbers.emplace(key, numbers.size()).first->second;
    };
    for (const LayerStructure& s : all) {
        const int fold = s.fold[ScopeLoop::channel];
        uses.push_back(
            {{number(spatial[0], spatial_use(s, 0)), number(spatial[1], spatial_use(s, 1))},
             number(output,
                    std::make_tuple(s.z_above, s.weights_hold_z, s.weights, s.output_holds[0],
                                    s.whole_calls, s.channel_kind, fold)),
             number(input, std::make_tuple(s.channel_kind, fold, s.weights_hold_i,
                                           s.weights == WeightsLife::resident)),
             number(plan,
                    std::make_tuple(s.store < 0, s.weights, s.weights_below, s.output_below))});
    }
    count = {{spatial[0].size(), spatial[1].size()}, output.size(), input.size(), plan.size()};
}

GroupSpace::GroupSpace(const std::vector<LayerProblem>& problems, const GroupSearchOptions& options,
                       int64_t& steps)
    : problems_(problems),
      options_(options),
      terms_(static_cast<int>(problems.size())),
      rows_(problems, 0, options.tiles, steps, options.max_steps),
      channels_(problems, options.tiles),
      coefficients_(padded_terms(terms_.count()), 1) {
    const bool is_square = std::all_of(problems.begin(), problems.end(), [](const LayerProblem& p) {
        return p.window[0] == p.window[1];
    });
    if (!is_square) columns_.emplace(problems, 1, options.tiles, steps, options.max_steps);
    for (int k = 1; k <= terms_.n; ++k) {
        const LayerProblem& p = problem(k);
        const double channels = static_cast<double>(checked_multiply(p[Dim::z], p[Dim::i]));
        const double kernel = static_cast<double>(p.y().kernel * p.x().kernel);
        coefficients_[terms_.weights(k)] = kernel * channels;
        coefficients_[terms_.macs(k)] = channels;
        coefficients_[terms_.weight_buffer(k)] = kernel;
        double macs = channels;
        for (const AxisWindow& w : p.window) macs *= static_cast<double>(taps_of_whole(w));
        least_macs_ += macs;
    }
    const LayerProblem& first = problems.front();
    if (first.groups == 1) coefficients_[terms_.input()] = static_cast<double>(first[Dim::i]);
    coefficients_[terms_.visits()] = static_cast<double>(problems.back().output_elements().value());
}

const StructureSet& GroupSpace::structures(int k, const PartialChoice& choice) {
    LayerContext context;
    context.is_first = k == 1;
    context.is_last = k == terms_.n;
    if (!context.is_last) {
        context.scope = choice.structure(k + 1).scope;
        context.may_be_apart = {may_be_apart(k, 0, choice), may_be_apart(k, 1, choice)};
    }
    const auto key = std::make_pair(k, context);
    const auto known = structures_.find(key);
    if (known != structures_.end()) return known->second;
    return structures_
        .emplace(key, StructureSet(layer_structures(problem(k), context, options_.structures)))
        .first->second;
}

/// Whether pieces of A_k that are read one after the other in a lifetime may have nothing in
/// common: because a reader leaves gaps, or because one call may bring all of the few coordinates.
bool GroupSpace::may_be_apart(int k, size_t axis, const PartialChoice& choice) const {
    for (int reader = k + 1;; ++reader) {
        const AxisWindow& w = problem(reader).window[axis];
        if ((!w.transposed && w.span() < w.stride) || w.in <= 2 * w.span()) return true;
        if (choice.structure(reader).store >= 0) return false;
    }
}

std::vector<double> GroupSpace::coefficients(int k, const PartialChoice& choice) const {
    std::vector<double> result = coefficients_;
    for (int j = 1; j < k; ++j) {
        // The weight buffer holds at least one kernel, or all kernels if resident. The open channel
        // axes give the rest.
        if (!choice.is_resident(j)) continue;
        const LayerProblem& p = problem(j);
        result[terms_.weight_buffer(j)] *=
            static_cast<double>(j == k - 1 ? p[Dim::i] : p[Dim::z] * p[Dim::i]);
    }
    return result;
}

CostPlan GroupSpace::plan(int k, const PartialChoice& choice) const {
    std::vector<BufferPlace> places;
    const auto scope_nest = [&](int tensor) {  // the nest in whose loops A_tensor is stored
        int j = tensor + 1;
        while (j >= k && choice.structure(j).store < 0) ++j;
        return j;
    };
    for (int j = terms_.n; j >= 1; --j) {
        const bool is_open = j < k;
        places.push_back({terms_.buffer(j - 1), is_open ? j : scope_nest(j - 1), false});
        BufferPlace weights{terms_.weight_buffer(j), j, is_open};
        if (choice.is_resident(j))
            weights = {terms_.weight_buffer(j), 0, false};
        else if (!is_open && choice.structure(j).weights == WeightsLife::scope)
            weights = {terms_.weight_buffer(j), scope_nest(j), false};
        else if (!is_open)
            weights.is_below = choice.structure(j).weights_below;
        places.push_back(weights);
    }
    places.push_back({terms_.output_buffer(), terms_.n, choice.structure(terms_.n).output_below});
    if (!options_.live) {
        for (BufferPlace& place : places) place = {place.term, 0, false};
    }
    return {terms_, std::move(places)};
}

}  // namespace laminate::search
