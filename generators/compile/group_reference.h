// What a group should compute, by the reference operators, whatever its schedule: the oracle of
// every kind of generated code.
//
// Tensors are planar CHW arrays of one image. `problems` are the layers of a group in the order of
// its schedule (group_problems), `inputs` its external inputs in the order of group_tensors().
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The dims of a tensor, of one image.
[[nodiscard]] std::vector<int64_t> image_dims(const Network& network, TensorId id);

/// Whole numbers of magnitude up to 8.
[[nodiscard]] std::vector<std::vector<float>> random_group_inputs(
    const Network& network, const std::vector<LayerProblem>& problems, uint64_t seed);

/// Rows [first, last) of the last layer's output: every layer computes only the rows that others
/// need. Returned [channel][row][column].
[[nodiscard]] std::vector<float> reference_rows(const Network& network,
                                                const std::vector<LayerProblem>& problems,
                                                const std::vector<std::vector<float>>& inputs,
                                                int64_t first, int64_t last);
/// All of it.
[[nodiscard]] std::vector<float> reference_output(const Network& network,
                                                  const std::vector<LayerProblem>& problems,
                                                  const std::vector<std::vector<float>>& inputs);

}  // namespace laminate
