// The three axes of a group as the plain walker (walker.h) tells them apart (docs/counting.md,
// section 4.8): channels, rows and columns.
#pragma once

#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::walking {

/// The dimensions of the loops that belong together.
enum class Axis { channels = 0, rows = 1, columns = 2 };

[[nodiscard]] Axis axis_of(Dim dim);

/// The layer as though the other axes had one coordinate.
[[nodiscard]] LayerProblem alone(LayerProblem problem, Axis axis);

/// The nest with one trip of every loop of the other axes.
[[nodiscard]] Nest alone(Nest nest, Axis axis);

/// Whether the loop over `dim` of nest `k` moves along the channels of a tensor that nest `reader`
/// reads alone. It does so through the outputs of the nests from `reader` to `k`, as far as each of
/// them is read by one nest.
[[nodiscard]] bool moves_channels(const std::vector<LayerProblem>& problems,
                                  const std::vector<GroupTensor>& tensors, int k, Dim dim,
                                  int reader);

/// Whether that loop moves along the output channels z of `nest`.
[[nodiscard]] bool moves_outputs(const std::vector<LayerProblem>& problems,
                                 const std::vector<GroupTensor>& tensors, int k, Dim dim, int nest);

}  // namespace laminate::walking
