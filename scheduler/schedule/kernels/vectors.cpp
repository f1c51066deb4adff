// vectors: layers without weights, one vector of v columns of one row and channel at a time.
//
//   pooling      Y[z, y, x] = max or mean over n, m of X[z, y S + n E - P, x S + m E - P]; of large
//                windows, over n of each column first
//   elementwise  Y[z, y, x] = X_0[z, y, x] + X_1[z, y, x] + ..., or the difference, product,
//                quotient, minimum, maximum, power or PRelu of two
//   Concat       Y[z, y, x] = X_e[z - c_e, y, x], c_e the first output channel of operand e
//   activation   Y[z, y, x] = f(X[z, y, x])
//                an operand of one pixel or one channel is read there
//   resampling   Y[z, y, x] = sum over n, m of u[y, n] v[x, m] X[z, s[y, n], t[x, m]]
//   rearranging  Y[z, y, x] = X[c, y div S, x div S], c = the channel of phase (y mod S, x mod S)
//   blocks       Y[z, y, x] = X[p div b^2, y b + p mod b^2 div b, x b + p mod b], p the place of z
//                before the shuffle of channels
//   normalising  Y[z, y, x] = (X[z, y, x] - m) s, m and s of X[., y, x]: the mean, or 0, and
//                1 / sqrt(variance + a), or of squares; softmax: exp(X[z, y, x] - max) / sum of all
//                of these, or the logarithm of that
//   reducing     Y[0, y, x] = max or min over i of X[i, y, x]
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

int64_t vectors_multiplications(const LayerProblem&, const Kernel&, const KernelBox&) { return 0; }

/// Elements that an output is made of: at most as many as its intervals hold, or as a cubic Resize
/// needs.
int64_t resampled_loads(const LayerProblem& p) {
    constexpr int64_t most = 4;
    return std::min(p.y().kernel, most) * std::min(p.x().kernel, most);
}

/// A normalisation reads its pixels for each of two sums and for the result.
constexpr int64_t normalised_loads = 3;

KernelWork vectors_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const KernelBox& box = asked.box;
    const double outputs = output_vectors(box, kernel);
    const int64_t loads = is_elementwise(p.operation)           ? std::ssize(p.inputs)
                          : p.operation == Operation::rearrange ? 1
                          : p.operation == Operation::resample  ? resampled_loads(p)
                          : p.operation == Operation::normalise ? normalised_loads
                          : is_extreme_of_channels(p.operation) ? p[Dim::i]
                          : pools_columns_first(p) ? p.y().kernel * p.x().stride + p.x().kernel
                                                   : p.y().kernel * p.x().kernel;
    return {{"inputs", outputs * static_cast<double>(loads)},
            {"outputs", outputs},
            {"rows", static_cast<double>(box[Dim::z].size() * box[Dim::y].size())},
            {"ragged", ragged_rows(box, kernel[KernelSize::lanes])},
            {"boxes", 1}};
}

}  // namespace

const KernelRow vectors_kernel{
    .kind = KernelKind::vectors,
    .name = "vectors",
    .sizes = {KernelSize::lanes},
    .formula = "pooling, elementwise, Concat, activation, DepthToSpace, normalisation, "
               "reduction of channels: a vector of columns at a time",
    .scope = KernelScope::nest,
    .layers = "a layer without weights",
    .accepts = [](const LayerProblem& p) { return !p.has_weights(); },
    .multiplications = vectors_multiplications,
    .work = vectors_work,
    .columns_stored = [](const Kernel& kernel,
                         int64_t columns) { return round_up(columns, kernel[KernelSize::lanes]); },
};

}  // namespace laminate
