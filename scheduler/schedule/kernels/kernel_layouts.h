// Tiles, panels, parts and scratch of the kernels that take whole arrays or a whole chain, from the
// schedule alone.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/kernels/layout/columns.h"
#include "scheduler/schedule/kernels/layout/map_addition.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"
#include "scheduler/schedule/kernels/layout/map_panels.h"
#include "scheduler/schedule/kernels/layout/map_pixels.h"
#include "scheduler/schedule/kernels/layout/map_pooling.h"
#include "scheduler/schedule/kernels/layout/map_windows.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// With a panel if the kernel has one.
[[nodiscard]] MapPixelsLayout map_pixels_layout(const LayerProblem& problem, const Kernel& kernel);

/// Every nest of the group has the kernel `columns`.
[[nodiscard]] ColumnsLayout columns_layout(const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems);

/// Elements of the scratch block of a layer with a map kernel.
[[nodiscard]] int64_t map_scratch_elements(const LayerProblem& problem, const Kernel& kernel);
/// Output channels whose weights it reads together; zero weights fill the last ones up.
[[nodiscard]] int64_t map_channels_together(const LayerProblem& problem, const Kernel& kernel);
/// Elements of the output that its code stores.
[[nodiscard]] int64_t map_stored_elements(const LayerProblem& problem, const Kernel& kernel);
/// Multiplications executed for the whole layer.
[[nodiscard]] int64_t map_multiplications(const LayerProblem& problem, const Kernel& kernel);

}  // namespace laminate
