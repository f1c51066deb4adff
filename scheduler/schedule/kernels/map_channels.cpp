// map_channels: 1x1 convolutions and dense layers on a few pixels, straight from the caller's
// arrays.
//
//   Y[z, q] = sum over i of W[z, i] X[i, q],  q = y * columns + x
//
// Lanes are output channels. On a map of one pixel, the layer is a matrix times a vector.
// Threads divide channels.
#include <algorithm>
#include <limits>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

constexpr int64_t most_vectors_of_pixels = 4;

bool map_channels_accepts(const LayerProblem& p) {
    constexpr int64_t widest_vector = 32;
    return is_dense_convolution(p) && is_pointwise(p) &&
           p[Dim::y] * p[Dim::x] <= most_vectors_of_pixels * widest_vector;
}

/// Of the maps on which map_pixels pays, those of one pixel or of half a vector at least.
bool map_channels_pays(const LayerProblem& p) {
    constexpr int64_t half_a_vector = 8;
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    return pixels == 1 || pixels >= half_a_vector;
}

std::optional<std::string> map_channels_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    const int64_t most = most_vectors_of_pixels * kernel[KernelSize::lanes];
    if (pixels <= most) return std::nullopt;
    return "a map of " + std::to_string(pixels) + " pixels, expected at most " +
           std::to_string(most);
}

KernelWork map_channels_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    return {{"products", vectors_of(map_multiplications(p, kernel), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)},
            {"weights", vectors_of(p.weight_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_channels_kernel{
    .kind = KernelKind::map_channels,
    .name = "map_channels",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over vectors of output channels of a few pixels",
    .scope = KernelScope::map,
    .layers = "a dense 1x1 convolution of stride 1 without padding, on at most 128 pixels",
    .accepts = map_channels_accepts,
    .pays = map_channels_pays,
    .work = map_channels_work,
    .size_refusal = map_channels_size_refusal,
};

}  // namespace laminate
