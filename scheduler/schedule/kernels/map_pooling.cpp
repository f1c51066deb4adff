// map_pooling: pooling straight from the caller's array.
//
//   Y[z, y, x] = max over m of max over n, or mean over n, m, of X[z, y S + n E - P, x S + m E - P]
//
// Maxima of rows are taken before those of columns; strided columns are taken out of vectors that
// several taps share. Threads divide rows of large maps, channels of small ones.
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_pooling_accepts(const LayerProblem& p) {
    // Rows are written out vector by vector, and windows tap by tap.
    constexpr int64_t fewest_columns = 4, most_columns = 256, most_stride = 4;
    return is_pool(p) && p[Dim::x] >= fewest_columns && p[Dim::x] <= most_columns &&
           p.x().kernel * p.y().kernel <= most_taps_by_rows && p.x().stride <= most_stride;
}

KernelWork map_pooling_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"inputs", static_cast<double>(p.y().kernel * p.x().kernel) *
                           vectors_of(p.output_elements().value(), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_pooling_kernel{
    .kind = KernelKind::map_pooling,
    .name = "map_pooling",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "maximum or mean of windows, a vector of columns at a time",
    .scope = KernelScope::map,
    .layers = "a pooling of 4 to 256 columns, at most 25 taps and a stride of at most 4",
    .accepts = map_pooling_accepts,
    .pays = [](const LayerProblem&) { return true; },
    .work = map_pooling_work,
};

}  // namespace laminate
