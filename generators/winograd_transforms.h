// The transforms of F(2x4, 3x3) and F(1x4, 3x3), as statements on vectors: what winograd.h (line buffers) and winograd_map.h (whole maps) share.
// Rows use F(2,3) at the points 0, 1, -1 or, one at a time, the plain sum; columns F(4,3) (minimal_filter.h).
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <vector>

#include "generators/arrays.h"
#include "generators/minimal_filter.h"

namespace laminate::winograd {

inline constexpr int64_t kernel_size = 3;
inline constexpr int64_t columns = MinimalFilter::outputs;  ///< outputs of a patch
inline constexpr int64_t patch_columns = columns + kernel_size - 1;
inline constexpr int64_t most_rows = 2;
inline constexpr int64_t most_patch_rows = most_rows + kernel_size - 1;
[[nodiscard]] constexpr int64_t patch_rows(int64_t rows) { return rows + kernel_size - 1; }
/// Products per patch and pair of channels.
[[nodiscard]] constexpr int64_t frequencies(int64_t rows) { return patch_rows(rows) * patch_columns; }

/// By row and column; frequency f is in row f / patch_columns, column f % patch_columns.
using Patch = std::array<std::array<Halide::Expr, patch_columns>, most_patch_rows>;
using Outputs = std::array<std::array<Halide::Expr, columns>, most_rows>;

/// F(4,3), along columns.
[[nodiscard]] const MinimalFilter& column_filter();
/// G of F(1,3) or F(2,3): one row of it per row of the patch.
[[nodiscard]] const std::array<double, kernel_size>* row_filter(int64_t rows);

/// B^T d B of a patch of inputs.
[[nodiscard]] Patch of_patch(ir::Values& name, Patch d, int64_t rows);
/// A^T m A of the products.
[[nodiscard]] Outputs of_products(ir::Values& name, Patch m, int64_t rows);
/// G g G^T for two rows; g by row and column.
[[nodiscard]] Patch of_kernel(ir::Values& name,
                              const std::array<std::array<Halide::Expr, kernel_size>, kernel_size>& g);

}  // namespace laminate::winograd
