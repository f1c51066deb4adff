// A memory of so many words that manages itself: it is asked for one block of words after another
// and decides what goes. Fed with what generated code really asks for (trace_route.h), it is the
// witness of counts that no buffer of a schedule can have (papers/layer_optimum/belady.h). It knows
// words and steps, no loops and no formula.
#pragma once

#include <cstdint>
#include <vector>

namespace laminate {

/// The words that are needed together, block by block; a word at most once in a block.
using BlockStream = std::vector<std::vector<int32_t>>;

enum class Replacement {
    belady,  ///< what is used again last goes first, dead words before all; no other choice brings
             ///< in fewer words
    least_recently_used,  ///< what a cache might do
};

/// Words that come in more than once when every block is present as a whole in `memory` words.
/// Throws std::logic_error when a block is larger.
[[nodiscard]] int64_t replayed_spills(const BlockStream& stream, int64_t memory,
                                      Replacement replacement);

}  // namespace laminate
