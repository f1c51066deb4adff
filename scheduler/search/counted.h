// Points of a front with their counts by the closed form.
#pragma once

#include <vector>

#include "scheduler/explore.h"

namespace laminate::search {

/// In the same order. Points share most of their groups, so each distinct group is counted once.
[[nodiscard]] std::vector<FrontPoint> counted(const Network& network, std::vector<Schedule> schedules);

}  // namespace laminate::search
