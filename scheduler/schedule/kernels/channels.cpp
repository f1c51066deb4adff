// channels: register tiles of vectors of output channels x columns of one row.
//
//   Y[z, y, x] = sum over i, n, m of W[z, i, n, m] X[i, y S + n E - P, x S + m E - P]
//
// z vectors of v channels x x columns have their sums in registers. For narrow maps and dense
// layers, whose rows would fill vectors badly, and for strides of more than 2, whose columns take
// many loads or shuffles. The last columns of a row are one narrower tile, or
// one column at a time where their number depends on the box. Channels are filled up with zero
// weights, and a box has whole blocks of them.
#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"
#include "scheduler/schedule/kernels/rows_of_table.h"

namespace laminate {

namespace {

int64_t channels_multiplications(const LayerProblem& p, const Kernel& kernel,
                                 const KernelBox& box) {
    const int64_t block = kernel[KernelSize::channels] * kernel[KernelSize::lanes];
    return round_up(box[Dim::z].size(), block) * box[Dim::i].size() *
           row_taps(p.y(), box[Dim::y].begin, box[Dim::y].end) * box[Dim::x].size() * p.x().kernel;
}

/// Lines of X that a tile reads, if they are too many to stay in the first-level cache until the next
/// tile of the row: those of each input channel lie a map apart.
double lines_of_tile(const LayerProblem& p, int64_t inputs, int64_t columns) {
    constexpr Bytes kept{24 << 10};
    constexpr int64_t line = 16;
    const int64_t row = (columns - 1) * p.x().stride + (p.x().kernel - 1) * p.x().dilation + 1;
    const int64_t lines = inputs * p.y().kernel * (row / line + 1);
    return to_bytes(Elements(lines * line)) > kept ? static_cast<double>(lines) : 0.0;
}

/// Behind the last whole tile of a row come one narrower tile, or columns one by one. Outputs are
/// stored one by one.
KernelWork channels_work(const LayerProblem& p, const Kernel& kernel, const AskedBox& asked) {
    const KernelBox& box = asked.box;
    const int64_t step = kernel[KernelSize::columns];
    const int64_t block = kernel[KernelSize::channels] * kernel[KernelSize::lanes];
    const int64_t blocks = ceil_div(box[Dim::z].size(), block);
    const int64_t width = box[Dim::x].size(), height = box[Dim::y].size();
    const int64_t taps =
        row_taps(p.y(), box[Dim::y].begin, box[Dim::y].end) * p.x().kernel * box[Dim::i].size();
    const auto vectors = static_cast<double>(kernel[KernelSize::channels]);
    double cycles = 0;
    const int64_t rest = width % step;
    const auto behind =
        asked.has_one_width ? std::pair{rest, int64_t{1}} : std::pair{int64_t{1}, rest};
    for (const auto& [columns, tiles] : {std::pair{step, width / step}, behind}) {
        if (columns == 0 || tiles == 0) continue;
        const double products = vectors * static_cast<double>(columns);
        cycles += static_cast<double>(tiles) *
                  cycles_of_tap(vectors, static_cast<double>(columns), products, products);
    }
    const int64_t tiles = width / step + (rest == 0 ? 0 : behind.second);
    const double loaded = vectors * static_cast<double>(blocks * taps * tiles);
    return {{"products", cycles * static_cast<double>(blocks * taps)},
            {"outputs", vectors_of(box[Dim::z].size() * height * width, kernel)},
            {"partials", partial_vectors(p, box, kernel)},
            {"inputs", static_cast<double>(blocks * height * tiles) *
                           lines_of_tile(p, box[Dim::i].size(), step)},
            {"weights", has_large_weights(p) ? loaded : 0.0},
            {"tiles", static_cast<double>(blocks * height * tiles)},
            {"boxes", 1}};
}

}  // namespace

const KernelRow channels_kernel{
    .kind = KernelKind::channels,
    .name = "channels",
    .sizes = {KernelSize::channels, KernelSize::columns, KernelSize::lanes},
    .formula = "sums of z vectors of channels x x columns in registers",
    .scope = KernelScope::nest,
    .layers = "a dense convolution that is not transposed, or a dense layer",
    .accepts = is_dense_convolution,
    .has_whole_blocks = true,
    .multiplications = channels_multiplications,
    .work = channels_work,
    .channels_together =
        [](const Kernel& kernel) {
            return kernel[KernelSize::channels] * kernel[KernelSize::lanes];
        },
};

}  // namespace laminate
