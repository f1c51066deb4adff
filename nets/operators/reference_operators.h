// Every layer kind in plain C++ on planar arrays. Generated code is checked against these
// operators, and layers that no generator covers are run by them.
//
// Arrays are dense, row major, N C H W (N F after Flatten and Gemm). Weights are as in
// nets/network/network.h. A convolution sums in 32-bit floats over input channel, kernel row and
// kernel column (outermost to innermost), starting from zero, then adds the bias and applies the
// activation. Gemm and means sum in lanes. Sums of small integers are exact in any order.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

/// Runs one layer on its whole batch. `inputs[k]` holds element_count(input_dims[k]) elements and
/// `output` holds element_count(output_dims); infer_output_dims must allow the dims. `output` may
/// be the same array as an input for add, activation and flatten (which then copies nothing).
/// Allocates nothing except a few short lists of axes for some general layers. `threads` is the
/// most OpenMP threads to use, or 0 for OpenMP's own choice; inside a parallel region there is one.
/// The result does not depend on it.
void run_reference_layer(const Layer& layer, const std::vector<std::vector<int64_t>>& input_dims,
                         const std::vector<const float*>& inputs,
                         const std::vector<int64_t>& output_dims, float* output, int threads = 0);

/// Runs a network; inputs[k] holds the elements of tensor network.inputs[k]. Returns the tensors of
/// `requested` in that order, or the network's outputs if none is requested. Frees tensors after
/// their last use. Throws InputError if the number of inputs, a length, or a requested tensor is
/// wrong.
[[nodiscard]] std::vector<std::vector<float>> run_reference_network(
    const Network& network, const std::vector<std::vector<float>>& inputs,
    const std::vector<TensorId>& requested = {}, int threads = 0);

/// value after the activation; `channel` selects a slope.
[[nodiscard]] float apply_activation(const Activation& activation, float value, int64_t channel);

}  // namespace laminate
