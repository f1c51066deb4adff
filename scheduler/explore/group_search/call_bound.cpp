#include "scheduler/explore/group_search/call_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace laminate::search {

namespace {

/// Sums of square roots may come out a little too large.
constexpr double rounding = 1 - 1e-9;

}  // namespace

CallBound::CallBound(const std::vector<LayerProblem>& problems, Detail detail)
    : problems_(problems),
      sizes_(problems),
      choices_(call_choices(sizes_, detail)),
      input_(sizes_.input()),
      weights_(sizes_.all_weights) {
    const double macs = least_macs(problems);
    const double least = input_ + sizes_.output + weights_;
    double before = std::numeric_limits<double>::infinity();
    for (double memory = 1, next = 0; before > least; memory = next) {
        // Steps are shorter where the bound falls fast, as where little memory is left beside the
        // weights that are held.
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

const HaloBound& CallBound::halos(const Halos& halos) const {
    const auto known = halos_.find(halos);
    if (known != halos_.end()) return known->second;
    std::vector<double> channels;
    for (size_t k = 1; k < sizes_.layers; ++k) {
        const bool is_narrow = (halos.narrow >> k & 1U) != 0;
        const double all = k + 1 < sizes_.layers ? sizes_.channels[k] : halos.last_channels;
        channels.push_back(is_narrow ? 1 : all);
    }
    const bool of_parts = halos.narrow == 0 && halos.free == 0;
    return halos_.emplace(halos, HaloBound(problems_, channels, halos.free, of_parts))
        .first->second;
}

double CallBound::accesses(double memory) const {
    double best = std::numeric_limits<double>::infinity();
    for (const CallChoice& c : choices_) {
        if (c.held >= memory) break;  // `held` rises, and some element of a buffer must fit too
        const double rest = memory - c.held;
        const double apart = c.per_rest / rest + c.per_memory / (memory - c.beside);
        // If `input` elements of X are read for what is computed once, and `own` elements are in
        // buffers for whose calls weights come anew; `roots` as in 7 or 10.
        const auto total_of = [&](double roots) {
            return [&, roots](double input, double own) {
                const double again = roots * roots / own + apart;
                return c.again * std::max(input_, std::floor(input * rounding)) + c.output +
                       std::max(weights_, std::floor((c.held + again) * rounding));
            };
        };
        const auto total = total_of(c.roots);
        double least = total(0, rest);
        if (least < best && c.halos.count) least = total(halos(c.halos).input(rest), rest);
        if (least < best && c.halos.count && c.own != 0 && c.own != some_layer) {
            Halos others = c.halos;
            others.free = c.own;
            least = std::max(least, divided(halos(others), sizes_.layers, rest, total));
        }
        if (least < best && c.lowest != 0)
            least = std::max(least, divided(halos(c.halos), c.lowest, rest, total_of(c.groups)));
        best = std::min(best, least);
    }
    return best;
}

template <class Total>
double CallBound::divided(const HaloBound& bound, size_t t, double rest, const Total& total) {
    double least = std::numeric_limits<double>::infinity();
    // The buffers of other layers hold more than `before` and at most `memory`.
    double before = 0;
    for (const double memory : bound.memories()) {
        // The more they hold, the more the weights of this choice cost.
        if (before >= rest || total(0, rest - before) >= least) return least;
        least = std::min(least, total(bound.input(t, memory), rest - before));
        before = memory;
    }
    return before < rest ? std::min(least, total(0, rest - before)) : least;
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
