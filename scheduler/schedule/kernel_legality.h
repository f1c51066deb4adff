// Which kernels a group's dataflow allows. kernel.h says which layers a kernel can compute at all;
// this header judges the boxes that the loops ask it for, and its neighbours.
#pragma once

#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Throws InputError naming the layer, its kernel, what is wrong and what would be legal. Accepts a
/// group without any kernel; the group is legal otherwise.
void check_kernels(const GroupSchedule& group, const std::vector<LayerProblem>& problems);

/// Two layers, the second an Add of the first one's output and of tensors that this one does not read: a
/// map kernel adds before it stores.
[[nodiscard]] bool ends_in_add(const std::vector<LayerProblem>& problems);
/// A depthwise layer and a 1x1 layer of its output, perhaps an Add of that one's output: bands of rows go
/// from one layer to the other (layout/map_bands.h).
[[nodiscard]] bool is_depthwise_pair(const std::vector<LayerProblem>& problems);
/// A 1x1 layer and a depthwise layer of its output: blocks of channels go from one layer to the other
/// (layout/map_blocks.h).
[[nodiscard]] bool is_pointwise_pair(const std::vector<LayerProblem>& problems);
/// One layer or a depthwise pair (is_depthwise_pair), or either and an Add of its output (ends_in_add), or a
/// pointwise pair, whose arrays map kernels take whole: no strips, no tiles of channels or columns.
[[nodiscard]] bool is_whole_map_group(const GroupSchedule& group,
                                      const std::vector<LayerProblem>& problems);

/// A chain that goes by whole rows of all channels, kept for the innermost strip: what the kernel
/// `columns` executes.
[[nodiscard]] bool goes_by_rows(const GroupSchedule& group,
                                const std::vector<LayerProblem>& problems);

/// Whether a strip computes the same rows wherever a thread begins. If rows are kept from strip to
/// strip, the thread decides which of them are paired.
[[nodiscard]] bool strips_begin_anew(const GroupSchedule& group);

}  // namespace laminate
