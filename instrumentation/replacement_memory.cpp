#include "instrumentation/replacement_memory.h"

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <utility>

#include "base/indexed.h"

namespace laminate {

int64_t replayed_spills(const BlockStream& stream, int64_t memory, Replacement replacement) {
    int32_t largest = -1;
    for (const std::vector<int32_t>& block : stream)
        for (const int32_t word : block) largest = std::max(largest, word);
    const int32_t words = largest + 1;
    const auto never = static_cast<int64_t>(stream.size());

    // The step of the next use of the same word, for each use.
    std::vector<std::vector<int64_t>> next_use(stream.size());
    IndexVector<int64_t, int32_t> later(words, never);
    for (size_t s = stream.size(); s-- > 0;) {
        for (const int32_t word : stream[s]) {
            next_use[s].push_back(later[word]);
            later[word] = static_cast<int64_t>(s);
        }
    }

    IndexVector<bool, int32_t> present(words);
    IndexVector<bool, int32_t> seen(words);
    IndexVector<int64_t, int32_t> last_step(words, -1);
    IndexVector<int64_t, int32_t> rank(words);  // the word of the highest rank is evicted first
    // (rank, word). Only the present rank of a word is valid.
    std::priority_queue<std::pair<int64_t, int32_t>> queue;
    int64_t held = 0;
    int64_t spills = 0;
    for (size_t s = 0; s < stream.size(); ++s) {
        const auto step = static_cast<int64_t>(s);
        if (static_cast<int64_t>(stream[s].size()) > memory)
            throw std::logic_error("replayed_spills: a block is larger than the memory");
        int64_t missing = 0;
        for (const int32_t word : stream[s]) {
            last_step[word] = step;
            if (!present[word]) ++missing;
        }
        while (held + missing > memory) {
            const auto [of_rank, word] = queue.top();
            queue.pop();
            // Words of this block get a new rank below.
            if (!present[word] || rank[word] != of_rank || last_step[word] == step) continue;
            present[word] = false;
            --held;
        }
        for (size_t n = 0; n < stream[s].size(); ++n) {
            const int32_t word = stream[s][n];
            if (!present[word]) {
                if (seen[word]) ++spills;
                present[word] = seen[word] = true;
                ++held;
            }
            rank[word] = replacement == Replacement::belady ? next_use[s][n] : never - step;
            queue.emplace(rank[word], word);
        }
    }
    return spills;
}

}  // namespace laminate
