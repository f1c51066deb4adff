#include "generators/winograd_transforms.h"

namespace laminate::winograd {

using Halide::Expr;

const MinimalFilter& column_filter() {
    static const MinimalFilter filter(kernel_size);
    return filter;
}

const std::array<double, kernel_size>* row_filter(int64_t rows) {
    static constexpr std::array<std::array<double, kernel_size>, 3> one{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    static constexpr std::array<std::array<double, kernel_size>, 4> two{
        {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
    return rows == 1 ? one.data() : two.data();
}

Patch of_patch(ir::Values& name, Patch d, int64_t rows) {
    for (size_t m = 0; rows == 2 && m < patch_columns; ++m) {
        const std::array<Expr, 4> v{name(d[0][m] - d[2][m]), name(d[1][m] + d[2][m]), name(d[2][m] - d[1][m]),
                                    name(d[1][m] - d[3][m])};
        for (size_t r = 0; r < v.size(); ++r) d[r][m] = v[r];
    }
    for (size_t r = 0; r < static_cast<size_t>(patch_rows(rows)); ++r) {
        const std::vector<Expr> v = column_filter().of_patch(name, {d[r].begin(), d[r].end()});
        std::copy(v.begin(), v.end(), d[r].begin());
    }
    return d;
}

Outputs of_products(ir::Values& name, Patch m, int64_t rows) {
    for (size_t c = 0; c < patch_columns; ++c) {
        const Expr first = name(m[0][c] + m[1][c] + m[2][c]);
        if (rows == 2) m[1][c] = name(m[1][c] - m[2][c] - m[3][c]);
        m[0][c] = first;
    }
    Outputs outputs;
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
        outputs[r] = column_filter().of_products(name, {m[r].begin(), m[r].end()});
    return outputs;
}

Patch of_kernel(ir::Values& name, const std::array<std::array<Expr, kernel_size>, kernel_size>& g) {
    Patch v;
    for (size_t m = 0; m < kernel_size; ++m) {
        const Expr half = ir::broadcast(Expr(0.5F), g[0][m].type().lanes());
        const Expr outer = name((g[0][m] + g[2][m]) * half);
        const Expr middle = name(g[1][m] * half);
        v[0][m] = g[0][m];
        v[1][m] = name(outer + middle);
        v[2][m] = name(outer - middle);
        v[3][m] = g[2][m];
    }
    for (auto& row : v) {
        const std::vector<Expr> all = column_filter().of_kernel(name, {row.begin(), row.begin() + kernel_size});
        std::copy(all.begin(), all.end(), row.begin());
    }
    return v;
}

}  // namespace laminate::winograd
