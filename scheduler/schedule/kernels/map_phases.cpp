// map_phases: transposed convolutions whose windows do not overlap, as a matrix product of the
// whole map.
//
//   Y[z, q S + f, r S + g] = sum over i of W[z, i, f, g] X[i, q, r]
//
// Each output reads one position, so a layer is a 1x1 convolution with S x S times the output
// channels. Lanes are positions; all phases of a few channels have their sums in registers. The
// inputs of some tiles lie in a panel in the second-level cache, for all output channels. Threads
// divide positions, then channels.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_phases_accepts(const LayerProblem& p) {
    constexpr int64_t most_phases = 4, narrowest = 8;
    const bool is_cut = std::all_of(p.window.begin(), p.window.end(), [](const AxisWindow& w) {
        return w.transposed && w.kernel == w.stride && w.dilation == 1 && w.pad_begin == 0 &&
               w.out == w.in * w.stride;
    });
    return p.has_weights() && p.groups == 1 && is_cut &&
           p.y().stride * p.x().stride <= most_phases && p.x().in >= narrowest;
}

/// With few channels, the outputs cost more than the sums, and layers in a group save their way to
/// memory.
bool map_phases_pays(const LayerProblem& p) {
    constexpr int64_t enough_channels = 32, widest = 256;
    return std::min(p[Dim::z], p[Dim::i]) >= enough_channels &&
           p.y().in * p.x().in <= widest * widest;
}

std::optional<std::string> map_phases_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    if (p.x().in >= kernel[KernelSize::lanes]) return std::nullopt;
    return "v" + std::to_string(kernel[KernelSize::lanes]) + ", expected vectors of at most " +
           std::to_string(p.x().in) + " lanes, the columns of the input";
}

KernelWork map_phases_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"products", vectors_of(map_multiplications(p, kernel), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_phases_kernel{
    .kind = KernelKind::map_phases,
    .name = "map_phases",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a panel of positions, all phases of some channels in registers",
    .scope = KernelScope::map,
    .layers =
        "a dense transposed convolution whose kernel is its stride, without padding, of at most 4 "
        "phases and 8 columns or more",
    .accepts = map_phases_accepts,
    .pays = map_phases_pays,
    .work = map_phases_work,
    .size_refusal = map_phases_size_refusal,
};

}  // namespace laminate
