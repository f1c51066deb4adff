// winograd_rows and winograd_channels: minimal filtering F(2x4, 3x3) over line buffers (Winograd
// 1980; Lavin and Gray, CVPR 2016).
//
//   Y = A' ((G g G') * (B' d B)) A  of patches d of 4 x 6 inputs, 24 products for 2 x 4 outputs
//
// Rows go by pairs from the first row of a box; a row without a partner goes by F(1x4, 3x3), 18
// products for 4 outputs. At the end of the picture it goes as half a pair, whose other row is not
// stored.
//   winograd_rows      lanes are tiles of a row; z channels x x vectors of v tiles in registers
//   winograd_channels  lanes are output channels; z vectors of v channels x x tiles in registers,
//                      tiles from p pairs of rows together
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

constexpr int64_t tile_columns = 4;
constexpr int64_t products_of_pair = 24, products_of_single = 18;

bool accepts(const LayerProblem& p) { return is_dense_convolution(p) && has_winograd_window(p); }

/// Instructions for one tile of 2x4 outputs: 24 products per pair of channels, and transforms of
/// about 240 per input channel and 160 per output channel, against 72 products.
bool pays(const LayerProblem& p) {
    const auto in = static_cast<double>(p[Dim::i]);
    const auto out = static_cast<double>(p[Dim::z]);
    return 24 * in * out + 240 * in + 160 * out < 0.75 * 72 * in * out;
}

struct RowParts {
    int64_t pairs = 0;
    int64_t singles = 0;
};
RowParts parts_of(const LayerProblem& p, Range rows) {
    const bool is_odd = rows.size() % 2 == 1;
    const bool ends_picture = rows.end == p[Dim::y];
    return {rows.size() / 2 + (is_odd && ends_picture ? 1 : 0), is_odd && !ends_picture ? 1 : 0};
}

int64_t by_tiles(const LayerProblem& p, const Kernel& kernel, const KernelBox& box) {
    const RowParts rows = parts_of(p, box[Dim::y]);
    const int64_t tiles = round_up(ceil_div(box[Dim::x].size(), tile_columns),
                                   kernel[KernelSize::columns] * kernel[KernelSize::lanes]);
    return round_up(box[Dim::z].size(), kernel[KernelSize::channels]) * box[Dim::i].size() * tiles *
           (rows.pairs * products_of_pair + rows.singles * products_of_single);
}

int64_t by_channels(const LayerProblem& p, const Kernel& kernel, const KernelBox& box) {
    const RowParts rows = parts_of(p, box[Dim::y]);
    const int64_t row_tiles = ceil_div(box[Dim::x].size(), tile_columns);
    const auto tiles = [&](int64_t count) {
        return round_up(count * row_tiles, kernel[KernelSize::columns]);
    };
    const int64_t together = kernel[KernelSize::pairs];
    const int64_t of_pairs = rows.pairs / together * tiles(together) + tiles(rows.pairs % together);
    return round_up(box[Dim::z].size(), kernel[KernelSize::channels] * kernel[KernelSize::lanes]) *
           box[Dim::i].size() *
           (of_pairs * products_of_pair + rows.singles * tiles(1) * products_of_single);
}

}  // namespace

const KernelRow winograd_rows_kernel{
    .kind = KernelKind::winograd_rows,
    .name = "winograd_rows",
    .sizes = {KernelSize::channels, KernelSize::columns, KernelSize::lanes},
    .formula = "F(2x4, 3x3), z channels x x vectors of tiles in registers",
    .scope = KernelScope::nest,
    .layers = "a dense 3x3 convolution of stride 1 and dilation 1",
    .accepts = accepts,
    .pays = pays,
    .whole = {true, false, true, true},
    .multiplications = by_tiles,
    .size_refusal = nullptr,
};

const KernelRow winograd_channels_kernel{
    .kind = KernelKind::winograd_channels,
    .name = "winograd_channels",
    .sizes = {KernelSize::channels, KernelSize::columns, KernelSize::pairs, KernelSize::lanes},
    .formula = "F(2x4, 3x3), z vectors of channels x x tiles in registers",
    .scope = KernelScope::nest,
    .layers = "a dense 3x3 convolution of stride 1 and dilation 1",
    .accepts = accepts,
    .pays = pays,
    .whole = {true, false, true, true},
    .multiplications = by_channels,
    .size_refusal = nullptr,
};

}  // namespace laminate
