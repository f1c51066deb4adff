#include "scheduler/schedule/kernels/columns.h"

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

/// Instructions per row and vector of input positions: directly, and by tiles of columns.
struct FilterCost {
    double direct = 0;
    double tiled = 0;
};

FilterCost filter_cost(const LayerProblem& p) {
    const AxisWindow &y = p.y(), &x = p.x();
    const bool is_plain = x.kernel == 1;
    const int64_t taps = x.transposed ? ceil_div(x.kernel, x.stride) : x.kernel;
    const bool is_narrow = taps <= 3;
    const double products =
        is_narrow ? 6 : 8 * static_cast<double>(ceil_div(std::max<int64_t>(taps - 5, 0), 4) + 1);
    const auto phases = static_cast<double>(x.transposed ? x.stride : 1);
    const auto in = static_cast<double>(p[Dim::i]), out = static_cast<double>(p[Dim::z]) * phases;
    FilterCost cost;
    cost.direct = static_cast<double>(p.weight_elements().value());
    // Transforms of patches and products, and loads and stores of products.
    cost.tiled = is_plain ? cost.direct
                          : (products * static_cast<double>(y.kernel) * in * out +
                             (is_narrow ? 20 : 36) * in + (is_narrow ? 22 : 34) * out) /
                                static_cast<double>(tile_columns);
    return cost;
}

bool column_accepts(const LayerProblem& p) {
    constexpr int64_t widest_kernel = 13, most_transposed_outputs = 4;
    if (!p.has_weights() || p.groups != 1 || p.y().transposed != p.x().transposed) return false;
    for (const AxisWindow& w : p.window) {
        if (w.dilation != 1 || w.kernel > widest_kernel) return false;
        if (w.transposed ? w.kernel < 2 || w.stride != 2 || p[Dim::z] > most_transposed_outputs
                         : w.stride != 1 || w.pad_begin >= w.kernel)
            return false;
    }
    return true;
}

/// A layer whose columns some chain filters: its sums then round by the place of a column in its
/// tile of four.
bool column_pays(const LayerProblem& p) {
    return !kernel_pays(p, KernelKind::winograd_rows) && p.x().kernel > 1;
}

}  // namespace

ColumnWindow::ColumnWindow(const AxisWindow& w) : phases(w.transposed ? w.stride : 1) {
    int64_t high = 0;
    if (w.transposed) {
        low = -floor_div(w.kernel - 1 - w.pad_begin, w.stride);
        high = floor_div(phases - 1 + w.pad_begin, w.stride);
    } else {
        low = -w.pad_begin;
        high = w.kernel - 1 - w.pad_begin;
    }
    const int64_t span = high - low + 1;
    taps = span == 1 && low == 0 ? 1 : span <= 3 ? 3 : 5;
    if (span > taps) pieces = ceil_div(span - taps, tile_columns) + 1;
}

bool is_scattered(const LayerProblem& p) {
    constexpr int64_t few_outputs = 4;
    return p.x().transposed ||
           (p[Dim::z] < few_outputs && p.y().kernel > p[Dim::z] && p.y().stride == 1);
}

Bytes column_tiles_memory(const std::vector<LayerProblem>& chain, const std::vector<int64_t>& rows,
                          int64_t columns) {
    constexpr int64_t ends_of_vectors = 16;  // tiles
    int64_t tiles = ceil_div(columns, tile_columns * ColumnWindow(chain.back().x()).phases);
    int64_t lines = 0, longest_row = 0;
    for (size_t k = chain.size(); k-- > 0;) {
        const LayerProblem& p = chain[k];
        const ColumnWindow window(p.x());
        const int64_t outputs = tiles;
        tiles = std::min(ceil_div(p.x().in, tile_columns),
                         tiles + window.last_tile() - window.first_tile());
        const int64_t pitch = tiles + ends_of_vectors;
        const int64_t step = p.y().transposed ? p.y().stride : 1;
        const int64_t kept = ceil_div(rows[k] - 1 + p.y().kernel, step);
        if (is_scattered(p) && !window.is_plain()) {
            constexpr int64_t block = 40;  // tiles whose patches exist at one time, roughly
            lines += std::min(p.y().out, (kept - 1) * step + p.y().kernel) * p[Dim::z] *
                         window.phases * window.patch() * (outputs + ends_of_vectors) +
                     p[Dim::i] * window.patch() * block;
        } else {
            lines += kept * p[Dim::i] * window.patch() * pitch;
        }
        if (!window.is_plain())
            longest_row = std::max(longest_row, tile_columns * p[Dim::i] * pitch);
    }
    return to_bytes(Elements(lines + longest_row));
}

bool is_column_chain(const std::vector<LayerProblem>& chain) {
    constexpr int64_t least_columns = 64;
    if (chain.front().x().in < least_columns) return false;
    for (size_t k = 0; k < chain.size(); ++k) {
        const LayerProblem& p = chain[k];
        if (!column_accepts(p) || p.inputs.size() != 1 ||
            (p.x().transposed && k + 1 < chain.size()))
            return false;
        if (k > 0 && p.inputs.front().tensor != chain[k - 1].output) return false;
    }
    return true;
}

bool column_chain_pays(const std::vector<LayerProblem>& chain) {
    if (!is_column_chain(chain)) return false;
    FilterCost all;
    for (const LayerProblem& p : chain) {
        if (kernel_pays(p, KernelKind::winograd_rows)) return false;
        const FilterCost cost = filter_cost(p);
        const auto rows = static_cast<double>(p.y().in);
        all.direct += rows * cost.direct;
        all.tiled += rows * cost.tiled;
    }
    constexpr double worth_it = 0.8;
    return all.tiled < worth_it * all.direct;
}

const KernelRow columns_kernel{
    .kind = KernelKind::columns,
    .name = "columns",
    .sizes = {KernelSize::sums, KernelSize::lanes},
    .formula = "F(4, 3) or F(4, 5) along columns, plain sums along rows",
    .scope = KernelScope::chain,
    .filters = true,
    .layers =
        "a dense convolution of stride 1, or a transposed one of stride 2 and at most 4 output "
        "channels",
    .accepts = column_accepts,
    .pays = column_pays,
};

}  // namespace laminate
