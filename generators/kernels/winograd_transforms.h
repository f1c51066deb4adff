// The transforms of F(4x4, 3x3), F(2x4, 3x3) and F(1x4, 3x3), and of F(6x4, 3x3), F(6x6, 3x3), F(4x4, 5x5),
// F(4, 5) and F(4, 7), as statements on vectors: B^T d B of patches, G g G^T of kernels, A^T m A of
// products. winograd.h (line buffers) and winograd_map.h (whole maps) share the first three; F(6x4, 3x3) is
// for lines, the others for whole maps. Columns use F(6,3) or F(4,r) (minimal_filter.h); rows use the same,
// F(2,3) at the points 0, 1, -1 or, one at a time, the plain sum. Along an axis without taps beside the first
// nothing is transformed.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "generators/ir/arrays.h"
#include "generators/kernels/minimal_filter.h"

namespace laminate::winograd {

inline constexpr int64_t kernel_size = 3;
/// Outputs of a patch of one, two or four rows; those of six rows have six.
inline constexpr int64_t columns = MinimalFilter::usual_outputs;
inline constexpr int64_t patch_columns = columns + kernel_size - 1;
inline constexpr int64_t most_rows = 6;  ///< over lines
inline constexpr int64_t most_patch_rows = most_rows + kernel_size - 1;
[[nodiscard]] constexpr int64_t patch_rows(int64_t rows) { return rows + kernel_size - 1; }
/// Products per patch and pair of channels.
[[nodiscard]] constexpr int64_t frequencies(int64_t rows) {
    return patch_rows(rows) * patch_columns;
}

inline constexpr int64_t wide_columns = 6;
inline constexpr int64_t most_patch = wide_columns + kernel_size - 1;  ///< rows or columns

/// A row of a patch, by column, or of its products.
using PatchRow = std::vector<Halide::Expr>;

/// F(4,3), F(6,3), F(4,5) or F(4,7).
[[nodiscard]] const MinimalFilter& filter_of(int64_t taps, int64_t outputs);

/// The tile of a row that each lane of a vector stands for.
enum class TileOrder {
    ascending,
    /// Lane 4 j + v is tile v L / 4 + j of L: elements stay in their group of four lanes when columns
    /// are taken apart, which processors do in less time.
    by_fours
};
[[nodiscard]] int64_t tile_of_lane(TileOrder order, int64_t lane, int64_t lanes);
/// The columns of patches, of a row whose parts follow each other: column c of tile t is element
/// 4 t + c. Of the last part only the first two elements matter. Where a vector has several rows of
/// `tiles_of_row` tiles each, the first two of as many elements for every row matter.
[[nodiscard]] PatchRow columns_of_patches(ir::Values& name,
                                          const std::array<Halide::Expr, columns + 1>& parts,
                                          TileOrder order, int64_t tiles_of_row);
/// The first `count` columns of tiles by fours, up to four: column c of tile t is element 4 t + c.
[[nodiscard]] PatchRow columns_by_fours(ir::Values& name,
                                        const std::array<Halide::Expr, columns>& parts,
                                        int64_t count);
/// Vector c of element c of all groups of four lanes, in the order of the groups: group g of vector n
/// becomes lane 4 g + n.
[[nodiscard]] PatchRow transposed_fours(ir::Values& name,
                                        const std::array<Halide::Expr, columns>& vectors);
/// The same of tiles of six columns in ascending order: column c of tile t is element 6 t + c of six
/// parts and of what is behind them.
[[nodiscard]] PatchRow columns_of_wide_patches(ir::Values& name,
                                               const std::vector<Halide::Expr>& parts,
                                               const Halide::Expr& behind);
/// Lanes of two vectors in turn: those of lanes 4 g and 4 g + 1 make group g of the first vector, those of
/// the next two lanes that of the second.
[[nodiscard]] PatchRow paired_fours(ir::Values& name, const Halide::Expr& a, const Halide::Expr& b);
/// Undoes columns_by_fours() for the outputs of tiles by fours: element 4 t + c is column c of tile
/// t.
[[nodiscard]] Halide::Expr side_by_side(ir::Values& name, const std::vector<Halide::Expr>& outputs);

// B^T d B and A^T m A, rows first. All sums are taken in the order written, so that layers of
// winograd.h and of winograd_map.h round alike.

/// B^T d: the rows of a patch, of any columns of it.
[[nodiscard]] std::vector<Halide::Expr> of_rows(ir::Values& name, const std::vector<Halide::Expr>& d,
                                                int64_t taps = kernel_size);
/// A row of (B^T d) B, whose frequencies follow each other.
[[nodiscard]] PatchRow of_columns(ir::Values& name, const PatchRow& row, int64_t taps = kernel_size);
/// A^T m, by row of outputs; `product` returns the name of the one of frequency f, and is called column
/// by column, so that few products are in registers at a time.
[[nodiscard]] std::vector<PatchRow> rows_of_products(
    ir::Values& name, int64_t rows, int64_t outputs,
    const std::function<Halide::Expr(int64_t f)>& product, int64_t row_taps = kernel_size,
    int64_t column_taps = kernel_size);
/// A row of (A^T m) A: outputs by column.
[[nodiscard]] std::vector<Halide::Expr> columns_of_products(ir::Values& name, const PatchRow& sums,
                                                            int64_t taps = kernel_size);
/// By row and column.
template <class Value>
using Kernel = std::vector<std::vector<Value>>;

// G g G^T for one, two, four or six rows, of numbers or of vectors: the same bits of both
// (MinimalFilter::of_kernel), so that a layer whose weights are transformed while it runs rounds like
// one whose weights were transformed before.

/// G g, by row of the patch.
template <class Value, class Rounded>
[[nodiscard]] Kernel<Value> rows_of_kernel(const Kernel<Value>& g, int64_t rows,
                                           const Rounded& rounded) {
    Kernel<Value> v(static_cast<size_t>(rows) + g.size() - 1);
    for (size_t m = 0; m < g.front().size(); ++m) {
        std::vector<Value> column;
        for (const std::vector<Value>& row : g) column.push_back(row[m]);
        if (rows == 2) {
            const Value outer = rounded(MinimalFilter::times(0.5, rounded(column[0] + column[2])));
            const Value middle = rounded(MinimalFilter::times(0.5, column[1]));
            column = {column[0], rounded(outer + middle), rounded(outer - middle), column[2]};
        } else if (rows > 2) {
            column = filter_of(std::ssize(g), rows).of_kernel(column, rounded);
        }
        for (size_t n = 0; n < v.size(); ++n) v[n].push_back(column[n]);
    }
    return v;
}
/// A row of (G g) G^T.
template <class Value, class Rounded>
[[nodiscard]] std::vector<Value> columns_of_kernel(const std::vector<Value>& row, int64_t outputs,
                                                   const Rounded& rounded) {
    return row.size() == 1 ? row : filter_of(std::ssize(row), outputs).of_kernel(row, rounded);
}

}  // namespace laminate::winograd
