#include "generators/kernels/winograd_transforms.h"

namespace laminate::winograd {

using Halide::Expr;

const MinimalFilter& column_filter() {
    static const MinimalFilter filter(kernel_size);
    return filter;
}

Patch of_patch(ir::Values& name, Patch d, int64_t rows) {
    const auto sum = [&](const Expr& e) { return name(Halide::strict_float(e)); };
    for (size_t m = 0; rows == 2 && m < patch_columns; ++m) {
        const std::array<Expr, 4> v{sum(d[0][m] - d[2][m]), sum(d[1][m] + d[2][m]),
                                    sum(d[2][m] - d[1][m]), sum(d[1][m] - d[3][m])};
        for (size_t r = 0; r < v.size(); ++r) d[r][m] = v[r];
    }
    for (size_t m = 0; rows == columns && m < patch_columns; ++m) {
        std::vector<Expr> column;
        for (const auto& row : d) column.push_back(row[m]);
        const std::vector<Expr> v =
            column_filter().of_patch(name, column, MinimalFilter::Order::as_written);
        for (size_t r = 0; r < v.size(); ++r) d[r][m] = v[r];
    }
    for (size_t r = 0; r < static_cast<size_t>(patch_rows(rows)); ++r) {
        const std::vector<Expr> v = column_filter().of_patch(name, {d[r].begin(), d[r].end()},
                                                             MinimalFilter::Order::as_written);
        std::copy(v.begin(), v.end(), d[r].begin());
    }
    return d;
}

Outputs of_products(ir::Values& name, Patch m, int64_t rows) {
    const auto sum = [&](const Expr& e) { return name(Halide::strict_float(e)); };
    for (size_t c = 0; rows == columns && c < patch_columns; ++c) {
        std::vector<Expr> column;
        for (const auto& row : m) column.push_back(row[c]);
        const auto v = column_filter().of_products(name, column);
        for (size_t r = 0; r < v.size(); ++r) m[r][c] = v[r];
    }
    for (size_t c = 0; rows != columns && c < patch_columns; ++c) {
        const Expr first = sum(m[0][c] + m[1][c] + m[2][c]);
        if (rows == 2) m[1][c] = sum(m[1][c] - m[2][c] - m[3][c]);
        m[0][c] = first;
    }
    Outputs outputs;
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r)
        outputs[r] = column_filter().of_products(name, {m[r].begin(), m[r].end()});
    return outputs;
}

}  // namespace laminate::winograd
