// map_windows: convolutions on narrow maps, over a copy of the input with its padding.
//
//   Y[z, q] = sum over i, n, m of W[z, i, n, m] C[i, n, m][q],  q = y * pitch + x
//
// The copy keeps strided rows and columns apart, so every tap finds a run of the map's pixels side
// by side. The last columns of its rows are computed for nothing.
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/map_windows.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_windows_accepts(const LayerProblem& p) {
    constexpr int64_t most_taps = 25, most_stride = 2, narrowest = 5;
    const int64_t more_columns = (p.x().kernel - 1) * p.x().dilation / p.x().stride;
    return is_dense_convolution(p) && !is_pointwise(p) && !map_panels_kernel.accepts(p) &&
           p.x().stride <= most_stride && p.y().stride <= most_stride &&
           p.y().kernel * p.x().kernel <= most_taps && p[Dim::x] >= narrowest &&
           p[Dim::y] >= narrowest && 3 * more_columns <= p[Dim::x];
}

/// Copying the input is worth it for layers of enough channels whose single rows fill vectors
/// badly.
bool map_windows_pays(const LayerProblem& p) {
    constexpr int64_t most_pixels = 36 * 36, narrow = 20, enough_outputs = 32, enough_inputs = 16;
    // Strided windows of more channels pay on larger maps, too: lines take their columns apart.
    constexpr int64_t most_strided_pixels = 44 * 44, many_inputs = 32;
    const bool is_strided = p.x().stride > 1;
    const bool may_be_larger = is_strided && p.x().kernel > 1 && p[Dim::i] >= many_inputs;
    return p[Dim::y] * p[Dim::x] <= (may_be_larger ? most_strided_pixels : most_pixels) &&
           p[Dim::z] >= enough_outputs && p[Dim::i] >= enough_inputs &&
           (is_strided || p[Dim::x] <= narrow);
}

std::optional<std::string> map_windows_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t pixels = PixelGrid(p).pixels;
    if (pixels >= kernel[KernelSize::lanes]) return std::nullopt;
    return "v" + std::to_string(kernel[KernelSize::lanes]) + ", expected vectors of at most " +
           std::to_string(pixels) + " lanes, the pixels of the copy";
}

KernelWork map_windows_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"products", vectors_of(map_multiplications(p, kernel), kernel)},
            {"inputs", vectors_of(p.input_elements().value(), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_windows_kernel{
    .kind = KernelKind::map_windows,
    .name = "map_windows",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a tile of pixels of a copy with padding",
    .scope = KernelScope::map,
    .layers = "a dense convolution of stride 1 or 2 and at most 25 taps, on 5 x 5 pixels or more",
    .accepts = map_windows_accepts,
    .pays = map_windows_pays,
    .work = map_windows_work,
    .size_refusal = map_windows_size_refusal,
};

}  // namespace laminate
