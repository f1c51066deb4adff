// Winograd's minimal filtering for 3x3 convolutions of stride 1 on rows of a line buffer:
//
//     Y = f(b + A^T (sum over i of U[i] * V[i]) A),   U[i] = G g[i] G^T,   V[i] = B^T d[i] B
//
// for each output channel, * by element. F(2x4, 3x3) gives two output rows and four output columns
// from a patch d of four by six inputs with 24 multiplications instead of 72 (Winograd 1980; Lavin
// and Gray, CVPR 2016), F(4x4, 3x3) four rows from six by six with 36 instead of 144, F(6x4, 3x3) six rows
// from eight by six with 48 instead of 216.
//
// Weights are transformed when code is made, or again and again by the code (line_plan.h): to the same bits.
//
// Columns use F(4,3) at the points 0, 1, -1, 2, -2; rows use the same, F(6,3) (minimal_filter.h), F(2,3) at
// 0, 1, -1 or, one at a time, the plain sum. Line buffers pass rows on by steps of a schedule, which are divided into
// bands of two, four or six rows from their first row on. With two, a row without a partner is computed
// by F(1x4, 3x3), with 18 multiplications instead of 36, and strips of the same steps leave no seam:
// the pairs inside are the same, bit for bit. (Where rows are kept from strip to strip, producers are
// computed directly.) Other tile heights pair rows otherwise, which changes roundings. With four
// or six, the last band of a step may be partial: its missing rows are zeros, and strips have seams, for
// their first steps are longer than the others. So have strips of columns: tiles begin with the first
// column asked for, and the last one takes zeros for columns that the strip has not.
//
// The code transforms patches of all input channels into V[frequency][input channel][tile]. For
// each block of output channels, as many matrix products as there are frequencies give M, which it
// transforms into outputs. V and M lie in the scratch block (layout/winograd_rows.h). There are two
// ways, as for direct convolution:
//
// - VectorAxis::x: lanes are tiles side by side in one band, M[frequency][output channel][tile].
//   They suit wide pictures.
// - VectorAxis::z: lanes are output channels, and tiles come from several bands,
//   M[frequency][tile][output channel]. They suit narrow, deep layers: weights are read once for
//   all tiles together.
//
// Error: less than 2e-6 of the largest output in the tests, with bands of four or six 8e-6 (up to 48 input
// channels, weights and inputs of either sign). Small maps by themselves: winograd_map.h.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generators/lowering/regions.h"
#include "scheduler/schedule/kernels/layout/winograd_rows.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// G g G^T of canonical weights (constants.h) for one, two, four or six rows: [block of output
/// channels][frequency][input channel][output channel of the block].
[[nodiscard]] std::vector<float> winograd_weights(const std::vector<float>& canonical,
                                                  const LayerProblem& problem, int64_t rows,
                                                  int64_t block);

/// Where the code finds things. Indices are of elements; rows and columns are coordinates of the
/// whole tensor.
struct WinogradNames {
    /// The array has zeros left and right of the picture, and right of a strip, up to the last patch.
    /// Up to a vector of elements behind that is read and not used.
    std::string input;
    std::string output;
    std::array<std::string, 2>
        weights;  ///< for one row, for bands; empty where the tile has none such
    /// Weights as they are, by tap (packing.h), from which the code transforms those for bands
    /// (WinogradTile::weights); empty where these are constants.
    std::string plain_weights;
    std::string scratch;  ///< array of winograd_scratch_elements()
    /// Index of column 0 of a row of channel 0; the next channel's is a plane further.
    std::function<Halide::Expr(const Halide::Expr& row)> input_row;
    std::function<Halide::Expr(const Halide::Expr& row)> output_row;
    Halide::Expr input_plane;
    Halide::Expr output_plane;
    Halide::Expr input_rows;  ///< of the whole tensors
    Halide::Expr output_rows;
    Interval columns;  ///< of outputs; behind the last one, inputs are zeros up to the end of its tile
    /// Bias and activation of a sum; a vector of channels for as many lanes, or one channel for
    /// all.
    std::function<Halide::Expr(const Halide::Expr& channel, const Halide::Expr& sum)> finished;
};

/// Computes rows of all channels. They end where the picture ends or anywhere else.
[[nodiscard]] Halide::Internal::Stmt winograd_rows(const LayerProblem& problem,
                                                   const WinogradTile& tile, const VectorUnit& unit,
                                                   WinogradNames names, const Interval& rows);

}  // namespace laminate
