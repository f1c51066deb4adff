// map_pixels: 1x1 convolutions and dense layers as a matrix product, straight from the caller's
// arrays.
//
//   Y[z, q] = sum over i of W[z, i] X[i, q],  q = y * columns + x
//
// Lanes are pixels of the map as one axis, so maps of 14 or 7 columns leave no lanes empty, or
// output channels on maps of a few pixels. If many blocks of output channels read the same pixels,
// they find them in a panel in the scratch block. Threads divide pixels and channels.
#include <algorithm>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool accepts(const LayerProblem& p) {
    constexpr int64_t half_a_vector = 8;
    const int64_t pixels = p[Dim::y] * p[Dim::x];
    return is_dense_convolution(p) && is_pointwise(p) && (pixels == 1 || pixels >= half_a_vector);
}

/// Small maps stay in a core's caches; layers of enough channels gain more from whole tiles of the
/// map than line buffers save as long as the map is not a picture.
bool pays(const LayerProblem& p) {
    constexpr int64_t enough_channels = 16, widest_by_channels = 128, widest = 36;
    const int64_t side =
        std::min(p[Dim::z], p[Dim::i]) >= enough_channels ? widest_by_channels : widest;
    return p[Dim::y] * p[Dim::x] <= side * side;
}

}  // namespace

const KernelRow map_pixels_kernel{
    .kind = KernelKind::map_pixels,
    .name = "map_pixels",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "sums over a tile of pixels of the whole map, or over vectors of channels",
    .scope = KernelScope::map,
    .layers = "a dense 1x1 convolution of stride 1 without padding, on one pixel or at least 8",
    .accepts = accepts,
    .pays = pays,
    .whole = {},
    .multiplications = nullptr,
    .size_refusal = nullptr,
};

}  // namespace laminate
