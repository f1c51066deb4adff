#include "tests/scheduler/explore/every_schedule.h"

#include <algorithm>
#include <map>

#include "tests/scheduler/explore/every_schedule/costs.h"
#include "tests/scheduler/explore/every_schedule/patterns.h"
#include "tests/scheduler/explore/every_schedule/shapes.h"

namespace laminate::every {

namespace {

std::vector<int64_t> candidates(int64_t extent, TileSizes kind) {
    std::vector<int64_t> sizes;
    for (int64_t t = 1; t <= extent; ++t) {
        const bool is_power = (t & (t - 1)) == 0 || t == extent;
        if (kind == TileSizes::all || (kind == TileSizes::divisors ? extent % t == 0 : is_power))
            sizes.push_back(t);
    }
    return sizes;
}

}  // namespace

class EverySchedule::Impl {
public:
    Impl(std::vector<LayerProblem> problems, const EveryScheduleOptions& options)
        : problems_(std::move(problems)),
          options_(options),
          space_(problems_),
          patterns_(problems_),
          least_(problems_) {
        for (size_t k = 0; k < problems_.size(); ++k)
            shapes_.push_back(shapes_of(problems_, k, options.only_resident));
    }

    std::set<ThreeCosts> unbeaten_by(const std::set<ThreeCosts>& front) {
        trace_.assign(1, {});
        examples_.clear();
        std::map<State, std::vector<Costs>> states{{patterns_.whole_output(), {Costs{}}}};
        for (size_t k = problems_.size(); k-- > 0;) {
            std::map<State, std::vector<Costs>> next;
            for (const auto& [state, costs] : states) expand(k, state, costs, front, next);
            states = std::move(next);
        }
        return front_of_examples();
    }

    [[nodiscard]] std::string example(const ThreeCosts& cost) const {
        ChainSchedule schedule;  // the trace leads from the first layer to the last
        for (size_t t = examples_.at(cost); t != 0; t = trace_[t].after)
            schedule.layers.push_back(trace_[t].layer);
        const auto group = space_.group(schedule);
        return group ? to_text(*group) : "outside the space";
    }

    ThreeCosts cost(const ChainSchedule& schedule) {
        State state = patterns_.whole_output();
        Costs costs;
        for (size_t k = problems_.size(); k-- > 0;) {
            const ChainSchedule::Layer& layer = schedule.layers[k];
            Shape shape = shape_of(problems_, k, layer);
            if (k > 0 && (shape.place[outputs] == Place::between ||
                          shape.place[outputs] == Place::kept_between)) {
                // The space allows this with a single trip only.
                std::erase(shape.walk, outputs);
                shape.place[outputs] = Place::below_compute;
            }
            State next;
            const Local local =
                local_costs(patterns_, k, patterns_.tables(state), shape, layer.tile, next);
            costs = add_layer(costs, local, shape.is_kept, patterns_.macs(k, state),
                              options_.footprint);
            state = next;
        }
        return {costs.accesses, costs.memory(), costs.macs};
    }

private:
    /// What a layer's choices have in common: what they ask of the layer before it, and
    /// Shape::is_kept.
    using Outcome = std::pair<State, bool>;
    struct Trace {
        ChainSchedule::Layer layer;
        size_t after = 0;
    };

    [[nodiscard]] bool does_beat(const ThreeCosts& a, const ThreeCosts& b) const {
        return options_.macs_is_axis ? beats(a, b) : beats_before_macs(a, b);
    }

    /// Every shape and tile of layer k, without those that others of their outcome beat.
    std::map<Outcome, std::vector<Local>> choices(size_t k, const State& state) {
        const Patterns::Tables tables = patterns_.tables(state);
        const bool has_channel_loop =
            std::find(state.walk.begin(), state.walk.end(), inputs) != state.walk.end();
        const int64_t all_inputs = problems_[k][Dim::i];
        std::map<Outcome, std::vector<Local>> choices;
        for (const auto& [shape, layer] : shapes_[k]) {
            if (shape.is_kept && has_channel_loop) continue;
            const bool is_whole = shape.is_kept || shape.weights == 5;
            const auto sizes = [&](int64_t extent) {
                return is_whole ? std::vector<int64_t>{extent} : candidates(extent, options_.tiles);
            };
            const auto add = [&](const PerDim<int64_t>& tile) {
                State next;
                Local local = local_costs(patterns_, k, tables, shape, tile, next);
                if (k == 0) next = {};
                const PerDim<int64_t> used = local.layer.tile;
                local.layer = layer;
                local.layer.tile = used;
                insert(choices[{next, shape.is_kept}], local);
            };
            const std::vector<int64_t> input_tiles =
                patterns_.is_last(k) ? sizes(all_inputs) : std::vector<int64_t>{all_inputs};
            for (const int64_t y : sizes(tables.largest[0])) {
                for (const int64_t x : sizes(tables.largest[1])) {
                    for (const int64_t z : sizes(tables.largest_channels)) {
                        for (const int64_t i : input_tiles) add({z, y, x, i});
                    }
                }
            }
        }
        return choices;
    }

    void expand(size_t k, const State& state, const std::vector<Costs>& costs,
                const std::set<ThreeCosts>& front, std::map<State, std::vector<Costs>>& states) {
        const int64_t own_macs = patterns_.macs(k, state);
        for (const auto& [outcome, locals] : choices(k, state)) {
            const auto& [next, is_kept] = outcome;
            const int64_t macs_of_next = k > 0 ? patterns_.macs(k - 1, next) : 0;
            for (const Costs& before : costs) {
                for (const Local& local : locals) {
                    Costs c = add_layer(before, local, is_kept, own_macs, options_.footprint);
                    const ThreeCosts least = least_.bound(k, c, macs_of_next);
                    const auto is_better = [&](const ThreeCosts& f) { return does_beat(f, least); };
                    if (std::any_of(front.begin(), front.end(), is_better) ||
                        (!options_.recompute && least[2] > least_.macs_alone()))
                        continue;
                    c.trace = trace_.size();
                    trace_.push_back({local.layer, before.trace});
                    if (k == 0)
                        examples_.emplace(ThreeCosts{c.accesses, c.memory(), c.macs}, c.trace);
                    else
                        insert(states[next], c);
                }
            }
        }
    }

    [[nodiscard]] std::set<ThreeCosts> front_of_examples() const {
        std::set<ThreeCosts> all;
        for (const auto& example : examples_) {
            const ThreeCosts& cost = example.first;
            if (std::none_of(examples_.begin(), examples_.end(),
                             [&](const auto& other) { return does_beat(other.first, cost); }))
                all.insert(cost);
        }
        return all;
    }

    std::vector<LayerProblem> problems_;
    EveryScheduleOptions options_;
    SpaceOfAChain space_;
    Patterns patterns_;
    LeastCosts least_;
    /// By layer: its shapes, each with one order and levels of that shape.
    std::vector<std::map<Shape, ChainSchedule::Layer>> shapes_;
    std::vector<Trace> trace_;
    std::map<ThreeCosts, size_t> examples_;
};

EverySchedule::EverySchedule(std::vector<LayerProblem> problems,
                             const EveryScheduleOptions& options)
    : impl_(std::make_unique<Impl>(std::move(problems), options)) {}
EverySchedule::~EverySchedule() = default;
std::set<ThreeCosts> EverySchedule::unbeaten_by(const std::set<ThreeCosts>& front) {
    return impl_->unbeaten_by(front);
}
std::string EverySchedule::example(const ThreeCosts& cost) const { return impl_->example(cost); }
ThreeCosts EverySchedule::cost(const ChainSchedule& schedule) { return impl_->cost(schedule); }

}  // namespace laminate::every
