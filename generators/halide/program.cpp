#include "generators/halide/program.h"

#include <algorithm>
#include <tuple>

#include "generators/halide/stage_loops.h"
#include "generators/ir/constants.h"

namespace laminate {

using Halide::Func;
using Halide::Var;

namespace {

/// The directives that give the algorithm the group's loops and buffers, applied.
class Builder : private HalideStageLoops {
public:
    using HalideStageLoops::HalideStageLoops;

    HalideProgram build(HalideSpeed speed) {
        declare_inputs();
        const int nests = static_cast<int>(group_.nests.size());
        layer_func_.resize(static_cast<size_t>(nests), -1);
        weights_func_.resize(static_cast<size_t>(nests), -1);
        for (int k = 0; k < nests; ++k) define_layer(k);
        define_output();
        find_placed();
        for (int k = 0; k < nests; ++k) schedule_loops(k);
        place_buffers();
        make_fast();
        std::stable_sort(program_.directives.begin(), program_.directives.end(),
                         [](const HalideDirective& a, const HalideDirective& b) {
                             return std::tie(b.func, a.stage) < std::tie(a.func, b.stage);
                         });
        for (const HalideDirective& directive : program_.directives) apply(directive);
        for (HalideDirective directive : program_.fast_directives) {
            const bool is_threads = directive.verb == HalideVerb::parallel;
            if (directive.verb == HalideVerb::vectorize) directive.factor = speed.lanes;
            if (is_threads ? speed.threads : speed.lanes > 0) apply(directive);
        }
        return std::move(program_);
    }

private:
    void place(int f, const HalideLevels& levels, const std::string& folded, int64_t fold) {
        const HalideLoop store = loop_of(levels.store), compute = loop_of(levels.compute);
        if (!(store == compute))
            program_.directives.push_back({.verb = HalideVerb::store, .func = f, .at = store});
        program_.directives.push_back({.verb = HalideVerb::compute, .func = f, .at = compute});
        if (fold > 0) {
            HalideDirective directive{HalideVerb::fold, f, -1, {folded}, fold};
            const Loop loop =
                nest(levels.slide_loop->nest).loops[static_cast<size_t>(levels.slide_loop->loop)];
            const std::string tile = nest(levels.slide_loop->nest).layer + "_" + to_text(loop);
            for (const HalideParameter& known : program_.parameters) {
                if (known.name == tile) directive.parameter = tile;
            }
            directive.scale = levels.scale;
            program_.directives.push_back(directive);
        }
    }

    void place_buffers() {
        const BufferShapes shapes = buffer_shapes(group_, problems_);
        for (size_t t = 0; t < tensor_func_.size(); ++t) {
            const HalideLevels& levels = placement_.tensors()[t];
            std::string folded;
            int64_t fold = 0;
            // Halide chooses where it does something else.
            if (levels.slides && program_.exclusions.empty()) {
                const auto axis = static_cast<size_t>(*levels.slides);
                folded = std::string(1, "zyx"[axis]);
                fold = shapes.tensors[t].extent[axis];
            }
            place(tensor_func_[t], levels, folded, fold);
        }
        for (int k = 0; k <= sink(); ++k) {
            const auto& levels = placement_.weights()[static_cast<size_t>(k)];
            if (levels) place(weights_func_[static_cast<size_t>(k)], *levels, "", 0);
        }
        const Level y = nest(sink()).y.store;
        place(layer_func_.back(), {y, y, y, {}, {}, {}, 1, {}}, "", 0);
    }

    /// Vectors along columns, whole kernel rows at once, and threads over the outermost loop where
    /// nothing is kept from one trip to the next.
    void make_fast() {
        const auto add = [&](HalideVerb verb, int f, int stage, const std::string& var) {
            program_.fast_directives.push_back({verb, f, stage, {var}});
        };
        const std::vector<KeptLoop> outer = kept_loops(sink(), 0, output_level() + 1, false);
        const bool keeps = std::any_of(placement_.tensors().begin(), placement_.tensors().end(),
                                       [&](const HalideLevels& levels) {
                                           return loop_of(levels.store).func < 0 &&
                                                  loop_of(levels.compute).func >= 0;
                                       });
        if (!outer.empty() && outer.front().loop.dim != Dim::i && !keeps)
            add(HalideVerb::parallel, output_, visits() > 1 ? 0 : -1, to_text(outer.front().loop));
        // Sums are read back one at a time: Halide 21 loads vectors of its own output as if the
        // caller had aligned it.
        if (const std::string x = innermost_loop(sink(), Dim::x, outer, output_level() + 1);
            visits() == 1 && !x.empty())
            add(HalideVerb::vectorize, output_, -1, x);
        for (int k = sink(); k >= 0; --k) {
            const int f = layer_func_[static_cast<size_t>(k)];
            const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
            const int first = k == sink() ? output_level() + 1 : 0;
            const std::vector<KeptLoop> kept = kept_loops(
                k, first, static_cast<int>(nest(k).loops.size()), func.reduction.size() > 2);
            const std::string x =
                innermost_loop(k, Dim::x, kept, static_cast<int>(nest(k).loops.size()));
            const bool is_wide =
                placement_.covered(k, Dim::x, k == sink() ? nest(k).y.store : Level{k, -1}) >=
                least_columns;
            const int update = func.reduction.empty() ? -1 : 0;
            if (update == 0 && is_wide) add(HalideVerb::vectorize, f, -1, "x");
            if (update == 0 && !x.empty()) unroll_channels(k, f, kept);
            if (!x.empty()) add(HalideVerb::vectorize, f, update, x);
            if (update == 0) {
                add(HalideVerb::unroll, f, 0, func.domain() + ".x");
                add(HalideVerb::unroll, f, 0, func.domain() + ".y");
            }
            if (func.definitions.size() > 2 && is_wide) add(HalideVerb::vectorize, f, 1, "x");
        }
        for (size_t t = 0; t < tensor_func_.size() && placement_.group_tensors()[t].is_external();
             ++t)
            add(HalideVerb::vectorize, tensor_func_[t], -1, "x");
    }
    static constexpr int64_t least_columns = 8;

    /// A stage's innermost loop over a dimension, where it is long enough and nothing is brought in
    /// inside of it; else empty.
    [[nodiscard]] std::string innermost_loop(int k, Dim d, const std::vector<KeptLoop>& kept,
                                             int end) const {
        const std::string dim(1, "zyx"[static_cast<size_t>(d)]);
        std::string var = dim;
        const int before = kept.empty() ? end - 1 : kept.front().position - 1;
        int64_t extent = placement_.covered(k, d, Level{k, before});
        for (const KeptLoop& l : kept) {
            if (l.loop.dim != d) continue;
            const int64_t step = nest(k).step(l.loop);
            var = step == 1 ? to_text(l.loop) : rest_of(l.loop);
            if (step == 1 && is_placed_between(k, l.position, end)) return "";
            if (step > 1) extent = std::min(extent, step);
        }
        const bool is_long = d == Dim::x ? extent >= least_columns : extent % channels_at_once == 0;
        return is_long ? var : "";
    }
    static constexpr int64_t channels_at_once = 4;

    /// Several output channels for each vector of the input: their sums do not wait for each other.
    void unroll_channels(int k, int f, const std::vector<KeptLoop>& kept) {
        const std::string z =
            innermost_loop(k, Dim::z, kept, static_cast<int>(nest(k).loops.size()));
        if (z.empty() || problem(k).groups > 1) return;
        for (const HalideDirective& d : program_.directives) {
            if (d.verb != HalideVerb::reorder || d.func != f || d.stage != 0) continue;
            std::vector<std::string> order = d.vars;
            order.insert(order.begin(), "zu");
            program_.fast_directives.push_back({.verb = HalideVerb::split,
                                                .func = f,
                                                .stage = 0,
                                                .vars = {z, z, "zu"},
                                                .factor = channels_at_once});
            program_.fast_directives.push_back(
                {.verb = HalideVerb::reorder, .func = f, .stage = 0, .vars = order});
            program_.fast_directives.push_back(
                {.verb = HalideVerb::unroll, .func = f, .stage = 0, .vars = {"zu"}});
            return;
        }
    }

    // ---- applying it

    [[nodiscard]] Halide::VarOrRVar variable(const std::string& name) const {
        const size_t dot = name.find('.');
        if (dot != std::string::npos)
            return Halide::RVar(name.substr(0, dot) + "$" + name.substr(dot + 1));
        if (name.front() == 'i' && name != "i") return Halide::RVar(name);
        return Var(name);
    }

    [[nodiscard]] Halide::LoopLevel loop_level(const HalideLoop& at) const {
        if (at.func < 0) return Halide::LoopLevel::root();
        return {program_.funcs[static_cast<size_t>(at.func)].func, variable(at.var)};
    }

    void apply(const HalideDirective& d) {
        Func& func = program_.funcs[static_cast<size_t>(d.func)].func;
        const auto var = [&](size_t n) { return variable(d.vars[n]); };
        std::vector<Halide::VarOrRVar> vars;
        for (size_t n = 0; n < d.vars.size(); ++n) vars.push_back(var(n));
        Halide::Stage stage = d.stage < 0 ? Halide::Stage(func) : func.update(d.stage);
        switch (d.verb) {
            case HalideVerb::split:
                stage.split(vars[0], vars[1], vars[2], static_cast<int32_t>(d.factor),
                            Halide::TailStrategy::GuardWithIf);
                break;
            case HalideVerb::rename:
                stage.rename(vars[0], vars[1]);
                break;
            case HalideVerb::reorder:
                stage.reorder(vars);
                break;
            case HalideVerb::compute:
                func.compute_at(loop_level(d.at));
                break;
            case HalideVerb::store:
                func.store_at(loop_level(d.at));
                break;
            case HalideVerb::fold:
                func.fold_storage(Var(d.vars[0]), static_cast<int32_t>(d.factor));
                break;
            case HalideVerb::bound:
                func.bound(Var(d.vars[0]), 0, static_cast<int32_t>(d.factor));
                break;
            case HalideVerb::vectorize:
                stage.vectorize(vars[0], static_cast<int32_t>(d.factor),
                                Halide::TailStrategy::GuardWithIf);
                break;
            case HalideVerb::unroll:
                stage.unroll(vars[0]);
                break;
            case HalideVerb::parallel:
                stage.parallel(vars[0]);
                break;
        }
    }
};

}  // namespace

HalideProgram halide_program(const Network& network, const GroupSchedule& group,
                             HalidePadding padding, HalideSpeed speed) {
    return Builder(network, group, padding).build(speed);
}

std::vector<float> halide_constants(const Network& network, const GroupSchedule& group,
                                    const HalideInput& input) {
    const LayerProblem problem = group_problems(network, group).at(static_cast<size_t>(input.nest));
    const Layer& layer = network.layer(problem.layer);
    switch (input.values) {
        case HalideInput::Values::bias:
            return canonical_bias(layer, problem);
        case HalideInput::Values::slope:
            return canonical_slope(layer, problem);
        default:
            return canonical_weights(layer, problem);
    }
}

}  // namespace laminate
