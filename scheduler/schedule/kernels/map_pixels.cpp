// map_pixels: 1x1 convolutions and dense layers as a matrix product, straight from the caller's
// arrays.
//
//   Y[z, q] = sum over i of W[z, i] X[i, q],  q = y * columns + x
//
// Lanes are pixels of the map as one axis, so maps of 14 or 7 columns leave no lanes empty. With c1
// many blocks of output channels read the same pixels from a panel in the scratch block. Threads
// divide pixels, then channels.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/map_pixels.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_pixels_accepts(const LayerProblem& p) {
    constexpr int64_t half_a_vector = 8;
    return is_dense_convolution(p) && is_pointwise(p) && p[Dim::y] * p[Dim::x] >= half_a_vector;
}

/// Small maps stay in a core's caches; layers of enough channels gain more from whole tiles of the
/// map than line buffers save as long as the map is not a picture.
bool map_pixels_pays(const LayerProblem& p) {
    constexpr int64_t enough_channels = 16, widest_by_channels = 160, widest = 36;
    const int64_t side =
        std::min(p[Dim::z], p[Dim::i]) >= enough_channels ? widest_by_channels : widest;
    return p[Dim::y] * p[Dim::x] <= side * side;
}

std::optional<std::string> map_pixels_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    if (pixels < kernel[KernelSize::lanes]) {
        return "v" + std::to_string(kernel[KernelSize::lanes]) + ", expected vectors of at most " +
               std::to_string(pixels) + " lanes, the pixels of the map";
    }
    if (kernel[KernelSize::panel] == 1 &&
        !map_pixels_layout(p, unit_of(kernel), std::nullopt).has_panel)
        return "c1, expected several tiles of pixels that four blocks of channels or more read";
    return std::nullopt;
}

KernelWork map_pixels_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"products", vectors_of(map_multiplications(p, kernel), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_pixels_kernel{
    .kind = KernelKind::map_pixels,
    .name = "map_pixels",
    .sizes = {KernelSize::panel, KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a tile of pixels of the whole map",
    .scope = KernelScope::map,
    .layers = "a dense 1x1 convolution of stride 1 without padding, on at least 8 pixels",
    .accepts = map_pixels_accepts,
    .pays = map_pixels_pays,
    .work = map_pixels_work,
    .size_refusal = map_pixels_size_refusal,
};

}  // namespace laminate
