// vectors: layers without weights, one vector of v columns of one row and channel at a time.
//
//   pooling      Y[z, y, x] = max or mean over n, m of X[z, y S + n E - P, x S + m E - P]
//   Add          Y[z, y, x] = sum over operands e of X_e[z, y, x]
//   Concat       Y[z, y, x] = X_e[z - c_e, y, x], c_e the first output channel of operand e
//   activation   Y[z, y, x] = f(X[z, y, x])
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

int64_t vectors_multiplications(const LayerProblem&, const Kernel&, const KernelBox&) { return 0; }

}  // namespace

const KernelRow vectors_kernel{
    .kind = KernelKind::vectors,
    .name = "vectors",
    .sizes = {KernelSize::lanes},
    .formula = "pooling, Add, Concat, activation: a vector of columns at a time",
    .scope = KernelScope::nest,
    .layers = "a layer without weights",
    .accepts = [](const LayerProblem& p) { return !p.has_weights(); },
    .multiplications = vectors_multiplications,
};

}  // namespace laminate
