// Which input coordinates the outputs of a layer read, along one spatial axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/range.h"
#include "base/units.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// Input coordinates that outputs [out.begin, out.end) read, clipped to the tensor.
[[nodiscard]] inline Range window_of(const AxisWindow& w, Range out) {
    Range in;
    if (w.is_sampled()) return {w.sampled_begin(out.begin), w.sampled_end(out.end)};
    if (w.transposed) {
        in.begin = floor_div(out.begin + w.pad_begin - w.span() + w.stride, w.stride);
        in.end = floor_div(out.end - 1 + w.pad_begin, w.stride) + 1;
    } else {
        in.begin = out.begin * w.stride - w.pad_begin;
        in.end = (out.end - 1) * w.stride + w.span() - w.pad_begin;
    }
    return {std::max<int64_t>(in.begin, 0), std::min(in.end, w.in)};
}

/// Number of kernel positions that outputs [out.begin, out.end) multiply in total, including those
/// on padding.
[[nodiscard]] inline int64_t taps_of(const AxisWindow& w, Range out) {
    if (w.is_sampled()) return out.size();
    if (!w.transposed) return checked_multiply(out.size(), w.kernel);
    // Tap n serves the outputs o with (o + pad - n * dilation) divisible by the stride.
    int64_t taps = 0;
    for (int64_t n = 0; n < w.kernel; ++n) {
        const int64_t shift = w.pad_begin - n * w.dilation;
        taps +=
            floor_div(out.end - 1 + shift, w.stride) - floor_div(out.begin - 1 + shift, w.stride);
    }
    return taps;
}

}  // namespace laminate
