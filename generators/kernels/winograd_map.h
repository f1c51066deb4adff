// 3x3 convolutions of stride 1 by F(2x4, 3x3) (winograd.h has the filter) or F(4x4, 3x3) on maps of
// up to 64 columns, or F(6x6, 3x3) on maps of up to 256, those of 5x5 by F(4x4, 5x5), of five or seven
// taps along one axis by F(4, 5) or F(4, 7), all rows of a layer together, straight from the caller's
// arrays:
//
//     Y = f(b + A^T (sum over i of U[i] * V[i]) A),   U[i] = G g[i] G^T,   V[i] = B^T d[i] B
//
// for each output channel and each tile of 2 x 4, 4 x 4 or 6 x 6 outputs, * by element (24, 36 or 64
// frequencies; 64 of tiles of 4 x 4 for 5x5; 8 or 10 of tiles of four outputs of a row or a column).
//
// Such layers have more weights than pixels: transformed weights, 24 for each 9, would come from
// memory for every run, at less than the pace of the multipliers. So the plain ones come, and the
// code transforms them where it needs them. For each chunk of bands, rows of tiles:
//
// - V[frequency][vector of tiles][input channel][lane]: patches of all input channels, in the order in
//   which products read them (winograd_map_patches.h). Fewer, larger chunks transform the weights less
//   often; V may then lie in the third-level cache.
// - For each block of output channels, for some input channels at a time, and for a pair of rows of
//   frequencies at a time: U[frequency][input channel][output channel of the block], transformed weights,
//   and M[register tile][frequency][tile][output channel of the block] += the products of each frequency.
//   U of all frequencies would push M out of the second-level cache.
// - M, transformed, becomes rows of the output, strip by strip (winograd_map_outputs.h).
//
// Threads divide chunks and, where those are few, output channels. What a result is does not depend
// on that.
#pragma once

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "scheduler/schedule/kernels/layout/winograd_map.h"

namespace laminate {

[[nodiscard]] GroupCode winograd_map_code(LayerOutput output, const WinogradMapLayout& at);

}  // namespace laminate
