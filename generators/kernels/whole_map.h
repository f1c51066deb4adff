// Layers on small maps by themselves, from their whole input in the caller's array: no line buffer,
// threads divide output channels or pixels instead of rows.
//
//   pointwise   1x1 convolutions and dense layers as a matrix product; a vector is a run of pixels
//   of the whole map, [y][x] as one axis,
//               so that maps of 14 or 7 columns leave no lanes empty; where many output channels
//               read them, from a panel in the scratch block that holds a tile's pixels of all
//               input channels side by side. Of a map of one pixel a vector is a run of output
//               channels.
//   windows     convolutions whose rows fill vectors badly: a copy of the input with its padding,
//   strided rows and columns apart, in which every tap finds a run
//               of the map's pixels side by side; panels and tiles as above, a row of the window at
//               a time. The last columns of its rows are computed for nothing. Strided windows of
//               few taps and channels (first layers) read a panel that holds all of them, row by
//               row of the map, and copy nothing else.
//   pooling     a vector is a row of the map or part of one, maxima of rows before those of
//   columns; nothing is copied. addition    of two or more tensors, all maps as one axis. depthwise
//   a vector is a row of the map or part of one; padding columns are lanes that are not loaded,
//   padding rows are left out.
//
// Every output is the same sum in the same order as in the kernels of optimised.cpp, bit for bit
// but for rows that padding cuts short, whose products the compiler may round before it adds them.
#pragma once

#include <optional>

#include "generators/group_code.h"
#include "generators/kernels/optimised.h"

namespace laminate {

/// Pooling with a small window and rows of a few vectors.
[[nodiscard]] bool kernel_pays(const LayerProblem& problem, KernelKind::map_pooling);

/// The code of a group that holds one layer which a_map_kernel_pays() or suits_whole_pooling(), and
/// perhaps an Add of its output, or an Add by itself, and takes its tensors whole
/// (LayerOutput::of). None for other groups, nor where the copies take more scratch than is
/// allowed.
[[nodiscard]] std::optional<GroupCode> whole_map_code(const Network& network,
                                                      const GroupSchedule& group,
                                                      const VectorUnit& unit,
                                                      const KernelOptions& kernels = {});

}  // namespace laminate
