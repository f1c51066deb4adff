// Depthwise convolutions:
//
//     Y[z][y][x] = f(b[z] + sum over n, m of W[z][n][m] * X[z][y s + n d - p][x s + m d - p])
//
// with strides s, dilations d and paddings p of each axis. A vector is a row of the map or part of
// one; some rows of one channel are summed at once, of two vectors if the weights do not stay in
// registers, and an input row serves all of them that read it. Padding columns are lanes that are not
// loaded; padding rows are left out.
#pragma once

#include <functional>
#include <string>

#include "generators/group_code.h"
#include "generators/ir/layer_output.h"
#include "generators/lowering/regions.h"
#include "scheduler/schedule/kernels/layout/map_depthwise.h"

namespace laminate {

/// A depthwise layer and what becomes of its outputs. `output` outlives it.
struct DepthwiseSums {
    const LayerOutput& output;
    std::string weights, bias;
    /// Takes a run of outputs in row y of channel z, x columns further.
    using Put = std::function<Halide::Internal::Stmt(
        const Halide::Expr& z, const Halide::Expr& y, const Halide::Expr& x,
        const Halide::Expr& value, const VectorRun& run)>;
    Put put;
    /// The array of inputs, and where it would have the first row of channel 0.
    std::string input = "X";
    Halide::Expr input_begin = 0;
};
/// Stores outputs to Y. `output` outlives the function.
[[nodiscard]] DepthwiseSums::Put stored_depthwise(const LayerOutput& output);
/// All sums of some tiles of channel z.
[[nodiscard]] Halide::Internal::Stmt depthwise_tiles(const DepthwiseSums& sums,
                                                     const MapDepthwiseLayout& at,
                                                     const Halide::Expr& z, const Interval& tiles);

[[nodiscard]] GroupCode map_depthwise_code(LayerOutput output, const MapDepthwiseLayout& at);

}  // namespace laminate
