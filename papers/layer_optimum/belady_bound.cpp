#include "papers/layer_optimum/belady_bound.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace laminate {

namespace {

/// Product of the extents of a tensor's related loops within one iteration of the first `until`
/// loops: a full one, or with `smallest` the smallest.
int64_t related_words(const ConvolutionProblem& problem, const TensorAccess& access,
                      const BlockOrder& order, size_t until, bool smallest) {
    LoopExtents extents = problem.extent;
    for (size_t q = 0; q < until; ++q)
        extents[order[q].loop] = smallest ? last_block(problem, order[q]) : order[q].block;
    int64_t words = 1;
    for (const ConvolutionLoop loop : convolution_loops)
        if (access[loop] == LoopRole::related) words = checked_multiply(words, extents[loop]);
    return words;
}

/// Words present at a step at the border between two iterations of a loop over output columns (or
/// rows), position p, beyond those that cross the border.
struct BesideBorder {
    /// First step of the later iteration: the part of its block that the earlier one did not touch.
    int64_t beside = 0;
    /// First step of the last iteration of the next inner loop over rows (columns), within the
    /// earlier iteration: the words that that loop's iterations share and the new rows of the
    /// block, less those that the step comes too early for. 0 without such a loop.
    int64_t inner = 0;
};

BesideBorder beside_border(const ConvolutionProblem& problem, const TensorAccess& access,
                           const BlockOrder& order, size_t p, bool is_prefix) {
    const MapAxis a = axis_of(order[p].loop);
    const MapAxis b = other(a);
    // Where taps are cut further in, a block is narrower than its windows; its words are left out.
    bool windows_are_whole = !is_prefix;
    LoopExtents smallest = problem.extent;  // blocks, but for taps that are cut further in
    for (size_t q = 0; q < order.size(); ++q) {
        if (q > p && is_tap_loop(order[q].loop)) {
            windows_are_whole = false;
        } else {
            smallest[order[q].loop] = last_block(problem, order[q]);
        }
    }
    const auto width = [&](MapAxis axis, int64_t outputs) {
        return problem.steps[axis].touched(outputs, smallest[taps_along(axis)]);
    };
    const int64_t before = order[p].block;
    const int64_t after = last_block(problem, order[p]);
    const auto related = [&](size_t until, bool is_smallest) {
        return related_words(problem, access, order, until, is_smallest);
    };
    BesideBorder result;
    const int64_t smallest_block = windows_are_whole ? related(order.size(), true) : 0;
    result.beside = smallest_block * (width(a, before + after) - width(a, before)) *
                    (access.is_partial(b) ? width(b, smallest[outputs_along(b)]) : 1);

    size_t next = p + 1;
    while (next < order.size() && access[order[next].loop] == LoopRole::related) ++next;
    if (next == order.size() || order[next].loop != outputs_along(b) || !access.is_partial(b))
        return result;
    // Where the last block of taps outside both loops is smaller, windows differ from instance to
    // instance, and the step further in is left out.
    for (size_t q = 0; q < p; ++q)
        if (is_tap_loop(order[q].loop)) return result;
    const int64_t rows = problem.extent[outputs_along(b)];
    const int64_t last = last_block(problem, order[next]);
    const int64_t new_rows = width(b, rows) - width(b, rows - last);
    const int64_t shared_rows =
        width(b, order[next].block) + width(b, last) - width(b, order[next].block + last);
    const int64_t shared_columns = width(a, before) + width(a, before) - width(a, before + before);
    result.inner = related(next + 1, true) * shared_rows * width(a, before) -
                   related(next + 1, false) * shared_columns * (new_rows + shared_rows) +
                   smallest_block * width(a, before) * new_rows;
    result.inner = std::max<int64_t>(result.inner, 0);
    return result;
}

/// Words that a sweep of windows over columns and rows (or rows and columns) holds in its midst:
/// those that neighbouring tiles share and, within a tile, neighbouring rows of it. For the loops
/// from position `begin` on, inside a reuse group of so many rounds. 0 where they are no such
/// sweep, or too short for every round to have a step with a whole window between it and the next
/// round's.
int64_t sweeping_windows(const ConvolutionProblem& problem, const TensorAccess& access,
                         const BlockOrder& order, size_t begin, int64_t rounds) {
    const auto next_other = [&](size_t from) {
        while (from < order.size() && access[order[from].loop] == LoopRole::related) ++from;
        return from;
    };
    const size_t outer = next_other(begin);
    const size_t inner = next_other(outer + 1);
    const auto is_window_output = [&](size_t q) {
        return q < order.size() && access[order[q].loop] == LoopRole::partial &&
               is_output_loop(order[q].loop);
    };
    if (!is_window_output(outer) || !is_window_output(inner)) return 0;
    for (size_t q = 0; q < inner; ++q)
        if (is_tap_loop(order[q].loop)) return 0;
    const auto related = [&](size_t until, bool smallest) {
        return related_words(problem, access, order, until, smallest);
    };
    const MapAxis a = axis_of(order[outer].loop);
    const MapAxis b = other(a);
    const auto width = [&](MapAxis axis, int64_t outputs) {
        return problem.steps[axis].touched(outputs, problem.extent[taps_along(axis)]);
    };
    const int64_t tile = order[outer].block;
    // Neighbouring tiles that a word can be in: the steps of two rounds lie so far apart that none
    // is in the tiles of both. The first and the last tile share words with one neighbour only.
    const WindowSteps& steps = problem.steps[a];
    const int64_t reach =
        ceil_div((problem.extent[taps_along(a)] - 1) * steps.dilation, tile * steps.stride) + 1;
    if (problem.extent[outputs_along(a)] / tile < 3 + (rounds - 1) * reach) return 0;
    const int64_t rows = order[inner].block;
    const int64_t last = last_block(problem, order[inner]);
    const int64_t shared_columns = 2 * width(a, tile) - width(a, 2 * tile);
    const int64_t shared_rows = width(b, rows) + width(b, last) - width(b, rows + last);
    return std::max<int64_t>(
        0, related(outer + 1, true) * shared_columns * width(b, problem.extent[outputs_along(b)]) +
               related(inner + 1, true) * shared_rows * width(a, tile) -
               related(inner + 1, false) * shared_columns * shared_rows);
}

}  // namespace

/// From the outermost loop in: a group for every reuse loop, adjacent ones merged, and every
/// partial loop.
class BeladyBound::Walk {
public:
    Walk(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
         bool is_prefix)
        : problem_(problem),
          operand_(operand),
          access_(tensor_access(problem, operand)),
          order_(order),
          is_prefix_(is_prefix),
          full_(problem.extent),
          smallest_(problem.extent),
          kinds_{{1, related_words(problem, access_, order, 0, false)}} {}

    std::vector<Group> groups() && {
        for (size_t p = 0; p < order_.size();) {
            switch (access_[order_[p].loop]) {
                case LoopRole::reuse:
                    p = after_reuse(p);
                    break;
                case LoopRole::partial:
                    add_partial(p);
                    enter(order_[p++]);
                    break;
                case LoopRole::related:
                    if (!groups_.empty()) groups_.back().has_subgroups = true;
                    enter(order_[p++]);
                    break;
            }
        }
        return std::move(groups_);
    }

private:
    /// Blocks of the related loops further out that have the same extents: how many, and their
    /// words with all other related loops whole.
    struct Blocks {
        int64_t count = 1;
        int64_t words = 1;
    };

    [[nodiscard]] int64_t iterations(size_t p) const {
        return ceil_div(problem_.extent[order_[p].loop], order_[p].block);
    }

    /// The walk goes on inside a related or partial loop.
    void enter(const BlockLoop& l) {
        const int64_t extent = problem_.extent[l.loop];
        outside_ *= ceil_div(extent, l.block);
        if (access_[l.loop] == LoopRole::related) {
            std::vector<Blocks> split;
            for (const Blocks& kind : kinds_)
                for_each_block(extent, l.block, [&](int64_t count, int64_t block) {
                    split.push_back({kind.count * count, kind.words / extent * block});
                });
            kinds_ = std::move(split);
        } else {
            outside_unrelated_ *= ceil_div(extent, l.block);
        }
        full_[l.loop] = l.block;
        smallest_[l.loop] = last_block(problem_, l);
    }

    /// `per_related` words cross for each word of the related loops.
    [[nodiscard]] std::vector<AlikeInstances> alike_instances(int64_t per_related, int64_t borders,
                                                              int64_t rounds) const {
        std::vector<AlikeInstances> alike;
        for (const Blocks& kind : kinds_) {
            const int64_t crossing =
                checked_multiply(checked_multiply(kind.count, kind.words), per_related);
            alike.push_back({kind.count * outside_unrelated_ * borders, crossing,
                             checked_multiply(crossing, rounds)});
        }
        return alike;
    }

    /// Coordinates along an axis with windows, summed over all blocks.
    [[nodiscard]] int64_t touched_by_blocks(MapAxis axis) const {
        const ConvolutionLoop outputs = outputs_along(axis);
        const ConvolutionLoop taps = taps_along(axis);
        int64_t sum = 0;
        for_each_block(problem_.extent[outputs], full_[outputs], [&](int64_t n, int64_t i) {
            for_each_block(problem_.extent[taps], full_[taps], [&](int64_t k, int64_t j) {
                sum += n * k * problem_.steps[axis].touched(i, j);
            });
        });
        return sum;
    }

    /// The group of the reuse loop at p and those that follow at once. The position after them.
    size_t after_reuse(size_t p) {
        int64_t rounds = 1;
        size_t inner = p;
        for (; inner < order_.size() && access_[order_[inner].loop] == LoopRole::reuse; ++inner)
            rounds *= iterations(inner);
        // Steps of a round: subgroups between this group and the next one of a reuse loop, else
        // blocks.
        int64_t steps = 1;
        size_t next = inner;
        for (; next < order_.size() && access_[order_[next].loop] != LoopRole::reuse; ++next)
            steps *= iterations(next);
        // The innermost group of a prefix may have any number of steps, or be the blocks' own.
        const bool is_open = is_prefix_ && next == order_.size();
        if (is_open || steps > 1) {
            Group g;
            g.is_reuse = true;
            g.instances = outside_;
            g.smallest = touched_words(problem_, operand_, smallest_);
            g.largest = touched_words(problem_, operand_, full_);
            g.steps = is_open ? rounds - 1 : (rounds - 1) * steps / (steps - 1);
            int64_t per_related = repeats_;
            for (const MapAxis axis : map_axes)
                if (access_.is_partial(axis))
                    per_related = checked_multiply(per_related, touched_by_blocks(axis));
            g.alike = alike_instances(per_related, 1, rounds - 1);
            for (const AlikeInstances& a : g.alike) g.all = checked_add(g.all, a.all);
            g.rounds = rounds;
            g.sweep = sweeping_windows(problem_, access_, order_, inner, rounds);
            groups_.push_back(std::move(g));
        }
        outside_ *= rounds;
        outside_unrelated_ *= rounds;
        repeats_ *= rounds;
        return inner;
    }

    /// The group of the partial loop at p: neighbours share words.
    void add_partial(size_t p) {
        const BlockLoop& l = order_[p];
        const MapAxis axis = axis_of(l.loop);
        int64_t per_related = repeats_;
        if (access_.is_partial(other(axis)))
            per_related = checked_multiply(per_related, touched_by_blocks(other(axis)));
        Group g;
        g.alike = alike_instances(checked_multiply(per_related, shared_at_borders(l)),
                                  iterations(p) - 1, 1);
        for (const AlikeInstances& a : g.alike) g.all = checked_add(g.all, a.all);
        g.instances = outside_ * (iterations(p) - 1);
        g.steps = 1;
        g.smallest = shared_words(smallest_, l, last_block(problem_, l));
        g.largest = shared_words(full_, l, l.block);
        if (is_output_loop(l.loop)) {
            const auto [beside, inner] = beside_border(problem_, access_, order_, p, is_prefix_);
            g.beside = beside;
            g.inner = inner;
        }
        groups_.push_back(std::move(g));
    }

    /// Coordinates that neighbouring blocks of a partial loop share, summed over the pairs.
    [[nodiscard]] int64_t shared_at_borders(const BlockLoop& l) const {
        const MapAxis axis = axis_of(l.loop);
        const bool is_output = is_output_loop(l.loop);
        const ConvolutionLoop across = is_output ? taps_along(axis) : outputs_along(axis);
        int64_t shared = 0;
        for_each_block(problem_.extent[across], full_[across], [&](int64_t count, int64_t theirs) {
            const auto width = [&](int64_t own) {
                return is_output ? problem_.steps[axis].touched(own, theirs)
                                 : problem_.steps[axis].touched(theirs, own);
            };
            for_each_border(problem_.extent[l.loop], l.block,
                            [&](int64_t borders, int64_t before, int64_t after) {
                                shared += count * borders *
                                          (width(before) + width(after) - width(before + after));
                            });
        });
        return shared;
    }

    /// Words that a full block of a partial loop shares with one of `after` behind it.
    [[nodiscard]] int64_t shared_words(LoopExtents extents, const BlockLoop& l,
                                       int64_t after) const {
        const auto touched = [&](int64_t own) {
            extents[l.loop] = own;
            return touched_words(problem_, operand_, extents);
        };
        return touched(l.block) + touched(after) - touched(l.block + after);
    }

    const ConvolutionProblem& problem_;
    const Operand operand_;
    const TensorAccess access_;
    const BlockOrder& order_;
    const bool is_prefix_;
    std::vector<Group> groups_;
    LoopExtents full_;               ///< blocks of the loops entered; of related and partial loops
    LoopExtents smallest_;           ///< their last blocks
    int64_t outside_ = 1;            ///< iterations of all loops further out
    int64_t outside_unrelated_ = 1;  ///< and of those that are no related loops
    int64_t repeats_ = 1;            ///< of reuse loops
    std::vector<Blocks> kinds_;
};

BeladyBound::BeladyBound(const ConvolutionProblem& problem, Operand operand,
                         const BlockOrder& order, bool is_prefix)
    : groups_(Walk(problem, operand, order, is_prefix).groups()) {}

int64_t BeladyBound::spills(int64_t memory) const {
    return std::max(spills(memory, false), spills(memory, true));
}

int64_t BeladyBound::spills(int64_t memory, bool apart) const {
    int64_t sum = 0;
    bool is_spilled_inside = false;
    bool is_free_inside = false;  // the next inner group spills nothing
    bool is_apart = false;        // other subgroups that spill lie between two uses of a word
    int64_t counted = memory;     // words at a step that further groups do not count again
    for (auto g = groups_.rbegin(); g != groups_.rend(); ++g) {
        is_apart = is_spilled_inside && (is_apart || g->has_subgroups);
        if (is_apart) {
            sum += g->all;
            is_free_inside = false;
            continue;
        }
        // The better of two steps at every border; the inner one takes from the next inner group,
        // which then has none of its own.
        const int64_t more = is_free_inside ? std::max(g->beside, g->inner) : g->beside;
        const int64_t held = (g->is_reuse ? counted : memory) - more;
        const auto spilled_of = [&](int64_t instances, int64_t crossing, int64_t all) {
            const int64_t room = checked_multiply(instances, held);
            const int64_t words = crossing > room ? checked_multiply(crossing - room, g->steps) : 0;
            return more == g->beside ? std::min(all, words) : words;
        };
        int64_t spilled = 0;
        int64_t crossing = 0;
        for (const AlikeInstances& a : g->alike) {
            if (apart) spilled += spilled_of(a.instances, a.crossing, a.all);
            crossing += a.crossing;
        }
        if (!apart) spilled = spilled_of(g->instances, crossing, g->all);
        if (apart && spilled > 0) counted = std::max(counted, g->largest);
        sum += spilled;
        // Or, instead of all steps so far, one in the midst of every round: all words that are used
        // in the next round cross one of them, and what the windows hold.
        if (g->sweep > 0 && !is_spilled_inside)
            sum = std::max(sum, g->all - checked_multiply(checked_multiply(g->instances, g->rounds),
                                                          memory - g->sweep));
        is_free_inside = spilled == 0;
        is_spilled_inside = is_spilled_inside || g->smallest > memory;
    }
    return sum;
}

}  // namespace laminate
