// map_addition: an Add that no other kernel takes over, all its maps as one axis.
//
//   Y[q] = sum over operands e of X_e[q],  q over all elements of the maps
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

KernelWork map_addition_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"inputs", vectors_of(p.input_elements().value(), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

/// Operands of one pixel or one channel have fewer elements than the axis.
bool accepts_addition(const LayerProblem& p) {
    return p.operation == Operation::add &&
           std::none_of(p.inputs.begin(), p.inputs.end(), [](const LayerInput& operand) {
               return operand.is_pixel || operand.is_plane;
           });
}

}  // namespace

const KernelRow map_addition_kernel{
    .kind = KernelKind::map_addition,
    .name = "map_addition",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums of operands, all elements as one axis",
    .scope = KernelScope::map,
    .layers = "an Add",
    .accepts = accepts_addition,
    .pays = [](const LayerProblem&) { return true; },
    .work = map_addition_work,
};

}  // namespace laminate
