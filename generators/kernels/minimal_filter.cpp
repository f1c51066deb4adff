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
                                             const Expr& bias) const {
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
        y[k] = name(strict_float(sum));
    }
    return y;
}

}  // namespace laminate
