// Counts of a compiled directory with hooks: what its manifest promises, and what an emulated
// memory of two levels saw while it ran.
#pragma once

#include <vector>

#include "runtime/manifest.h"
#include "runtime/session.h"
#include "runtime/two_level_memory.h"
#include "scheduler/counts/counts.h"

namespace laminate::cli {

/// The model's counts, as `laminate compile` wrote them: one entry per group of the schedule.
[[nodiscard]] std::vector<GroupCounts> promised_counts(const Manifest& manifest);

/// The same groups as `memory` saw them in one run of `session`.
[[nodiscard]] std::vector<GroupCounts> seen_counts(const Session& session,
                                                   const TwoLevelMemory& memory);

}  // namespace laminate::cli
