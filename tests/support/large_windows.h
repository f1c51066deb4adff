// Layers whose windows are so large that code has loops over their taps, for tests of kernels and of counts.
// Weights are zeros, as tests/support/chain.h makes them.
#pragma once

#include <array>
#include <vector>

#include "nets/network/network.h"
#include "tests/support/chain.h"

namespace laminate {

/// Rows, then columns; the same padding on both sides.
inline Window window_of(std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride = {1, 1},
                        std::array<int64_t, 2> pad = {0, 0},
                        std::array<int64_t, 2> dilation = {1, 1}) {
    Window w;
    w.kernel = kernel;
    w.stride = stride;
    w.pad_begin = w.pad_end = pad;
    w.dilation = dilation;
    return w;
}

/// Convolutions whose products are too many to be written out one after the other, and transposed ones whose
/// phases have too many sums. Of the last three, some phases have no tap: those of an axis of one position
/// whose stride is longer than the kernel.
inline std::vector<Network> layers_of_large_windows() {
    const auto transposed = [](int64_t rows, int64_t columns, const Window& window) {
        return chain(2, rows, columns,
                     {{.channels = 2, .window = window, .kind = LayerKind::conv_transpose}});
    };
    return {
        chain(2, 30, 40, {{3, window_of({17, 18}, {1, 1}, {8, 9})}}),
        chain(2, 60, 70, {{2, window_of({23, 27}, {2, 3}, {5, 6})}}),
        chain(2, 50, 40, {{4, window_of({21, 20}, {1, 1}, {9, 3}, {2, 1})}}),
        chain(1, 70, 45, {{3, window_of({19, 40}, {3, 1}, {9, 0}, {3, 1})}}),
        chain(3, 90, 6, {{13, window_of({70, 1}, {4, 1})}}),
        chain(1, 3, 700, {{9, window_of({1, 300}, {1, 7}, {0, 20})}}),
        chain(4, 33, 36, {{4, window_of({33, 15}, {1, 1}, {16, 7}), 4}}),
        transposed(5, 6, window_of({21, 19}, {9, 10}, {4, 3})),
        transposed(3, 4, window_of({5, 64}, {1, 32}, {2, 1})),
        transposed(9, 12, window_of({31, 29}, {1, 1}, {15, 0})),
        transposed(9, 12, window_of({33, 32}, {2, 3}, {3, 4})),
        transposed(1, 3, window_of({1, 4}, {2, 4})),
        transposed(1, 3, window_of({1, 64}, {32, 32})),
        transposed(1, 3, window_of({3, 1}, {4, 1})),
    };
}

}  // namespace laminate
