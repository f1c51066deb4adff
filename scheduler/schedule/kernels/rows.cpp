// rows: register tiles of output channels x rows x vectors of columns.
//
//   Y[z, y, x] = sum over i, n, m of W[z, i, n, m] X[i, y S + n E - P, x S + m E - P]
//
// Each of z channels x y rows x x vectors of v columns has its sum in a register from the first tap
// to the last. Rows of the kernel that lie in padding are left out; columns of padding are
// multiplied with zeros. The last vectors of a row compute columns behind its end; with h1 the last
// one has half its lanes. A last block of channels is filled up with zero weights.
#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

int64_t rows_columns(const Kernel& kernel, int64_t columns) {
    const int64_t tile = kernel[KernelSize::columns] * kernel[KernelSize::lanes];
    const int64_t unused = kernel[KernelSize::half] * kernel[KernelSize::lanes] / 2;
    return ceil_div(columns, tile) * (tile - unused);
}

int64_t rows_multiplications(const LayerProblem& p, const Kernel& kernel, const KernelBox& box) {
    return round_up(box[Dim::z].size(), kernel[KernelSize::channels]) * box[Dim::i].size() *
           row_taps(p.y(), box[Dim::y].begin, box[Dim::y].end) *
           rows_columns(kernel, box[Dim::x].size()) * p.x().kernel;
}

KernelWork rows_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const KernelBox& box = asked.box;
    const int64_t height = box[Dim::y].size(), step = kernel[KernelSize::rows];
    const double load_cost = cost_of_load(p.x(), kernel[KernelSize::lanes]);
    const auto vectors = static_cast<double>(kernel[KernelSize::columns]);
    const auto channels = static_cast<double>(kernel[KernelSize::channels]);
    const double products = vectors * channels * static_cast<double>(p.y().kernel);
    double cycles = 0;
    for (const auto& [rows, tiles] :
         {std::pair{step, height / step}, std::pair{height % step, int64_t{1}}}) {
        if (rows == 0 || tiles == 0) continue;
        cycles += static_cast<double>(tiles) / products *
                  cycles_of_rows(p.y(), rows, vectors, vectors * load_cost, channels);
    }
    return {{"products", vectors_of(rows_multiplications(p, kernel, box), kernel) * cycles /
                             static_cast<double>(height)},
            {"outputs", output_vectors(box, kernel)},
            {"partials", partial_vectors(p, box, kernel)},
            {"ragged", ragged_rows(box, kernel[KernelSize::lanes])},
            {"boxes", 1}};
}

/// A block of channels reads the inputs of one group of channels. Half a vector ends a row that is
/// one tile wide.
std::optional<std::string> rows_size_refusal(const LayerProblem& p, const Kernel& kernel) {
    const int64_t outputs = p[Dim::z] / p.groups;
    if (p.groups > 1 && outputs % kernel[KernelSize::channels] != 0) {
        return "z" + std::to_string(kernel[KernelSize::channels]) + ", expected a divisor of the " +
               std::to_string(outputs) + " output channels of a group of channels";
    }
    const int64_t tile = kernel[KernelSize::columns] * kernel[KernelSize::lanes];
    constexpr int64_t narrowest_half = 8;
    if (kernel[KernelSize::half] == 1 && (kernel[KernelSize::lanes] < 2 * narrowest_half ||
                                          p[Dim::x] > tile - kernel[KernelSize::lanes] / 2)) {
        return "h1, expected vectors of 16 lanes or more and rows of at most " +
               std::to_string(tile - kernel[KernelSize::lanes] / 2) + " columns, found " +
               std::to_string(p[Dim::x]);
    }
    return std::nullopt;
}

}  // namespace

const KernelRow rows_kernel{
    .kind = KernelKind::rows,
    .name = "rows",
    .sizes = {KernelSize::channels, KernelSize::rows, KernelSize::columns, KernelSize::half,
              KernelSize::lanes},
    .formula = "sums of z channels x y rows x x vectors of columns in registers",
    .scope = KernelScope::nest,
    .layers = "a convolution that is not transposed, or a dense layer",
    .accepts = [](const LayerProblem& p) { return p.has_weights() && !is_transposed(p); },
    .multiplications = rows_multiplications,
    .work = rows_work,
    .channels_together = [](const Kernel& kernel) { return kernel[KernelSize::channels]; },
    .columns_stored = rows_columns,
    .size_refusal = rows_size_refusal,
};

}  // namespace laminate
