#include "instrumentation/replacement_memory.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <utility>

namespace laminate {

int64_t replayed_spills(const BlockStream& stream, int64_t memory, Replacement replacement) {
    int32_t largest = -1;
    for (const std::vector<int32_t>& block : stream)
        for (const int32_t word : block) largest = std::max(largest, word);
    const auto words = static_cast<size_t>(largest + 1);
    const auto never = static_cast<int64_t>(stream.size());

    // When each use's word is used next.
    std::vector<std::vector<int64_t>> next_use(stream.size());
    std::vector<int64_t> later(words, never);
    for (size_t s = stream.size(); s-- > 0;) {
        for (const int32_t word : stream[s]) {
            next_use[s].push_back(later[static_cast<size_t>(word)]);
            later[static_cast<size_t>(word)] = static_cast<int64_t>(s);
        }
    }

    std::vector<bool> present(words, false);
    std::vector<bool> seen(words, false);
    std::vector<int64_t> last_step(words, -1);
    std::vector<int64_t> rank(words, 0);  // the higher, the sooner it goes
    std::priority_queue<std::pair<int64_t, int32_t>>
        queue;  // of rank and word; of a word, only its present rank is valid
    int64_t held = 0;
    int64_t spills = 0;
    for (size_t s = 0; s < stream.size(); ++s) {
        const auto step = static_cast<int64_t>(s);
        if (static_cast<int64_t>(stream[s].size()) > memory)
            throw std::logic_error("replayed_spills: a block is larger than the memory");
        int64_t missing = 0;
        for (const int32_t word : stream[s]) {
            last_step[static_cast<size_t>(word)] = step;
            if (!present[static_cast<size_t>(word)]) ++missing;
        }
        while (held + missing > memory) {
            const auto [of_rank, word] = queue.top();
            queue.pop();
            const auto w = static_cast<size_t>(word);
            // Words of this block get a new rank below.
            if (!present[w] || rank[w] != of_rank || last_step[w] == step) continue;
            present[w] = false;
            --held;
        }
        for (size_t n = 0; n < stream[s].size(); ++n) {
            const int32_t word = stream[s][n];
            const auto w = static_cast<size_t>(word);
            if (!present[w]) {
                if (seen[w]) ++spills;
                present[w] = seen[w] = true;
                ++held;
            }
            rank[w] = replacement == Replacement::belady ? next_use[s][n] : never - step;
            queue.emplace(rank[w], word);
        }
    }
    return spills;
}

}  // namespace laminate
