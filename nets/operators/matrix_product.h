// Products of matrices in vectors. run_general_layer() calls it for GeneralKind::matmul.
#pragma once

#include <cstdint>
#include <functional>

namespace laminate {

/// Row-major matrices: output [rows][columns] = left [rows][depth] x right [depth][columns] + bias
/// [columns], for each of `batches`. left_of and right_of give the matrices of a batch. Each element
/// is summed in the order of the depth, whatever the number of threads.
struct MatrixProducts {
    int64_t batches = 1, rows = 1, depth = 1, columns = 1;
    std::function<const float*(int64_t batch)> left_of{}, right_of{};
    const float* bias = nullptr;
};

void multiply_matrices(const MatrixProducts& products, float* output, int threads);

}  // namespace laminate
