#include "generators/ir/packing.h"

#include <bit>
#include <sstream>

#include "base/error.h"
#include "base/units.h"
#include "generators/ir/constants.h"
#include "generators/kernels/column_filters.h"
#include "generators/kernels/winograd.h"

namespace laminate {

namespace {

using Order = Packing::Order;
using Source = Packing::Source;

/// Canonical weights in the order by_input or by_tap.
std::vector<float> packed_by(Order order, const std::vector<float>& canonical, const LayerProblem& p,
                             int64_t block) {
    const int64_t taps = p.y().kernel * p.x().kernel;
    std::vector<float> packed(
        static_cast<size_t>(round_up(p[Dim::z], block) * p[Dim::i] * taps), 0.0F);
    for (int64_t z = 0; z < p[Dim::z]; ++z) {
        for (int64_t i = 0; i < p[Dim::i]; ++i) {
            for (int64_t n = 0; n < taps; ++n) {
                const int64_t in_block = order == Order::by_input ? i * taps + n : n * p[Dim::i] + i;
                const int64_t to = (z / block * p[Dim::i] * taps + in_block) * block + z % block;
                packed[static_cast<size_t>(to)] =
                    canonical[static_cast<size_t>((z * p[Dim::i] + i) * taps + n)];
            }
        }
    }
    return packed;
}

std::vector<float> weights_in(Order order, const std::vector<float>& canonical,
                              const LayerProblem& p, int64_t block) {
    switch (order) {
        case Order::by_row:
            return packed_weights(canonical, p, block);
        case Order::by_input:
        case Order::by_tap:
            return packed_by(order, canonical, p, block);
        case Order::winograd_1:
        case Order::winograd_2:
        case Order::winograd_4:
        case Order::winograd_6: {
            const int64_t rows = order == Order::winograd_1   ? 1
                                 : order == Order::winograd_2 ? 2
                                 : order == Order::winograd_4 ? 4
                                                              : 6;
            return winograd_weights(canonical, p, rows, block);
        }
        case Order::gathered:
        case Order::scattered:
            break;
    }
    const ColumnWindow window(p.x());
    const MinimalFilter filter(window.taps);
    return order == Order::gathered ? gathered_weights(canonical, p, window, filter, block)
                                    : scattered_weights(canonical, p, window, filter, block);
}

std::vector<float> whole_blocks(const Packing& packing, const Layer& layer, const LayerProblem& p) {
    switch (packing.source) {
        case Source::weights:
            return weights_in(packing.order, canonical_weights(layer, p), p, packing.block);
        case Source::bias:
            return padded(canonical_bias(layer, p), packing.block);
        case Source::slope:
            return padded(canonical_slope(layer, p), packing.block);
        case Source::numbers:
            break;
    }
    return packing.values;
}

}  // namespace

std::vector<float> packed(const Packing& packing, const Layer& layer, const LayerProblem& problem) {
    std::vector<float> all = whole_blocks(packing, layer, problem);
    if (!all.empty()) all.resize(all.size() + static_cast<size_t>(packing.behind), 0.0F);
    return all;
}

std::vector<float> packed_block(const std::vector<Packing>& packings, const Network& network,
                                const std::vector<LayerProblem>& problems) {
    ConstantBlock block;
    for (const Packing& packing : packings) {
        const LayerProblem& p = problems.at(static_cast<size_t>(packing.layer));
        block.append(packed(packing, network.layer(p.layer), p));
    }
    return std::move(block).take();
}

std::string to_text(const Packing& packing) {
    std::ostringstream line;
    line << packing.layer << ' ' << static_cast<int>(packing.source) << ' '
         << static_cast<int>(packing.order) << ' ' << packing.block << ' ' << packing.behind;
    for (const float value : packing.values) line << ' ' << std::bit_cast<uint32_t>(value);
    return line.str();
}

Packing parse_packing(const std::string& line, const std::string& where) {
    std::istringstream from(line);
    Packing packing;
    int source = -1, order = -1;
    from >> packing.layer >> source >> order >> packing.block >> packing.behind;
    const bool is_packing = !from.fail() && packing.layer >= 0 && packing.block >= 1 &&
                            packing.behind >= 0 && source >= 0 &&
                            source <= static_cast<int>(Source::numbers) && order >= 0 &&
                            order <= static_cast<int>(Order::winograd_6);
    if (!is_packing) {
        throw InputError(where + ": \"" + line +
                         "\", expected a packing: layer, source, order, block, zeros behind");
    }
    packing.source = static_cast<Source>(source);
    packing.order = static_cast<Order>(order);
    for (uint32_t bits = 0; from >> bits;) packing.values.push_back(std::bit_cast<float>(bits));
    return packing;
}

}  // namespace laminate
