// Every order, block and mapping of a small layer, one after another: the plain witness of the
// searches of this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/units.h"
#include "papers/layer_optimum/register_mapping.h"

namespace laminate {

/// Calls `visit` with every block of every loop.
inline void for_all_blocks(const ConvolutionProblem& p,
                           const std::function<void(const LoopExtents&)>& visit) {
    LoopExtents blocks;
    const auto each = [&](auto&& self, size_t l) -> void {
        if (l == convolution_loops.size()) return visit(blocks);
        const ConvolutionLoop loop = convolution_loops.values.at(l);
        for (blocks[loop] = 1; blocks[loop] <= p.extent[loop]; ++blocks[loop]) self(self, l + 1);
    };
    each(each, 0);
}

/// Calls `visit` with all orders of all loops with all blocks, not only those that the searches
/// look at.
inline void for_all_orders(const ConvolutionProblem& p,
                           const std::function<void(const BlockOrder&)>& visit) {
    std::vector<ConvolutionLoop> loops;
    for (const ConvolutionLoop loop : convolution_loops)
        if (p.extent[loop] > 1) loops.push_back(loop);
    do {
        BlockOrder order;
        const auto choose = [&](auto&& self, size_t depth) -> void {
            if (depth == loops.size()) return visit(order);
            const ConvolutionLoop loop = loops[depth];
            self(self, depth + 1);  // whole
            // Where outputs leave only when they are finished, whole windows.
            const int64_t step =
                p.finished && is_output_loop(loop) ? (*p.finished)[axis_of(loop)] : 1;
            for (int64_t block = step; block < p.extent[loop]; block += step) {
                order.push_back({loop, block});
                self(self, depth + 1);
                order.pop_back();
            }
        };
        choose(choose, 0);
    } while (std::next_permutation(loops.begin(), loops.end()));
}

/// All lanes, orders, blocks and divisions of the registers; nothing where none fits.
inline std::optional<int64_t> least_extra_of_all_mappings(const ConvolutionProblem& p,
                                                          const LoopExtents& blocks,
                                                          const RegisterArray& registers) {
    std::optional<int64_t> least;
    for (const LoopExtents& lanes : lane_batches(registers.lanes)) {
        ConvolutionProblem share = p;
        for (const ConvolutionLoop loop : convolution_loops)
            share.extent[loop] = ceil_div(blocks[loop], lanes[loop]);
        for_all_orders(share, [&](const BlockOrder& order) {
            RegisterMapping mapping{lanes, order, {}, {}};
            PerOperand& words = mapping.words;
            for (words[0] = 1; words[0] <= registers.words - 2; ++words[0]) {
                for (words[1] = 1; words[1] <= registers.words - 1 - words[0]; ++words[1]) {
                    words[2] = registers.words - words[0] - words[1];
                    const auto extra = extra_accesses(p, blocks, mapping);
                    if (!extra) continue;
                    mapping.extra = *extra;
                    least = std::min(least.value_or(INT64_MAX), mapping.extra_words());
                }
            }
        });
    }
    return least;
}

}  // namespace laminate
