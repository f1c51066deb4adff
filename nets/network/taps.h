// Private to nets/network: where the taps of pooling windows lie, along one axis.
#pragma once

#include <cstdint>

namespace laminate {

/// Windows whose taps lie `dilation` apart. Tap 0 of window 0 lies at -pad_begin.
struct AxisTaps {
    int64_t kernel = 1, stride = 1, dilation = 1, pad_begin = 0;
};

/// Whether each of `out` windows has a tap among the `in` elements of the input. A pooling window
/// that has none has no maximum and no mean.
[[nodiscard]] bool every_window_reads(const AxisTaps& taps, int64_t in, int64_t out);

}  // namespace laminate
