// The front of DRAM and buffer (SRAM) accesses of one layer: CNNFlow's Problem 0 for every weight
// at once.
//
// CNNFlow minimises A^d + w A^s for a weight w that it never states; each of its answers is a point
// of this front or lies behind it. A^s is sram_words(), plus, where registers are given, the fewest
// extra accesses of any mapping of the order's block computations to the array
// (register_mapping.h). Without registers the front is a lower bound for any array and any mapping.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "papers/layer_optimum/bank_division.h"
#include "papers/layer_optimum/register_mapping.h"

namespace laminate {

struct DramSramPoint {
    BlockOrder order;
    DividedBanks division;
    int64_t dram_words = 0;
    int64_t sram_words = 0;  ///< with the registers' extra accesses
    std::optional<RegisterMapping> registers;
};

struct DramSramFront {
    std::vector<DramSramPoint> points;  ///< DRAM falling, SRAM rising
    int64_t nodes = 0;                  ///< prefixes whose extensions were looked at
    bool is_complete = true;  ///< false: stopped; each point is attainable, but others may beat it
};

/// All points that nothing beats in both, with at most `most_sram_words`: the front has a long tail
/// of tiny blocks that save little. Spills are counted by the formula (SpillEvaluator::eq7). Empty
/// where nothing fits. Set `stop` to get the points found so far.
[[nodiscard]] DramSramFront dram_sram_front(const ConvolutionProblem& problem,
                                            const BankedBuffer& buffer,
                                            const std::optional<RegisterArray>& registers,
                                            int64_t most_sram_words,
                                            const std::atomic<bool>* stop = nullptr);

/// The point with the least dram_words + weight * sram_words. The front is not empty.
[[nodiscard]] const DramSramPoint& choose(const DramSramFront& front, double weight);

}  // namespace laminate
