// Percentiles of measurements.
#pragma once

#include <cstddef>
#include <vector>

namespace laminate {

/// Returns the value that `percent` per cent of the sorted values, of which there is one at least, do not exceed;
/// the lower one where two are as good.
[[nodiscard]] inline double at_percent(const std::vector<double>& sorted, size_t percent) {
    return sorted[(sorted.size() - 1) * percent / 100];
}

}  // namespace laminate
