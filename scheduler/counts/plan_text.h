// The plan of a group as text: which boxes each kernel is asked for, what it does for them, and
// where the scratch block keeps what. `laminate show F --plan` prints it.
#pragma once

#include <string>

#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Every nest of the group has a kernel. Lines end in a line break.
[[nodiscard]] std::string plan_text(const GroupSchedule& group,
                                    const std::vector<LayerProblem>& problems);

}  // namespace laminate
