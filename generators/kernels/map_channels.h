// Convolutions and dense layers on maps of few pixels. A vector is a run of output channels z, all
// of which one element of X multiplies:
//
//     Y[z][q] = f(b[z] + sum over n, i, m of W[z][n][i][m] * X[i][tap(q, n, m)])
//
// X is read in place or from a panel. In place, a tile of pixels q is written out, so it is known
// which of its taps are padding, and those are left out. A panel is filled before blocks of channels
// read it: every tap of a tile comes from one stream, with zeros for padding. The maps are so small
// that weights set the pace: while the tiles of a block use some of them, the code asks for the next
// ones.
//
// On a map of one pixel, a 1x1 layer is a matrix times a vector.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "generators/kernels/map_code.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"

namespace laminate {

/// Copies the whole map to the panel, if the layer has one.
[[nodiscard]] Stmt map_channels_panel(const MapCode& code, const MapChannelsLayout& at);

/// Outputs of a block of channels, of some tiles. The map of channel 0 would begin at element
/// `begin` of where the code stores.
[[nodiscard]] Stmt map_channels_block(const MapCode& code, const MapChannelsLayout& at,
                                      const Expr& z_block, const Interval& tiles,
                                      const Expr& begin);

[[nodiscard]] GroupCode map_channels_code(LayerOutput output, const MapChannelsLayout& at);

}  // namespace laminate
