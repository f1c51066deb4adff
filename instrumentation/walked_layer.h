// One layer in the plain walker (walker.h): the taps of its window, and the state of its loops. The
// arithmetic is its own, because witnesses that share arithmetic prove nothing by agreeing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/indexed.h"
#include "instrumentation/boxes.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// The taps of some output coordinates along one axis: their number, and the input coordinates that
/// they span, padding included.
struct Taps {
    int64_t count = 0;
    Range span;
    void add(const Taps& other) {
        span.extend(other.span);
        count += other.count;
    }
};

/// One axis of a layer's window.
class AxisTaps {
public:
    explicit AxisTaps(const AxisWindow& window) : taps_(window.out) {
        for (int64_t o = 0; o < window.out; ++o) {
            if (window.is_sampled()) {
                taps_[o] = {1, sampled(window, o)};
                continue;
            }
            for (int64_t k = 0; k < window.kernel; ++k) {
                int64_t at = 0;
                if (window.transposed) {
                    const int64_t scaled = o + window.pad_begin - k * window.dilation;
                    if (scaled % window.stride != 0) continue;
                    at = scaled / window.stride;
                } else {
                    at = o * window.stride + k * window.dilation - window.pad_begin;
                }
                taps_[o].add({1, {at, at + 1}});
            }
        }
    }

    /// The taps of a range of output coordinates together.
    [[nodiscard]] const Taps& of(const Range& outputs) {
        if (outputs != last_outputs_) {
            last_outputs_ = outputs;
            last_ = {};
            for (int64_t o = outputs.begin; o < outputs.end; ++o) last_.add(taps_[o]);
        }
        return last_;
    }

private:
    /// The interval of one output of a Pad or Resize.
    static Range sampled(const AxisWindow& window, int64_t output) {
        const Sampling& s = window.sampling;
        const auto below = [&](int64_t offset) {
            const int64_t scaled = output * s.numerator + offset;
            int64_t at = scaled / s.denominator;
            while (at * s.denominator > scaled) --at;
            return at;
        };
        const int64_t begin = std::min(below(s.first), window.in - 1 - s.whole_end),
                      last = std::max(below(s.last), s.whole_begin);
        return Range{begin, last + 1}.clipped_to(window.in);
    }

    IndexVector<Taps, int64_t> taps_;  ///< by output coordinate
    Range last_outputs_;               ///< argument of the last call, which is often repeated
    Taps last_;
};

/// A part of a layer's iterations.
using Ranges = PerDim<Range>;

/// A layer, its nest, and the state of its loops.
struct LayerState {
    const LayerProblem& problem;
    const Nest& nest;
    std::array<AxisTaps, 2> taps;  ///< rows, columns
    Ranges ranges;                 ///< ranges of the present body
    Macs macs;

    LayerState(const LayerProblem& layer_problem, const Nest& layer_nest)
        : problem(layer_problem),
          nest(layer_nest),
          taps{AxisTaps(problem.y()), AxisTaps(problem.x())} {}

    /// The iterations that compute a box of the output.
    [[nodiscard]] Ranges ranges_of(const Box& output) const {
        return {output[0], output[1], output[2], Range{0, problem[Dim::i]}};
    }
    /// What these iterations read of one operand: the bounding box, clipped to the tensor.
    [[nodiscard]] Box input_of(int operand, const Ranges& of) {
        const LayerInput& input = problem.inputs[static_cast<size_t>(operand)];
        Range channels;
        if (problem.operation == Operation::concat) {
            channels = {of[Dim::z].begin - input.first_output_channel,
                        of[Dim::z].end - input.first_output_channel};
        } else if (!problem.is_grouped()) {
            channels = of[Dim::i];
        } else {
            const int64_t z_per_group = problem[Dim::z] / problem.groups;
            channels.begin = of[Dim::z].begin / z_per_group * problem[Dim::i] + of[Dim::i].begin;
            channels.end = (of[Dim::z].end - 1) / z_per_group * problem[Dim::i] + of[Dim::i].end;
        }
        constexpr Range only{0, 1};
        if (input.is_plane) channels = only;
        if (input.is_pixel) return {channels.clipped_to(input.channels), only, only};
        return {channels.clipped_to(input.channels),
                taps[0].of(of[Dim::y]).span.clipped_to(problem.y().in),
                taps[1].of(of[Dim::x]).span.clipped_to(problem.x().in)};
    }
    void multiply_accumulate() {
        if (!problem.has_weights()) return;
        macs += Macs(ranges[Dim::z].size()) * ranges[Dim::i].size() *
                taps[0].of(ranges[Dim::y]).count * taps[1].of(ranges[Dim::x]).count;
    }
};

}  // namespace laminate::walking
