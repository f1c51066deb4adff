// The stream of words that a blocked convolution touches, word by word, and what replacement does
// with it: the plain witness of papers/layer_optimum. It shares the problem and the order with the
// models and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "instrumentation/replacement_memory.h"
#include "papers/layer_optimum/block_schedule.h"
#include "papers/layer_optimum/convolution.h"

namespace laminate {

using Word = std::tuple<int64_t, int64_t, int64_t, int64_t>;
/// The words of every block computation.
using ElementStream = std::vector<std::set<Word>>;

inline ElementStream element_stream(const ConvolutionProblem& p, Operand operand,
                                    const BlockOrder& order) {
    ElementStream stream;
    LoopExtents begin{};
    LoopExtents end = p.extent;
    const auto block = [&](auto&& self, size_t depth) -> void {
        if (depth < order.size()) {
            const ConvolutionLoop loop = order[depth].loop;
            for (int64_t b = 0; b < p.extent[loop]; b += order[depth].block) {
                begin[loop] = b;
                end[loop] = std::min(b + order[depth].block, p.extent[loop]);
                self(self, depth + 1);
            }
            begin[loop] = 0;
            end[loop] = p.extent[loop];
            return;
        }
        std::set<Word> words;
        LoopExtents i = begin;
        const auto iterate = [&](auto&& inner, size_t place) -> void {
            if (place < convolution_loops.size()) {
                const ConvolutionLoop loop = convolution_loops.values.at(place);
                for (i[loop] = begin[loop]; i[loop] < end[loop]; ++i[loop]) inner(inner, place + 1);
                return;
            }
            const auto [f, k, c, x, y, m, n] = i.values;
            const auto [along_x, along_y] = p.steps.values;
            const int64_t window_x = along_x.stride * x + along_x.dilation * m;
            const int64_t window_y = along_y.stride * y + along_y.dilation * n;
            if (operand == Operand::weight) words.insert({k, c, m, n});
            if (operand == Operand::input)
                words.insert(p.transposed ? Word{f, c, x, y} : Word{f, c, window_x, window_y});
            if (operand == Operand::output)
                words.insert(p.transposed ? Word{f, k, window_x, window_y} : Word{f, k, x, y});
        };
        iterate(iterate, 0);
        stream.push_back(std::move(words));
    };
    block(block, 0);
    return stream;
}

/// The words that come into `memory` words, block by block. Every block is present as a whole; what
/// must go is not in the block.
inline ElementStream simulated_fetches(const ElementStream& stream, int64_t memory,
                                       Replacement replacement) {
    std::map<Word, std::vector<size_t>> uses;
    for (size_t s = 0; s < stream.size(); ++s)
        for (const Word& w : stream[s]) uses[w].push_back(s);
    std::set<Word> present;
    std::map<Word, size_t> last_use;
    ElementStream fetches(stream.size());
    for (size_t s = 0; s < stream.size(); ++s) {
        int64_t missing = 0;
        for (const Word& w : stream[s]) missing += present.count(w) == 0 ? 1 : 0;
        // Dead words go first, then those whose turn comes last.
        std::vector<std::pair<size_t, Word>> others;
        for (const Word& w : present) {
            if (stream[s].count(w) != 0) continue;
            const auto& steps = uses[w];
            const auto next = std::upper_bound(steps.begin(), steps.end(), s);
            const size_t belady = next == steps.end() ? SIZE_MAX : *next;
            others.emplace_back(
                replacement == Replacement::belady ? belady : SIZE_MAX - last_use[w], w);
        }
        std::sort(others.rbegin(), others.rend());
        for (auto w = others.begin();
             w != others.end() && static_cast<int64_t>(present.size()) + missing > memory; ++w)
            present.erase(w->second);
        for (const Word& w : stream[s]) {
            if (present.insert(w).second) fetches[s].insert(w);
            last_use[w] = s;
        }
    }
    return fetches;
}

/// Words that come more than once.
inline int64_t simulated_spills(const ElementStream& stream, int64_t memory,
                                Replacement replacement) {
    std::set<Word> seen;
    int64_t spills = 0;
    for (const std::set<Word>& fetched : simulated_fetches(stream, memory, replacement))
        for (const Word& w : fetched) spills += seen.insert(w).second ? 0 : 1;
    return spills;
}

}  // namespace laminate
