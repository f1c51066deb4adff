// map_depthwise: one filter per channel, straight from the caller's array.
//
//   Y[z, y, x] = sum over n, m of W[z, n, m] X[z, y S + n E - P, x S + m E - P]
//
// A vector is a row of the map or part of one. Padding rows are left out; padding columns are lanes
// that are not used. Threads divide rows of large maps, channels of small ones.
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool map_depthwise_accepts(const LayerProblem& p) {
    constexpr int64_t most_taps = 49, most_stride = 2;
    return p.has_weights() && !is_transposed(p) && p.groups > 1 && p.groups == p[Dim::z] &&
           p[Dim::i] == 1 && p.x().stride <= most_stride && p.y().stride <= most_stride &&
           p.y().kernel * p.x().kernel <= most_taps && p[Dim::x] > 1;
}

/// The input should fit the caches too. After a larger map, the layer is better fused.
bool map_depthwise_pays(const LayerProblem& p) {
    constexpr int64_t enough_channels = 16, widest_by_channels = 160, widest = 36;
    const int64_t side = p[Dim::z] >= enough_channels ? widest_by_channels : widest;
    return p[Dim::y] * p[Dim::x] <= side * side && p.x().in <= side && p.y().in <= side;
}

/// Vectors of rows, however short these are. Products whose weights stay in registers hide behind the loads.
/// Columns of stride 2 are taken from twice as many vectors.
KernelWork map_depthwise_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const auto inputs =
        static_cast<double>(p[Dim::z] * p.y().in * ceil_div(p.x().in, kernel[KernelSize::lanes]));
    const double outputs = output_vectors(asked.box, kernel);
    constexpr double hidden_taps = MapDepthwiseLayout::taps_in_registers;
    const double products = vectors_of(map_depthwise_layout(p, unit_of(kernel)).multiplications(), kernel);
    return {{"inputs", inputs},
            {"outputs", outputs},
            {"products", static_cast<double>(p.x().stride) *
                             std::max(0.0, products - hidden_taps * outputs)}};
}

}  // namespace

const KernelRow map_depthwise_kernel{
    .kind = KernelKind::map_depthwise,
    .name = "map_depthwise",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a vector of columns of one channel",
    .scope = KernelScope::map,
    .layers = "a depthwise convolution of stride 1 or 2 and at most 49 taps, on 2 columns or more",
    .accepts = map_depthwise_accepts,
    .pays = map_depthwise_pays,
    .work = map_depthwise_work,
};

}  // namespace laminate
