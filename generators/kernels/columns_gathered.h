// Layers of the kernel `columns` whose input lines hold all rows of their window.
#pragma once

#include "generators/kernels/columns_code.h"

namespace laminate {

/// Row y of nest k, from the lines of its input to the row of its output, or to columns `wanted` of
/// Y.
[[nodiscard]] Stmt gathered_row(const ColumnsCode& code, int k, const Expr& y,
                                const Interval& wanted);

}  // namespace laminate
