// A memory that manages itself: it is asked for one block of words after another and decides what
// to evict. Fed with the requests of generated code (trace_route.h), it checks counts that no
// buffer of a schedule can have (papers/layer_optimum/belady.h). It knows words and steps, but no
// loops and no formula.
#pragma once

#include <cstdint>
#include <vector>

namespace laminate {

/// Blocks of words that are needed together. A word occurs at most once in a block.
using BlockStream = std::vector<std::vector<int32_t>>;

enum class Replacement {
    /// ^ evicts the word whose next use is furthest away, dead words first; no other choice fetches
    /// fewer words
    belady,
    least_recently_used,  ///< as a cache might do
};

/// Number of repeated fetches if every block must be present as a whole in `memory` words. Throws
/// std::logic_error if a block is larger than that.
[[nodiscard]] int64_t replayed_spills(const BlockStream& stream, int64_t memory,
                                      Replacement replacement);

}  // namespace laminate
