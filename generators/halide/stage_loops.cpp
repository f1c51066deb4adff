#include "generators/halide/stage_loops.h"

#include <algorithm>
#include <map>

#include "base/range.h"

namespace laminate {

void HalideStageLoops::find_placed() {
    const auto note = [&](const HalideLevels& levels) {
        placed_.insert({levels.store, levels.compute});
        if (levels.exclusion) program_.exclusions.push_back(*levels.exclusion);
    };
    for (const HalideLevels& levels : placement_.tensors()) note(levels);
    for (const auto& levels : placement_.weights()) {
        if (levels) note(*levels);
    }
    placed_.insert(placement_.outermost_like(nest(sink()).y.store));
    for (size_t t = 0; t < placement_.tensors().size(); ++t) {
        const HalideLevels& levels = placement_.tensors()[t];
        if (!levels.merged_loop || is_one_loop(*levels.merged_loop, *levels.slide_loop)) continue;
        program_.exclusions.push_back(
            {HalideReason::second_loop, placement_.group_tensors()[t].name +
                                            " is kept along two loops, " +
                                            level_text(group_, -1, *levels.merged_loop) + " and " +
                                            level_text(group_, -1, *levels.slide_loop)});
    }
    check_strips();
    const bool slides_inside = std::any_of(
        placement_.tensors().begin(), placement_.tensors().end(), [&](const HalideLevels& levels) {
            return levels.slide_loop && levels.slide_loop->nest == sink() &&
                   levels.slide_loop->loop > output_level();
        });
    if (visits() > 1 && (sink() > 0 || slides_inside) &&
        problem(sink())[Dim::i] % channels_of_a_visit() != 0) {
        program_.exclusions.push_back(
            {HalideReason::short_visit,
             nest(sink()).layer +
                 ": the last visit of Y has fewer input channels than the others"});
    }
    check_order();
}

void HalideStageLoops::check_order() {
    using namespace Halide::Internal;
    const std::vector<Function> output{program_.output().func.function()};
    std::map<std::string, Function> env = build_environment(output);
    const std::vector<std::string> order = realization_order(output, env).first;
    const auto position = [&](int f) {
        return std::find(order.begin(), order.end(), name_of(f)) - order.begin();
    };
    for (size_t t = 0; t < tensor_func_.size(); ++t) {
        const HalideLevels& window = placement_.tensors()[t];
        if (!window.slides) continue;
        const auto check = [&](int f, const HalideLevels& levels) {
            if (levels.slides || !(levels.compute == *window.slide_loop) ||
                !(levels.lifetime == levels.compute || levels.store == levels.compute))
                return;
            if (position(f) < position(tensor_func_[t]))
                program_.exclusions.push_back(
                    {HalideReason::before_window, name_of(f) + " comes before " +
                                                      name_of(tensor_func_[t]) +
                                                      " in the loop along which that is kept"});
        };
        for (size_t u = 0; u < tensor_func_.size(); ++u) {
            const int made = static_cast<int>(u), kept = static_cast<int>(t);
            if (!placement_.is_made_from(made, kept) && !placement_.is_made_from(kept, made))
                check(tensor_func_[u], placement_.tensors()[u]);
        }
        for (size_t k = 0; k < weights_func_.size(); ++k) {
            if (placement_.weights()[k]) check(weights_func_[k], *placement_.weights()[k]);
        }
    }
}

void HalideStageLoops::check_strips() {
    const Nest& n = nest(sink());
    for (const Dim d : {Dim::y, Dim::x}) {
        const int64_t strip = n.strip[d == Dim::y ? 0 : 1];
        if (strip == 0) continue;
        const int64_t rest = problem(sink())[d] % strip;
        const int64_t tile = n[d];
        if (rest == 0 || ceil_div(rest, tile) == ceil_div(strip, tile)) continue;
        program_.exclusions.push_back(
            {HalideReason::short_strip, n.layer + ": the last strip of " +
                                            to_text(Loop{d, Band::strip}) +
                                            " has fewer tiles than the others"});
    }
}

std::vector<KeptLoop> HalideStageLoops::kept_loops(int k, int first, int last, bool reduces) const {
    std::vector<KeptLoop> kept;
    for (int l = first; l < last; ++l) {
        const Loop loop = nest(k).loops[static_cast<size_t>(l)];
        const bool is_placed = placed_.contains({k, l}) && (reduces || loop.dim != Dim::i);
        if (!is_placed && placement_.trips({k, l}) <= 1) continue;
        if (!kept.empty() && kept.back().loop.dim == loop.dim &&
            !is_placed_between(k, kept.back().position, l) &&
            nest(k).step(kept.back().loop) % nest(k).step(loop) == 0) {
            kept.pop_back();
        }
        kept.push_back({loop, l});
    }
    return kept;
}

std::string HalideStageLoops::rest_of(Loop loop) {
    const std::string dim = to_text(Loop{loop.dim, Band::inner}).substr(0, 1);
    return dim + (loop.band == Band::strip ? "s_" : "r");
}

std::string HalideStageLoops::parameter(int k, Loop loop) {
    const std::string name = group_.nests[static_cast<size_t>(k)].layer + "_" + to_text(loop);
    for (const HalideParameter& known : program_.parameters) {
        if (known.name == name) return name;
    }
    program_.parameters.push_back({name, nest(k).step(loop)});
    return name;
}

void HalideStageLoops::schedule_stage(int k, int f, int stage, const std::vector<KeptLoop>& kept) {
    const HalideFunc& func = program_.funcs[static_cast<size_t>(f)];
    std::vector<std::string> innermost;  // innermost first
    if (stage >= 0 && f != output_ && !func.reduction.empty()) {
        innermost = {func.domain() + ".x", func.domain() + ".y"};
        if (func.args.size() > 3) innermost.push_back(visit_.name());
    }
    std::vector<std::string> order(kept.size());
    for (const Dim d : {Dim::x, Dim::y, Dim::z, Dim::i}) {
        if (d == Dim::i && f != output_ && func.reduction.size() < 3) continue;
        if (d == Dim::i && func.reduction.empty()) continue;
        std::string base = d == Dim::i ? func.domain() + (f == output_ ? ".x" : ".z")
                                       : std::string(1, "zyxi"[static_cast<size_t>(d)]);
        std::vector<size_t> mine;
        for (size_t l = 0; l < kept.size(); ++l) {
            if (kept[l].loop.dim == d) mine.push_back(l);
        }
        for (size_t l = 0; l < mine.size(); ++l) {
            const Loop loop = kept[mine[l]].loop;
            const std::string var = to_text(loop);
            const bool is_last = l + 1 == mine.size();
            const bool is_visit = f == output_ && loop.dim == Dim::i;
            if (is_last && (nest(k).step(loop) == 1 || is_visit)) {
                program_.directives.push_back({HalideVerb::rename, f, stage, {base, var}});
                base.clear();
            } else {
                const bool next_is_unit =
                    !is_last && l + 2 == mine.size() && nest(k).step(kept[mine[l + 1]].loop) == 1;
                const std::string rest =
                    next_is_unit ? to_text(kept[mine[l + 1]].loop) : rest_of(loop);
                program_.directives.push_back({HalideVerb::split,
                                               f,
                                               stage,
                                               {base, var, rest},
                                               nest(k).step(loop),
                                               parameter(k, loop)});
                base = rest;
                if (next_is_unit) {
                    order[mine[l]] = var;
                    order[mine[l + 1]] = rest;
                    base.clear();
                    break;
                }
            }
            order[mine[l]] = var;
        }
        if (!base.empty()) innermost.push_back(base);
    }
    innermost.insert(innermost.end(), order.rbegin(), order.rend());
    if (innermost.size() > 1)
        program_.directives.push_back({HalideVerb::reorder, f, stage, innermost});
}

void HalideStageLoops::schedule_loops(int k) {
    const int loops = static_cast<int>(nest(k).loops.size());
    const int f = layer_func_[static_cast<size_t>(k)];
    int first = 0;
    if (k == sink()) {
        first = output_level() + 1;
        const std::vector<KeptLoop> kept = kept_loops(k, 0, first, false);
        remember(k, output_, kept);
        schedule_stage(k, output_, visits() > 1 ? 0 : -1, kept);
    }
    const bool reduces = program_.funcs[static_cast<size_t>(f)].reduction.size() > 2;
    const std::vector<KeptLoop> kept = kept_loops(k, first, loops, reduces);
    remember(k, f, kept);
    const bool is_pure = program_.funcs[static_cast<size_t>(f)].reduction.empty();
    schedule_stage(k, f, is_pure ? -1 : 0, kept);
    if (program_.funcs[static_cast<size_t>(f)].definitions.size() > 2)
        program_.directives.push_back({HalideVerb::reorder, f, 1, {"x", "y", "z"}});
}

HalideLoop HalideStageLoops::loop_of(Level level) const {
    if (level.is_root()) return {};
    const KnownLoop* best = nullptr;
    for (const KnownLoop& known : loops_) {
        if (known.level.nest != level.nest || known.level.loop > level.loop) continue;
        if (!best || known.level.loop > best->level.loop) best = &known;
    }
    if (best) return best->loop;
    if (level.nest == sink()) return {};
    for (const GroupTensor& tensor : placement_.group_tensors()) {
        if (tensor.producer == level.nest) return loop_of(placement_of(group_, tensor).compute);
    }
    return {};
}

}  // namespace laminate
