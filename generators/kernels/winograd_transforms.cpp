#include "generators/kernels/winograd_transforms.h"

#include <algorithm>
#include <iterator>

namespace laminate::winograd {

using Halide::Expr;

const MinimalFilter& filter_of(int64_t taps, int64_t outputs) {
    static const MinimalFilter four(kernel_size, columns), six(kernel_size, wide_columns),
        four_of_five(5, columns), four_of_seven(7, columns);
    if (taps == kernel_size) return outputs == columns ? four : six;
    return taps == 5 ? four_of_five : four_of_seven;
}

namespace {

using Halide::Internal::Shuffle;

/// Takes four lanes of every group of four of two vectors, `of_four` being numbers among the eight: one
/// instruction, which moves nothing across 16 bytes.
Expr within_groups(ir::Values& name, const Expr& a, const Expr& b, const std::array<int, 4>& of_four) {
    const int lanes = a.type().lanes();
    std::vector<int> from;
    for (int n = 0; n < lanes; ++n) {
        const int of_pair = of_four[static_cast<size_t>(n % 4)];
        from.push_back(n / 4 * 4 + of_pair % 4 + (of_pair < 4 ? 0 : lanes));
    }
    return name(Shuffle::make({a, b}, from));
}

/// Takes every other lane of two vectors.
Expr alternate_lanes(ir::Values& name, const Expr& a, const Expr& b, int first) {
    std::vector<int> from;
    for (int n = 0; n < a.type().lanes(); ++n) from.push_back(first + 2 * n);
    return name(Shuffle::make({a, b}, from));
}

}  // namespace

int64_t tile_of_lane(TileOrder order, int64_t lane, int64_t lanes) {
    return order == TileOrder::ascending ? lane : lane % columns * (lanes / columns) + lane / columns;
}

namespace {

/// Every other element, twice: the first `count` columns, `chosen` taking every other one of two vectors.
template <class Chosen>
PatchRow columns_taken(const Expr* parts, int64_t count, const Chosen& chosen) {
    PatchRow row(static_cast<size_t>(count));
    for (int64_t odd = 0; odd < std::min<int64_t>(2, count); ++odd) {
        const Expr first = chosen(parts[0], parts[1], static_cast<int>(odd));
        const Expr second = chosen(parts[2], parts[3], static_cast<int>(odd));
        for (int64_t c = odd; c < count; c += 2)
            row[static_cast<size_t>(c)] = chosen(first, second, static_cast<int>(c / 2));
    }
    return row;
}

auto every_other_of_fours(ir::Values& name) {
    return [&name](const Expr& a, const Expr& b, int first) {
        return within_groups(name, a, b, {first, first + 2, first + 4, first + 6});
    };
}

}  // namespace

PatchRow columns_by_fours(ir::Values& name, const std::array<Expr, columns>& parts,
                          int64_t count) {
    return columns_taken(parts.data(), count, every_other_of_fours(name));
}

PatchRow columns_of_patches(ir::Values& name, const std::array<Expr, columns + 1>& parts,
                            TileOrder order, int64_t tiles_of_row) {
    const auto of_any = [&](const Expr& a, const Expr& b, int first) {
        return alternate_lanes(name, a, b, first);
    };
    PatchRow row = order == TileOrder::ascending
                       ? columns_taken(parts.data(), columns, of_any)
                       : columns_taken(parts.data(), columns, every_other_of_fours(name));
    row.resize(static_cast<size_t>(patch_columns));
    // Columns 4 and 5 are columns 0 and 1 of the next patch.
    const int lanes = parts.front().type().lanes();
    std::vector<int> lane_of(static_cast<size_t>(lanes));
    for (int n = 0; n < lanes; ++n)
        lane_of[static_cast<size_t>(tile_of_lane(order, n, lanes))] = n;
    for (int c = 0; c < 2; ++c) {
        std::vector<int> from;
        for (int n = 0; n < lanes; ++n) {
            const int64_t next = tile_of_lane(order, n, lanes) + 1;
            from.push_back(next % tiles_of_row != 0
                               ? lane_of[static_cast<size_t>(next)]
                               : lanes + static_cast<int>(next - tiles_of_row) + c);
        }
        row[static_cast<size_t>(columns + c)] =
            name(Shuffle::make({row[static_cast<size_t>(c)], parts[columns]}, from));
    }
    return row;
}

PatchRow columns_of_wide_patches(ir::Values& name, const std::vector<Expr>& parts,
                                 const Expr& behind) {
    const auto lanes = static_cast<int>(parts.front().type().lanes());
    // Every other element, then every third of those.
    PatchRow row(static_cast<size_t>(most_patch));
    for (int odd = 0; odd < 2; ++odd) {
        std::vector<Expr> halves;
        for (size_t n = 0; n < parts.size(); n += 2)
            halves.push_back(alternate_lanes(name, parts[n], parts[n + 1], odd));
        for (int third = 0; third < 3; ++third) {
            std::vector<int> of_two, of_all;
            for (int n = 0; n < lanes; ++n) {
                const int from = 3 * n + third;
                of_two.push_back(from < 2 * lanes ? from : 0);
                of_all.push_back(from < 2 * lanes ? n : from - lanes);
            }
            const Expr most = name(Shuffle::make({halves[0], halves[1]}, of_two));
            row[static_cast<size_t>(2 * third + odd)] =
                name(Shuffle::make({most, halves[2]}, of_all));
        }
    }
    // Columns 6 and 7 are columns 0 and 1 of the next patch.
    for (int c = 0; c < 2; ++c) {
        std::vector<int> from;
        for (int n = 0; n < lanes; ++n) from.push_back(n + 1 < lanes ? n + 1 : lanes + c);
        row[static_cast<size_t>(wide_columns + c)] =
            name(Shuffle::make({row[static_cast<size_t>(c)], behind}, from));
    }
    return row;
}

PatchRow paired_fours(ir::Values& name, const Expr& a, const Expr& b) {
    return {within_groups(name, a, b, {0, 4, 1, 5}), within_groups(name, a, b, {2, 6, 3, 7})};
}

PatchRow transposed_fours(ir::Values& name, const std::array<Expr, columns>& vectors) {
    const std::array<PatchRow, 2> pairs{paired_fours(name, vectors[0], vectors[1]),
                                        paired_fours(name, vectors[2], vectors[3])};
    PatchRow all;
    for (size_t n = 0; n < 2; ++n) {
        all.push_back(within_groups(name, pairs[0][n], pairs[1][n], {0, 1, 4, 5}));
        all.push_back(within_groups(name, pairs[0][n], pairs[1][n], {2, 3, 6, 7}));
    }
    return all;
}

Expr side_by_side(ir::Values& name, const std::vector<Expr>& outputs) {
    return Shuffle::make_concat(
        transposed_fours(name, {outputs[0], outputs[1], outputs[2], outputs[3]}));
}

std::vector<Expr> of_rows(ir::Values& name, const std::vector<Expr>& d, int64_t taps) {
    const auto sum = [&](const Expr& e) { return name(Halide::strict_float(e)); };
    const int64_t rows = std::ssize(d) - taps + 1;
    if (rows == 1) return d;
    if (rows == 2)
        return {sum(d[0] - d[2]), sum(d[1] + d[2]), sum(d[2] - d[1]), sum(d[1] - d[3])};
    return filter_of(taps, rows).of_patch(name, d, MinimalFilter::Order::as_written);
}

PatchRow of_columns(ir::Values& name, const PatchRow& row, int64_t taps) {
    if (taps == 1) return row;
    return filter_of(taps, std::ssize(row) - taps + 1)
        .of_patch(name, row, MinimalFilter::Order::as_written);
}

namespace {

/// A^T m of a column of the products: a sum for each row of outputs.
std::vector<Expr> rows_of_column(ir::Values& name, const std::vector<Expr>& m, int64_t taps) {
    const auto sum = [&](const Expr& e) { return name(Halide::strict_float(e)); };
    const int64_t rows = std::ssize(m) - taps + 1;
    if (taps == 1) return m;
    // Fused sums of four rows left too many values for the registers. What takes these is strict
    // (columns_of_products()).
    const auto order =
        rows > columns ? MinimalFilter::Order::fused_last : MinimalFilter::Order::as_written;
    if (rows >= columns) return filter_of(taps, rows).of_products(name, m, {}, order);
    std::vector<Expr> sums{sum(m[0] + m[1] + m[2])};
    if (rows == 2) sums.push_back(sum(m[1] - m[2] - m[3]));
    return sums;
}

}  // namespace

std::vector<PatchRow> rows_of_products(ir::Values& name, int64_t rows, int64_t outputs,
                                       const std::function<Expr(int64_t f)>& product,
                                       int64_t row_taps, int64_t column_taps) {
    const int64_t of_row = outputs + column_taps - 1;
    std::vector<PatchRow> sums(static_cast<size_t>(rows));
    for (int64_t c = 0; c < of_row; ++c) {
        std::vector<Expr> m;
        for (int64_t r = 0; r < rows + row_taps - 1; ++r) m.push_back(product(r * of_row + c));
        const std::vector<Expr> of_column = rows_of_column(name, m, row_taps);
        for (size_t r = 0; r < sums.size(); ++r) sums[r].push_back(of_column[r]);
    }
    return sums;
}

std::vector<Expr> columns_of_products(ir::Values& name, const PatchRow& sums, int64_t taps) {
    return taps == 1 ? sums : filter_of(taps, std::ssize(sums) - taps + 1).of_products(name, sums);
}

}  // namespace laminate::winograd
