// Seeded small convolutions and orders for the tests of this folder.
#pragma once

#include "base/rng.h"
#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

inline ConvolutionProblem random_convolution(Rng& rng, int64_t largest) {
    ConvolutionProblem p;
    for (size_t l = 0; l < convolution_loops; ++l)
        p.extent[l] = rng.chance(1, 3) ? 1 : rng.between(1, l < 5 ? largest : 3);
    for (size_t a = 0; a < 2; ++a) {
        p.stride[a] = rng.chance(1, 3) ? rng.between(2, 3) : 1;
        p.dilation[a] = rng.chance(1, 6) ? 2 : 1;
    }
    p.transposed = rng.chance(1, 6);
    return p;
}

/// Any blocks, or only those that divide the extents.
inline BlockOrder random_order(Rng& rng, const ConvolutionProblem& p, bool only_divisors) {
    std::vector<size_t> loops{0, 1, 2, 3, 4, 5, 6};
    rng.shuffle(loops);
    BlockOrder order;
    for (const size_t l : loops) {
        const int64_t block = rng.between(1, p.extent[l]);
        if (block == p.extent[l] || (only_divisors && p.extent[l] % block != 0)) continue;
        order.push_back({static_cast<ConvolutionLoop>(l), block});
    }
    return order;
}

}  // namespace laminate
