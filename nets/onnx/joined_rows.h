// Concat along rows or columns, and Tile of them.
#pragma once

#include "nets/onnx/canonical.h"

namespace laminate::onnx {

/// Rewrites a Concat of up to four maps [N, C, H, W] along rows or columns, and a Tile that repeats one as
/// often, if layers read the result: each map is padded with zeros to where it lies, and the sum is taken.
/// Groups hold both.
void write_joined_rows_as_sums(RawNetwork& raw);

}  // namespace laminate::onnx
