// Convolutions on maps whose rows fill vectors badly, as one matrix product per row of the window:
//
//     Y[z][q] = f(b[z] + sum over n, m, i of W[z][n][i][m] * grid[i][tap(n, m) + q])
//
// The grid is a copy of the input with its padding, strided rows and columns apart
// (layout/map_windows.h), in which each tap finds a run of the map's pixels q side by side, over
// the ends of rows. The last columns of a row are computed for nothing.
//
// For each tile of pixels, a row n of the window after the other: a panel, [i][m][vector][lane],
// because a panel of all rows would not stay in the second-level cache; products with the panel for
// each block of output channels, added to sums that lie [z][q] in the scratch block meanwhile. At
// last the sums go row by row to where they belong. Windows of one tap (strided 1x1) need no sums
// in memory.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/map_windows.h"

namespace laminate {

[[nodiscard]] GroupCode map_windows_code(LayerOutput output, const MapWindowsLayout& at);

}  // namespace laminate
