#include "generators/kernels/winograd_map_outputs.h"

#include <algorithm>

#include "generators/ir/layer_output.h"
#include "generators/kernels/winograd_transforms.h"

namespace laminate {

using namespace Halide::Internal;

Stmt MapOutputs::code(const Expr& z, const Expr& place, const Expr& band, const Expr& bands) const {
    const int64_t columns = at_.strip_columns(), of_strip = columns / at_.columns_of_tile;
    const int64_t whole = p_[Dim::x] / columns, rest = p_[Dim::x] % columns;
    return code_.loop(".out", {0, bands}, [&](const Expr& n) {
        const Expr row = simplify((band + n) * size(at_.rows_of_tile));
        return code_.loop(".strip", {0, size(ceil_div(p_[Dim::x], columns))}, [&](const Expr& s) {
            const Expr first = simplify(s * size(of_strip));
            const Expr tiles_here =
                simplify(Halide::min(size(of_strip), size(at_.row_tiles) - first));
            const Interval steps{
                0, simplify((tiles_here + size(tiles_together_ - 1)) / size(tiles_together_))};
            std::vector<Stmt> all;
            for (int64_t v = 0; v < at_.vectors; ++v) {
                all.push_back(code_.loop(".x", steps, [&](const Expr& x) {
                    return tiles(z, place, v,
                                 simplify(n * size(at_.row_tiles) + first + x * size(tiles_together_)),
                                 simplify(x * size(at_.stored_columns())));
                }));
                const Expr column = simplify(s * size(columns));
                const auto stored = [&](int64_t count) { return strip(z, v, row, column, count); };
                all.push_back(rest == 0    ? stored(columns)
                              : whole == 0 ? stored(rest)
                                           : IfThenElse::make(s < size(whole), stored(columns),
                                                              stored(rest)));
            }
            return ir::sequence(all);
        });
    });
}

Stmt MapOutputs::tiles(const Expr& z, const Expr& place, int64_t v, const Expr& tile,
                       const Expr& column) const {
    const int64_t lanes = at_.lanes;
    Values name(p_.name + ".product");
    std::vector<std::vector<winograd::PatchRow>> sums;  // by tile and row
    for (int64_t t = 0; t < tiles_together_; ++t) {
        const Expr n = tile + size(t);
        const Expr from = name(place * size(at_.product_block) +
                               n / size(at_.tile) * size(at_.product_tile) +
                               n % size(at_.tile) * size(lanes));
        const auto product = [&](int64_t f) {
            const Expr index =
                from + size(at_.products + v * at_.product_vector + f * at_.product_frequency);
            return name(ir::load(code_.scratch(), lanes_from(index, lanes)));
        };
        sums.push_back(winograd::rows_of_products(name, at_.rows_of_tile, at_.columns_of_tile,
                                                  product, at_.row_taps, at_.column_taps));
    }
    const Expr channels = lanes_from(simplify(z * size(at_.block) + size(v * lanes)), lanes);
    // Row by row, so that few results are in registers at a time.
    std::vector<Stmt> rows;
    for (int64_t r = 0; r < at_.rows_of_tile; ++r) {
        Values of_row(p_.name + ".product.row");
        std::vector<Expr> results;
        for (const std::vector<winograd::PatchRow>& of_tile : sums) {
            for (const Expr& sum : winograd::columns_of_products(
                     of_row, of_tile[static_cast<size_t>(r)], at_.column_taps)) {
                const Expr all = sum + ir::load(code_.bias(), channels);
                results.push_back(
                    of_row(activates_strips() ? all : code_.output().activated(channels, all)));
            }
        }
        const Stmt stores = staged(of_row, results, r, column);
        rows.push_back(of_row.around(stores));
    }
    return name.around(ir::sequence(rows));
}

Stmt MapOutputs::staged(Values& name, const std::vector<Expr>& columns, int64_t r,
                        const Expr& column) const {
    constexpr int64_t four = winograd::columns;
    std::vector<Stmt> stores;
    const auto put = [&](const Expr& value, int64_t first, int64_t count, int64_t lane, int64_t c) {
        const Expr piece = Shuffle::make_slice(value, static_cast<int>(first), 1,
                                               static_cast<int>(count));
        stores.push_back(ir::store(
            code_.scratch(), piece,
            lanes_from(staged_row(size(lane), size(r)) + column + size(c), count),
            ir::Alignment::element));
    };
    const winograd::PatchRow whole =
        winograd::transposed_fours(name, {columns[0], columns[1], columns[2], columns[3]});
    for (int64_t n = 0; n < four; ++n) {
        for (int64_t group = 0; group < at_.lanes; group += four)
            put(whole[static_cast<size_t>(n)], group, four, group + n, 0);
    }
    if (std::ssize(columns) == four) return ir::sequence(stores);
    // Two columns more: a pair of a channel beside that of the next one.
    const winograd::PatchRow pairs = winograd::paired_fours(name, columns[4], columns[5]);
    for (int64_t n = 0; n < four; ++n) {
        for (int64_t group = 0; group < at_.lanes; group += four)
            put(pairs[static_cast<size_t>(n / 2)], group + n % 2 * 2, 2, group + n, four);
    }
    return ir::sequence(stores);
}

Stmt MapOutputs::strip(const Expr& z, int64_t v, const Expr& row, const Expr& column,
                       int64_t columns) const {
    const Expr rows = simplify(Halide::min(size(at_.rows_of_tile), size(p_[Dim::y]) - row));
    const Expr first = simplify(z * size(at_.block) + size(v * at_.lanes));
    // Channels that fill up the last block are not stored.
    const Expr existing =
        p_[Dim::z] % at_.block == 0
            ? size(at_.lanes)
            : simplify(Halide::clamp(size(p_[Dim::z]) - first, 0, size(at_.lanes)));
    return code_.loop(".channel", {0, existing}, [&](const Expr& lane) {
        const Expr channel = simplify(first + lane);
        return code_.loop(".row", {0, rows}, [&](const Expr& r) {
            Values name(p_.name + ".strip");
            const Expr to =
                name((channel * size(p_[Dim::y]) + row + r) * size(p_[Dim::x]) + column);
            const Expr from = name(staged_row(lane, r));
            std::vector<Stmt> all;
            // The next strip of a channel: maps lie so far apart that no processor foresees it.
            for (int64_t c = 0; c < at_.strip_columns(); c += ir::elements_of_line)
                all.push_back(
                    code_.output().prefetch_stored(to + size(at_.strip_columns() + c)));
            const int64_t widest = activates_strips() ? ir::activated_together * at_.lanes : at_.lanes;
            for (int64_t c = 0; c < columns;) {
                int64_t wide = widest;
                while (wide > columns - c) wide /= 2;
                const Expr sum = ir::load(code_.scratch(), lanes_from(from + size(c), wide),
                                          ir::Alignment::element);
                all.push_back(code_.output().store_activated(
                    channel, activates_strips() ? code_.output().activated(channel, sum) : sum,
                    lanes_from(to + size(c), wide), {}));
                c += wide;
            }
            return name.around(ir::sequence(all));
        });
    });
}

}  // namespace laminate
