#include "scheduler/explore/group_search/call_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace laminate::search {

namespace {

/// Sums of square roots may come out a little too large.
constexpr double rounding = 1 - 1e-9;

}  // namespace

CallBound::CallBound(const std::vector<LayerProblem>& problems)
    : CallBound(problems, ChainSizes(problems)) {}

CallBound::CallBound(const std::vector<LayerProblem>& problems, const ChainSizes& sizes)
    : choices_(call_choices(sizes)),
      halos_of_parts_(problems, 1),
      halos_of_whole_(problems, least_of_whole(problems.back())),
      input_(sizes.input()),
      weights_(sizes.all_weights) {
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
