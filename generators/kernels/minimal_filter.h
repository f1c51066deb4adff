// Minimal filtering along one axis: m outputs of a filter of r taps, m = 4 or 6, from m + r - 1 inputs
// with as many multiplications instead of m r (Winograd 1980; the construction of Toom and Cook,
// transposed):
//
//     y = A^T ((G g) * (B^T d))
//
// Points: 0, 1, -1, 2, -2 and infinity for 6 products; also 1/2 and -1/2 for 8, which are 4 outputs of 5
// taps or 6 of 3; also 3/4 and -3/4 for 10, which are 4 outputs of 7 taps. Of the points tried for 6
// outputs, 3/2, 3/4 and 4/3 among them, and for 7 taps, also 4 and 1/4, these round best. For r = 1
// nothing is saved, and nothing is transformed.
//
// With M(x) = prod (x - p) over the finite points, row p of A is (1, p, .., p^(m - 1)), row p of G is
// (1, p, ..) / M'(p), and row p of B^T holds the coefficients of M(x) / (x - p); for infinity those
// of M(x). Points come as p and -p, whose rows share an even and an odd part; all but 3/4 are powers of
// two, so products with them are exact.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <vector>

#include "generators/ir/arrays.h"

namespace laminate {

class MinimalFilter {
public:
    static constexpr int64_t usual_outputs = 4;
    /// `taps`: 1, 3, 5 or 7. `outputs`: 4, of three taps also 6.
    explicit MinimalFilter(int64_t taps, int64_t outputs = usual_outputs);

    [[nodiscard]] int64_t taps() const { return taps_; }
    /// Inputs of the outputs, and products.
    [[nodiscard]] int64_t patch() const { return outputs_ + taps_ - 1; }
    /// G g.
    [[nodiscard]] std::vector<double> of_kernel(const std::vector<double>& g) const;
    /// G g in single precision, of numbers or of vectors in generated code, with the same bits:
    /// only sums are rounded, in the order written here, and at last their product with a constant.
    /// `rounded` returns what stands for a sum or a product: the value itself, or its name in the
    /// code (strict_float).
    template <class Value, class Rounded>
    [[nodiscard]] std::vector<Value> of_kernel(const std::vector<Value>& g,
                                               const Rounded& rounded) const {
        const std::vector<double> derivative = derivatives();
        std::vector<Value> values{rounded(times(1 / derivative.front(), g.front()))};
        for (size_t n = 0; n < points_.size(); ++n) {
            // p^k g[k] summed over even and over odd k.
            std::array<Value, 2> part{g[0], rounded(times(points_[n], g[1]))};
            double power = points_[n];
            for (size_t k = 2; k < g.size(); ++k) {
                power *= points_[n];
                part[k % 2] = rounded(part[k % 2] + times(power, g[k]));
            }
            const double factor = 1 / derivative[n + 1];
            values.push_back(rounded(times(factor, rounded(part[0] + part[1]))));
            values.push_back(rounded(times(factor, rounded(part[0] - part[1]))));
        }
        values.push_back(g.back());
        return values;
    }
    /// A constant in single precision times a value.
    [[nodiscard]] static float times(double c, float value) {
        return static_cast<float>(c) * value;
    }
    [[nodiscard]] static Halide::Expr times(double c, const Halide::Expr& value);
    /// Sums in the order written here (strict_float), or in the one that the compiler likes: how it
    /// orders and contracts them depends on the loops around them, so that the same sum may round
    /// otherwise in another kernel.
    enum class Order {
        as_written,
        free,
        /// As written, but the last product of a sum may be fused with it, which rounds alike where
        /// points are powers of two. Whatever takes such a sum is strict itself.
        fused_last
    };
    /// B^T d.
    [[nodiscard]] std::vector<Halide::Expr> of_patch(ir::Values& name,
                                                     const std::vector<Halide::Expr>& d,
                                                     Order order) const;
    /// A^T m, in the order written. A bias is added to the product at the point 1, for that is in
    /// every output once.
    [[nodiscard]] std::vector<Halide::Expr> of_products(ir::Values& name,
                                                        std::vector<Halide::Expr> m,
                                                        const Halide::Expr& bias = Halide::Expr(),
                                                        Order order = Order::as_written) const;

private:
    /// M'(p) at 0, by the first, and at each pair p, -p.
    [[nodiscard]] std::vector<double> derivatives() const;

    int64_t taps_, outputs_;
    std::vector<double> points_;  ///< p of each pair p, -p
};

}  // namespace laminate
