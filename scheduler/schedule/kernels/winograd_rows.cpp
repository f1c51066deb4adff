// winograd_rows and winograd_channels: minimal filtering F(2x4, 3x3), with f1 F(4x4, 3x3), with f2
// F(6x4, 3x3), over line buffers (Winograd 1980; Lavin and Gray, CVPR 2016).
//
//   Y = A' ((G g G') * (B' d B)) A  of patches d of 4 x 6 inputs, 24 products for 2 x 4 outputs,
//                                   of 6 x 6 inputs, 36 products for 4 x 4 outputs, or
//                                   of 8 x 6 inputs, 48 products for 6 x 4 outputs
//
// Rows go by bands of two, four or six from the first row of a box. A row without a partner goes by
// F(1x4, 3x3), 18 products for 4 outputs; at the end of the picture, or with bands of four or six, the last
// band is partial: rows that are not asked for are not stored. Tiles of a row begin with the first
// column of a box, and the last one takes zeros for columns that its strip has not.
//   winograd_rows      lanes are tiles of a row; z channels x x vectors of v tiles in registers; with w,
//                      code transforms the weights of as many blocks of z channels together
//   winograd_channels  lanes are output channels; z vectors of v channels x x tiles in registers,
//                      tiles from p bands together
#include "scheduler/schedule/kernels/layout/winograd_rows.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool winograd_accepts(const LayerProblem& p) {
    return is_dense_convolution(p) && has_winograd_window(p);
}

/// Instructions for one tile of 2x4 outputs: 24 products per pair of channels, and transforms of
/// about 240 per input channel and 160 per output channel, against 72 products.
bool winograd_pays(const LayerProblem& p) {
    const auto in = static_cast<double>(p[Dim::i]);
    const auto out = static_cast<double>(p.group_outputs());
    return 24 * in * out + 240 * in + 160 * out < 0.75 * 72 * in * out;
}

std::optional<std::string> winograd_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t together = kernel[KernelSize::weights];
    if (together == 0) return std::nullopt;
    const WinogradTile tile = winograd_tile_of(kernel);
    const std::string found = "w" + std::to_string(together) + ", expected ";
    if (!transforms_weights(p, tile, kernel[KernelSize::lanes])) {
        return found + "w0: code transforms weights in whole vectors of v" +
               std::to_string(kernel[KernelSize::lanes]) + ", for f1 and f2";
    }
    const int64_t blocks = ceil_div(p[Dim::z], tile.channels);
    if (together <= blocks) return std::nullopt;
    return found + "at most " + std::to_string(blocks) + ", the blocks of output channels";
}

int64_t winograd_multiplications(const LayerProblem& p, const Kernel& kernel,
                                 const KernelBox& box) {
    return winograd_multiplications(p, winograd_tile_of(kernel), box[Dim::y], box[Dim::x].size());
}

/// Transformed weights beyond half a second-level cache come from further away for every box. Tiles of
/// more rows transform as many values for an output as those of two.
KernelWork winograd_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const KernelBox& box = asked.box;
    constexpr Bytes kept{512 << 10};
    const int64_t rows = winograd_tile_of(kernel).rows;
    const int64_t weights = WinogradTile::frequencies(rows) * p[Dim::z] * p[Dim::i];
    const int64_t pixels = box[Dim::y].size() * box[Dim::x].size();
    return {{"products", vectors_of(winograd_multiplications(p, kernel, box), kernel)},
            {"inputs", vectors_of(p[Dim::i] * pixels, kernel)},
            {"outputs", vectors_of(p[Dim::z] * pixels, kernel)},
            {"weights", to_bytes(Elements(weights)) > kept ? vectors_of(weights, kernel) : 0.0},
            {"boxes", 1}};
}

/// Both kernels are the same but for what their lanes are.
KernelRow winograd_row(KernelKind kind, const char* name, std::vector<KernelSize> sizes,
                       const char* formula) {
    return {
        .kind = kind,
        .name = name,
        .sizes = std::move(sizes),
        .formula = formula,
        .scope = KernelScope::nest,
        .filters = true,
        .layers = "a dense 3x3 convolution of stride 1 and dilation 1",
        .accepts = winograd_accepts,
        .pays = winograd_pays,
        .whole = {true, false, kind == KernelKind::winograd_channels, true},
        .whole_strips = true,
        .multiplications = winograd_multiplications,
        .work = winograd_work,
        .channels_together = [](const Kernel& kernel) { return winograd_tile_of(kernel).channels; },
        .size_refusal = winograd_size_refusal,
    };
}

}  // namespace

const KernelRow winograd_rows_kernel =
    winograd_row(KernelKind::winograd_rows, "winograd_rows",
                 {KernelSize::channels, KernelSize::columns, KernelSize::form, KernelSize::weights,
                  KernelSize::lanes},
                 "F(2x4, 3x3), F(4x4, 3x3) or F(6x4, 3x3), z channels x x vectors of tiles in registers");

const KernelRow winograd_channels_kernel =
    winograd_row(KernelKind::winograd_channels, "winograd_channels",
                 {KernelSize::channels, KernelSize::columns, KernelSize::pairs, KernelSize::form,
                  KernelSize::lanes},
                 "F(2x4, 3x3), F(4x4, 3x3) or F(6x4, 3x3), z vectors of channels x x tiles in registers");

}  // namespace laminate
