// Layers on small maps by themselves, from their whole input in the caller's array: no line buffer,
// and threads divide output channels or pixels instead of rows. This header picks the kernel; each
// kernel has a file of its own that opens with its formula, and a layout (layout/) that says which
// tiles, parts and scratch it uses:
//
//   map_pixels, map_channels   1x1 convolutions and dense layers
//   map_panels                 strided convolutions that read few elements (reads_few)
//   map_windows                other convolutions, narrow or strided
//   map_depthwise, map_pooling, map_addition
#pragma once

#include <optional>

#include "generators/group_code.h"
#include "generators/kernels/optimised.h"

namespace laminate {

/// Pooling with a small window and rows of a few vectors.
[[nodiscard]] bool suits_whole_pooling(const LayerProblem& problem);

/// The code of a group that holds one layer which suits_whole_map() or suits_whole_pooling(), and
/// perhaps an Add of its output, or an Add by itself, and takes its tensors whole
/// (LayerOutput::of). None for other groups, nor where the copies take more scratch than is
/// allowed.
[[nodiscard]] std::optional<GroupCode> whole_map_code(const Network& network,
                                                      const GroupSchedule& group,
                                                      const VectorUnit& unit,
                                                      const KernelOptions& kernels = {});

}  // namespace laminate
