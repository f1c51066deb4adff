#include "generators/kernels/column_filters.h"

#include "base/units.h"

namespace laminate {

static_assert(tile_columns == MinimalFilter::usual_outputs);

namespace {

/// G g of a piece of a filter: [frequency]. `kernel_row`: the weights of one row of the kernel.
std::vector<double> transformed(const AxisWindow& x, const ColumnWindow& window,
                                const MinimalFilter& filter, const float* kernel_row, int64_t phase,
                                int64_t piece) {
    std::vector<double> g(static_cast<size_t>(window.taps), 0.0);
    const int64_t wide = piece + 1 < window.pieces ? tile_columns : window.taps;
    for (int64_t a = 0; a < wide; ++a) {
        const int64_t offset = window.low + piece * tile_columns + a;
        const int64_t m =
            x.transposed ? phase + x.pad_begin - x.stride * offset : offset + x.pad_begin;
        if (m >= 0 && m < x.kernel) g[static_cast<size_t>(a)] = kernel_row[m];
    }
    return filter.of_kernel(g);
}

}  // namespace

std::vector<float> gathered_weights(const std::vector<float>& canonical, const LayerProblem& p,
                                    const ColumnWindow& window, const MinimalFilter& filter,
                                    int64_t block) {
    const int64_t frequencies = window.is_plain() ? 1 : window.patch();
    std::vector<float> all(static_cast<size_t>(ceil_div(p[Dim::z], block) * block * frequencies *
                                               p.y().kernel * p[Dim::i] * window.pieces),
                           0.0F);
    const auto index = [&](int64_t z, int64_t q, int64_t n, int64_t i, int64_t piece) {
        const int64_t of_block = (z / block * frequencies + q) * p.y().kernel + n;
        return ((of_block * p[Dim::i] + i) * window.pieces + piece) * block + z % block;
    };
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < p[Dim::i]; ++i) {
            for (int64_t n = 0; n < p.y().kernel; ++n) {
                const float* row =
                    canonical.data() + ((z * p[Dim::i] + i) * p.y().kernel + n) * p.x().kernel;
                for (int64_t piece = 0; piece < window.pieces; ++piece) {
                    const std::vector<double> u = transformed(p.x(), window, filter, row, 0, piece);
                    for (int64_t q = 0; q < frequencies; ++q)
                        all[static_cast<size_t>(index(z, q, n, i, piece))] =
                            static_cast<float>(u[static_cast<size_t>(q)]);
                }
            }
        }
    }
    return all;
}

std::vector<float> scattered_weights(const std::vector<float>& canonical, const LayerProblem& p,
                                     const ColumnWindow& window, const MinimalFilter& filter,
                                     int64_t block) {
    const int64_t outputs = p[Dim::z] * window.phases;
    const int64_t rows = p.y().kernel, frequencies = window.patch(), blocks = ceil_div(rows, block);
    std::vector<float> all(
        static_cast<size_t>(outputs * frequencies * blocks * p[Dim::i] * window.pieces * block),
        0.0F);
    const auto index = [&](int64_t output, int64_t q, int64_t n, int64_t i, int64_t piece) {
        const int64_t of_output = (output * frequencies + q) * blocks + n / block;
        return ((of_output * p[Dim::i] + i) * window.pieces + piece) * block + n % block;
    };
    for (int64_t output = 0; output < outputs; ++output) {
        for (int64_t n = 0; n < rows; ++n) {
            for (int64_t i = 0; i < p[Dim::i]; ++i) {
                const int64_t z = output / window.phases, phase = output % window.phases;
                const float* row =
                    canonical.data() + ((z * p[Dim::i] + i) * rows + n) * p.x().kernel;
                for (int64_t piece = 0; piece < window.pieces; ++piece) {
                    const std::vector<double> u =
                        transformed(p.x(), window, filter, row, phase, piece);
                    for (int64_t q = 0; q < frequencies; ++q)
                        all[static_cast<size_t>(index(output, q, n, i, piece))] =
                            static_cast<float>(u[static_cast<size_t>(q)]);
                }
            }
        }
    }
    return all;
}

}  // namespace laminate
