// Code that moves a ring on along its columns or channels, where the buffer holds less of them than
// its lifetime needs (Slide in scheduler/schedule/buffer_shapes.h). Vectors read and write
// neighbours, so a coordinate never wraps around: what is needed again is moved to the front, in
// every row slot. These moves stay inside the scratch block and are no accesses.
#pragma once

#include <Halide.h>

#include "generators/kernels/nest_code.h"

namespace laminate {

/// `distance` columns forward, 1 or more; `first` is the column stored first from now on. Columns
/// behind the `columns` of the tensor are zero afterwards.
[[nodiscard]] Stmt moved_columns(const RowRing& ring, const Expr& distance, const Expr& first,
                                 const Expr& columns, int64_t lanes);
/// `distance` channels forward, 1 or more.
[[nodiscard]] Stmt moved_channels(const RowRing& ring, const Expr& distance, int64_t lanes);
/// Zeroes the columns behind the `columns` of a tensor for which one row of the ring has room.
/// `row`: its index; `first`: the column stored first.
[[nodiscard]] Stmt zero_columns_behind(const RowRing& ring, const Expr& row, const Expr& first,
                                       const Expr& columns, int64_t lanes);

/// What a slide does where a body begins that needs [begin, end): `next` is the first coordinate
/// from now on, `before` the one until now.
struct SlideStep {
    Expr before;
    Expr begin;
    Expr end;
    [[nodiscard]] Expr next(const Slide& slide) const;
};

}  // namespace laminate
