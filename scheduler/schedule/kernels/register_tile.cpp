#include "scheduler/schedule/kernels/register_tile.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

double used_part(int64_t extent, int64_t step) {
    return static_cast<double>(extent) / static_cast<double>(ceil_div(extent, step) * step);
}

double product_efficiency(int64_t vectors, int64_t scalars) {
    constexpr double latency_times_ports = 8;
    const auto sums = static_cast<double>(vectors * scalars);
    const double loads = static_cast<double>(vectors + scalars) / sums;
    return 1 / (std::max({1.0, loads, latency_times_ports / sums}) + 0.15 * loads);
}

namespace {

/// Vectors of output channels x columns, and the part of the multipliers' time that is not lost: to
/// lanes without a channel, to sums that are too few. None if it is 0.
std::pair<RegisterTile, double> channel_tile(const LayerProblem& p, int64_t columns,
                                             const VectorUnit& unit, int64_t blocks) {
    RegisterTile best{VectorAxis::z, 1, 1, 1};
    double best_score = 0;
    for (int64_t vectors = 1; vectors <= std::clamp<int64_t>(ceil_div(p[Dim::z], unit.lanes), 1, 4);
         ++vectors) {
        if (blocks % (vectors * unit.lanes) != 0) continue;
        const int64_t most = std::min<int64_t>(unit.sums_per_vector(vectors), columns);
        const int64_t x = ceil_div(columns, ceil_div(columns, most));
        const auto cycles = [&](int64_t n) {
            return std::max({vectors * n, vectors + n, unit.latency()});
        };
        const int64_t rest = columns % x;
        const int64_t row = columns / x * cycles(x) + (rest == 0 ? 0 : cycles(rest));
        const double score = used_part(p[Dim::z], vectors * unit.lanes) *
                             static_cast<double>(vectors * columns) / static_cast<double>(row);
        if (score > best_score + 1e-9) {
            best_score = score;
            best = {VectorAxis::z, vectors, 1, x};
        }
    }
    return {best, best_score};
}

}  // namespace

RegisterTile register_tile(const LayerProblem& p, int64_t rows, int64_t columns,
                           const VectorUnit& unit, const TileLimits& limits) {
    const int64_t group_outputs = p[Dim::z] / p.groups;
    constexpr int64_t most_columns_by_channels = 64, enough_products = 8;
    const bool is_short = columns <= most_columns_by_channels ||
                          (reads_far_apart(p.x()) &&
                           p[Dim::i] * p.y().kernel * p.x().kernel >= enough_products);
    // Vectors of channels of a map are stored and loaded lane by lane.
    const bool is_pixel = p[Dim::y] * p[Dim::x] == 1;
    const bool may_be_channels = p.groups == 1 && !p.x().transposed && is_short &&
                                 (is_pixel || !limits.has_partial_sums);
    const auto [by_channels, channels_score] =
        may_be_channels ? channel_tile(p, columns, unit, limits.channel_blocks)
                        : std::pair{RegisterTile{}, 0.0};
    if (channels_score > 0 && columns * 2 <= unit.lanes) return by_channels;
    // A transposed convolution computes all phases of one input position together.
    const int64_t phases = p.y().transposed ? p.y().stride * p.x().stride : 1;
    const int64_t positions = p.x().transposed ? ceil_div(columns, p.x().stride) : columns;
    RegisterTile best;
    double best_score = -1;
    const int64_t channels = std::min(group_outputs, limits.channels);
    // Weights of blocks that begin anywhere lie channel by channel, each in lines of its own.
    constexpr double price_of_any_block = 0.8;
    const auto used_channels = [&](int64_t z) {
        const int64_t done = group_outputs / channels * round_up(channels, z) +
                             round_up(group_outputs % channels, z);
        return static_cast<double>(group_outputs) / static_cast<double>(done);
    };
    for (int64_t z = 1; z <= std::min(channels, unit.accumulators); ++z) {
        if (p.groups > 1 && group_outputs % z != 0) continue;
        const double layout =
            channels < group_outputs && channels % z != 0 ? price_of_any_block : 1.0;
        for (int64_t y = 1; y <= (phases > 1 ? 1 : std::min<int64_t>(rows, 8)); ++y) {
            for (int64_t x = 1; x <= 8; ++x) {
                const int64_t sums = z * y * x * phases;
                if (sums > x * unit.sums_per_vector(x)) continue;
                constexpr int64_t narrowest_half = 8;
                const bool has_half = limits.may_be_half && phases == 1 && !p.x().transposed &&
                                      positions <= x * unit.lanes - unit.lanes / 2 &&
                                      positions > (x - 1) * unit.lanes &&
                                      unit.lanes >= 2 * narrowest_half;
                const double width = static_cast<double>(x) - (has_half ? 0.5 : 0);
                const double used = has_half ? static_cast<double>(positions) /
                                                   (width * static_cast<double>(unit.lanes))
                                             : used_part(positions, x * unit.lanes);
                const double loaded = static_cast<double>(x) * cost_of_load(p.x(), unit.lanes);
                const auto scalars = static_cast<double>(z * phases);
                const auto taps = static_cast<double>(y * p.y().kernel);
                const auto inputs = static_cast<double>(p.y().kernel + (y - 1) * p.y().stride);
                // About as many loads as multiplications can start per cycle, seldom in perfect
                // overlap.
                constexpr double per_cycle = 2;
                const double cycles =
                    per_cycle * cycles_of_rows(p.y(), y, width, loaded, scalars) +
                    0.15 * (inputs * loaded + taps * scalars);
                const double multiplications = taps * scalars * width;
                const double score = multiplications / cycles * used_channels(z) * layout *
                                     used_part(rows, y) * used *
                                     (1.0 - 0.01 * static_cast<double>(y - 1));
                if (score > best_score + 1e-9) {
                    best_score = score;
                    best = {VectorAxis::x, z, y, x, has_half};
                }
            }
        }
    }
    // Columns of outputs are stored one by one, and weights come from further away.
    constexpr double price_of_channels = 0.85;
    return price_of_channels * channels_score > best_score ? by_channels : best;
}

Kernel kernel_of(const LayerProblem& p, const RegisterTile& tile, int64_t lanes) {
    Kernel kernel;
    kernel.kind = tile.axis == VectorAxis::z ? KernelKind::channels
                  : is_transposed(p)         ? KernelKind::phases
                                             : KernelKind::rows;
    kernel.size[KernelSize::channels] = tile.z;
    if (kernel.kind == KernelKind::rows) {
        kernel.size[KernelSize::rows] = tile.y;
        kernel.size[KernelSize::half] = tile.has_half ? 1 : 0;
    }
    kernel.size[KernelSize::columns] = tile.x;
    kernel.size[KernelSize::lanes] = lanes;
    return kernel;
}

RegisterTile tile_of(const Kernel& kernel) {
    return {kernel.kind == KernelKind::channels ? VectorAxis::z : VectorAxis::x,
            kernel[KernelSize::channels], std::max<int64_t>(1, kernel[KernelSize::rows]),
            kernel[KernelSize::columns], kernel[KernelSize::half] == 1};
}

}  // namespace laminate
