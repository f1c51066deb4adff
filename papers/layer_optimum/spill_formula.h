// Spills of one tensor by CNNFlow's formula (Eq. 7, 8 and Alg. 1), in corrected form:
//
// - Adjacent reuse loops are one group of R = product of their iterations. As two groups, the outer
//   one would spill fully as soon as the inner one spills at all, which Belady's replacement does
//   not do.
// - The second case of Eq. 8 (the subgroup does not fit) is a full spill, as the text and Eq. 19
//   say, not 0.
// - Footprints are the words touched, not bounding boxes. They differ where a block of the kernel
//   is smaller than the stride.
//
// The last block of a loop is padded to full size, as in the paper. For weights and outputs whose
// blocks divide the extents, the formula is what Belady's replacement does on the element stream.
// For inputs it may be higher (belady.h is exact). Where blocks have gaps (dilation, or a kernel
// cut below the stride) it may also be lower, because it looks for reuse between neighbouring
// iterations alone: a proof under the formula is no proof for a real memory there
// (docs/cnnflow.md).
#pragma once

#include <cstdint>
#include <vector>

#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// A reuse group, in words: one reuse loop (adjacent ones merged) or one partial reuse loop, and
/// the related loops that follow it.
struct ReuseGroup {
    int64_t instances = 1;   ///< N^g
    int64_t rounds = 1;      ///< R
    int64_t reused = 0;      ///< T = N^b S^r: words that the next round uses again
    int64_t resident = 0;    ///< D = |Q' and r|, Q' the spill-free set of the next inner group
    int64_t beside = 0;      ///< |Q' - r|
    int64_t spill_free = 0;  ///< M^sf = T + |Q' - r|
    int64_t inner_spill_free = 0;  ///< M^sf of the next inner group; innermost: of a block
};

struct TensorGroups {
    std::vector<ReuseGroup> groups;  ///< outermost first
    int64_t block = 0;               ///< words of a block: the least memory
};

[[nodiscard]] TensorGroups reuse_groups(const ConvolutionProblem& problem, Operand operand,
                                        const BlockOrder& order);

/// The groups of `prefix` in every order that begins with it, at least, as if blocks had no words:
/// formula_spills() of them is a lower bound for all these orders. By cycles, a group spills more
/// the larger T, R, M^sf and |Q'| are. (The first two make the stream longer; the others leave
/// fewer words in a cycle that stay.) Loops further in only make them larger: footprints are padded
/// to whole blocks, and the union of what inner groups keep grows.
[[nodiscard]] TensorGroups groups_of_prefix(const ConvolutionProblem& problem, Operand operand,
                                            const BlockOrder& prefix);

/// Words evicted that are needed again, in one of the problem's groups. `memory` holds at least a
/// block, in words.
[[nodiscard]] int64_t formula_spills(const TensorGroups& tensor, int64_t memory);

}  // namespace laminate
