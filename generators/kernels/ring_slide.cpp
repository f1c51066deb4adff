#include "generators/kernels/ring_slide.h"

#include "generators/kernels/ir_names.h"
#include "generators/lowering/group_lowering.h"

namespace laminate {

using namespace Halide::Internal;

namespace {

/// For every channel of every row slot: `make` with the index of its first column.
Stmt for_each_line(const RowRing& ring, const std::function<Stmt(Expr)>& make) {
    return GroupLowering::for_each(
        ring.name + ".line", {0, simplify(ring.rows() * size(ring.at.channels))},
        [&](const Expr& line) { return make(simplify(line * ring.pitch())); });
}

Stmt moved_vectors(const RowRing& ring, const Expr& to, const Expr& distance, const Expr& count,
                   int64_t lanes) {
    const Expr vectors = simplify((count + size(lanes - 1)) / size(lanes));
    return GroupLowering::for_each(ring.name + ".move", {0, vectors}, [&](const Expr& v) {
        const Expr at = simplify(to + v * size(lanes));
        return ir::store(
            ring.name,
            ir::load(ring.name, lanes_from(at + distance, lanes), ir::Alignment::element),
            lanes_from(at, lanes), ir::Alignment::element);
    });
}

}  // namespace

Stmt zero_columns_behind(const RowRing& ring, const Expr& row, const Expr& first, const Expr& columns,
                         int64_t lanes) {
    const Expr from = simplify(Halide::max(columns - first, 0));
    const Expr vectors =
        simplify((size(ring.at.column_slide->room - 1 + lanes) - from) / size(lanes));
    return GroupLowering::for_each(ring.name + ".behind", {0, vectors}, [&](const Expr& v) {
        return ir::store(ring.name, make_zero(Halide::Float(32, static_cast<int>(lanes))),
                         lanes_from(simplify(row + from + v * size(lanes)), lanes),
                         ir::Alignment::element);
    });
}

Stmt moved_columns(const RowRing& ring, const Expr& distance, const Expr& first, const Expr& columns,
                   int64_t lanes) {
    const int64_t room = ring.at.column_slide->room;
    const Stmt move = for_each_line(ring, [&](const Expr& line) {
        return moved_vectors(ring, line, distance, size(room) - distance, lanes);
    });
    const Stmt zeros = for_each_line(ring, [&](const Expr& line) {
        return zero_columns_behind(ring, line, first, columns, lanes);
    });
    return ir::sequence({move, IfThenElse::make(first + size(room) > columns, zeros)});
}

Stmt moved_channels(const RowRing& ring, const Expr& distance, int64_t lanes) {
    const Expr count =
        Halide::max(size(ring.at.channel_slide->room) - distance, 0) * ring.pitch();
    return GroupLowering::for_each(
        ring.name + ".slot", {0, ring.rows()}, [&](const Expr& slot) {
            return moved_vectors(ring, simplify(slot * ring.row_elements()),
                                 distance * ring.pitch(), count, lanes);
        });
}

Expr SlideStep::next(const Slide& slide) const {
    const Expr on = slide.returns ? end - size(slide.room) : begin;
    return Halide::select(begin < before, begin,
                          Halide::select(end > before + size(slide.room), on, before));
}

}  // namespace laminate
