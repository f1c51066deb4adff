// A self-contained page of curves: per layer, a chart of DRAM accesses against the size of the
// buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace laminate::cli {

struct LayerCurve {
    struct Point {
        int64_t buffer_bytes = 0;
        std::optional<int64_t> dram_bytes;  ///< none where the buffer is too small
        int64_t bound_bytes = 0;            ///< no schedule has fewer
    };
    std::string layer;
    std::string loops;
    std::vector<Point> points;  ///< by rising size of the buffer
};

/// HTML with inline SVG, no scripts, nothing loaded from elsewhere.
[[nodiscard]] std::string curve_page(const std::string& title,
                                     const std::vector<LayerCurve>& curves);

}  // namespace laminate::cli
