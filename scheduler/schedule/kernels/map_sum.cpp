// map_sum: an Add of the output of the map kernel before it, computed before that kernel stores.
//
//   Y[z, y, x] = f(sum over operands e of X_e[z, y, x]),  one operand is the sum in registers
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

/// In vectors of 16, whatever the kernel before it has.
KernelWork map_sum_work(const LayerProblem& p, const Kernel&, const AskedBox&) {
    constexpr double lanes = 16;
    const int64_t others = std::ssize(p.inputs) - 1;
    return {{"inputs", static_cast<double>(p.output_elements().value() * others) / lanes}};
}

}  // namespace

const KernelRow map_sum_kernel{
    .kind = KernelKind::map_sum,
    .name = "map_sum",
    .sizes = {},
    .formula = "added to what the kernel before it stores",
    .scope = KernelScope::sum,
    .layers = "an Add",
    .accepts = [](const LayerProblem& p) { return p.operation == Operation::add; },
    .pays = [](const LayerProblem&) { return true; },
    .work = map_sum_work,
};

}  // namespace laminate
