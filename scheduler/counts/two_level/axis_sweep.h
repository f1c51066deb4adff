// Counts one axis by running its loops.
#pragma once

#include "scheduler/counts/two_level/axis.h"

namespace laminate::two_level {

/// Throws std::overflow_error beyond 64 bits.
[[nodiscard]] AxisCounts axis_counts(const AxisProblem& problem);

}  // namespace laminate::two_level
