// The mapping of one block computation to a PE array with the fewest accesses of the buffer.
// CNNFlow section 6.
//
// Every loop may be spread over lanes of at most one axis of the array (its batch P; the product of
// the batches on an axis is the number of its lanes). Each PE then works on its *share*, ceil(block
// / P) consecutive iterations of each loop, as blocks in an order that all PEs have in common, in
// step; its registers are divided among the three tensors like banks of one word. sram_words()
// counts the words of the block once. On top of that come, of every tensor:
// - its spills within a PE, by the formula (spill_formula.h), times the PEs that hold different
// words: words that
//   several PEs need in the same step are read once and sent to all of them (reuse loops: a factor
//   of 1, related loops: of P);
// - where windows of neighbouring lanes overlap, the words that they share. They are sent to all of
// these lanes at once
//   if a lane's columns come together: where the loops over columns and kernel columns lie inside a
//   reuse loop, or a first loop, whose words all fit in the registers. The factor is then (words of
//   all lanes) / (words of one), CNNFlow's B^dp / B^pe. Else the lanes need them in different
//   steps: they are read for each lane. Rows alike.
// Differs from the paper where blocks of neighbouring PEs follow each other in time (P blocks per
// step of a loop, not a share for each PE): its overlap between steps shrinks to nothing for P > 1,
// that of a share does not.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "papers/layer_optimum/bank_division.h"
#include "papers/layer_optimum/convolution.h"
#include "scheduler/machine/machine.h"

namespace laminate {

/// Register files of equal size, one per PE of an array.
struct RegisterArray {
    std::vector<int64_t> lanes;  ///< of every axis of the array
    int64_t words = 0;           ///< of one PE, shared among the tensors
};

struct RegisterMapping {
    LoopExtents lanes = one_iteration;  ///< P of every loop
    BlockOrder order;                   ///< of the blocks of a PE's share, outermost first
    PerOperand words{};                 ///< of registers, at most RegisterArray::words together
    PerOperand extra{};  ///< accesses of the buffer beyond the block once, of all PEs; of outputs
                         ///< reads and writes
    [[nodiscard]] int64_t extra_words() const { return extra[0] + extra[1] + extra[2]; }
};

/// All ways to spread loops over an array: 2772 for 12 x 14.
[[nodiscard]] std::vector<LoopExtents> lane_batches(const std::vector<int64_t>& lanes);

/// The `extra` of a block computation under a mapping of these lanes, order and words; nothing
/// where a PE's blocks do not fit in the words.
[[nodiscard]] std::optional<PerOperand> extra_accesses(const ConvolutionProblem& problem,
                                                       const LoopExtents& blocks,
                                                       const RegisterMapping& mapping);

class RegisterMapper {
public:
    /// `stop`: once it is set the best mapping found so far is the answer, or none.
    RegisterMapper(const ConvolutionProblem& problem, const RegisterArray& registers,
                   const std::atomic<bool>* stop = nullptr);
    /// Of all mappings of one block computation, one with the fewest extra accesses, if those are
    /// less than `below`.
    [[nodiscard]] std::optional<RegisterMapping> fewest_extra(const LoopExtents& blocks,
                                                              int64_t below) const;

private:
    /// What a PE works on, and the first batches that give it.
    struct Share {
        LoopExtents extents;
        LoopExtents lanes;
    };
    [[nodiscard]] std::vector<Share> shares(const LoopExtents& blocks) const;
    [[nodiscard]] std::optional<RegisterMapping> without_extra(
        const std::vector<Share>& shares) const;

    const ConvolutionProblem& problem_;
    RegisterArray registers_;
    const std::atomic<bool>* stop_;
    std::vector<LoopExtents> batches_;
    std::vector<std::vector<ConvolutionLoop>> orders_;
    std::array<TensorAccess, 3> access_;
};

}  // namespace laminate
