// Transformed weights of the kernel `columns` (columns.h), from canonical ones (constants.h).
#pragma once

#include <cstdint>
#include <vector>

#include "generators/kernels/minimal_filter.h"
#include "scheduler/schedule/kernels/columns.h"
#include "scheduler/schedule/problem.h"

namespace laminate {

/// G g of the filters of a layer, in blocks of `block` output channels: [block][frequency, one if
/// plain][n][i][piece][channel of the block]. Zeros fill up the last block.
[[nodiscard]] std::vector<float> gathered_weights(const std::vector<float>& canonical,
                                                  const LayerProblem& problem,
                                                  const ColumnWindow& window,
                                                  const MinimalFilter& filter, int64_t block);

/// G g of the filters of each output channel and phase, in blocks of `block` rows of the kernel:
/// [channel and phase][frequency][block][i][piece][row of the block]. Zeros fill up the last block.
[[nodiscard]] std::vector<float> scattered_weights(const std::vector<float>& canonical,
                                                   const LayerProblem& problem,
                                                   const ColumnWindow& window,
                                                   const MinimalFilter& filter, int64_t block);

}  // namespace laminate
