// Random legal kernels for the nests of a schedule, for tests and `laminate validate --random`.
#pragma once

#include <vector>

#include "base/rng.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// The group with a kernel of random sizes for every nest: `columns` or a map kernel where the
/// dataflow allows one and chance wants it, else kernels over line buffers with vectors of 4, 8 or
/// 16 lanes. Drawn until the group is legal (kernel_legality.h).
[[nodiscard]] GroupSchedule random_kernels(const std::vector<LayerProblem>& problems,
                                           GroupSchedule group, Rng& rng);

}  // namespace laminate
