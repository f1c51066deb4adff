// phases: a transposed convolution, all S x S phases of an input position together.
//
//   Y[z, q S + f - P, r S + g - P] = sum over i, t, u of W[z, i, f + t S, g + u S] X[i, q - t E, r
//   - u E]
//
// z channels x all phases x x vectors of v positions r have their sums in registers, or at most eight
// phases of a row if all are more than 64 sums. Phases whose outputs lie outside the box are computed and not
// stored.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

/// Positions q of the input grid whose phases meet outputs [begin, end).
Range positions(const AxisWindow& w, Range out) {
    return {(out.begin + w.pad_begin) / w.stride, (out.end - 1 + w.pad_begin) / w.stride + 1};
}

/// Products of a column of the grid with the rows of the kernel, of all phases of the rows
/// [begin, end): taps whose input row lies in padding are left out.
int64_t grid_row_taps(const AxisWindow& w, Range out) {
    const Range q = positions(w, out);
    int64_t taps = 0;
    for (int64_t row = q.begin; row < q.end; ++row) {
        for (int64_t t = 0; t * w.stride < w.kernel; ++t) {
            const int64_t input = row - t * w.dilation;
            if (input >= 0 && input < w.in) taps += std::min(w.stride, w.kernel - t * w.stride);
        }
    }
    return taps;
}

int64_t phases_multiplications(const LayerProblem& p, const Kernel& kernel, const KernelBox& box) {
    const int64_t tile = kernel[KernelSize::columns] * kernel[KernelSize::lanes];
    return round_up(box[Dim::z].size(), kernel[KernelSize::channels]) * box[Dim::i].size() *
           grid_row_taps(p.y(), box[Dim::y]) *
           round_up(positions(p.x(), box[Dim::x]).size(), tile) * p.x().kernel;
}

/// Input positions along an axis that an output of some phase reads.
double taps_of_grid(const AxisWindow& w) {
    return static_cast<double>(ceil_div(w.kernel, w.stride));
}

/// A vector of positions is loaded once for the phases that read it, 3.24 of 4 on average for a 9x9
/// kernel of stride 2.
KernelWork phases_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const KernelBox& box = asked.box;
    const double taps = taps_of_grid(p.y()) * taps_of_grid(p.x());
    const double phases = static_cast<double>(p.y().kernel * p.x().kernel) / taps;
    const auto vectors = static_cast<double>(kernel[KernelSize::columns]);
    const double scalars = static_cast<double>(kernel[KernelSize::channels]) * phases;
    // A vector at a shifted column lies across two cache lines.
    const double load_cost = p.x().kernel > p.x().stride ? 2.0 : 1.0;
    const double cycles = cycles_of_tap(vectors * load_cost, scalars, vectors * scalars,
                                        vectors * scalars);
    return {{"products", vectors_of(phases_multiplications(p, kernel, box), kernel) * cycles /
                             (vectors * scalars)},
            {"outputs", output_vectors(box, kernel)},
            {"boxes", 1}};
}

std::optional<std::string> phases_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t outputs = p[Dim::z] / p.groups;
    if (p.groups == 1 || outputs % kernel[KernelSize::channels] == 0) return std::nullopt;
    return "z" + std::to_string(kernel[KernelSize::channels]) + ", expected a divisor of the " +
           std::to_string(outputs) + " output channels of a group of channels";
}

}  // namespace

const KernelRow phases_kernel{
    .kind = KernelKind::phases,
    .name = "phases",
    .sizes = {KernelSize::channels, KernelSize::columns, KernelSize::lanes},
    .formula = "sums of z channels x all phases x x vectors of input positions in registers",
    .scope = KernelScope::nest,
    .layers = "a transposed convolution",
    .accepts = [](const LayerProblem& p) { return p.has_weights() && is_transposed(p); },
    .multiplications = phases_multiplications,
    .work = phases_work,
    .channels_together = [](const Kernel& kernel) { return kernel[KernelSize::channels]; },
    .size_refusal = phases_size_refusal,
};

}  // namespace laminate
