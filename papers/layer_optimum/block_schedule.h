// What CNNFlow decides at the DRAM level: a block of every loop and the order of the loops over
// blocks.
//
// Text form, outermost loop first, loops that are not cut left out: "f1 x19 y8 k24".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// A loop over the ceil(extent / block) blocks of one loop, the last one ragged.
struct BlockLoop {
    ConvolutionLoop loop = ConvolutionLoop::f;
    int64_t block = 1;
    friend bool operator==(const BlockLoop&, const BlockLoop&) = default;
};

/// Outermost first; only loops of more than one block, each once.
using BlockOrder = std::vector<BlockLoop>;

[[nodiscard]] std::string to_text(const BlockOrder& order);
/// Throws InputError for what is no order of the problem's loops. Loops of a single block are
/// dropped.
[[nodiscard]] BlockOrder parse_block_order(const ConvolutionProblem& problem,
                                           const std::string& text);

/// Block of every loop: as in the order, else its extent.
[[nodiscard]] LoopExtents block_extents(const ConvolutionProblem& problem, const BlockOrder& order);

/// The last block of a loop, which may be smaller.
[[nodiscard]] inline int64_t last_block(const ConvolutionProblem& problem, const BlockLoop& l) {
    const int64_t rest = problem.extent[l.loop] % l.block;
    return rest == 0 ? l.block : rest;
}

/// The smallest block for every number of blocks that a loop of this extent can have, from one
/// block (the extent) down to 1. At most 2 sqrt(extent) values; a larger block for the same number
/// of blocks needs more memory and saves nothing (CNNFlow 5.2, Lemma 5.3). `step`: only blocks of
/// whole steps, and the extent.
[[nodiscard]] std::vector<int64_t> block_candidates(int64_t extent, int64_t step = 1);
/// Of one loop of a problem.
[[nodiscard]] std::vector<int64_t> block_candidates(const ConvolutionProblem& problem,
                                                    ConvolutionLoop loop);

/// Calls visit(count, extent) for the blocks of a loop, alike ones together.
template <class Visit>
void for_each_block(int64_t extent, int64_t block, const Visit& visit) {
    visit(extent / block, block);
    if (extent % block != 0) visit(int64_t{1}, extent % block);
}
/// Calls visit(count, extent before, extent) for pairs of neighbouring blocks.
template <class Visit>
void for_each_border(int64_t extent, int64_t block, const Visit& visit) {
    visit(extent / block - 1, block, block);
    if (extent % block != 0) visit(int64_t{1}, block, extent % block);
}

}  // namespace laminate
