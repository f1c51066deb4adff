// What CNNFlow decides at the DRAM level: a block of every loop, and the order of the loops over
// blocks.
//
// In the text form, the outermost loop comes first and loops that are not cut are left out: "f1 x19
// y8 k24".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// A loop over the ceil(extent / block) blocks of one loop; the last block may be smaller.
struct BlockLoop {
    ConvolutionLoop loop = ConvolutionLoop::f;
    int64_t block = 1;
    friend bool operator==(const BlockLoop&, const BlockLoop&) = default;
};

/// Outermost first; only loops with more than one block, each once.
using BlockOrder = std::vector<BlockLoop>;

[[nodiscard]] std::string to_text(const BlockOrder& order);
/// Drops loops with a single block. Throws InputError for text that is no order of the problem's
/// loops.
[[nodiscard]] BlockOrder parse_block_order(const ConvolutionProblem& problem,
                                           const std::string& text);

/// The block of every loop: its extent where the order does not cut it.
[[nodiscard]] LoopExtents block_extents(const ConvolutionProblem& problem, const BlockOrder& order);

/// The last block of a loop, which may be smaller.
[[nodiscard]] inline int64_t last_block(const ConvolutionProblem& problem, const BlockLoop& l) {
    const int64_t rest = problem.extent[l.loop] % l.block;
    return rest == 0 ? l.block : rest;
}

/// The smallest block for every number of blocks that a loop of this extent can have, from one
/// block (the extent) down to blocks of 1: at most 2 sqrt(extent) values. A larger block for the
/// same number of blocks needs more memory and saves nothing (CNNFlow 5.2, Lemma 5.3). Blocks are
/// multiples of `step`, or the extent.
[[nodiscard]] std::vector<int64_t> block_candidates(int64_t extent, int64_t step = 1);
/// The candidates of one loop of a problem.
[[nodiscard]] std::vector<int64_t> block_candidates(const ConvolutionProblem& problem,
                                                    ConvolutionLoop loop);

/// Calls visit(count, extent) for the blocks of a loop, once for all of one extent.
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
