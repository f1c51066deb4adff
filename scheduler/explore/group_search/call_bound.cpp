#include "scheduler/explore/group_search/call_bound.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace laminate::search {

namespace {

/// A step of the staircase ends at so many times the memory at which it begins, or before. If it has
/// more than one element, the bound falls by no more than this factor.
constexpr double most_step = 1.02;
constexpr double most_fall_of_step = 1.03;

/// Choices are found for memories up to so many times the first one, and these at least.
constexpr double most_of_choices = 1.25;
constexpr double least_last_of_choices = 32;

/// Choices that cost too much are told by what they cost in a little more memory: up to the next of
/// so many values from one power of two to the next.
constexpr double parts_of_octave = 4;

}  // namespace

CallBound::CallBound(const std::vector<LayerProblem>& problems, Detail detail,
                     std::shared_ptr<HaloTables> tables)
    : problems_(problems),
      tables_(tables ? std::move(tables) : std::make_shared<HaloTables>(problems)),
      sizes_(problems),
      detail_(detail),
      input_(sizes_.input()),
      weights_(sizes_.all_weights) {
    const double macs = least_macs(problems);
    const double least = input_ + sizes_.output + weights_;
    double before = std::numeric_limits<double>::infinity();
    for (double memory = 1, next = 0; before > least; memory = next) {
        const double falls_to = accesses(memory) / most_fall_of_step;
        next = std::max(memory + 1, std::floor(memory * most_step));
        double reached = accesses(next - 1);
        // Where the bound falls fast, as where little memory is left beside the weights that are
        // held, a step ends with the last memory that keeps it high.
        if (reached < falls_to) {
            double lowest = memory + 1;
            while (next - lowest > 1) {
                const double middle = std::floor((lowest + next) / 2);
                (accesses(middle - 1) < falls_to ? next : lowest) = middle;
            }
            next = lowest;
            reached = accesses(next - 1);
        }
        if (reached < before) steps_.push_back({reached, memory, macs});
        before = reached;
    }
}

HaloBound::End CallBound::end_of(const CallChoice& c) const {
    const size_t last = sizes_.layers - 1;
    const bool is_narrow = (c.halos.narrow & last_but_one()) != 0;
    const double parts = is_narrow ? sizes_.channels[last]
                                   : std::ceil(sizes_.channels[last] / c.halos.last_channels);
    // What X costs is multiplied by `again`; all tiles of channels together bring V_n once.
    return {c.halos.last_channels, c.halos.has_parts ? sizes_.weights[last] / parts : 0,
            c.halos.has_tiles ? sizes_.weights[last + 1] / c.again : 0, 0, c.halos.sums};
}

const HaloBound& CallBound::halo_bound(uint32_t narrow, uint32_t free) const {
    const auto known = halos_.find({narrow, free});
    if (known != halos_.end()) return known->second;
    return halos_
        .emplace(std::pair(narrow, free),
                 HaloBound(tables_, problems_, narrow, free, narrow == 0 && free == 0))
        .first->second;
}

const HaloBound::Staircase& CallBound::halos(const CallChoice& choice, uint32_t free) const {
    return halo_bound(narrow_before(choice.halos), free).all(end_of(choice));
}

double CallBound::input_with_calls(const CallChoice& c, double memory, double most) const {
    const HaloBound& bound = halo_bound(narrow_before(c.halos), 0);
    const double per_call = c.halos.per_call / c.again;
    const double lower = std::exp2(std::ilogb(per_call)), upper = 2 * lower;
    HaloBound::End end = end_of(c);
    double input = 0;
    // Most choices cost too much in more memory than this, whatever it is up to some value.
    const double more = std::exp2(std::ceil(std::log2(memory) * parts_of_octave) / parts_of_octave);
    for (const double within : {std::max(memory, more), memory}) {
        end.per_call = lower;
        input = bound.all(end).input(within);
        if (input >= most) break;
        if (per_call == lower) continue;
        end.per_call = upper;
        input += (bound.all(end).input(within) - input) * (per_call - lower) / (upper - lower);
        if (input >= most) break;
    }
    return input;
}

double CallBound::inputs_and_outputs(const CallChoice& c, double input) const {
    return c.again * std::max(input_, std::floor(input * rounding_of_sums)) + c.output;
}

const CallBound::Choices& CallBound::choices(double memory, double first, double most) const {
    const auto after = choices_.upper_bound(memory);
    if (after != choices_.begin() && std::prev(after)->second.last >= memory)
        return std::prev(after)->second;
    Choices made;
    made.last = std::max(least_last_of_choices, memory * most_of_choices);
    made.all = call_choices(sizes_, detail_, {made.last, most});
    for (const CallChoice& c : made.all)
        made.whole_costs.push_back(inputs_and_outputs(c, 0) + weights_);
    return choices_.emplace(first, std::move(made))->second;
}

double CallBound::accesses(double memory) const {
    double best = std::numeric_limits<double>::infinity(), most = best, first = memory;
    // The bound falls as memory rises, and often the same choice costs least. Trying that one first
    // spares most other choices their bounds of halos.
    const auto after = known_.upper_bound(memory);
    const CallChoice* cheapest = nullptr;
    if (after != known_.begin()) {
        const Known& before = std::prev(after)->second;
        first = std::prev(after)->first;
        cheapest = before.cheapest;
        most = before.accesses * (1 + 1e-6);
        const double least = least_of(*cheapest, memory, most);
        if (least < most) best = least;
    }
    const Choices& choices = this->choices(memory, first, most);
    for (size_t n = 0; n < choices.all.size(); ++n) {
        const CallChoice& choice = choices.all[n];
        // `held` rises, and some element of a buffer must fit too.
        if (choice.held >= memory) break;
        if (choices.whole_costs[n] >= best) continue;
        const double least = least_of(choice, memory, best);
        if (least >= best) continue;
        best = least;
        cheapest = &choice;
    }
    // Choices that are not among these cost more than that.
    best = std::min(best, most);
    if (cheapest != nullptr) known_.insert_or_assign(memory, Known{best, cheapest});
    return best;
}

double CallBound::least_of(const CallChoice& c, double memory, double most) const {
    const double rest = memory - c.held;
    const double roots = c.all_roots();
    // Most choices are out for what calls bring alone.
    const double of_calls = (c.held + roots * roots / rest) * rounding_of_sums - 1;
    if (const double quick = inputs_and_outputs(c, 0) + of_calls; quick >= most) return quick;
    // If `input` elements of X are read for what is computed once, and the memory has two parts,
    // `own` and `others`, in which calls with these roots bring weights.
    const auto total_of = [&](double own_roots, double roots_of_others) {
        return [&, own_roots, roots_of_others](double input, double own, double others) {
            const double again =
                own_roots * own_roots / own + roots_of_others * roots_of_others / others;
            return inputs_and_outputs(c, input) +
                   std::max(weights_, std::floor((c.held + again) * rounding_of_sums));
        };
    };
    const auto total = total_of(roots, 0);
    double least = total(0, rest, rest);
    if (least < most && c.halos.count) least = total(halos(c, 0).input(rest), rest, rest);
    if (least < most && c.halos.count && c.halos.per_call > 0)
        least = std::max(
            least, inputs_and_outputs(c, input_with_calls(c, rest, (most - c.output) / c.again)) +
                       weights_);
    if (least < most && c.halos.count && c.roots > 0 && c.own != some_layer) {
        // If no layer's weights come with calls, `roots` has the part of Y's buffer alone.
        const uint32_t free = c.own != 0 ? c.own : 1U << sizes_.layers;
        least = std::max(least, divided(halos(c, free), rest, most, total_of(c.roots, 0)));
    }
    if (least < most && c.divider != 0)
        least = std::max(least, divided(halo_bound(0, 0).part(c.divider), rest, most,
                                        total_of(c.groups, c.groups_before)));
    return least;
}

template <class Total>
double CallBound::divided(const HaloBound::Staircase& halos, double rest, double most,
                          const Total& total) {
    const std::vector<double>& memories = halos.memories();
    // The first step that is not too much by itself.
    size_t n = 0;
    for (size_t count = halos.size(); count > 0;) {
        const size_t half = count / 2;
        const bool is_too_much = total(halos.step(n + half), rest, rest) >= most;
        n += is_too_much ? half + 1 : 0;
        count = is_too_much ? count - half - 1 : half;
    }
    double least = most;
    // The other part of the memory has more than `before` and at most memories[n].
    for (double before = n == 0 ? 0 : memories[n - 1];; before = memories[n++]) {
        // The more it has, the more the weights cost that have the first part.
        if (before >= rest || total(0, rest - before, rest) >= least) return least;
        const bool is_last = n == halos.size();
        least = std::min(least, total(is_last ? 0 : halos.step(n), rest - before,
                                      is_last ? rest : std::min(rest, memories[n])));
        if (is_last) return least;
    }
}

std::vector<Cost> at_least_both(const std::vector<Cost>& open, const std::vector<Cost>& bound) {
    Archive<char> both(false);
    for (const Cost& o : open) {
        for (const Cost& b : bound) {
            both.offer({std::max(o.accesses, b.accesses), std::max(o.memory, b.memory), o.macs}, 0);
        }
    }
    return both.costs();
}

}  // namespace laminate::search
