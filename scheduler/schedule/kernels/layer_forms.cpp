#include "scheduler/schedule/kernels/layer_forms.h"

#include <algorithm>

#include "base/units.h"

namespace laminate {

bool is_transposed(const LayerProblem& p) { return p.y().transposed || p.x().transposed; }

bool is_dense_convolution(const LayerProblem& p) {
    return p.has_weights() && p.groups == 1 && !is_transposed(p);
}

bool is_pool(const LayerProblem& p) {
    return p.operation == Operation::max_pool || p.operation == Operation::average_pool;
}

bool pools_columns_first(const LayerProblem& p) {
    // Columns are on the stack, a stride more of them for each further lane.
    constexpr int64_t most_columns = 1024;
    const AxisWindow& w = p.x();
    return is_pool(p) && p.y().kernel > 1 && w.kernel > 1 && p.y().kernel * w.kernel > most_taps_by_rows &&
           (w.kernel - 1) * w.dilation + w.stride <= most_columns;
}

bool is_pointwise(const LayerProblem& p) {
    return std::all_of(p.window.begin(), p.window.end(), [](const AxisWindow& w) {
        return w.kernel == 1 && w.stride == 1 && w.pad_begin == 0 && w.in == w.out;
    });
}

bool has_filtered_window(const LayerProblem& p) {
    const bool is_plain = std::all_of(p.window.begin(), p.window.end(), [](const AxisWindow& w) {
        return !w.transposed && w.stride == 1 && w.dilation == 1;
    });
    const auto [fewest, most] = std::minmax(p.y().kernel, p.x().kernel);
    return is_plain && (fewest == 1 ? most == 5 || most == 7 : fewest == most && (most == 3 || most == 5));
}

bool has_winograd_window(const LayerProblem& p) {
    return has_filtered_window(p) && p.y().kernel == 3;
}

bool is_wide_map(const LayerProblem& p) {
    constexpr int64_t narrow = 64;
    return p[Dim::x] > narrow || p[Dim::y] > narrow;
}

int64_t row_taps(const AxisWindow& w, int64_t begin, int64_t end) {
    int64_t taps = 0;
    for (int64_t out = begin; out < end; ++out) {
        for (int64_t n = 0; n < w.kernel; ++n) taps += w.input(out, n).has_value() ? 1 : 0;
    }
    return taps;
}

double output_vectors(const KernelBox& box, const Kernel& kernel) {
    return static_cast<double>(box[Dim::z].size() * box[Dim::y].size() *
                               ceil_div(box[Dim::x].size(), kernel[KernelSize::lanes]));
}

double partial_vectors(const LayerProblem& p, const KernelBox& box, const Kernel& kernel) {
    const auto part = static_cast<double>(box[Dim::i].size()) / static_cast<double>(p[Dim::i]);
    return (1 - part) * output_vectors(box, kernel);
}

double ragged_rows(const KernelBox& box, int64_t lanes) {
    if (box[Dim::x].size() % lanes == 0) return 0;
    return static_cast<double>(box[Dim::z].size() * box[Dim::y].size());
}

double vectors_of(int64_t elements, const Kernel& kernel) {
    return static_cast<double>(elements) / static_cast<double>(kernel[KernelSize::lanes]);
}

bool reads_far_apart(const AxisWindow& columns) {
    constexpr int64_t widest_shuffle = 2;
    return !columns.transposed && columns.stride > widest_shuffle;
}

double cost_of_load(const AxisWindow& columns, int64_t lanes) {
    if (reads_far_apart(columns)) return static_cast<double>(lanes);
    const bool is_strided = columns.stride > 1 && !columns.transposed;
    return (columns.kernel > 1 ? 2.0 : 1.0) * (is_strided ? 2.0 : 1.0);
}

double cycles_of_tap(double vectors, double scalars, double products, double sums) {
    constexpr double per_cycle = 2, latency = 4;
    return std::max(
        {products / per_cycle, (vectors + scalars) / per_cycle, latency * products / sums});
}

double cycles_of_rows(const AxisWindow& window, int64_t rows, double vectors, double loaded,
                      double channels) {
    double cycles = 0;
    for (int64_t input = 0; input < window.kernel + (rows - 1) * window.stride; ++input) {
        const int64_t last = std::min(rows - 1, input / window.stride);
        const int64_t first =
            input < window.kernel ? 0 : (input - window.kernel) / window.stride + 1;
        if (last < first) continue;
        const double scalars = channels * static_cast<double>(last - first + 1);
        cycles += cycles_of_tap(loaded, scalars, vectors * scalars, vectors * scalars);
    }
    return cycles;
}

bool has_large_weights(const LayerProblem& problem) {
    constexpr Bytes kept{24 << 10};
    return to_bytes(problem.weight_elements()) > kept;
}

}  // namespace laminate
