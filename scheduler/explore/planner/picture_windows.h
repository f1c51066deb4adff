// The size of the windows in which a picture goes through a network: by cost, within a memory
// budget.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/caches.h"
#include "base/units.h"
#include "nets/network/network.h"
#include "nets/network/reach.h"

namespace laminate {

struct WindowDemand {
    /// The network for a picture of so many rows and columns.
    std::function<Network(int64_t height, int64_t width)> network_of;
    int64_t height = 0;  ///< of the whole picture
    int64_t width = 0;
    Reach reach;
    Bytes memory;  ///< for a window of input and output, tensors between groups, and every thread's
                   ///< internal memory
    int threads = 1;
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
    bool whole_rows = false;                              ///< only windows as wide as the picture
};

struct WindowChoice {
    int64_t height = 0;  ///< of the window
    int64_t width = 0;
    int64_t rows = 1;     ///< windows from top to bottom
    int64_t columns = 1;  ///< from left to right
    Bytes memory;         ///< as the model sees it
    /// Internal memory of one thread that the window's schedule is to stay within; none: the
    /// planner's own choice.
    std::optional<Bytes> thread_memory;
};

/// The choice with the least work for the whole picture among windows that divide it evenly: MACs
/// and accesses of the line-buffer schedule of each window (line_buffers.h), halos and all. None
/// when no window fits.
[[nodiscard]] std::optional<WindowChoice> choose_window(const WindowDemand& demand);

}  // namespace laminate
