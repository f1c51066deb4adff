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
        if (l == convolution_loops) return visit(blocks);
        for (blocks[l] = 1; blocks[l] <= p.extent[l]; ++blocks[l]) self(self, l + 1);
    };
    each(each, 0);
}

/// Calls `visit` with all orders of all loops with all blocks, not only those that the searches
/// look at.
inline void for_all_orders(const ConvolutionProblem& p,
                           const std::function<void(const BlockOrder&)>& visit) {
    std::vector<size_t> loops;
    for (size_t l = 0; l < convolution_loops; ++l)
        if (p.extent[l] > 1) loops.push_back(l);
    do {
        BlockOrder order;
        const auto choose = [&](auto&& self, size_t depth) -> void {
            if (depth == loops.size()) return visit(order);
            const size_t l = loops[depth];
            self(self, depth + 1);  // whole
            // Where outputs leave finished alone, whole windows of columns (3) and rows (4).
            const int64_t step = p.finished && (l == 3 || l == 4) ? (*p.finished)[l - 3] : 1;
            for (int64_t block = step; block < p.extent[l]; block += step) {
                order.push_back({static_cast<ConvolutionLoop>(l), block});
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
        for (size_t l = 0; l < convolution_loops; ++l)
            share.extent[l] = ceil_div(blocks[l], lanes[l]);
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
