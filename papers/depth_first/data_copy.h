// Copies between memories before a layer runs: outputs become inputs, and caches of overlap are
// read and written. DeFiNES section III, step 4 ("data copy actions"); the copies of one layer form
// one bundle.
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
    /// Words of all copies, by memory of the machine.
    std::vector<WordCounts> words;
};

/// The cost of a bundle. All copies start together and take turns on ports that they share. Each
/// goes hop by hop along the operand's hierarchy, up to the lowest memory that both operands share
/// and down again. A copy within one memory costs nothing.
[[nodiscard]] CopyCost copy_cost(const Machine& machine, const std::vector<DataCopy>& copies);

}  // namespace laminate::depth_first
