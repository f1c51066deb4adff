#include "scheduler/explore/group_search/call_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::search {

namespace {

/// Which coordinates of an axis are needed.
using Coordinates = std::vector<char>;

/// Of the input, for these of the output.
Coordinates read_by(const AxisWindow& w, const Coordinates& needed) {
    Coordinates inputs(static_cast<size_t>(w.in), 0);
    for (int64_t out = 0; out < w.out; ++out) {
        if (needed[static_cast<size_t>(out)] == 0) continue;
        for (int64_t tap = 0; tap < w.kernel; ++tap) {
            if (const auto in = w.input(out, tap)) inputs[static_cast<size_t>(*in)] = 1;
        }
    }
    return inputs;
}

int64_t taps(const AxisWindow& w, const Coordinates& needed) {
    int64_t sum = 0;
    for (int64_t out = 0; out < w.out; ++out) {
        if (needed[static_cast<size_t>(out)] != 0) sum += taps_of(w, {out, out + 1});
    }
    return sum;
}

/// How many coordinates of each tensor A_0 .. A_n are needed for the whole output, along one axis.
std::vector<int64_t> needed_coordinates(const std::vector<LayerProblem>& problems, size_t axis) {
    Coordinates needed(static_cast<size_t>(problems.back().window[axis].out), 1);
    std::vector<int64_t> result{static_cast<int64_t>(needed.size())};
    for (size_t k = problems.size(); k-- > 0;) {
        needed = read_by(problems[k].window[axis], needed);
        result.push_back(std::count(needed.begin(), needed.end(), 1));
    }
    std::reverse(result.begin(), result.end());
    return result;
}

/// MACs of what is needed, each once.
double least_macs(const std::vector<LayerProblem>& problems) {
    std::vector<double> macs(problems.size(), 1);
    for (size_t axis = 0; axis < 2; ++axis) {
        Coordinates needed(static_cast<size_t>(problems.back().window[axis].out), 1);
        for (size_t k = problems.size(); k-- > 0;) {
            const AxisWindow& w = problems[k].window[axis];
            macs[k] *= static_cast<double>(taps(w, needed));
            needed = read_by(w, needed);
        }
    }
    double sum = 0;
    for (size_t k = 0; k < problems.size(); ++k)
        sum += macs[k] * static_cast<double>(problems[k][Dim::z] * problems[k][Dim::i]);
    return sum;
}

/// Layers n - 1 .. k decided.
struct State {
    double held = 0;
    double roots = 0;     ///< without that of `open`
    double open = 0;      ///< a_k so far: layer k - 1 may add to it
    double again = 1;     ///< rho_{k-1}
    bool is_wide = true;  ///< all calls make all channels
};
using States = std::vector<State>;

/// Sums of square roots may come out a little too large.
constexpr double rounding = 1 - 1e-9;

/// Weights held are rounded down to so many steps, so that there are not more states.
constexpr double steps_of_held = 8192;

constexpr size_t most_states = 160;

/// More of it is dearer than any schedule that is not beaten: it bounds the number of states.
constexpr double most_again = 1e6;

/// Those that no other one beats; alike in `open`, `again` and `is_wide`.
void keep_best(States& states) {
    std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
        return a.held != b.held ? a.held < b.held : a.roots < b.roots;
    });
    States kept;
    for (const State& s : states) {
        if (kept.empty() || s.roots < kept.back().roots) kept.push_back(s);
    }
    if (kept.size() <= most_states) {
        states = std::move(kept);
        return;
    }
    // Neighbours become one that is as good as the best of them in each respect.
    states.clear();
    for (size_t n = 0; n < most_states; ++n) {
        State s = kept[n * kept.size() / most_states];
        s.roots = kept[(n + 1) * kept.size() / most_states - 1].roots;
        states.push_back(s);
    }
}

/// Tiles from one power of it to the next stand for each other: the smallest where a term rises
/// with the tile, the largest where it falls.
constexpr double power = 2;

/// Input channels of the last layer that a tile stands for at least, if it may be all of them.
double least_of_whole(const LayerProblem& last) {
    double least = 1;
    while (least * power <= static_cast<double>(last[Dim::i])) least *= power;
    return least;
}

}  // namespace

CallBound::CallBound(const std::vector<LayerProblem>& problems)
    : halos_of_parts_(problems, 1), halos_of_whole_(problems, least_of_whole(problems.back())) {
    const size_t n = problems.size();
    std::vector<double> pixels(n + 1, 1);  // S_0 .. S_n
    for (size_t axis = 0; axis < 2; ++axis) {
        const std::vector<int64_t> coordinates = needed_coordinates(problems, axis);
        for (size_t k = 0; k <= n; ++k) pixels[k] *= static_cast<double>(coordinates[k]);
    }
    const auto weights = [&](size_t k) {
        return static_cast<double>(problems[k - 1].weight_elements().value());
    };
    const auto channels = [&](size_t k) { return static_cast<double>(problems[k - 1][Dim::z]); };
    for (size_t k = 1; k <= n; ++k) weights_ += weights(k);
    const double grain = weights_ / steps_of_held;
    const auto rounded = [&](double held) { return std::floor(held / grain) * grain; };
    input_ = static_cast<double>(problems.front()[Dim::i]) * pixels[0];
    const double output = static_cast<double>(problems.back().output_elements().value());

    // The decision for layer k whose calls make `c` channels, or one (`is_narrow`): weights of its
    // own, kept as long as A_k (`long_held` elements), or one channel of them kept as long as its
    // channel. `extra`: what layer k + 1 adds to a_k.
    const auto decide = [&](size_t k, double c, double again_before, double long_held,
                            bool is_narrow, double extra, const State& s, States& out) {
        const double roots = s.roots + std::sqrt(s.open);
        const bool is_wide = s.is_wide && !is_narrow;
        out.push_back(
            {s.held, roots, weights(k) * c * s.again * pixels[k] + extra, again_before, is_wide});
        out.push_back({s.held + rounded(long_held), roots, extra, again_before, is_wide});
        if (!is_narrow || k == n - 1) return;
        const double more = weights(k) * channels(k + 1) * pixels[k + 1];
        out.push_back({s.held + rounded(weights(k) / channels(k)),
                       s.roots + std::sqrt(s.open + more), 0, again_before, is_wide});
    };

    struct Tile {
        double least, most;
    };
    const auto tiles_of = [&](double extent) {
        std::vector<Tile> tiles;
        for (double t = 1; t <= extent; t *= power)
            tiles.push_back({t, std::min(t * power - 1, extent)});
        return tiles;
    };
    const double width = channels(n - 1);
    const double last_work = weights(n) * pixels[n];
    const double last_kernel = weights(n) / (width * channels(n));
    for (const Tile& t : tiles_of(width)) {
        const double input_tiles = std::ceil(width / t.most);
        const double visits = output * (2 * input_tiles - 1);
        for (const bool wide : {true, false}) {
            struct Last {
                double held = 0, again = 1, extra = 0, per_memory = 0, needs = 0;
            };
            std::vector<Last> lasts{{rounded(weights(n)), 1, 0, 0, weights(n)}};
            if (wide) lasts.push_back({0, 1, last_work * t.least, 0, 0});
            for (const Tile& z : tiles_of(channels(n))) {
                const double again = std::ceil(channels(n) / z.most);
                lasts.push_back({0, again, 0, last_work * z.least, 0});
                lasts.push_back({0, again, 0, 0, last_kernel * t.least * z.least});
            }
            for (const Last& last : lasts) {
                States states;
                const double c = wide ? t.least : 1;
                const double again_before =
                    std::min(most_again, last.again * (wide ? input_tiles : width));
                decide(n - 1, c, again_before, weights(n - 1) * c / width, !wide, last.extra,
                       {last.held, 0, 0, last.again, true}, states);
                for (size_t k = n - 1; k-- > 1;) {
                    std::map<std::array<double, 3>, States> next;
                    States made;
                    for (const State& s : states) {
                        made.clear();
                        decide(k, channels(k), s.again, weights(k), false, 0, s, made);
                        decide(k, 1, std::min(most_again, s.again * channels(k)), weights(k), true,
                               0, s, made);
                        for (const State& m : made)
                            next[{m.open, m.again, m.is_wide ? 1.0 : 0.0}].push_back(m);
                    }
                    states.clear();
                    for (auto& [key, alike] : next) {
                        keep_best(alike);
                        states.insert(states.end(), alike.begin(), alike.end());
                    }
                }
                for (const State& s : states) {
                    const Halos halos = !s.is_wide         ? Halos::none
                                        : input_tiles == 1 ? Halos::of_whole
                                                           : Halos::of_parts;
                    choices_.push_back({s.held, s.roots + std::sqrt(s.open), s.again, halos, visits,
                                        last.per_memory, last.needs});
                }
            }
        }
    }
    std::sort(choices_.begin(), choices_.end(),
              [](const Choice& a, const Choice& b) { return a.held < b.held; });
    std::vector<Choice> kept;
    for (const Choice& c : choices_) {
        const auto no_worse = [&](const Choice& o) {
            return o.roots <= c.roots && o.again <= c.again && o.halos <= c.halos &&
                   o.output <= c.output && o.per_memory <= c.per_memory && o.needs <= c.needs;
        };
        if (std::none_of(kept.begin(), kept.end(), no_worse)) kept.push_back(c);
    }
    choices_ = std::move(kept);

    const double macs = least_macs(problems);
    const double least = input_ + output + weights_;
    double before = std::numeric_limits<double>::infinity();
    for (double memory = 1, next = 0; before > least; memory = next) {
        // Shorter where much happens within so much, as where little is left beside the weights
        // that are held.
        const double at_once = accesses(memory);
        double reached = 0;
        for (const double length : {0.02, 0.01, 0.005, 0.0025, 0.00125}) {
            next = std::max(memory + 1, std::floor(memory * (1 + length)));
            reached = accesses(next - 1);
            if (reached * 1.03 >= at_once) break;
        }
        if (reached < before) steps_.push_back({reached, memory, macs});
        before = reached;
    }
}

double CallBound::accesses(double memory) const {
    double best = std::numeric_limits<double>::infinity();
    for (const Choice& c : choices_) {
        if (c.held >= memory)
            break;  // by `held`, rising; some element of a buffer has to be there too
        if (c.needs > memory) continue;
        const double again = c.roots * c.roots / (memory - c.held) + c.per_memory / memory;
        double once = input_;
        if (c.halos != Halos::none) {
            const HaloBound& halos = c.halos == Halos::of_whole ? halos_of_whole_ : halos_of_parts_;
            once = std::max(once, std::floor(halos.input(memory - c.held) * rounding));
        }
        best = std::min(best, c.again * once + c.output +
                                  std::max(weights_, std::floor((c.held + again) * rounding)));
    }
    return best;
}

std::vector<Cost> at_least_both(const std::vector<Cost>& open, const CallBound& bound) {
    Archive<char> both(false);
    for (const Cost& o : open) {
        for (const Cost& b : bound.steps()) {
            both.offer({std::max(o.accesses, b.accesses), std::max(o.memory, b.memory), o.macs}, 0);
        }
    }
    return both.costs();
}

}  // namespace laminate::search
