// winograd_map: F(2x4, 3x3), with f1 F(4x4, 3x3), on maps of up to 64 columns, all rows of a layer
// together, straight from the caller's arrays (winograd_rows.cpp has the filter).
//
//   V[f, i, t] = B' d B of the patches of a chunk, p rows of tiles
//   M[f, t, z] = sum over i of U[f, i, z] V[f, i, t],  U = G g G' of one block of output channels
//
// Such layers have more weights than pixels, so plain weights come from memory and are transformed
// block by block in the second-level cache. Threads divide chunks of rows, then channels.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool winograd_map_accepts(const LayerProblem& p) {
    constexpr int64_t most_columns = 64, narrowest = 5, enough_channels = 32;
    return winograd_rows_kernel.accepts(p) && p[Dim::x] >= narrowest && p[Dim::x] <= most_columns &&
           p[Dim::y] <= most_columns && p[Dim::z] >= enough_channels &&
           p[Dim::i] >= enough_channels;
}

bool winograd_map_pays(const LayerProblem& p) { return winograd_rows_kernel.pays(p); }

std::optional<std::string> winograd_map_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t bands = ceil_div(p[Dim::y], kernel[KernelSize::fours] == 1 ? 4 : 2);
    if (kernel[KernelSize::pairs] <= bands) return std::nullopt;
    return "p" + std::to_string(kernel[KernelSize::pairs]) + ", expected at most " +
           std::to_string(bands) + ", the rows of tiles of the map";
}

/// Every chunk of rows transforms the weights anew, and every part of the output channels the
/// patches. Transforms are as long as there are frequencies; the amounts are those of tiles of two
/// rows, which have 24 for 8 outputs. Weights that stay near take less time.
KernelWork winograd_map_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    const WinogradMapLayout at = winograd_map_layout(p, kernel);
    const double frequencies = static_cast<double>(at.frequencies) / 24;
    const double of_map = frequencies * 2 / static_cast<double>(at.rows_of_tile);
    return {{"products", vectors_of(at.multiplications(), kernel)},
            {"inputs", of_map * vectors_of(p.input_elements().value(), kernel)},
            {"outputs", of_map * vectors_of(p.output_elements().value(), kernel)},
            {"weights", (at.stays_near ? 0.75 : 1.0) * frequencies *
                            vectors_of(at.chunks * p.weight_elements().value(), kernel)}};
}

}  // namespace

const KernelRow winograd_map_kernel{
    .kind = KernelKind::winograd_map,
    .name = "winograd_map",
    .sizes = {KernelSize::pairs, KernelSize::fours, KernelSize::sums, KernelSize::lanes},
    .formula = "F(2x4, 3x3) or F(4x4, 3x3), weights transformed block by block",
    .scope = KernelScope::map,
    .filters = true,
    .layers =
        "a dense 3x3 convolution of stride 1 and dilation 1, of 5 to 64 columns, at most 64 rows "
        "and 32 channels or more",
    .accepts = winograd_map_accepts,
    .pays = winograd_map_pays,
    .work = winograd_map_work,
    .size_refusal = winograd_map_size_refusal,
};

}  // namespace laminate
