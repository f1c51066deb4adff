// How wide the strips of columns of code of any size may be.
#pragma once

#include "scheduler/explore/planner/any_size.h"
#include "scheduler/machine/cpu_speed.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

/// AnySizeOptions::strips_cache: a core's second-level cache, or twice or four times as much where a
/// large picture is expected to take at least 3 % less time with it. Wide strips compute fewer
/// columns again, but their lines come from the third level.
[[nodiscard]] Bytes best_strips_cache(const TensorSizes& sizes, const AnySizeOptions& options,
                                      const CpuSpeed& speed);

}  // namespace laminate
