// The block of constants of a group: weights, biases and activation slopes, each array on a 64-byte
// boundary.
#pragma once

#include <cstdint>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

class ConstantBlock {
public:
    /// Appends an array and returns its offset in elements, a multiple of 16.
    int64_t append(const std::vector<float>& values);
    [[nodiscard]] std::vector<float> take() && { return std::move(values_); }

private:
    std::vector<float> values_;
};

/// Weights of a schedulable layer indexed [z][i][n][m], i within the group of z, whatever the
/// layer's own order.
[[nodiscard]] std::vector<float> canonical_weights(const Layer& layer, const LayerProblem& problem);
/// D_z values; zeros without a bias.
[[nodiscard]] std::vector<float> canonical_bias(const Layer& layer, const LayerProblem& problem);
/// D_z slopes of a PRelu, or empty.
[[nodiscard]] std::vector<float> canonical_slope(const Layer& layer, const LayerProblem& problem);

/// canonical_weights() as kernels read them: [block of z][n][i][m][z in block], blocks of `block`
/// output channels, the last one filled up with zeros.
[[nodiscard]] std::vector<float> packed_weights(const std::vector<float>& canonical,
                                                const LayerProblem& problem, int64_t block);
/// Values by channel, filled up with zeros to whole blocks.
[[nodiscard]] std::vector<float> padded(std::vector<float> per_channel, int64_t block);

}  // namespace laminate
