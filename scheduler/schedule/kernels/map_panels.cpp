// map_panels: strided first layers, whose outputs read few elements each.
//
//   Y[z, y, x] = sum over i, n, m of W[z, i, n, m] X[i, y S + n E - P, x S + m E - P]
//
// A panel in the first-level cache holds all taps and channels of a run of columns side by side, so
// sums stay in registers from the first tap to the last and no load is strided.
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_panels_accepts(const LayerProblem& p) {
    // A panel of 24 or 48 pixels with all their elements stays in the first-level cache. It is
    // filled once and read once per few output channels.
    constexpr int64_t most_elements = 160, enough_outputs = 32, narrowest = 24, most_stride = 2;
    return is_dense_convolution(p) && p.x().stride == most_stride && p.y().stride <= most_stride &&
           p.y().kernel * p.x().kernel * p[Dim::i] <= most_elements &&
           p[Dim::z] >= enough_outputs && p[Dim::x] >= narrowest;
}

bool map_panels_pays(const LayerProblem& p) {
    constexpr int64_t widest = 128;
    return p[Dim::x] <= widest && p[Dim::y] <= widest;
}

std::optional<std::string> map_panels_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    if (p[Dim::x] >= kernel[KernelSize::lanes]) return std::nullopt;
    return "v" + std::to_string(kernel[KernelSize::lanes]) + ", expected vectors of at most " +
           std::to_string(p[Dim::x]) + " lanes, the columns of the map";
}

KernelWork map_panels_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"products", vectors_of(map_multiplications(p, kernel), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_panels_kernel{
    .kind = KernelKind::map_panels,
    .name = "map_panels",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a panel of all taps of a run of columns",
    .scope = KernelScope::map,
    .layers =
        "a dense convolution of stride 2 whose outputs read at most 160 elements, of 32 output "
        "channels and 24 columns or more",
    .accepts = map_panels_accepts,
    .pays = map_panels_pays,
    .work = map_panels_work,
    .size_refusal = map_panels_size_refusal,
};

}  // namespace laminate
