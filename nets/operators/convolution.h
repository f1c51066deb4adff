// Convolutions and transposed convolutions over any number of axes, as products of a matrix of weights
// with panels of what the windows read. The panels are packed from the input where they are needed, so
// that no matrix of all windows exists. Convolutions of one element are products of matrices, and groups
// of one or two output channels are summed row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace laminate {

/// Changes finished values of an output channel in place, as an activation does.
using FinishRow = std::function<void(int64_t channel, float* values, int64_t count)>;

/// One value per spatial axis in each of the windows' lists.
struct ConvolutionProblem {
    bool transposed = false;
    int64_t groups = 1;
    std::vector<int64_t> in{}, out{};  ///< N, C and the spatial extents
    std::vector<int64_t> kernel{}, stride{}, dilation{}, pad_begin{};
    const float* weights = nullptr;  ///< [z][i][...] or, transposed, [i][z][...]
    const float* bias = nullptr;     ///< by output channel, or null
    FinishRow finish{};
};

/// Each element is a sum in the order of input channels, then of kernel elements, whatever the number
/// of threads.
void convolve(const ConvolutionProblem& problem, const float* input, float* output, int threads);

}  // namespace laminate
