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

/// The words of an axis with windows by cell, and the cells of every block.
struct WindowCells {
    std::vector<int64_t> words{1};
    std::vector<std::vector<int32_t>> blocks{{0}};  ///< [output block * tap_blocks + tap block]
    int64_t tap_blocks = 1;
    /// Cells of a block; of an axis without windows, its only cell.
    [[nodiscard]] const std::vector<int32_t>& of_block(int64_t output, int64_t tap) const {
        return blocks[blocks.size() == 1 ? 0 : static_cast<size_t>(output * tap_blocks + tap)];
    }
};

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
    /// `outside`: the related loops outside all others. `words` multiply every cell.
    void set_instances(const ConvolutionProblem& problem, const BlockOrder& outside, int64_t words);
    /// Returns the number of patterns.
    [[nodiscard]] int64_t set_loops(const ConvolutionProblem& problem, const TensorAccess& access,
                                    const BlockOrder& inside);
    void set_waits(const BlockOrder& inside, const PerAxis<WindowCells>& cells, int64_t patterns);
    [[nodiscard]] int64_t spills_of_instance(int64_t factor) const;

    int64_t memory_ = 0;
    std::vector<Instances> instances_;
    std::vector<Loop> loops_;  ///< those that are not independent instances, outermost first
    int64_t steps_ = 1;        ///< of one instance
    std::vector<size_t> pattern_begin_;   ///< into waits_, one more than patterns
    std::vector<int64_t> pattern_words_;  ///< of a block, where related loops have one word
    std::vector<Wait> waits_;
};

}  // namespace laminate
