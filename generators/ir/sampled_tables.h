// What the code of a Pad or Resize looks up along rows or columns: where each output reads, and how
// much of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/range.h"
#include "nets/network/network.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

struct SampledTables {
    int64_t taps = 1;
    int64_t outputs = 1;  ///< of each tap, with those behind the last one
    std::vector<float> sources;  ///< [tap][output]: coordinates of the input
    std::vector<float> factors;  ///< [tap][output]; none if all are 1
    Range inside;                ///< outputs that read the input; the others are a constant
};

/// Of rows (axis 0) or columns (axis 1). Outputs that read nothing have the first coordinate of
/// their interval instead, and `behind` outputs behind the last one have what it has.
[[nodiscard]] SampledTables sampled_tables(const Layer& layer, const LayerProblem& problem,
                                           size_t axis, int64_t behind = 0);

/// A stretch of whole blocks of outputs, each of which reads one input further on than the block
/// before it, with the same factors: what is away from the borders. Blocks begin at multiples of
/// their size.
struct SteadyOutputs {
    Range outputs;  ///< empty if no block does
    /// Coordinate of [output of a block][tap], less the number of the block.
    std::vector<std::vector<int64_t>> offsets;
};
[[nodiscard]] SteadyOutputs steady_outputs(const SampledTables& tables, int64_t outputs,
                                           int64_t block);

}  // namespace laminate
