#include "papers/layer_optimum/block_schedule.h"

#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/units.h"

namespace laminate {

std::string to_text(const BlockOrder& order) {
    std::string text;
    for (const BlockLoop& l : order)
        text +=
            (text.empty() ? "" : " ") + std::string(1, to_char(l.loop)) + std::to_string(l.block);
    return text;
}

BlockOrder parse_block_order(const ConvolutionProblem& problem, const std::string& text) {
    BlockOrder order;
    std::set<ConvolutionLoop> seen;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        const std::optional<ConvolutionLoop> loop = loop_named(word[0]);
        int64_t block = 0;
        const char* const end = word.data() + word.size();
        if (!loop || std::from_chars(word.data() + 1, end, block).ptr != end || block < 1 ||
            block > problem.extent[*loop] || !seen.insert(*loop).second) {
            throw InputError("block order \"" + text + "\": found \"" + word +
                             "\", expected each of f k c x y m n at most once, with a block of 1 "
                             "to its extent in " +
                             to_text(problem));
        }
        if (block < problem.extent[*loop]) order.push_back({*loop, block});
    }
    return order;
}

LoopExtents block_extents(const ConvolutionProblem& problem, const BlockOrder& order) {
    LoopExtents blocks = problem.extent;
    for (const BlockLoop& l : order) blocks[l.loop] = l.block;
    return blocks;
}

std::vector<int64_t> block_candidates(int64_t extent, int64_t step) {
    const int64_t units = ceil_div(extent, step);
    std::vector<int64_t> candidates{units};
    while (candidates.back() > 1) {
        // One block more than the last candidate needs, or as many as the next smaller block needs.
        const int64_t blocks = ceil_div(units, candidates.back() - 1);
        candidates.push_back(ceil_div(units, blocks));
    }
    for (int64_t& block : candidates) block *= step;
    candidates.front() = extent;
    return candidates;
}

std::vector<int64_t> block_candidates(const ConvolutionProblem& problem, ConvolutionLoop loop) {
    const bool is_whole_windows = problem.finished && is_output_loop(loop);
    return block_candidates(problem.extent[loop],
                            is_whole_windows ? (*problem.finished)[axis_of(loop)] : 1);
}

}  // namespace laminate
