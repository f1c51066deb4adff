// winograd_map: F(2x4, 3x3), with f1 F(4x4, 3x3), with f2 F(6x6, 3x3), with f1 also F(4x4, 5x5) and F(4, 5)
// or F(4, 7) along one axis, on maps of up to 256 columns, all rows of a layer together, straight from the
// caller's arrays (winograd_rows.cpp has the filter).
//
//   V[f, i, t] = B' d B of the patches of a chunk, at most p rows of tiles
//   M[f, t, z] = sum over i of U[f, i, z] V[f, i, t],  U = G g G' of one block of output channels
//
// Such layers have more weights than pixels, so plain weights come from memory and are transformed
// block by block in the second-level cache. Where V would lie far away, all blocks add their products of a part
// of the input channels before patches of the next part are made. Threads divide chunks of rows, then channels.
// The groups of a grouped convolution are computed one after the other.
#include <algorithm>
#include <string>

#include "base/units.h"
#include "scheduler/schedule/kernels/kernel_layouts.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

bool winograd_map_accepts(const LayerProblem& p) {
    constexpr int64_t most_columns = 256, narrowest = 5, enough_channels = 32;
    // Blocks of output channels are whole vectors of a group.
    constexpr int64_t longest_vector = 16;
    return p.has_weights() && has_filtered_window(p) && p[Dim::x] >= narrowest &&
           p[Dim::x] <= most_columns && p[Dim::y] <= most_columns &&
           p.group_outputs() >= enough_channels && p[Dim::i] >= enough_channels &&
           (p.groups == 1 || p.group_outputs() % longest_vector == 0);
}

bool winograd_map_pays(const LayerProblem& p) {
    // Other windows than 3x3 need half as many products or fewer, and have enough channels.
    return !has_winograd_window(p) || winograd_rows_kernel.pays(p);
}

std::optional<std::string> winograd_map_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t rows = rows_of_tile(kernel);
    if (!has_tiles(p, rows))
        return "f" + std::to_string(form_of_tile(rows)) + ", expected f1 where windows are not 3x3";
    if (rows == 6 && !fills_wide_tiles(p, kernel[KernelSize::lanes])) {
        return "f2, expected f0 or f1 where tiles of six columns fill half a vector of v" +
               std::to_string(kernel[KernelSize::lanes]) + " or less";
    }
    const int64_t bands = winograd_map_layout(p, kernel).bands;
    if (kernel[KernelSize::pairs] <= bands) return std::nullopt;
    return "p" + std::to_string(kernel[KernelSize::pairs]) + ", expected at most " +
           std::to_string(bands) + ", the rows of tiles of the map";
}

/// Every chunk of rows transforms the weights anew, and every part of the output channels the
/// patches. Transforms are as long as there are frequencies; the amounts are those of tiles of two
/// rows, which have 24 for 8 outputs. Weights that stay near take less time. Tiles of 6 x 6 have terms of
/// their own: their transforms have more sums for a value, and more of what they store lies far away.
KernelWork winograd_map_work(const LayerProblem& p, const Kernel& kernel, const AskedBox&) {
    const WinogradMapLayout at = winograd_map_layout(p, kernel);
    const double of_map = at.transformed_part();
    const double products = vectors_of(at.multiplications(), kernel);
    const double inputs = of_map * vectors_of(p.input_elements().value(), kernel);
    const double outputs = of_map * vectors_of(p.output_elements().value(), kernel);
    const double weights = (at.stays_near ? 0.75 : 1.0) * at.transformed_weights(p) /
                           static_cast<double>(at.lanes);
    if (at.rows_of_tile == 6) {
        return {{"products6", products},
                {"inputs6", inputs},
                {"outputs6", outputs},
                {"weights6", weights}};
    }
    return {{"products", products},
            {"inputs", inputs},
            {"outputs", outputs},
            {"weights", weights}};
}

}  // namespace

const KernelRow winograd_map_kernel{
    .kind = KernelKind::winograd_map,
    .name = "winograd_map",
    .sizes = {KernelSize::pairs, KernelSize::form, KernelSize::sums, KernelSize::lanes},
    .formula = "F(2x4, 3x3), F(4x4, 3x3), F(6x6, 3x3), F(4x4, 5x5), F(4, 5) or F(4, 7) of "
               "whole maps",
    .scope = KernelScope::map,
    .filters = true,
    .layers =
        "a convolution of 3x3, 5x5, 1x5, 5x1, 1x7 or 7x1, stride 1 and dilation 1, of 5 to 256 columns, "
        "at most 256 rows and 32 channels or more in each group, outputs of several by sixteens",
    .accepts = winograd_map_accepts,
    .pays = winograd_map_pays,
    .work = winograd_map_work,
    .size_refusal = winograd_map_size_refusal,
};

}  // namespace laminate
