// The three axes of a group in the plain walker (walker.h): channels, rows and columns
// (docs/counting.md section 4.8).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// Loop dimensions that belong together.
enum class Axis { channels = 0, rows = 1, columns = 2 };

inline constexpr std::array<Axis, 3> all_axes{Axis::channels, Axis::rows, Axis::columns};

[[nodiscard]] Axis axis_of(Dim dim);
/// The place of an axis in a Box of a tensor.
[[nodiscard]] constexpr size_t place_of(Axis axis) { return static_cast<size_t>(axis); }

/// The layer as if the other axes had one coordinate.
[[nodiscard]] LayerProblem alone(LayerProblem problem, Axis axis);

/// The nest with one trip of every loop of the other axes.
[[nodiscard]] Nest alone(Nest nest, Axis axis);

/// Whether the loop over `dim` of nest `k` moves along the channels of a tensor that only nest
/// `reader` reads. It does so through the outputs of the nests from `reader` to `k`, if each of
/// them is read by one nest.
[[nodiscard]] bool moves_channels(const std::vector<LayerProblem>& problems,
                                  const std::vector<GroupTensor>& tensors, int k, Dim dim,
                                  int reader);

/// Whether the loop over `dim` of nest `k` moves along the output channels z of `nest`.
[[nodiscard]] bool moves_outputs(const std::vector<LayerProblem>& problems,
                                 const std::vector<GroupTensor>& tensors, int k, Dim dim, int nest);

}  // namespace laminate::walking
