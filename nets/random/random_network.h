// Seeded small networks for tests, `random:SEED` on the command line. They cover every layer kind
// and attribute that matters to counting and code generation. Numbers are so small that every sum
// is exact in 32-bit floats in any order. A seed gives the same network on every machine.
#pragma once

#include <cstdint>

#include "nets/network/network.h"

namespace laminate {

/// A graph of about one to eight layers: convolutions (strides 1-3, dilation, asymmetric padding,
/// groups, depthwise), transposed convolutions, max and average pooling (padding counted or not),
/// global average pooling, depth to space, residual Add, Concat of two or three branches, Add of a
/// constant, activations in and between layers, Gemm after Flatten; forks with several readers and
/// several outputs. Results are exact for whole inputs of magnitude up to 8: weights are whole,
/// averages are over powers of two, and an activation clips values that would exceed 2^13 units of
/// their last bit. There is no sigmoid, tanh or softmax.
[[nodiscard]] Network random_network(uint64_t seed);

/// As random_network(), and every other layer is one of those that networks for pictures have
/// between and behind their convolutions: DepthToSpace of blocks of 1 to 3, rows and columns
/// repeated, Pad, Resize, parts of tensors, sums, differences, products, quotients, minima and
/// maxima of two maps or with a factor, maps below or beside each other, channels several times,
/// functions of one value, normalisations over channels, and their largest or smallest. The results
/// of functions and normalisations that are not rational are clipped to few, exact values, or
/// multiplied and rounded to whole numbers, or read as they are: last digits of what is computed of
/// them depend on the code.
[[nodiscard]] Network random_picture_network(uint64_t seed);

/// A chain of one to four schedulable layers (convolutions with any stride, dilation, padding and
/// groups; transposed convolutions; Gemms), with activations and biases. Weights are small, sparse
/// integers.
[[nodiscard]] Network random_chain(uint64_t seed);

}  // namespace laminate
