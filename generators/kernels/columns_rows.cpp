#include "generators/kernels/columns_rows.h"

#include <functional>

#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

int64_t modulo(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

/// Vector n of the columns from element `from` of X on, to all planes.
Stmt split_vector(const ColumnsCode& code, const RowPlanes& to, const Expr& channel,
                  const Expr& from, const Expr& n) {
    const int64_t lanes = code.lanes(), step = lanes * tile_columns;
    Values part("X.columns");
    const Expr wide =
        part(ir::load("X", lanes_from(from + n * size(step), step), ir::Alignment::element));
    std::vector<Stmt> planes;
    for (int64_t q = 0; q < tile_columns; ++q) {
        const Expr plane = Shuffle::make_slice(
            wide, static_cast<int>(q), static_cast<int>(tile_columns), static_cast<int>(lanes));
        const Expr index = to.at(size(q), channel) + n * size(lanes);
        planes.push_back(
            ir::store(to.array, plane, lanes_from(index, lanes), ir::Alignment::element));
    }
    return part.around(ir::sequence(planes));
}

}  // namespace

Stmt split_columns(const ColumnsCode& code, const Expr& y) {
    const LayerProblem& p = code.problem(0);
    const int64_t step = code.lanes() * tile_columns;
    return code.with_planes(0, y, [&](const RowPlanes& to) {
        const Interval channels{0, size(p[Dim::i])};
        return GroupLowering::for_each("X.channel", channels, [&](const Expr& channel) {
            Values name("X.split");
            const Expr first = name(simplify(code.first_tile(0) * size(tile_columns)));
            const Expr from =
                name(simplify((channel * code.in(0, Dim::y) + y) * code.in(0, Dim::x) + first));
            const Expr count = name(simplify(
                Halide::min(code.end_tile(0) * size(tile_columns), code.in(0, Dim::x)) - first));
            const Stmt vectors = GroupLowering::for_each(
                "X.vector", {0, count / size(step)},
                [&](const Expr& n) { return split_vector(code, to, channel, from, n); });
            const Stmt rest = GroupLowering::for_each(
                "X.column", {count / size(step) * size(step), count}, [&](const Expr& x) {
                    return ir::store(
                        to.array, ir::load("X", from + x),
                        to.at(x % size(tile_columns), channel) + x / size(tile_columns),
                        ir::Alignment::element);
                });
            return name.around(ir::sequence({vectors, rest}));
        });
    });
}

Stmt zeros_around_row(const ColumnsCode& code, int t) {
    const int64_t lanes = code.lanes();
    return code.with_planes(t, 0, [&](const RowPlanes& to) {
        const auto fill = [&](const std::function<Expr(const Expr&, int64_t)>& index) {
            const Interval channels{0, size(to.channels)};
            return GroupLowering::for_each(
                code.row_name() + ".channel", channels, [&](const Expr& channel) {
                    std::vector<Stmt> planes;
                    for (int64_t q = 0; q < tile_columns; ++q) {
                        planes.push_back(ir::store(
                            to.array, make_zero(Halide::Float(32, static_cast<int>(lanes))),
                            lanes_from(index(channel, q), lanes), ir::Alignment::element));
                    }
                    return ir::sequence(planes);
                });
        };
        const Stmt left = fill(
            [&](const Expr& channel, int64_t q) { return to.at(size(q), channel) - size(lanes); });
        const Stmt right = fill([&](const Expr& channel, int64_t q) {
            const Expr end = (code.in(t, Dim::x) + size(tile_columns - 1 - q)) / size(tile_columns);
            return to.at(size(q), channel) + (end - code.first_tile(t));
        });
        return ir::sequence({left, ir::guarded(code.end_tile(t) == code.picture_tiles(t), right)});
    });
}

Stmt transform_patches(const ColumnsCode& code, int t, const Expr& channel, const Expr& tile,
                       const Expr& to) {
    const ColumnWindow& w = code.window(t);
    return code.with_planes(t, 0, [&](const RowPlanes& from) {
        Values name(code.line_name(t) + ".patch");
        std::vector<Expr> patch;
        for (int64_t c = 0; c < w.patch(); ++c) {
            const int64_t column = w.low + c;
            const Expr index = from.at(size(modulo(column, tile_columns)), channel) + tile +
                               size(floor_div(column, tile_columns));
            patch.push_back(name(
                ir::load(from.array, lanes_from(index, code.lanes()), ir::Alignment::element)));
        }
        std::vector<Stmt> stores;
        for (const Expr& v : code.filter(t).of_patch(name, patch, MinimalFilter::Order::free)) {
            const Expr index = to + code.line_plane(t, size(std::ssize(stores)), channel);
            stores.push_back(ir::store(code.line_name(t), v, lanes_from(index, code.lanes()),
                                       ir::Alignment::element));
        }
        return name.around(ir::sequence(stores));
    });
}

Stmt transform_row(const ColumnsCode& code, int t, const Expr& y) {
    const std::string& line = code.line_name(t);
    Values row(line + ".row");
    const Expr base = row(simplify(code.line_row(t, y)));
    const Expr from = row(code.shift(t));
    const Expr tiles = code.tiles_of(t + 1) + size(code.window(t).pieces - 1);
    const Interval channels{0, size(code.line(t).channels)};
    return row.around(
        GroupLowering::for_each(line + ".channel", channels, [&](const Expr& channel) {
            return code.over_tiles(line + ".tile", tiles, 1, [&](const Expr& tile, int64_t) {
                return transform_patches(code, t, channel, from + tile, base + tile);
            });
        }));
}

Stmt store_columns(const ColumnsCode& code, const Expr& channel, const Expr& y, const Expr& tile,
                   const std::vector<Expr>& columns, const Interval& wanted) {
    const Expr rows = code.out(code.sink(), Dim::y), all = code.out(code.sink(), Dim::x);
    const int64_t lanes = code.lanes() * std::ssize(columns);
    Values name("Y.columns");
    const Expr value = name(Shuffle::make_interleave(columns));
    const Expr x =
        name(simplify((code.first_tile(code.sink() + 1) + tile) * size(std::ssize(columns))));
    const Expr to =
        lanes_from(name(simplify((channel * rows + y) * all + x)), lanes);
    const Expr at = lanes_from(x, lanes);
    const Stmt whole = ir::store("Y", value, to, ir::Alignment::element);
    const Stmt part =
        ir::store("Y", value, to, ir::Alignment::element,
                  at >= broadcast(wanted.begin, lanes) && at < broadcast(wanted.end, lanes));
    return name.around(
        IfThenElse::make(x >= wanted.begin && x + size(lanes) <= wanted.end, whole, part));
}

}  // namespace laminate
