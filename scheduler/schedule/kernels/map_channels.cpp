// map_channels: convolutions and dense layers on a few pixels, straight from the caller's arrays.
//
//   Y[z, q] = sum over n, i, m of W[z, n, i, m] X[i, tap(q, n, m)],  q = y * columns + x
//
// Lanes are output channels. On a map of one pixel, a 1x1 layer is a matrix times a vector. Threads
// divide the pixels of large maps; of others channels, then pixels.
#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/layout/map_channels.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_channels_accepts(const LayerProblem& p) {
    constexpr int64_t most_pixels = 2048, fewest_pixels_of_panel = 32, most_taps = 49;
    const int64_t pixels = p[Dim::y] * p[Dim::x], taps = p.y().kernel * p.x().kernel;
    return is_dense_convolution(p) && pixels <= most_pixels &&
           (pixels * taps <= most_taps_written_out ||
            (pixels >= fewest_pixels_of_panel && taps <= most_taps));
}

/// 1x1 layers on one pixel or half a vector at least. Wider windows on maps so small that minimal
/// filtering would transform more weights than it saves products, and strided 1x1 layers on maps
/// that stay in the caches though they are read in pieces. Both axes of channels are to fill vectors
/// and to use what was loaded.
bool map_channels_pays(const LayerProblem& p) {
    constexpr int64_t half_a_vector = 8, most_pixels = 100, most_strided_pixels = 256,
                      most_pointwise_pixels = 784, most_taps = 25, enough_outputs = 32,
                      enough_inputs = 16;
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    if (is_pointwise(p))
        return pixels == 1 || (pixels >= half_a_vector && pixels <= most_pointwise_pixels);
    const int64_t taps = p.y().kernel * p.x().kernel;
    return pixels >= half_a_vector && pixels <= (taps == 1 ? most_strided_pixels : most_pixels) &&
           taps <= most_taps && p[Dim::z] >= enough_outputs && p[Dim::i] >= enough_inputs;
}

/// Taps of a window that are read in place share what they load, and weights come while their products are
/// summed.
KernelWork map_channels_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    const bool has_window = !is_pointwise(p) && !map_channels_layout(p, unit_of(kernel)).has_panel;
    return {{has_window ? "products_of_windows" : "products",
             vectors_of(map_multiplications(p, kernel), kernel)},
            {"outputs", vectors_of(p.output_elements().value(), kernel)},
            {has_window ? "weights_of_windows" : "weights",
             vectors_of(p.weight_elements().value(), kernel)}};
}

}  // namespace

const KernelRow map_channels_kernel{
    .kind = KernelKind::map_channels,
    .name = "map_channels",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over vectors of output channels of a few pixels",
    .scope = KernelScope::map,
    .layers = "a dense convolution on at most 2048 pixels, of at most 1600 taps of all together or, on 32 "
              "pixels or more, 49 of each",
    .accepts = map_channels_accepts,
    .pays = map_channels_pays,
    .work = map_channels_work,
};

}  // namespace laminate
