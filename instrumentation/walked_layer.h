// What the plain walker (walker.h) knows of one layer: the taps of its window, and where its loops
// stand. It has arithmetic of its own: what agrees with the model must not share it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "instrumentation/boxes.h"
#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// The taps of some output coordinates along one axis: how many, and the input coordinates they
/// span, padding included.
struct Taps {
    int64_t count = 0;
    Interval span;
    void add(const Taps& other) {
        if (other.count == 0) return;
        span.begin = count == 0 ? other.span.begin : std::min(span.begin, other.span.begin);
        span.end = count == 0 ? other.span.end : std::max(span.end, other.span.end);
        count += other.count;
    }
};

/// One axis of a layer's window.
class AxisTaps {
public:
    explicit AxisTaps(const AxisWindow& window) : taps_(static_cast<size_t>(window.out)) {
        for (int64_t o = 0; o < window.out; ++o) {
            for (int64_t k = 0; k < window.kernel; ++k) {
                int64_t at = 0;
                if (window.transposed) {
                    const int64_t scaled = o + window.pad_begin - k * window.dilation;
                    if (scaled % window.stride != 0) continue;
                    at = scaled / window.stride;
                } else {
                    at = o * window.stride + k * window.dilation - window.pad_begin;
                }
                taps_[static_cast<size_t>(o)].add({1, {at, at + 1}});
            }
        }
    }

    /// Of a range of output coordinates taken together.
    [[nodiscard]] const Taps& of(const Interval& outputs) {
        if (outputs != last_outputs_) {
            last_outputs_ = outputs;
            last_ = {};
            for (int64_t o = outputs.begin; o < outputs.end; ++o)
                last_.add(taps_[static_cast<size_t>(o)]);
        }
        return last_;
    }

private:
    std::vector<Taps> taps_;
    Interval last_outputs_;  ///< what was asked last, which is often asked again
    Taps last_;
};

/// A part of a layer's iterations, by Dim.
using Ranges = std::array<Interval, 4>;

/// A layer, what the schedule says of it, and where its loops stand.
struct LayerState {
    const LayerProblem& problem;
    const Nest& nest;
    std::array<AxisTaps, 2> taps;  ///< rows, columns
    Ranges ranges;                 ///< of the body that is being executed
    Macs macs;

    LayerState(const LayerProblem& layer_problem, const Nest& layer_nest)
        : problem(layer_problem),
          nest(layer_nest),
          taps{AxisTaps(problem.y()), AxisTaps(problem.x())} {}

    /// The iterations that compute a box of the output.
    [[nodiscard]] Ranges ranges_of(const Box& output) const {
        return {output[0], output[1], output[2], Interval{0, problem[Dim::i]}};
    }
    /// What they read of one operand: the bounding box, clipped to the tensor.
    [[nodiscard]] Box input_of(int operand, const Ranges& of) {
        const LayerInput& input = problem.inputs[static_cast<size_t>(operand)];
        Interval channels;
        if (problem.operation == Operation::concat) {
            channels = {of[0].begin - input.first_output_channel,
                        of[0].end - input.first_output_channel};
        } else if (problem.groups == 1) {
            channels = of[3];
        } else {
            const int64_t z_per_group = problem[Dim::z] / problem.groups;
            channels.begin = of[0].begin / z_per_group * problem[Dim::i] + of[3].begin;
            channels.end = (of[0].end - 1) / z_per_group * problem[Dim::i] + of[3].end;
        }
        return {channels.clipped_to(input.channels),
                taps[0].of(of[1]).span.clipped_to(problem.y().in),
                taps[1].of(of[2]).span.clipped_to(problem.x().in)};
    }
    void multiply_accumulate() {
        if (!problem.has_weights()) return;
        macs += Macs(ranges[0].size()) * ranges[3].size() * taps[0].of(ranges[1]).count *
                taps[1].of(ranges[2]).count;
    }
};

}  // namespace laminate::walking
