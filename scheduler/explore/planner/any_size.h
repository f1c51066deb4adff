// A schedule for pictures of any size: line buffers of whole rows, planned at one size.
#pragma once

#include <cstdint>
#include <vector>

#include "base/caches.h"
#include "nets/network/network.h"
#include "scheduler/explore/planner/default_kernels.h"
#include "scheduler/schedule/kernels/vector_unit.h"
#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/tensor_sizes.h"

namespace laminate {

struct AnySizeOptions {
    VectorUnit unit;          ///< of the processor that will run the code
    KernelOptions kernels{};  ///< any_size is set
    Bytes second_level_cache = usual_second_level_cache;  ///< of a core
    Bytes strips_cache = usual_second_level_cache;        ///< of widest_strip()
};

/// Columns of the longest strips of a chain by tiles of columns whose lines stay within a cache
/// (most_column_tiles_memory); a multiple of strip_unit().
[[nodiscard]] int64_t widest_strip(const GroupSchedule& group,
                                   const std::vector<LayerProblem>& problems,
                                   Bytes strips_cache);

/// Groups of the planner (line_buffers.h) with strips of rows, which the runtime makes as long as
/// the picture and its threads need them, and kernels for any size. `sizes`: of the network.
/// Groups whose tensors do not depend on the size are as in any schedule.
[[nodiscard]] Schedule any_size_schedule(const Network& network, const TensorSizes& sizes,
                                         const AnySizeOptions& options);

/// Rows of a group's output that take as many MACs as what a seam between two strips of rows
/// repeats, rounded up.
[[nodiscard]] int64_t rows_repeated_per_seam(const GroupSchedule& group,
                                             const std::vector<LayerProblem>& problems);

}  // namespace laminate
