// Copies between memories before a layer: outputs become inputs, caches of overlap are read and
// written. DeFiNES section III, step 4 ("data copy actions", all of one layer in one bundle).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "papers/depth_first/single_layer.h"
#include "scheduler/machine/machine.h"

namespace laminate::depth_first {

/// A memory, seen as level `level` of the hierarchy of `operand`.
struct Place {
    Operand operand;
    size_t level;
};

struct DataCopy {
    enum class Reason {
        stack_input,
        output_to_input,
        column_cache_read,
        row_cache_read,
        row_cache_write,
        column_cache_write,
        weights_of_later_tiles
    };
    Reason reason;
    int64_t bits = 0;
    Place from;
    Place to;
};
[[nodiscard]] const char* to_string(DataCopy::Reason reason);

struct CopyCost {
    double energy_pj = 0;
    int64_t latency_cycles = 0;
    /// Per memory of the machine, words of all copies.
    std::vector<WordCounts> words;
};

/// All copies begin together; one after the other where they need the same port. Each goes hop by
/// hop along the operand's hierarchy, up to the lowest memory that both operands share and down
/// again, each hop after the one before. Nothing moves, and nothing is paid, where both places are
/// the same memory.
[[nodiscard]] CopyCost copy_cost(const Machine& machine, const std::vector<DataCopy>& copies);

}  // namespace laminate::depth_first
