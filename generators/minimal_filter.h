// Minimal filtering along one axis: four outputs of a filter of r taps from r + 3 inputs with r + 3 multiplications instead of 4 r
// (Winograd 1980; the construction of Toom and Cook, transposed). y = A^T ((G g) * (B^T d)), with the points
//   r = 3: 0, 1, -1, 2, -2, infinity;   r = 5: also 1/2, -1/2;   r = 1: nothing is saved and nothing transformed.
//
// With M(x) = prod (x - p) over the finite points: row p of A^T's transpose is (1, p, p^2, p^3), of G (1, p, ..) / M'(p), of B^T the coefficients of
// M(x) / (x - p), of infinity those of M(x). Points come as p and -p, whose rows share an even and an odd part; all are powers of two, so that
// products with them are exact.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <vector>

#include "generators/arrays.h"

namespace laminate {

class MinimalFilter {
public:
    static constexpr int64_t outputs = 4;
    /// `taps`: 1, 3 or 5.
    explicit MinimalFilter(int64_t taps);

    [[nodiscard]] int64_t taps() const { return taps_; }
    /// Inputs of four outputs, and products.
    [[nodiscard]] int64_t patch() const { return outputs + taps_ - 1; }
    /// G g.
    [[nodiscard]] std::vector<double> of_kernel(const std::vector<double>& g) const;
    /// The same of vectors, in single precision.
    [[nodiscard]] std::vector<Halide::Expr> of_kernel(ir::Values& name, const std::vector<Halide::Expr>& g) const;
    /// B^T d.
    [[nodiscard]] std::vector<Halide::Expr> of_patch(ir::Values& name, const std::vector<Halide::Expr>& d) const;
    /// A^T m. With a bias, which is added to the product at the point 1, for that is in every output once, outputs are
    /// summed in the order written here (strict_float): the compiler is free to order other sums, and how it does
    /// depends on the loops around them, so that the same output would round otherwise elsewhere.
    [[nodiscard]] std::array<Halide::Expr, outputs> of_products(ir::Values& name, std::vector<Halide::Expr> m,
                                                                const Halide::Expr& bias = Halide::Expr()) const;

private:
    /// M'(p) at 0, by the first, and at each pair p, -p.
    [[nodiscard]] std::vector<double> derivatives() const;

    int64_t taps_;
    std::vector<double> points_;  ///< p of each pair p, -p
};

}  // namespace laminate
