// Prints a schedule as the loop nest that a person would write, with copies, allocations and calls
// where the schedule puts them.
#pragma once

#include <string>
#include <vector>

#include "scheduler/schedule/problem.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

[[nodiscard]] std::string loop_nest_text(const Network& network, const Schedule& schedule);
[[nodiscard]] std::string loop_nest_text(const Network& network, const GroupSchedule& group);
/// The same, for callers that have group_problems() of the group.
[[nodiscard]] std::string loop_nest_text(const std::vector<LayerProblem>& problems,
                                         const GroupSchedule& group);

}  // namespace laminate
