// Which part of which tensor a loop body needs, and which part of it is new: the interval arithmetic behind the generated
// code. One text for two value types: `int64_t`, to size buffers before the code exists, and `Halide::Expr`, to emit
// it. Independent of the cost models and of the walker on purpose (docs/counting.md: three witnesses).
//
// The input of nest c is "tensor c": the group's X for c == 0, else the output of nest c - 1. Its placement is
// nests[0].x or nests[c - 1].y. Channels are the axis Dim::z of the tensor's producer.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "scheduler/schedule.h"

namespace laminate {

template <class V>
struct Interval {
    V begin{};
    V end{};
};

/// The operations that regions need beyond + - *; specialised for each value type.
template <class V>
struct RegionOps;

template <>
struct RegionOps<int64_t> {
    static int64_t constant(int64_t value) { return value; }
    static int64_t min(int64_t a, int64_t b) { return std::min(a, b); }
    static int64_t max(int64_t a, int64_t b) { return std::max(a, b); }
    static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
    /// What nothing is computed from needs nothing. (Code asks at run time, see GroupLowering::is_called.)
    static bool is_known_empty(int64_t begin, int64_t end) { return begin >= end; }
    /// `value` where both are positive, else 0.
    static int64_t if_both_positive(int64_t a, int64_t b, int64_t value) { return a > 0 && b > 0 ? value : 0; }
};

/// The axes of a tensor: channels, rows, columns; the same enumerators as the producer's output loops.
inline constexpr std::array<Dim, 3> tensor_axes{Dim::z, Dim::y, Dim::x};

template <class V>
class Regions {
    using Ops = RegionOps<V>;

public:
    Regions(const GroupSchedule& group, const std::vector<LayerProblem>& problems) : group_(&group), problems_(&problems) {
        calls_.resize(problems.size());
        loops_.resize(problems.size());
        for (size_t k = 0; k < problems.size(); ++k) {
            loops_[k].assign(group.nests[k].loops.size(), {constant(0), {constant(0), constant(0)}});
            for (size_t d = 0; d < 4; ++d) calls_[k][d] = {constant(0), constant(problems[k].extent[d])};
        }
    }

    // ------------------------------------------------------------------------------------------ state of the execution
    void set_call(int nest, Dim d, Interval<V> box) { calls_[index(nest)][index(d)] = box; }
    /// `trip` counts from 0 at the first iteration executed; `part` is what the body covers of the loop's dimension.
    void set_loop(Level level, V trip, Interval<V> part) { loops_[index(level.nest)][index(level.loop)] = {trip, part}; }
    [[nodiscard]] V trip(Level level) const { return loops_[index(level.nest)][index(level.loop)].trip; }
    /// Remembers that the new part of tensor c at `level` was computed and bound to variables.
    void bind(int c, Dim axis, Level level, Interval<V> part) { bound_[{c, axis, level}] = part; }

    /// What one body of loop `loop` of `nest` covers of d; loop == -1: the whole call.
    [[nodiscard]] Interval<V> covered(int nest, Dim d, int loop) const {
        for (int l = loop; l >= 0; --l) {
            if (nest_(nest).loops[index(l)].dim == d) return loops_[index(nest)][index(l)].part;
        }
        return calls_[index(nest)][index(d)];
    }

    // --------------------------------------------------------------------------------------------------------- regions
    [[nodiscard]] const Placement& input_placement(int c) const { return c == 0 ? nest_(0).x.front().placement : nest_(c - 1).y; }

    /// What the body of `level` computes of the output of `nest`.
    [[nodiscard]] Interval<V> produced(int nest, Dim d, Level level) const {
        if (level.nest == nest) return covered(nest, d, level.loop);
        if (nest == group_->sink()) return calls_[index(nest)][index(d)];
        return new_input(nest + 1, d, level);
    }

    /// What the body of `level` needs of tensor c; clipped to the tensor unless told otherwise.
    [[nodiscard]] Interval<V> needed_input(int c, Dim axis, Level level, bool clipped = true) const {
        const LayerProblem& p = problem(c);
        if (axis == Dim::z) {
            if (p.groups > 1) {
                const Interval<V> z = produced(c, Dim::z, level);
                if (Ops::is_known_empty(z.begin, z.end)) return {constant(0), constant(0)};
                return {Ops::floor_div(z.begin, group_outputs(c)) * constant(p[Dim::i]), group_end(c, z.end)};
            }
            return level.nest == c ? covered(c, Dim::i, level.loop) : Interval<V>{constant(0), constant(p[Dim::i])};
        }
        const Interval<V> out = produced(c, axis, level);
        if (Ops::is_known_empty(out.begin, out.end)) return {constant(0), constant(0)};
        return {window_begin(c, axis, out.begin, clipped), window_end(c, axis, out.end, clipped)};
    }

    /// needed_input minus what earlier trips in the same lifetime brought.
    [[nodiscard]] Interval<V> new_input(int c, Dim axis, Level level) const {
        const auto it = bound_.find({c, axis, level});
        if (it != bound_.end()) return it->second;
        Interval<V> part = needed_input(c, axis, level);
        for (const Level& v : lifetime_loops(c, input_placement(c).store, level)) {
            const std::optional<V> present = present_input(c, axis, v);
            if (present) part.begin = Ops::max(part.begin, *present);
        }
        return part;
    }

    /// Weights of nest k, axis z or i.
    [[nodiscard]] Interval<V> needed_weights(int k, Dim axis, Level level) const {
        if (axis == Dim::z) return produced(k, Dim::z, level);
        return level.nest == k ? covered(k, Dim::i, level.loop) : Interval<V>{constant(0), constant(problem(k)[Dim::i])};
    }
    [[nodiscard]] Interval<V> new_weights(int k, Dim axis, Level level) const {
        Interval<V> part = needed_weights(k, axis, level);
        for (const Level& v : lifetime_loops(k, nest_(k).w->store, level)) {
            const std::optional<V> present = present_weights(k, axis, v);
            if (present) part.begin = Ops::max(part.begin, *present);
        }
        return part;
    }

    /// Loops strictly inside `store`, down to and including `level`, on the path of nest k: the ones that repeat within
    /// a lifetime of a buffer that nest k uses.
    [[nodiscard]] std::vector<Level> lifetime_loops(int k, Level store, Level level) const {
        std::vector<Level> inside;
        bool started = false;
        for (const Level& v : path(*group_, k)) {
            if (started) inside.push_back(v);
            if (v == store) started = true;
            if (v == level) break;
        }
        return inside;
    }

    /// Up to where earlier trips of loop v, in the same lifetime, brought tensor c; 0 on the first trip, and as long as
    /// nest c had nothing to do in this lifetime (its own output was still there from before). Nothing when v does not
    /// index that axis.
    [[nodiscard]] std::optional<V> present_input(int c, Dim axis, Level v) const {
        const std::optional<V> frontier = input_frontier(c, axis, v);
        if (!frontier) return std::nullopt;
        const Dim consumer_axis = axis == Dim::z && problem(c).groups == 1 ? Dim::i : axis;
        if (consumer_axis == Dim::i) return Ops::if_both_positive(trip(v), constant(1), *frontier);
        const V done = *output_frontier(c, consumer_axis, v) - produced(c, consumer_axis, input_placement(c).store).begin;
        return Ops::if_both_positive(trip(v), done, *frontier);
    }
    [[nodiscard]] std::optional<V> present_weights(int k, Dim axis, Level v) const {
        const std::optional<V> frontier = weights_frontier(k, axis, v);
        if (!frontier) return std::nullopt;
        return Ops::if_both_positive(trip(v), constant(1), *frontier);
    }
    [[nodiscard]] bool indexes_input(int c, Level v) const {
        return std::any_of(tensor_axes.begin(), tensor_axes.end(), [&](Dim d) { return indexes_input(c, d, v); });
    }
    [[nodiscard]] bool indexes_input(int c, Dim axis, Level v) const { return input_frontier(c, axis, v).has_value(); }
    [[nodiscard]] bool indexes_weights(int k, Dim axis, Level v) const { return weights_frontier(k, axis, v).has_value(); }
    [[nodiscard]] bool indexes_weights(int k, Level v) const {
        return weights_frontier(k, Dim::z, v).has_value() || weights_frontier(k, Dim::i, v).has_value();
    }

private:
    /// Where the part of tensor c that earlier trips of loop v needed ends; nothing when v does not index that axis.
    [[nodiscard]] std::optional<V> input_frontier(int c, Dim axis, Level v) const {
        if (axis != Dim::z) {
            const std::optional<V> out = output_frontier(c, axis, v);
            if (!out) return std::nullopt;
            return window_end(c, axis, *out, true);
        }
        if (problem(c).groups > 1) {
            const std::optional<V> z = output_frontier(c, Dim::z, v);
            if (!z) return std::nullopt;
            return group_end(c, *z);
        }
        if (v.nest == c && loop(v).dim == Dim::i) return part(v).begin;
        return std::nullopt;
    }
    [[nodiscard]] std::optional<V> weights_frontier(int k, Dim axis, Level v) const {
        if (axis == Dim::z) return output_frontier(k, Dim::z, v);
        if (v.nest == k && loop(v).dim == Dim::i) return part(v).begin;
        return std::nullopt;
    }

    struct LoopState {
        V trip{};
        Interval<V> part;
    };

    template <class I>
    static size_t index(I i) {
        return static_cast<size_t>(i);
    }
    static V constant(int64_t value) { return Ops::constant(value); }
    [[nodiscard]] const Nest& nest_(int k) const { return group_->nests[index(k)]; }
    [[nodiscard]] const LayerProblem& problem(int k) const { return (*problems_)[index(k)]; }
    [[nodiscard]] const Loop& loop(Level v) const { return nest_(v.nest).loops[index(v.loop)]; }
    [[nodiscard]] Interval<V> part(Level v) const { return loops_[index(v.nest)][index(v.loop)].part; }
    [[nodiscard]] V group_outputs(int c) const { return constant(problem(c)[Dim::z] / problem(c).groups); }

    /// End of the input channels of the groups of output channels [.., z_end).
    [[nodiscard]] V group_end(int c, V z_end) const {
        return (Ops::floor_div(z_end - constant(1), group_outputs(c)) + constant(1)) * constant(problem(c)[Dim::i]);
    }

    /// Where the part of nest k's output that earlier trips of v covered ends (tiles run forward without gaps).
    [[nodiscard]] std::optional<V> output_frontier(int k, Dim d, Level v) const {
        if (v.nest == k) {
            if (loop(v).dim != d) return std::nullopt;
            return part(v).begin;
        }
        return input_frontier(k + 1, d, v);
    }

    [[nodiscard]] V window_begin(int c, Dim axis, V out, bool clipped) const {
        const AxisWindow& w = problem(c).window[axis == Dim::y ? 0 : 1];
        // Transposed: input q feeds outputs q*S - pad + n*dilation.
        const V first = w.transposed ? Ops::floor_div(out + constant(w.pad_begin - (w.kernel - 1) * w.dilation + w.stride - 1), constant(w.stride))
                                     : out * constant(w.stride) - constant(w.pad_begin);
        return clipped ? Ops::min(Ops::max(first, constant(0)), constant(w.in)) : first;
    }
    [[nodiscard]] V window_end(int c, Dim axis, V out_end, bool clipped) const {
        const AxisWindow& w = problem(c).window[axis == Dim::y ? 0 : 1];
        const V last = out_end - constant(1);
        const V end = w.transposed ? Ops::floor_div(last + constant(w.pad_begin), constant(w.stride)) + constant(1)
                                   : last * constant(w.stride) + constant((w.kernel - 1) * w.dilation + 1 - w.pad_begin);
        return clipped ? Ops::min(Ops::max(end, constant(0)), constant(w.in)) : end;
    }

    const GroupSchedule* group_;
    const std::vector<LayerProblem>* problems_;
    std::vector<std::array<Interval<V>, 4>> calls_;
    std::vector<std::vector<LoopState>> loops_;
    std::map<std::tuple<int, Dim, Level>, Interval<V>> bound_;
};

/// How large each dimension of a buffer has to be (docs/counting.md section 5).
struct BufferShape {
    std::array<int64_t, 3> extent{0, 0, 0};  ///< tensors: channels, rows, columns; weights: z, i, kernel area
    std::array<bool, 3> folds{};             ///< rotates: coordinate modulo extent
    int64_t unclipped_columns = 0;           ///< tensors: columns of a lifetime with the padding around them
    [[nodiscard]] int64_t elements() const { return extent[0] * extent[1] * extent[2]; }
};

[[nodiscard]] BufferShape input_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int c);
[[nodiscard]] BufferShape weights_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems, int k);
/// Y buffer of the sink.
[[nodiscard]] BufferShape output_buffer_shape(const GroupSchedule& group, const std::vector<LayerProblem>& problems);

}  // namespace laminate
