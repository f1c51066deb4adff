// The schedule of one layer with the fewest DRAM accesses, proven for the evaluator that counts
// them. CNNFlow Problem 1: the order of the loops over blocks, the block sizes, and the division of
// the banks of a buffer among input, weights and output.
//
//   DRAM accesses = every tensor once + E_input + E_weights + 2 E_output
//
// where E is the words that are evicted and needed again, as the evaluator counts them: by
// CNNFlow's formula (spill_formula.h) or exactly (belady.h). The search is branch and bound over
// prefixes of the order, from the outermost loop in, cut by the bounds of prefix_bounds.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "papers/layer_optimum/bank_division.h"
#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// Words that every schedule moves: each tensor once.
[[nodiscard]] int64_t compulsory_words(const ConvolutionProblem& problem);

/// Words that every schedule moves through a buffer of so many words: the larger of
/// compulsory_words() and the phases of scheduler/counts/bounds.h, 2 MACs / sqrt(R S) - 2 S, with
/// this model's MACs (taps on padding are data).
[[nodiscard]] int64_t io_lower_bound_words(const ConvolutionProblem& problem, int64_t buffer_words);

/// Accesses of the buffer by the array: every block computation reads a block of input and one of
/// weights, and reads and writes a block of outputs, the last block of a loop padded. CNNFlow Eq.
/// 2, with 2 C_O as its tables have it. Accesses for what registers cannot hold come on top.
[[nodiscard]] int64_t sram_words(const ConvolutionProblem& problem, const BlockOrder& order);
[[nodiscard]] int64_t sram_words_of_blocks(const ConvolutionProblem& problem,
                                           const LoopExtents& blocks);

/// Block computations of the layer in all groups: N^db of Eq. 2.
[[nodiscard]] int64_t block_computations(const ConvolutionProblem& problem,
                                         const LoopExtents& blocks);

/// The problem as CNNFlow's tables have it: a grouped layer is one convolution with the input
/// channels of one group and the output channels of all.
[[nodiscard]] ConvolutionProblem with_groups_as_published(ConvolutionProblem problem);

/// Among the orders with the fewest DRAM accesses, one with the fewest sram_words().
struct LayerOptimum {
    BlockOrder order;
    DividedBanks division;
    int64_t dram_words = 0;  ///< compulsory and extra
    /// No order has fewer as the evaluator counts. Below dram_words only under belady, where an
    /// order that may be better has a stream too long to go through.
    int64_t lower_bound_words = 0;
    /// Under the evaluator. With eq7 a real memory may need more (spill_formula.h).
    [[nodiscard]] bool is_proven() const { return lower_bound_words == dram_words; }
    int64_t nodes = 0;      ///< prefixes whose extensions were looked at
    int64_t tie_nodes = 0;  ///< the same while choosing among equal orders
};

/// Not even blocks of one iteration fit. Where outputs leave only when they are finished, no order
/// fits.
struct BufferTooSmall {
    int64_t banks_needed = 0;  ///< 0: not looked for
};

/// How far SpillEvaluator::belady goes through streams, in waits of their steps
/// (BeladyStream::uses). A count, not a time, so that the answer is the same everywhere.
struct StreamLimits {
    int64_t longest = 4'000'000;     ///< of one stream: tens of milliseconds
    int64_t together = 8 * longest;  ///< of one search: less than a second
};

[[nodiscard]] std::variant<LayerOptimum, BufferTooSmall> layer_optimum(
    const ConvolutionProblem& problem, const BankedBuffer& buffer, SpillEvaluator evaluator,
    const StreamLimits& limits = {});

/// Lower bound on the extra words that the evaluator counts for every schedule that begins with
/// `prefix` (prefix_bounds.h): the largest that the search looks at before it takes such a
/// schedule. Nothing where none fits. For tests.
[[nodiscard]] std::optional<int64_t> prefix_bound(const ConvolutionProblem& problem,
                                                  const BlockOrder& prefix,
                                                  const BankedBuffer& buffer,
                                                  SpillEvaluator evaluator);

}  // namespace laminate
