#include "generators/kernels/minimal_filter.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace laminate {

using Halide::Expr;

namespace {

/// Coefficients of prod (x - s) over the squares of all points but number `without`, lowest power
/// first.
std::vector<double> polynomial_of_squares(const std::vector<double>& points, size_t without) {
    std::vector<double> c{1};
    for (size_t n = 0; n < points.size(); ++n) {
        if (n == without) continue;
        std::vector<double> next(c.size() + 1, 0);
        for (size_t k = 0; k < c.size(); ++k) {
            next[k + 1] += c[k];
            next[k] -= points[n] * points[n] * c[k];
        }
        c = next;
    }
    return c;
}

/// sum of c[k] * d[first + 2 k]; the last coefficient is 1.
Expr every_other(const std::vector<double>& c, const std::vector<Expr>& d, size_t first) {
    Expr sum = d[first + 2 * (c.size() - 1)];
    for (size_t k = c.size() - 1; k-- > 0;)
        sum = sum + MinimalFilter::times(c[k], d[first + 2 * k]);
    return sum;
}

}  // namespace

Expr MinimalFilter::times(double c, const Expr& e) {
    return c == 1 ? e : ir::broadcast(Expr(static_cast<float>(c)), e.type().lanes()) * e;
}

MinimalFilter::MinimalFilter(int64_t taps, int64_t outputs) : taps_(taps), outputs_(outputs) {
    if (taps == 1 && outputs == usual_outputs) return;
    if (patch() == 6 && taps == 3) {
        points_ = {1, 2};
    } else if (patch() == 8 && (taps == 3 || taps == 5)) {
        points_ = {1, 2, 0.5};
    } else if (patch() == 10 && taps == 7) {
        points_ = {1, 2, 0.5, 0.75};
    } else {
        throw std::logic_error("no minimal filter of " + std::to_string(outputs) + " outputs and " +
                               std::to_string(taps) + " taps");
    }
}

std::vector<double> MinimalFilter::derivatives() const {
    // M(x) = x * prod (x^2 - p^2).
    std::vector<double> all{polynomial_of_squares(points_, points_.size()).front()};
    for (size_t n = 0; n < points_.size(); ++n) {
        const double p = points_[n];
        double derivative = 2 * p * p;
        for (size_t other = 0; other < points_.size(); ++other) {
            if (other != n) derivative *= p * p - points_[other] * points_[other];
        }
        all.push_back(derivative);
    }
    return all;
}

std::vector<double> MinimalFilter::of_kernel(const std::vector<double>& g) const {
    if (taps_ == 1) return std::vector<double>(static_cast<size_t>(patch()), g.front());
    const auto at = [&](double p, double derivative) {
        double sum = 0;
        for (size_t k = g.size(); k-- > 0;) sum = sum * p + g[k];
        return sum / derivative;
    };
    const std::vector<double> derivative = derivatives();
    std::vector<double> values{at(0, derivative.front())};
    for (size_t n = 0; n < points_.size(); ++n) {
        values.push_back(at(points_[n], derivative[n + 1]));
        values.push_back(at(-points_[n], derivative[n + 1]));
    }
    values.push_back(g.back());
    return values;
}

std::vector<Expr> MinimalFilter::of_patch(ir::Values& name, const std::vector<Expr>& d,
                                          Order order) const {
    if (taps_ == 1) return d;
    const auto sum = [&](const Expr& e) {
        return name(order == Order::free ? e : strict_float(e));
    };
    // Products with powers of two are exact, so that fused ones round alike. Such a sum must have more
    // than one use or be stored, and share no term with a sum that it is part of: LLVM was seen to
    // compute it in another order otherwise.
    const auto fused = [&](const Expr& e) { return name(e); };
    if (points_.size() == 3) {
        // Of 1, p and 1/p: M(x) / x = x^6 - c x^4 + c x^2 - 1. The rows of p and 1/p share (x^2 -
        // 1) d, and 12 of 38 sums and products are saved.
        const double c = -polynomial_of_squares(points_, points_.size())[2], c1 = c - 1;
        const auto step = [&](size_t k) { return sum(d[k + 2] - d[k]); };
        const std::array<Expr, 2> low{step(1), step(2)}, high{step(3), step(4)};
        const Expr even = sum(sum(d[6] + d[2]) - times(c1, d[4]));
        const Expr odd = sum(sum(d[5] + d[1]) - times(c1, d[3]));
        std::vector<Expr> v{sum(sum(d[6] - d[0]) - times(c, low[1])), sum(even + odd),
                            sum(even - odd)};
        for (size_t n = 1; n < points_.size(); ++n) {
            const double p = points_[n];
            const Expr of_odd = fused(high[0] - times(1 / (p * p), low[0]));
            const Expr of_even = fused(high[1] - times(1 / (p * p), low[1]));
            v.push_back(fused(of_even + times(p, of_odd)));
            v.push_back(fused(of_even - times(p, of_odd)));
        }
        v.push_back(sum(sum(d[7] - d[1]) - times(c, high[0])));
        return v;
    }
    std::vector<Expr> v(1);
    Expr last;
    for (size_t n = 0; n < points_.size(); ++n) {
        // M(x) / (x - p) = x (x + p) Q(x^2).
        const double p = points_[n];
        const std::vector<double> q = polynomial_of_squares(points_, n);
        const bool is_product_exact = q.size() == 2 && q.front() != -1;
        const auto part = [&](size_t first) {
            const Expr e = every_other(q, d, first);
            return is_product_exact ? fused(e) : sum(e);
        };
        const Expr even = part(2);
        const Expr odd = part(1);
        int exponent = 0;
        const bool is_exact = p != 1 && std::frexp(p, &exponent) == 0.5;  // a power of two
        v.push_back(is_exact ? fused(even + times(p, odd)) : sum(even + times(p, odd)));
        v.push_back(is_exact ? fused(even - times(p, odd)) : sum(even - times(p, odd)));
        if (n > 0) continue;
        // M(x) / x = (x^2 - p^2) Q(x^2), the first p being 1.
        v.front() = sum(even - sum(every_other(q, d, 0)));
        last = sum(sum(every_other(q, d, 3)) - odd);
    }
    v.push_back(last);
    return v;
}

std::vector<Expr> MinimalFilter::of_products(ir::Values& name, std::vector<Expr> m,
                                             const Expr& bias, Order order) const {
    if (bias.defined()) {
        // Untransformed products are outputs; points_ begins with 1, behind the product at 0.
        for (size_t q = 0; q < m.size(); ++q) {
            if (taps_ == 1 || q == 1) m[q] = name(strict_float(m[q] + bias));
        }
    }
    if (taps_ == 1) return m;
    std::vector<Expr> sums, differences;
    for (size_t n = 0; n < points_.size(); ++n) {
        sums.push_back(name(strict_float(m[2 * n + 1] + m[2 * n + 2])));
        differences.push_back(name(strict_float(m[2 * n + 1] - m[2 * n + 2])));
    }
    std::vector<Expr> y(static_cast<size_t>(outputs_));
    for (size_t k = 0; k < y.size(); ++k) {
        Expr sum = k == 0 ? m.front() : k + 1 == y.size() ? m.back() : Expr();
        for (size_t n = 0; n < points_.size(); ++n) {
            const Expr part = times(std::pow(points_[n], static_cast<double>(k)),
                                    k % 2 == 0 ? sums[n] : differences[n]);
            sum = sum.defined() ? sum + part : part;
        }
        // Its last product, with a power of two, is exact.
        const auto* last = sum.as<Halide::Internal::Add>();
        y[k] = name(order == Order::fused_last && k > 0 ? strict_float(last->a) + last->b
                                                        : strict_float(sum));
    }
    return y;
}

}  // namespace laminate
