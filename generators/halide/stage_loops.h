// Private to generators/halide: which of a schedule's loops each stage of a Func keeps, and the
// directives that make them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "generators/halide/algorithm.h"

namespace laminate {

/// One stage's loops of a nest: which of the schedule's loops it keeps, by their positions.
struct KeptLoop {
    Loop loop;
    int position = 0;
};

/// The loops of each stage, split and in their order, and the reasons that lie in them why Halide
/// does something else than the schedule says.
class HalideStageLoops : protected HalideAlgorithm {
public:
    using HalideAlgorithm::HalideAlgorithm;

protected:
    void find_placed();

    /// Halide begins a sliding window early, with trips that only fill it. It guards what comes
    /// after the window's producer in the loop's body; what comes before runs in these trips too.
    void check_order();
    [[nodiscard]] std::string name_of(int f) const {
        return program_.funcs[static_cast<size_t>(f)].name();
    }

    /// Trips over tiles of a strip are as many in the last strip, though it be shorter.
    void check_strips();

    /// Which loops [first, last) of nest k are loops of its code: those that repeat or hold
    /// something. An outer loop right around its inner loop holds nothing and is one with it.
    [[nodiscard]] std::vector<KeptLoop> kept_loops(int k, int first, int last, bool reduces) const;

    [[nodiscard]] bool is_one_loop(Level outer, Level inner) const {
        const Nest& n = nest(outer.nest);
        const auto step = [&](Level v) { return n.step(n.loops[static_cast<size_t>(v.loop)]); };
        return !is_placed_between(outer.nest, outer.loop, inner.loop) &&
               step(outer) % step(inner) == 0;
    }

    [[nodiscard]] bool is_placed_between(int k, int first, int last) const {
        for (int l = first; l < last; ++l) {
            if (placed_.contains({k, l})) return true;
        }
        return false;
    }

    /// The variable that runs through a trip of a kept loop where no other loop divides it.
    [[nodiscard]] static std::string rest_of(Loop loop);

    std::string parameter(int k, Loop loop);

    /// Splits the dimensions of a stage into the kept loops and orders them; what is left of a
    /// dimension below its kept loops runs innermost.
    void schedule_stage(int k, int f, int stage, const std::vector<KeptLoop>& kept);

    void schedule_loops(int k);

    void remember(int k, int f, const std::vector<KeptLoop>& kept) {
        for (const KeptLoop& l : kept) {
            loops_.push_back({{k, l.position}, {f, to_text(l.loop)}});
        }
    }

    /// The Halide loop whose body is that level's: the kept loop at or around it.
    [[nodiscard]] HalideLoop loop_of(Level level) const;

    struct KnownLoop {
        Level level;
        HalideLoop loop;
    };

    std::set<Level> placed_;
    std::vector<KnownLoop> loops_;
};

}  // namespace laminate
