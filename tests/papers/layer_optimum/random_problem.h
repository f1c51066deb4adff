// Seeded small convolutions and orders for the tests of this folder.
#pragma once

#include "base/rng.h"
#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

inline ConvolutionProblem random_convolution(Rng& rng, int64_t largest) {
    ConvolutionProblem p;
    for (const ConvolutionLoop loop : convolution_loops)
        p.extent[loop] = rng.chance(1, 3) ? 1 : rng.between(1, is_tap_loop(loop) ? 3 : largest);
    for (WindowSteps& steps : p.steps) {
        steps.stride = rng.chance(1, 3) ? rng.between(2, 3) : 1;
        steps.dilation = rng.chance(1, 6) ? 2 : 1;
    }
    p.transposed = rng.chance(1, 6);
    return p;
}

/// Any blocks, or only those that divide the extents.
inline BlockOrder random_order(Rng& rng, const ConvolutionProblem& p, bool only_divisors) {
    std::vector<ConvolutionLoop> loops(convolution_loops.begin(), convolution_loops.end());
    rng.shuffle(loops);
    BlockOrder order;
    for (const ConvolutionLoop loop : loops) {
        const int64_t block = rng.between(1, p.extent[loop]);
        if (block == p.extent[loop] || (only_divisors && p.extent[loop] % block != 0)) continue;
        order.push_back({loop, block});
    }
    return order;
}

}  // namespace laminate
