// What a group should compute, by the reference operators, whatever its schedule: the oracle of
// every kind of generated code.
//
// Tensors are planar CHW arrays of one image. `problems` are the layers of a group in the order of
// its schedule (group_problems), `inputs` its external inputs in the order of group_tensors().
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// The dims of a tensor, of one image.
[[nodiscard]] std::vector<int64_t> image_dims(const Network& network, TensorId id);

/// Whether a layer divides, raises to a power or applies a function that is_steep().
[[nodiscard]] bool is_steep(const Network& network, const LayerProblem& problem);
/// Whether one of the group does.
[[nodiscard]] bool is_steep(const Network& network, const std::vector<LayerProblem>& problems);

/// Whole numbers of magnitude up to 8, none of them 0 where the group is steep. Those of the n-th input
/// lie around n times `around`, counted from 1.
[[nodiscard]] std::vector<std::vector<float>> random_group_inputs(
    const Network& network, const std::vector<LayerProblem>& problems, uint64_t seed,
    int64_t around = 0);

/// An array of one image and its dims.
struct Operand {
    std::vector<int64_t> dims;
    const float* values = nullptr;
};
/// Called with each layer of a group, by its place, and the rows that it read and wrote. It may write
/// the output anew.
using AfterLayer = std::function<void(size_t layer, const std::vector<Operand>& inputs,
                                      const std::vector<int64_t>& dims, float* output)>;

/// Rows [first, last) of the last layer's output: every layer computes only the rows that others
/// need. Returned [channel][row][column].
[[nodiscard]] std::vector<float> reference_rows(const Network& network,
                                                const std::vector<LayerProblem>& problems,
                                                const std::vector<std::vector<float>>& inputs,
                                                int64_t first, int64_t last,
                                                const AfterLayer& after = {});
/// All of it.
[[nodiscard]] std::vector<float> reference_output(const Network& network,
                                                  const std::vector<LayerProblem>& problems,
                                                  const std::vector<std::vector<float>>& inputs);

}  // namespace laminate
