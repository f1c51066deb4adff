// Rows of the kernel `columns` (columns.h): X into planes, a finished row to its reader, columns of
// the last layer to Y.
#pragma once

#include <cstdint>
#include <vector>

#include "generators/kernels/columns_code.h"

namespace laminate {

/// Row y of X, from the caller's array into planes.
[[nodiscard]] Stmt split_columns(const ColumnsCode& code, const Expr& y);

/// Zeros beside the row of tensor t that is being finished: padding columns, and those between the
/// picture's end and that of its last patch.
[[nodiscard]] Stmt zeros_around_row(const ColumnsCode& code, int t);

/// B^T of a vector of patches of a channel of the row just finished, from `tile` on, to the line's
/// elements from `to` on.
[[nodiscard]] Stmt transform_patches(const ColumnsCode& code, int t, const Expr& channel,
                                     const Expr& tile, const Expr& to);

/// The row just finished, transformed, as row y of a gathered line.
[[nodiscard]] Stmt transform_row(const ColumnsCode& code, int t, const Expr& y);

/// Finished outputs of a vector of tiles, by column, to row y of Y; `wanted`: the columns of the
/// strip.
[[nodiscard]] Stmt store_columns(const ColumnsCode& code, const Expr& channel, const Expr& y,
                                 const Expr& tile, const std::vector<Expr>& columns,
                                 const Interval& wanted);

}  // namespace laminate
