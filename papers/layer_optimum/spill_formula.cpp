#include "papers/layer_optimum/spill_formula.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/range.h"
#include "base/units.h"

namespace laminate {

namespace {

/// Words of a tensor along one axis with windows, where they have no gaps: nearly always.
struct Interval : Range {
    static Interval windows(const WindowSteps& steps, int64_t outputs, int64_t taps) {
        return {{0, steps.span(outputs, taps)}};
    }
    [[nodiscard]] Interval shifted(int64_t step) const { return {{begin + step, end + step}}; }
    [[nodiscard]] Interval operator&(const Interval& other) const {
        return {{std::max(begin, other.begin), std::min(end, other.end)}};
    }
};

/// The same with gaps: of [begin, end) only those with a set bit where there are `bits`.
struct AxisWords {
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<uint64_t> bits;  ///< of the places from 0 on, none set outside of [begin, end);
                                 ///< empty where there are no gaps

    static AxisWords windows(const WindowSteps& steps, int64_t outputs, int64_t taps) {
        AxisWords words;
        words.end = steps.span(outputs, taps);
        if (steps.touched(outputs, taps) == words.end) return words;
        words.bits.assign(static_cast<size_t>(ceil_div(words.end, int64_t{64})), 0);
        for (int64_t i = 0; i < outputs; ++i)
            for (int64_t j = 0; j < taps; ++j) words.set(i * steps.stride + j * steps.dilation);
        return words;
    }
    [[nodiscard]] AxisWords shifted(int64_t step) const {
        AxisWords words;
        words.begin = begin + step;
        words.end = end + step;
        if (bits.empty()) return words;
        words.bits.assign(static_cast<size_t>(ceil_div(words.end, int64_t{64})), 0);
        for (int64_t place = begin; place < end; ++place)
            if (has(place)) words.set(place + step);
        return words;
    }
    [[nodiscard]] AxisWords operator&(const AxisWords& other) const {
        AxisWords both;
        both.begin = std::max(begin, other.begin);
        both.end = std::max(both.begin, std::min(end, other.end));
        if (both.begin == both.end || (bits.empty() && other.bits.empty())) return both;
        both.bits.assign(static_cast<size_t>(ceil_div(both.end, int64_t{64})), 0);
        for (size_t n = static_cast<size_t>(both.begin / 64); n < both.bits.size(); ++n)
            both.bits[n] = (bits.empty() ? within(n, both) : bits[n]) &
                           (other.bits.empty() ? within(n, both) : other.bits[n]) & within(n, both);
        return both;
    }
    [[nodiscard]] int64_t size() const {
        if (bits.empty()) return end - begin;
        int64_t count = 0;
        for (const uint64_t part : bits) count += std::popcount(part);
        return count;
    }

private:
    void set(int64_t place) {
        bits[static_cast<size_t>(place / 64)] |= uint64_t{1} << (place % 64);
    }
    [[nodiscard]] bool has(int64_t place) const {
        return (bits[static_cast<size_t>(place / 64)] >> (place % 64) & 1) != 0;
    }
    /// Bits of part n that lie within [begin, end).
    [[nodiscard]] static uint64_t within(size_t n, const AxisWords& words) {
        const int64_t first = static_cast<int64_t>(n) * 64;
        uint64_t part = ~uint64_t{0};
        if (words.begin > first)
            part &= words.begin >= first + 64 ? 0 : part << (words.begin - first);
        if (words.end < first + 64)
            part &= words.end <= first ? 0 : ~uint64_t{0} >> (first + 64 - words.end);
        return part;
    }
};

/// A product of words along axes: the loops that address an axis alone, from 0 to their extent, and
/// the axes with windows.
template <class Axis>
struct SpillBox {
    int64_t plain = 1;  ///< product of the extents of related loops
    PerAxis<Axis> axis;

    [[nodiscard]] int64_t size() const {
        int64_t words = plain;
        for (const Axis& a : axis) words = checked_multiply(words, a.size());
        return words;
    }
};

template <class Axis>
class Walk {
    using Box = SpillBox<Axis>;

public:
    Walk(const ConvolutionProblem& problem, const TensorAccess& access, const BlockOrder& order,
         const LoopExtents& blocks)
        : problem_(problem), access_(access), order_(order), blocks_(blocks) {
        for (size_t p = 0; p < order.size(); ++p)
            iterations_[p] = ceil_div(problem.extent[order[p].loop], order[p].block);
    }

    /// `has_block`: false as if blocks had no words.
    [[nodiscard]] TensorGroups groups(bool has_block) const {
        struct Opened {
            size_t first;  ///< position of the opening loop, of merged ones the last
            size_t last;   ///< position of the last related loop, or of the opener
            int64_t instances;
            int64_t rounds;
            int64_t subgroups;
            std::optional<ConvolutionLoop> partial;
        };
        std::vector<Opened> opened;
        opened.reserve(order_.size());
        int64_t outside = 1;  // iterations of all loops further out
        for (size_t p = 0; p < order_.size(); ++p) {
            const ConvolutionLoop loop = order_[p].loop;
            const int64_t iterations = iterations_[p];
            const LoopRole role = access_[loop];
            if (role == LoopRole::related) {
                if (!opened.empty()) {
                    opened.back().last = p;
                    opened.back().subgroups *= iterations;
                }
            } else if (role == LoopRole::reuse && p > 0 && !opened.empty() &&
                       opened.back().last == p - 1 && opened.back().first == p - 1 &&
                       !opened.back().partial) {
                opened.back().first = opened.back().last = p;
                opened.back().rounds *= iterations;
            } else {
                opened.push_back({p, p, outside, iterations, 1,
                                  role == LoopRole::partial ? std::optional(loop) : std::nullopt});
            }
            outside *= iterations;
        }

        TensorGroups result;
        result.groups.resize(opened.size());
        std::vector<Box> spill_free;  // Q of the next inner group, as a union
        if (has_block) {
            spill_free.push_back(footprint(order_.size()));
            result.block = spill_free.front().size();
        }
        int64_t spill_free_words = result.block;
        for (size_t g = opened.size(); g-- > 0;) {
            const Opened& o = opened[g];
            ReuseGroup& group = result.groups[g];
            group.instances = o.instances;
            group.rounds = o.rounds;
            const Box subgroup = footprint(o.last + 1);
            const Box reused = o.partial ? overlap(subgroup, *o.partial) : subgroup;
            group.reused = checked_multiply(o.subgroups, reused.size());
            group.resident = words_in(spill_free, &reused);
            group.beside = words_in(spill_free, nullptr) - group.resident;
            group.spill_free = group.reused + group.beside;
            group.inner_spill_free = spill_free_words;
            spill_free_words = group.spill_free;
            const Box round = footprint(o.first + 1);
            if (o.partial) {
                spill_free.push_back(overlap(round, *o.partial));
            } else {
                spill_free = {round};
            }
        }
        return result;
    }

private:
    /// Of one iteration of the loops before `position`, all of the others; padded to whole blocks.
    [[nodiscard]] Box footprint(size_t position) const {
        LoopExtents extents = blocks_;
        for (size_t p = position; p < order_.size(); ++p) {
            const BlockLoop& l = order_[p];
            extents[l.loop] = l.block * iterations_[p];
        }
        Box box;
        for (const ConvolutionLoop loop : convolution_loops)
            if (access_[loop] == LoopRole::related)
                box.plain = checked_multiply(box.plain, extents[loop]);
        for (const MapAxis a : map_axes) {
            if (access_.is_partial(a)) {
                box.axis[a] = Axis::windows(problem_.steps[a], extents[outputs_along(a)],
                                            extents[taps_along(a)]);
            } else {
                box.axis[a].end = 1;
            }
        }
        return box;
    }

    /// The words that the next iteration of a partial reuse loop uses again.
    [[nodiscard]] Box overlap(const Box& box, ConvolutionLoop loop) const {
        const MapAxis axis = axis_of(loop);
        const WindowSteps& steps = problem_.steps[axis];
        const int64_t step = (is_output_loop(loop) ? steps.stride : steps.dilation) * blocks_[loop];
        Box both = box;
        both.axis[axis] = box.axis[axis] & box.axis[axis].shifted(step);
        return both;
    }

    /// Words of the union of the boxes from `next` on within places of the axes: inclusion and
    /// exclusion. Boxes come from the inside out, and the related loops of an inner one lie within
    /// those of an outer one: `plain` of the first box chosen holds for all further ones, -1: none
    /// yet.
    [[nodiscard]] static int64_t words_within(const std::vector<Box>& boxes, size_t next,
                                              int64_t plain, const PerAxis<Axis>& places) {
        int64_t words = 0;
        for (size_t b = next; b < boxes.size(); ++b) {
            PerAxis<Axis> both;
            int64_t area = 1;
            for (const MapAxis a : map_axes) {
                both[a] = places[a] & boxes[b].axis[a];
                area *= both[a].size();
            }
            if (area == 0) continue;
            const int64_t first = plain < 0 ? boxes[b].plain : plain;
            words += first * area - words_within(boxes, b + 1, first, both);
        }
        return words;
    }

    /// Words of the union of `boxes`, of those in `within` when given.
    [[nodiscard]] static int64_t words_in(const std::vector<Box>& boxes, const Box* within) {
        PerAxis<Axis> places;
        for (const MapAxis a : map_axes) {
            places[a].end = INT64_MAX;
            if (within != nullptr) places[a] = within->axis[a];
        }
        return words_within(boxes, 0, -1, places);
    }

    const ConvolutionProblem& problem_;
    const TensorAccess& access_;
    const BlockOrder& order_;
    const LoopExtents& blocks_;
    std::array<int64_t, convolution_loops.size()> iterations_{};  ///< by position
};

/// Whether windows of these blocks, and so of all larger ones, leave gaps.
bool has_gaps(const ConvolutionProblem& problem, const TensorAccess& access,
              const LoopExtents& blocks) {
    return std::any_of(map_axes.begin(), map_axes.end(), [&](MapAxis a) {
        return access.is_partial(a) &&
               (problem.steps[a].dilation != 1 || blocks[taps_along(a)] < problem.steps[a].stride);
    });
}

/// Belady on a cyclic sweep keeps the same M - D words for T - D accesses, then the kept window
/// moves on.
int64_t spills(const ReuseGroup& g, int64_t memory) {
    if (memory >= g.spill_free) return 0;
    const int64_t all = checked_multiply(g.reused, g.rounds - 1);
    if (memory < g.inner_spill_free) return all;
    const int64_t usable = memory - g.beside;
    const int64_t cycle = g.reused - g.resident;
    const int64_t last = all % cycle;
    return checked_multiply(std::max<int64_t>(g.reused - usable, 0), all / cycle) +
           std::max<int64_t>(last - (usable - g.resident), 0);
}

TensorGroups groups_of(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
                       bool has_block) {
    const TensorAccess access = tensor_access(problem, operand);
    const LoopExtents blocks = block_extents(problem, order);
    if (has_gaps(problem, access, blocks))
        return Walk<AxisWords>(problem, access, order, blocks).groups(has_block);
    return Walk<Interval>(problem, access, order, blocks).groups(has_block);
}

}  // namespace

TensorGroups reuse_groups(const ConvolutionProblem& problem, Operand operand,
                          const BlockOrder& order) {
    return groups_of(problem, operand, order, true);
}

TensorGroups groups_of_prefix(const ConvolutionProblem& problem, Operand operand,
                              const BlockOrder& prefix) {
    return groups_of(problem, operand, prefix, false);
}

int64_t formula_spills(const TensorGroups& tensor, int64_t memory) {
    int64_t words = 0;
    for (const ReuseGroup& group : tensor.groups)
        words = checked_add(words, checked_multiply(group.instances, spills(group, memory)));
    return words;
}

}  // namespace laminate
