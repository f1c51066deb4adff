// Every layer kind in plain C++ on planar arrays: the oracle that generated code is checked
// against, and the fall-back for layers that no generator covers.
//
// Arrays are dense, row major, N C H W (N F after Flatten and Gemm); weights as
// nets/network/network.h says. Sums are taken in 32-bit floats, per output element over input
// channel, kernel row, kernel column (outermost to innermost), starting from zero; the bias is
// added last, then the activation. Gemm and means sum in lanes. Sums of small integers are exact in
// any order.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

/// Runs one layer on its whole batch. `inputs[k]` holds element_count(input_dims[k]) elements,
/// `output` element_count(output_dims). The dims must be those that infer_output_dims allows.
/// `output` may be the same array as an input for add, activation and flatten (which then copies
/// nothing). Allocates nothing, but for some general layers a few short lists of axes. `threads`:
/// OpenMP threads at most, 0 for OpenMP's own choice; one thread when called inside a parallel
/// region. The result does not depend on it.
void run_reference_layer(const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims,
                         const std::vector<const float*>& inputs,
                         const std::vector<int64_t>& output_dims, float* output, int threads = 0);

/// Runs a network; inputs[k] holds the elements of tensor network.inputs[k]. Returns the tensors of
/// `requested` in that order; none requested: the network's outputs. Tensors are freed after their
/// last use. Throws InputError when the number of inputs, a length, or a requested tensor is wrong.
[[nodiscard]] std::vector<std::vector<float>> run_reference_network(
    const Network& network, const std::vector<std::vector<float>>& inputs,
    const std::vector<TensorId>& requested = {}, int threads = 0);

/// value after the activation; `channel` selects a slope.
[[nodiscard]] float apply_activation(const Activation& activation, float value, int64_t channel);

}  // namespace laminate
