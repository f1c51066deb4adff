// Layers on small maps by themselves, straight from the caller's arrays: no line buffer, no copy, threads divide output channels instead of rows.
//
//   pointwise   1x1 convolutions and dense layers as a matrix product; a vector is a run of pixels of the whole map, [y][x] as one axis,
//               so that maps of 14 or 7 columns leave no lanes empty. Of a map of one pixel a vector is a run of output channels.
//   depthwise   a vector is a row of the map or part of one; padding columns are lanes that are not loaded, padding rows are left out.
//
// Every output is the same sum in the same order as in the kernels of optimised.cpp, bit for bit but for rows that padding cuts short, whose products
// the compiler may round before it adds them.
#pragma once

#include <optional>

#include "generators/group_code.h"
#include "generators/optimised.h"

namespace laminate {

/// The code of a group that holds one layer which suits_whole_map() and takes its tensors whole (no strips, no tiles of channels or columns).
/// Needs no scratch. None for other groups.
[[nodiscard]] std::optional<GroupCode> whole_map_code(const Network& network, const GroupSchedule& group, const VectorUnit& unit);

}  // namespace laminate
