// map_sum: an Add of the output of the map kernel before it, computed before that kernel stores.
//
//   Y[z, y, x] = f(sum over operands e of X_e[z, y, x]),  one operand is the sum in registers
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

const KernelRow map_sum_kernel{
    .kind = KernelKind::map_sum,
    .name = "map_sum",
    .sizes = {},
    .formula = "added to what the kernel before it stores",
    .scope = KernelScope::sum,
    .layers = "an Add",
    .accepts = [](const LayerProblem& p) { return p.operation == Operation::add; },
    .pays = [](const LayerProblem&) { return true; },
};

}  // namespace laminate
