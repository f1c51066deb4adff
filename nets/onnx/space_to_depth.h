// Private to nets: maps of blocks of pixels, which SpaceToDepth and its like make, become windows of
// the convolution behind them, or one layer.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Lets a convolution that reads y[z, i, j] = x[c, i b + r, j b + q], with c, r and q of each channel
/// z, read x itself, by a window b times as large and as far from the next. y may be made in any
/// nodes that copy elements: SpaceToDepth, Reshape and Transpose, or the Slices and Concat of a
/// YOLO's first layer. With b = 1 they move channels.
void fold_blocks_into_convolutions(RawNetwork& raw);

/// Makes of the nodes that a SpaceToDepth or a channel shuffle is spelled in one layer of
/// GeneralKind::blocks, which groups hold.
void recognise_blocks(RawNetwork& raw);

}  // namespace laminate::onnx
