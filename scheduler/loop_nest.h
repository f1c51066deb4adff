// A group as the loop nest a person would write, where its loop problems are at hand; of a network: schedule.h.
#pragma once

#include <string>
#include <vector>

#include "scheduler/problem.h"
#include "scheduler/schedule.h"

namespace laminate {

/// With copies, allocations and calls where the schedule puts them. `problems`: group_problems() of the group.
[[nodiscard]] std::string loop_nest_text(const std::vector<LayerProblem>& problems, const GroupSchedule& group);

}  // namespace laminate
