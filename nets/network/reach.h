// Reach: how the output of a network moves with its input, and how far around itself an output
// reads. A picture is cut into overlapping windows by its network's reach.
// scheduler/explore/planner/reach.h finds the reach; runtime/windows.h runs the windows.
#pragma once

#include <cstdint>
#include <vector>

namespace laminate {

/// Along one axis, in elements. Away from the borders:
///   moving the input by `input_step` moves the output by exactly `output_step`;
///   outputs from k * output_step on depend on no input before k * input_step - before;
///   outputs before k * output_step depend on no input from k * input_step + after on.
struct AxisReach {
    int64_t input_step = 1;
    int64_t output_step = 1;
    int64_t before = 0;  ///< a multiple of input_step
    int64_t after = 0;   ///< a multiple of input_step
    friend bool operator==(const AxisReach&, const AxisReach&) = default;
};

struct Reach {
    AxisReach y;
    AxisReach x;
    friend bool operator==(const Reach&, const Reach&) = default;
};

/// One window along one axis.
struct AxisPart {
    int64_t input_begin = 0;   ///< of the window, in the picture
    int64_t output_begin = 0;  ///< kept outputs [output_begin, output_end), in the picture's output
    int64_t output_end = 0;
    int64_t output_in_window = 0;  ///< where output_begin lies in the window's output
    friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

/// Elements along one axis.
struct AxisSize {
    int64_t input = 0;
    int64_t output = 0;
};

/// Size of the smallest window such that `count` windows cover `picture` inputs; it is a whole
/// number of steps smaller than the picture. Returns `picture` for one window, and when overlaps
/// leave nothing to gain.
[[nodiscard]] int64_t window_for(const AxisReach& reach, int64_t picture, int64_t count);

/// Outputs of a picture of `picture` inputs, computed from the outputs of a window. picture -
/// window.input must be a multiple of the input step.
[[nodiscard]] int64_t picture_output(const AxisReach& reach, const AxisSize& window,
                                     int64_t picture);

/// Parts that cover every output once, in order. Throws InputError if the picture is not a whole
/// number of steps larger than the window, or if the window is so small that none of its outputs
/// can be kept.
[[nodiscard]] std::vector<AxisPart> cut(const AxisReach& reach, const AxisSize& window,
                                        int64_t picture);

}  // namespace laminate
