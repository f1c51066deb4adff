// channels: register tiles of vectors of output channels x columns of one row.
//
//   Y[z, y, x] = sum over i, n, m of W[z, i, n, m] X[i, y S + n E - P, x S + m E - P]
//
// z vectors of v channels x x columns have their sums in registers. For narrow maps and dense
// layers, whose rows would fill vectors badly. The last columns of a row are one narrower tile, or
// one column at a time where their number depends on the box. Channels are filled up with zero
// weights.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

int64_t channels_multiplications(const LayerProblem& p, const Kernel& kernel,
                                 const KernelBox& box) {
    const int64_t block = kernel[KernelSize::channels] * kernel[KernelSize::lanes];
    return round_up(box[Dim::z].size(), block) * box[Dim::i].size() *
           row_taps(p.y(), box[Dim::y].begin, box[Dim::y].end) * box[Dim::x].size() * p.x().kernel;
}

}  // namespace

const KernelRow channels_kernel{
    .kind = KernelKind::channels,
    .name = "channels",
    .sizes = {KernelSize::channels, KernelSize::columns, KernelSize::lanes},
    .formula = "sums of z vectors of channels x x columns in registers",
    .scope = KernelScope::nest,
    .layers = "a dense convolution that is not transposed, or a dense layer",
    .accepts = is_dense_convolution,
    .whole = {true, false, false, false},
    .multiplications = channels_multiplications,
};

}  // namespace laminate
