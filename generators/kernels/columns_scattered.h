// A last layer of the kernel `columns` whose input rows are not kept: each, when it is finished, is
// added to the sums of all output rows that read it.
#pragma once

#include "generators/kernels/columns_code.h"

namespace laminate {

/// Adds what row r of the last layer's input contributes to the output rows that read it.
[[nodiscard]] Stmt scattered_row(const ColumnsCode& code, const Expr& r);

/// Output row y, all of whose input rows have been scattered, to columns `wanted` of Y.
[[nodiscard]] Stmt finished_row(const ColumnsCode& code, const Expr& y, const Interval& wanted);

}  // namespace laminate
