// Forms of layers that several kernels ask for.
#pragma once

#include <cstdint>

#include "scheduler/schedule/kernels/kernel.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

[[nodiscard]] bool is_transposed(const LayerProblem& problem);
/// With weights, one group of channels, not transposed.
[[nodiscard]] bool is_dense_convolution(const LayerProblem& problem);
[[nodiscard]] bool is_pool(const LayerProblem& problem);
/// The most taps of pooling windows that every kernel joins row by row, to the same bits.
inline constexpr int64_t most_taps_by_rows = 25;
/// A pool of windows so large that each column of a window is reduced first, once for all windows of a row
/// that have it.
[[nodiscard]] bool pools_columns_first(const LayerProblem& problem);
/// No window: an output pixel reads the input pixel in its place.
[[nodiscard]] bool is_pointwise(const LayerProblem& problem);
/// 3x3 with stride and dilation 1: what F(2x4, 3x3) computes.
[[nodiscard]] bool has_winograd_window(const LayerProblem& problem);
/// Stride and dilation 1 and a window of 3x3 or 5x5, or of five or seven taps along one axis: what
/// minimal filtering of a whole map computes.
[[nodiscard]] bool has_filtered_window(const LayerProblem& problem);
/// A map whose rows fill vectors of tiles: lines are as good as the whole map unless tiles are 6 x 6.
[[nodiscard]] bool is_wide_map(const LayerProblem& problem);

/// Output rows in [begin, end) x kernel rows that meet the picture: what a kernel computes that
/// leaves out rows of padding.
[[nodiscard]] int64_t row_taps(const AxisWindow& window, int64_t begin, int64_t end);

/// Output elements of a box in vectors that run along rows.
[[nodiscard]] double output_vectors(const KernelBox& box, const Kernel& kernel);
/// Vectors of sums of a box that go on from a box with other input channels, on average.
[[nodiscard]] double partial_vectors(const LayerProblem& problem, const KernelBox& box,
                                     const Kernel& kernel);
/// Rows of one channel of a box whose last vector is not whole, which loads and stores lane by lane
/// or under a mask.
[[nodiscard]] double ragged_rows(const KernelBox& box, int64_t lanes);
/// Elements in vectors.
[[nodiscard]] double vectors_of(int64_t elements, const Kernel& kernel);
/// Whether elements that vectors of columns read lie so far apart that loads and shuffles of many vectors, or
/// of single elements, keep the multipliers waiting.
[[nodiscard]] bool reads_far_apart(const AxisWindow& columns);
/// What a vector of columns costs in loads of a vector: at a shifted column it lies across two cache
/// lines, of strided columns in two vectors; further apart, it counts as a load for each lane.
[[nodiscard]] double cost_of_load(const AxisWindow& columns, int64_t lanes);
/// Time of the multiply-adds of a register tile in multiply-adds that never wait, for one tap of
/// one input channel: `vectors` are loaded, `scalars` are loaded and multiply them all. A core
/// starts two multiply-adds and two loads a cycle, and a sum waits four cycles for its predecessor.
[[nodiscard]] double cycles_of_tap(double vectors, double scalars, double products, double sums);
/// The same of a tile of `rows` for one column of taps, one of its input rows after the other: a
/// row is loaded at the cost of `loaded` vectors for all output rows whose windows hold it.
[[nodiscard]] double cycles_of_rows(const AxisWindow& window, int64_t rows, double vectors,
                                    double loaded, double channels);
/// Whether a layer's weights are more than a first-level cache keeps beside its inputs.
[[nodiscard]] bool has_large_weights(const LayerProblem& problem);

}  // namespace laminate
