// The schedule of one layer with the fewest DRAM accesses, proven. CNNFlow Problem 1: order of the
// loops over blocks, block sizes, and the division of the banks of a buffer among input, weights
// and output.
//
//   DRAM accesses = every tensor once + E_input + E_weights + 2 E_output,  E = words evicted that
//   are needed again
//
// Branch and bound over prefixes of the order, from the outermost loop in, cut by the bounds of
// prefix_bounds.h.
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

/// Accesses of the buffer by the array: every block computation reads a block of input and of
/// weights and reads and writes a block of outputs, the last block of a loop padded. CNNFlow Eq. 2,
/// with 2 C_O as its tables have it. What registers cannot hold comes on top.
[[nodiscard]] int64_t sram_words(const ConvolutionProblem& problem, const BlockOrder& order);
[[nodiscard]] int64_t sram_words_of_blocks(const ConvolutionProblem& problem,
                                           const LoopExtents& blocks);

/// Block computations of the layer, all groups: Eq. 2's N^db.
[[nodiscard]] int64_t block_computations(const ConvolutionProblem& problem,
                                         const LoopExtents& blocks);

/// CNNFlow's tables take a grouped layer as one convolution: the input channels of one group, the
/// output channels of all.
[[nodiscard]] ConvolutionProblem with_groups_as_published(ConvolutionProblem problem);

/// Of the orders with the fewest DRAM accesses, one with the fewest sram_words().
struct LayerOptimum {
    BlockOrder order;
    DividedBanks division;
    int64_t dram_words = 0;  ///< compulsory and extra
    /// No order has fewer. Below dram_words only under belady, where an order that may be better
    /// has a stream too long to go through.
    int64_t lower_bound_words = 0;
    [[nodiscard]] bool is_proven() const { return lower_bound_words == dram_words; }
    int64_t nodes = 0;      ///< prefixes whose extensions were looked at
    int64_t tie_nodes = 0;  ///< the same, in choosing among orders with as few words
};

/// Not even blocks of one iteration fit; of outputs that leave finished alone, no order does.
struct BufferTooSmall {
    int64_t banks_needed = 0;  ///< 0: not looked for
};

/// How far SpillEvaluator::belady goes through streams, in waits of their steps
/// (BeladyStream::uses). Counted, not timed, so that the answer is the same everywhere.
struct StreamLimits {
    int64_t longest = 4'000'000;     ///< of one stream: some tens of milliseconds
    int64_t together = 8 * longest;  ///< of one search: less than a second
};

[[nodiscard]] std::variant<LayerOptimum, BufferTooSmall> layer_optimum(
    const ConvolutionProblem& problem, const BankedBuffer& buffer, SpillEvaluator evaluator,
    const StreamLimits& limits = {});

/// Lower bound on the extra words that the evaluator counts of every schedule that begins with
/// `prefix` (prefix_bounds.h): the largest that the search has looked at before it takes such a
/// schedule. Nothing where none fits. For tests.
[[nodiscard]] std::optional<int64_t> prefix_bound(const ConvolutionProblem& problem,
                                                  const BlockOrder& prefix,
                                                  const BankedBuffer& buffer,
                                                  SpillEvaluator evaluator);

}  // namespace laminate
