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

/// A matrix anywhere in memory: element (row, depth) is first[row * row_step + depth * depth_step].
struct LeftMatrix {
    const float* first;
    int64_t row_step, depth_step;
};
/// Columns of the panels that suit the processor's vectors.
[[nodiscard]] int64_t panel_width();
/// sums [rows][width] += left x panel [depth][width], on this thread. `width`: panel_width() or its half.
void add_panel_products(const LeftMatrix& left, int64_t rows, const float* panel, int64_t width,
                        int64_t depth, float* sums);

}  // namespace laminate
