// Spills of one tensor by CNNFlow's formula (Eq. 7, 8 and Alg. 1), in corrected form.
//
// As printed, with these corrections:
// - adjacent reuse loops are one group of R = product of their iterations (as two, the outer one
// would spill fully as
//   soon as the inner one spills at all, which Belady's replacement does not do);
// - the second case of Eq. 8 (the subgroup does not fit) is a full spill, as the text and Eq. 19
// say, not 0;
// - footprints are words touched, not boxes: they differ where a block of the kernel is smaller
// than the stride. The last block of a loop is padded to full size, as in the paper. For weights
// and outputs whose blocks divide the extents the formula is what Belady's replacement does on the
// element stream; for inputs it may be higher (belady.h is exact). Where blocks have gaps
// (dilation, a kernel cut below the stride) it may also be lower: it looks for reuse between
// neighbouring iterations alone.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// A reuse group: one reuse loop, adjacent ones merged, or one partial reuse loop, and the related
/// loops that follow it. Words.
struct ReuseGroup {
    int64_t instances = 1;   ///< N^g
    int64_t rounds = 1;      ///< R
    int64_t reused = 0;      ///< T = N^b S^r: what the next round uses again
    int64_t resident = 0;    ///< D = |Q' and r|, Q' the spill-free set of the next inner group
    int64_t beside = 0;      ///< |Q' - r|
    int64_t spill_free = 0;  ///< M^sf = T + |Q' - r|
    int64_t inner_spill_free = 0;  ///< M^sf of the next inner group, of the innermost one a block
};

struct TensorGroups {
    std::vector<ReuseGroup> groups;  ///< outermost first
    int64_t block = 0;               ///< words of a block; memory below it is infeasible
};

[[nodiscard]] TensorGroups reuse_groups(const ConvolutionProblem& problem, Operand operand,
                                        const BlockOrder& order);

/// What the groups of `prefix` are at least in every order that begins with it, as if its blocks
/// had no words: formula_spills() of this is a lower bound for all of them. By cycles a group
/// spills more the larger T, R, M^sf and |Q'| are (the first two make the stream longer, the others
/// leave fewer words in a cycle that stay), and loops further in only make them larger: footprints
/// are padded to whole blocks, and the union of what inner groups keep grows.
[[nodiscard]] TensorGroups groups_of_prefix(const ConvolutionProblem& problem, Operand operand,
                                            const BlockOrder& prefix);

/// Words evicted that are needed again, of one of the problem's groups; `memory` words hold at
/// least a block.
[[nodiscard]] int64_t formula_spills(const TensorGroups& tensor, int64_t memory);

}  // namespace laminate
