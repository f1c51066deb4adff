// Chooses the size of the windows in which a picture goes through a network: the cheapest that fits
// a memory budget.
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
    /// The network for a picture of the given size.
    std::function<Network(int64_t height, int64_t width)> network_of;
    int64_t height = 0;  ///< of the whole picture
    int64_t width = 0;
    Reach reach;
    /// Budget for one window of input and output, the tensors between groups, and the internal
    /// memory of all threads.
    Bytes memory;
    int threads = 1;
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
    bool whole_rows = false;                              ///< only windows as wide as the picture
};

struct WindowChoice {
    int64_t height = 0;  ///< of the window
    int64_t width = 0;
    int64_t rows = 1;     ///< windows from top to bottom
    int64_t columns = 1;  ///< from left to right
    Bytes memory;         ///< by the model
    /// Budget of one thread's internal memory for the window's schedule; nullopt leaves it to the
    /// planner.
    std::optional<Bytes> thread_memory;
};

/// Among windows that divide the picture evenly, the one with the least work for the whole picture:
/// MACs and accesses of each window's line-buffer schedule (line_buffers.h), halos included.
/// Returns nullopt if no window fits.
[[nodiscard]] std::optional<WindowChoice> choose_window(const WindowDemand& demand);

}  // namespace laminate
