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
    : CallBound(problems, ChainSizes(problems), detail) {}

CallBound::CallBound(const std::vector<LayerProblem>& problems, const ChainSizes& sizes,
                     Detail detail)
    : choices_(call_choices(sizes, detail)), input_(sizes.input()), weights_(sizes.all_weights) {
    for (const CallChoice& choice : choices_) {
        if (!choice.halos.count || halos_.contains(choice.halos)) continue;
        std::vector<double> channels;
        for (size_t k = 1; k < problems.size(); ++k) {
            const bool is_narrow = (choice.halos.narrow >> k & 1U) != 0;
            const double all =
                k + 1 < problems.size() ? sizes.channels[k] : choice.halos.last_channels;
            channels.push_back(is_narrow ? 1 : all);
        }
        halos_.emplace(choice.halos, HaloBound(problems, channels));
    }
    const double macs = least_macs(problems);
    const double least = input_ + sizes.output + weights_;
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

double CallBound::accesses(double memory) const {
    double best = std::numeric_limits<double>::infinity();
    for (const CallChoice& c : choices_) {
        if (c.held >= memory) break;  // `held` rises, and some element of a buffer must fit too
        const double again = (c.roots * c.roots + c.per_rest) / (memory - c.held) +
                             c.per_memory / (memory - c.beside);
        double once = input_;
        if (c.halos.count)
            once = std::max(
                once, std::floor(halos_.at(c.halos).input(memory - c.held) * rounding));
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
