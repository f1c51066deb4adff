// map_elementwise: an elementwise layer or an activation that no other kernel takes over, all its maps as
// one axis, or each as an axis of its own where something has one value for each channel or position.
//
//   Y[q] = f(X_0[q], X_1[q], ...),  q over all elements of the maps
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

KernelWork map_elementwise_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"inputs", vectors_of(p.input_elements().value(), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

bool accepts_elements(const LayerProblem& p) {
    return is_elementwise(p.operation) || p.operation == Operation::pointwise;
}

}  // namespace

const KernelRow map_elementwise_kernel{
    .kind = KernelKind::map_elementwise,
    .name = "map_elementwise",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "a function of the operands' elements, all elements as one axis",
    .scope = KernelScope::map,
    .layers = "an elementwise layer or an activation",
    .accepts = accepts_elements,
    .pays = [](const LayerProblem&) { return true; },
    .work = map_elementwise_work,
};

}  // namespace laminate
