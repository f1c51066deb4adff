#include "papers/layer_optimum/prefix_bounds.h"

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "papers/layer_optimum/belady_bound.h"
#include "papers/layer_optimum/spill_formula.h"

namespace laminate {

namespace {

WindowSums window_sums(const WindowSteps& steps, int64_t outputs, int64_t taps,
                       const std::vector<int64_t>& output_blocks,
                       const std::vector<int64_t>& tap_blocks) {
    const auto words = [&](int64_t i, int64_t j) { return steps.touched(i, j); };
    WindowSums sums;
    for (const int64_t b : output_blocks) {
        for (auto* table : {&sums.touched, &sums.output_overlap, &sums.tap_overlap})
            table->emplace_back();
        for (const int64_t q : tap_blocks) {
            int64_t touched = 0;
            int64_t output_overlap = 0;
            int64_t tap_overlap = 0;
            for_each_block(outputs, b, [&](int64_t n, int64_t i) {
                for_each_block(taps, q,
                               [&](int64_t k, int64_t j) { touched += n * k * words(i, j); });
                for_each_border(taps, q, [&](int64_t k, int64_t before, int64_t j) {
                    tap_overlap += n * k * (words(i, before) + words(i, j) - words(i, before + j));
                });
            });
            for_each_block(taps, q, [&](int64_t k, int64_t j) {
                for_each_border(outputs, b, [&](int64_t n, int64_t before, int64_t i) {
                    output_overlap +=
                        n * k * (words(before, j) + words(i, j) - words(before + i, j));
                });
            });
            sums.touched.back().push_back(touched);
            sums.output_overlap.back().push_back(output_overlap);
            sums.tap_overlap.back().push_back(tap_overlap);
        }
    }
    return sums;
}

/// A convex function in whole steps, nowhere above a falling one: its hull, less what rounding its
/// steps costs.
void put_convex_below(const std::vector<int64_t>& curve, std::vector<int64_t>& convex) {
    __extension__ using Wide = __int128;
    const size_t count = curve.size();
    convex.assign(count, 0);  // first how far it falls to each place
    for (size_t from = 0; from + 1 < count;) {
        // The next corner of the hull: where the way down is steepest, the furthest of these.
        size_t to = from + 1;
        const auto slope_times = [&](size_t end, size_t steps) {
            return static_cast<Wide>(curve[from] - curve[end]) * static_cast<Wide>(steps);
        };
        for (size_t n = from + 2; n < count; ++n)
            if (slope_times(n, to - from) >= slope_times(to, n - from)) to = n;
        const auto steps = static_cast<int64_t>(to - from);
        const int64_t fall = curve[from] - curve[to];
        for (int64_t n = 0; n < steps; ++n)
            convex[++from] = fall / steps + (n < fall % steps ? 1 : 0);
    }
    std::sort(convex.begin() + 1, convex.end(), std::greater<>());
    convex.front() = curve.front();
    for (size_t n = 1; n < count; ++n) convex[n] = convex[n - 1] - convex[n];
}

}  // namespace

PrefixBounds::PrefixBounds(const ConvolutionProblem& problem, const BankedBuffer& buffer,
                           const BoundWeights& weights)
    : problem_(problem),
      buffer_(buffer),
      weights_(weights),
      windows_tensor_(problem.transposed ? 2 : 0) {
    for (const ConvolutionLoop loop : convolution_loops)
        candidates_[loop] = block_candidates(problem, loop);
    for (size_t t = 0; t < 3; ++t) {
        access_[t] = tensor_access(problem, all_operands[t]);
        per_spill_[t] = access_[t].traffic * weights.of[t];
        for (const ConvolutionLoop loop : convolution_loops)
            if (access_[t][loop] == LoopRole::related) related_words_[t] *= problem.extent[loop];
    }
    for (const MapAxis axis : map_axes) {
        const ConvolutionLoop outputs = outputs_along(axis);
        const ConvolutionLoop taps = taps_along(axis);
        windows_[axis] = window_sums(problem.steps[axis], problem.extent[outputs],
                                     problem.extent[taps], candidates_[outputs], candidates_[taps]);
    }
    using enum ConvolutionLoop;
    const auto [along_x, along_y] = problem.steps.values;
    is_square_ =
        weights.columns_like_rows && problem.extent[x] == problem.extent[y] &&
        problem.extent[m] == problem.extent[n] && along_x == along_y &&
        (!problem.finished || (*problem.finished)[MapAxis::x] == (*problem.finished)[MapAxis::y]);
}

Prefix PrefixBounds::root() const {
    Prefix prefix;
    prefix.curves = zero_curves(buffer_);
    if (weights_.evaluator) prefix.closest = prefix.curves;
    return prefix;
}

int64_t PrefixBounds::touched_by_blocks(const Prefix& prefix, MapAxis axis) const {
    return windows_[axis]
        .touched[prefix.candidate[outputs_along(axis)]][prefix.candidate[taps_along(axis)]];
}

int64_t PrefixBounds::words_of_round(const Prefix& prefix, size_t t) const {
    int64_t words = related_words_[t] * prefix.repeats[t];
    for (const MapAxis axis : map_axes)
        if (access_[t].is_partial(axis)) words *= touched_by_blocks(prefix, axis);
    return words;
}

std::array<Hinge, 3> PrefixBounds::hinges(const Prefix& prefix, ConvolutionLoop loop,
                                          size_t candidate) const {
    std::array<Hinge, 3> added;
    const int64_t iterations = ceil_div(problem_.extent[loop], candidates_[loop][candidate]);
    for (size_t t = 0; t < 3; ++t) {
        const LoopRole role = access_[t][loop];
        if (role == LoopRole::related) continue;
        int64_t words = 0;
        if (role == LoopRole::reuse) {
            words = words_of_round(prefix, t) * (iterations - 1);
        } else {
            words = related_words_[t] * prefix.repeats[t];
            for (const MapAxis axis : map_axes) {
                if (!access_[t].is_partial(axis)) continue;
                const ConvolutionLoop outputs = outputs_along(axis);
                const ConvolutionLoop taps = taps_along(axis);
                if (loop == outputs) {
                    words *= windows_[axis].output_overlap[candidate][prefix.candidate[taps]];
                } else if (loop == taps) {
                    words *= windows_[axis].tap_overlap[prefix.candidate[outputs]][candidate];
                } else {
                    words *= touched_by_blocks(prefix, axis);
                }
            }
        }
        added[t] = {words * per_spill_[t], prefix.iterations * (iterations - 1) * per_spill_[t]};
    }
    return added;
}

PerOperand PrefixBounds::least_banks(const Prefix& prefix, const LoopExtents& blocks) const {
    PerOperand banks;
    for (size_t t = 0; t < 3; ++t)
        banks[t] = ceil_div(touched_words(problem_, all_operands[t], blocks), buffer_.bank_words);
    banks[windows_tensor_] =
        std::max(banks[windows_tensor_], ceil_div(prefix.held_words, buffer_.bank_words));
    return banks;
}

int64_t PrefixBounds::held_words(const Prefix& prefix, ConvolutionLoop loop) const {
    if (!is_output_loop(loop) && !is_tap_loop(loop)) return prefix.held_words;
    const MapAxis axis = axis_of(loop);
    const ConvolutionLoop partner = is_tap_loop(loop) ? outputs_along(axis) : taps_along(axis);
    if (!weights_.held[axis] || prefix.is_in_order[partner]) return prefix.held_words;
    return std::max(prefix.held_words, touched_words(problem_, all_operands[windows_tensor_],
                                                     block_extents(problem_, prefix.order)));
}

LoopExtents PrefixBounds::smallest_blocks(const Prefix& prefix) const {
    LoopExtents blocks = one_iteration;
    for (const BlockLoop& l : prefix.order) blocks[l.loop] = l.block;
    return blocks;
}

int64_t PrefixBounds::bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                            const PerOperand& least) const {
    PerOperand division = least;
    return bound(prefix, added, least, division);
}

int64_t PrefixBounds::bound(const Prefix& prefix, const std::array<Hinge, 3>& added,
                            const PerOperand& least, PerOperand& division) const {
    const auto value = [&](size_t t, int64_t banks) {
        return prefix.curves[t][static_cast<size_t>(banks - 1)] +
               added[t].at(banks * buffer_.bank_words);
    };
    PerOperand floor = least;
    if (problem_.finished)
        while (floor[2] <= buffer_.banks - 2 && value(2, floor[2]) > 0) ++floor[2];
    if (floor[0] + floor[1] + floor[2] > buffer_.banks) return infinite_words;
    int64_t left = buffer_.banks;
    for (size_t t = 0; t < 3; ++t) {
        division[t] = std::max(division[t], floor[t]);
        left -= division[t];
    }
    for (size_t t = 0; t < 3; ++t) {
        // Banks too many go to nobody, and too few are given back.
        const int64_t change = left < 0 ? std::max(left, floor[t] - division[t]) : left;
        division[t] += change;
        left -= change;
    }
    PerOperand words;
    PerOperand gain;  // of one bank more
    PerOperand loss;  // of one bank less
    const auto look = [&](size_t t) {
        words[t] = value(t, division[t]);
        gain[t] = division[t] <= buffer_.banks - 3 ? words[t] - value(t, division[t] + 1) : 0;
        loss[t] = division[t] > floor[t] ? value(t, division[t] - 1) - words[t] : infinite_words;
    };
    for (size_t t = 0; t < 3; ++t) look(t);
    while (true) {
        const size_t to =
            gain[0] >= gain[1] ? (gain[0] >= gain[2] ? 0 : 2) : (gain[1] >= gain[2] ? 1 : 2);
        const size_t from =
            loss[0] <= loss[1] ? (loss[0] <= loss[2] ? 0 : 2) : (loss[1] <= loss[2] ? 1 : 2);
        if (gain[to] <= loss[from]) return words[0] + words[1] + words[2];
        ++division[to];
        --division[from];
        look(to);
        look(from);
    }
}

Prefix PrefixBounds::extended(const Prefix& prefix, ConvolutionLoop loop, size_t candidate) const {
    const std::array<Hinge, 3> added = hinges(prefix, loop, candidate);
    const int64_t block = candidates_[loop][candidate];
    const int64_t iterations = ceil_div(problem_.extent[loop], block);
    Prefix next = prefix;
    next.held_words = held_words(prefix, loop);
    next.order.push_back({loop, block});
    next.candidate[loop] = candidate;
    next.is_in_order[loop] = true;
    next.iterations *= iterations;
    for (size_t t = 0; t < 3; ++t) {
        const LoopRole role = access_[t][loop];
        if (role == LoopRole::reuse) next.repeats[t] *= iterations;
        if (role == LoopRole::related) continue;  // adds nothing
        for (int64_t b = 1; b <= buffer_.banks - 2; ++b)
            next.curves[t][static_cast<size_t>(b - 1)] += added[t].at(b * buffer_.bank_words);
        if (!weights_.evaluator) continue;
        next.closest[t] = next.curves[t];
        put_closest(next.order, t, next.closest[t]);
        put_convex_below(next.closest[t], next.curves[t]);
    }
    return next;
}

void PrefixBounds::put_closest(const BlockOrder& prefix, size_t t,
                               std::vector<int64_t>& curve) const {
    const auto at_least = [&](const auto& spills) {
        int64_t with_more = 0;  // with fewer banks there are no fewer spills
        for (int64_t b = buffer_.banks - 2; b >= 1; --b) {
            int64_t& words = curve[static_cast<size_t>(b - 1)];
            words = with_more =
                std::max({words, with_more,
                          checked_multiply(spills(b * buffer_.bank_words), per_spill_[t])});
        }
    };
    if (*weights_.evaluator == SpillEvaluator::eq7) {
        const TensorGroups groups = groups_of_prefix(problem_, all_operands[t], prefix);
        at_least([&](int64_t memory) { return formula_spills(groups, memory); });
    } else {
        const BeladyBound bound(problem_, all_operands[t], prefix, true);
        at_least([&](int64_t memory) { return bound.spills(memory); });
    }
}

bool PrefixBounds::may_be_below(const Prefix& prefix, const PerOperand& least,
                                int64_t limit) const {
    if (!weights_.evaluator) return bound(prefix, {}, least) < limit;
    if (least[0] + least[1] + least[2] > buffer_.banks) return false;
    return least_division(prefix.closest, buffer_.banks, least, limit).words < limit;
}

int64_t PrefixBounds::least_per_round(const Prefix& prefix, ConvolutionLoop loop,
                                      const PerOperand& least) const {
    size_t t = 0;
    while (access_[t][loop] != LoopRole::reuse) ++t;
    const int64_t most = buffer_.banks - least[(t + 1) % 3] - least[(t + 2) % 3];
    return Hinge{words_of_round(prefix, t) * per_spill_[t], prefix.iterations * per_spill_[t]}.at(
        most * buffer_.bank_words);
}

std::vector<Extension> PrefixBounds::extensions(
    const Prefix& prefix,
    const std::function<int64_t(ConvolutionLoop loop, size_t candidate)>& limit) const {
    std::vector<Extension> list;
    LoopExtents blocks = smallest_blocks(prefix);
    const PerOperand least = least_banks(prefix, blocks);
    PerOperand division = least;  // neighbouring blocks divide the banks alike
    // Quickly, before the hinges of a loop: the loops so far cost `base`, and the tensor that the
    // loop uses again pays for its rounds with all the banks that it could get.
    const int64_t base = bound(prefix, {}, least, division);
    using enum ConvolutionLoop;
    const bool is_first_window = !prefix.is_in_order[x] && !prefix.is_in_order[y] &&
                                 !prefix.is_in_order[m] && !prefix.is_in_order[n];
    for (const ConvolutionLoop l : convolution_loops) {
        if (prefix.is_in_order[l]) continue;
        if (is_square_ && is_first_window && (l == y || l == n)) continue;
        const int64_t per_round = least_per_round(prefix, l, least);
        const int64_t held = ceil_div(held_words(prefix, l), buffer_.bank_words);
        for (size_t candidate = 1; candidate < candidates_[l].size(); ++candidate) {
            const int64_t below = limit(l, candidate);
            if (base >= below) continue;
            blocks[l] = candidates_[l][candidate];
            if (per_round >= ceil_div(below - base, ceil_div(problem_.extent[l], blocks[l]) - 1))
                continue;
            PerOperand needed = least;
            for (size_t t = 0; t < 3; ++t) {
                if (access_[t][l] == LoopRole::reuse) continue;
                needed[t] =
                    ceil_div(touched_words(problem_, all_operands[t], blocks), buffer_.bank_words);
            }
            needed[windows_tensor_] = std::max(needed[windows_tensor_], held);
            const int64_t extra = bound(prefix, hinges(prefix, l, candidate), needed, division);
            if (extra < below) list.push_back({extra, l, candidate});
        }
        blocks[l] = 1;
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const Extension& a, const Extension& b) { return a.bound < b.bound; });
    return list;
}

}  // namespace laminate
