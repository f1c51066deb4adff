// Spills of one tensor under Belady's replacement, exactly, on the blocks that a program really
// touches.
//
// The stream is the sequence of block computations, the last block of a loop clipped to the tensor;
// each needs all words of its block at once, and only words that it touches. Of the words that do
// not fit beside the block at work, those whose next use lies furthest are evicted; a word is a
// spill when it is evicted and used again. That is optimal: to keep a word from one use to its next
// takes one place in every step between, all words save the same, and dropping the latest end
// whenever places run out drops the fewest.
//
// Words with the same history are one cell: along an axis with windows the words that lie in the
// same blocks. When the words of a step are used next depends on the iterations of its reuse and
// partial loops alone, its *pattern*: in how many steps, so many words times those of the blocks of
// its related loops. So cells are looked at once a pattern, and a step handles the few different
// waits of its pattern. A wait may be kept in part.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

/// The loops that matter to a tensor in so much memory: the order up to the first reuse loop with a
/// round that fits. Between two of such rounds all its words are present, which is the most that
/// they ever take from the words that wait beside them, so that they act as one step, and all loops
/// further in may be taken whole. Orders that agree in this agree in their spills.
[[nodiscard]] BlockOrder needed_order(const ConvolutionProblem& problem, Operand operand,
                                      const BlockOrder& order, int64_t memory);

class BeladyStream {
public:
    /// `order`: all of it, or a needed_order(). Related loops outside all others are independent
    /// instances. `memory` words hold at least a block.
    BeladyStream(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
                 int64_t memory);

    /// Waits of all steps and cells of all patterns, about: what building the stream and spills()
    /// take time for; without building it.
    [[nodiscard]] static int64_t uses(const ConvolutionProblem& problem, Operand operand,
                                      const BlockOrder& order, int64_t memory);

    /// Words evicted that are needed again, of one of the problem's groups.
    [[nodiscard]] int64_t spills() const;

private:
    struct Loop {
        int64_t iterations;
        int64_t step_stride;     ///< steps of one iteration
        int64_t pattern_stride;  ///< patterns of one iteration; 0: a related loop
        int64_t words;           ///< of a related loop's block
        int64_t last_words;      ///< and of its last one
    };
    /// Words that are used again in so many steps.
    struct Wait {
        int64_t steps;
        int64_t words;
    };
    /// Independent streams alike but for a factor on the words of every cell.
    struct Instances {
        int64_t count;
        int64_t factor;
    };
    [[nodiscard]] int64_t spills_of_instance(int64_t factor) const;

    int64_t memory_ = 0;
    std::vector<Instances> instances_;
    std::vector<Loop> loops_;  ///< those that are not independent instances, outermost first
    int64_t steps_ = 1;        ///< of one instance
    std::vector<size_t> pattern_begin_;   ///< into waits_, one more than patterns
    std::vector<int64_t> pattern_words_;  ///< of a block, where related loops have one word
    std::vector<Wait> waits_;
};

/// A lower bound on BeladyStream::spills() for any memory, in closed form.
///
/// Choose any set of steps. At each, at most M words are present, so of the intervals between two
/// uses of a word that span at least one of the steps, all but the sum of the room at the steps are
/// spills. Steps at the borders between rounds of a reuse loop, or iterations of a partial one,
/// give (words that cross) - M each; for the rounds of a reuse group every step but one per round
/// may do. Where a group spills in all of its instances, the intervals of the groups outside it all
/// span such a step.
class BeladyBound {
public:
    /// `is_prefix`: for every order that begins with this one; without the steps that loops further
    /// in could take away.
    BeladyBound(const ConvolutionProblem& problem, Operand operand, const BlockOrder& order,
                bool is_prefix = false);
    [[nodiscard]] int64_t spills(int64_t memory) const;

private:
    /// Instances with blocks of the same extents in all related loops outside: what is spilled in
    /// full ones does not find room in those of a rest.
    struct AlikeInstances {
        int64_t instances = 1;
        int64_t crossing = 0;  ///< words that cross at one step of each, together
        int64_t all = 0;       ///< words of their intervals
    };
    struct Group {
        std::vector<AlikeInstances> alike;
        int64_t all = 0;    ///< words of its intervals, all instances together
        int64_t steps = 0;  ///< of one instance
        int64_t instances = 1;
        int64_t smallest = 0;  ///< words that cross in the smallest instance
        int64_t largest = 0;   ///< and in one of full blocks
        int64_t beside = 0;    ///< further words present at that step, of each instance
        int64_t inner =
            0;  ///< the same for a step further in, of words that the next inner group counts else
        int64_t rounds = 1;  ///< of a reuse group
        int64_t sweep =
            0;  ///< words that windows inside a reuse group hold in the midst of a round
        bool is_reuse = false;
        bool has_subgroups = false;  ///< related loops between this group and the next one
    };
    /// `apart`: alike instances by themselves, so that those of a rest take nothing from what full
    /// ones spill. A step of a reuse group further out then may be one that is counted here
    /// already, with all words of such an instance.
    [[nodiscard]] int64_t spills(int64_t memory, bool apart) const;
    std::vector<Group> groups_;  ///< outermost first
};

}  // namespace laminate
