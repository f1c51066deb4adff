// The events of a map kernel (generators/lowering/events.h). It reads its arrays whole and in
// place, in an order of its own, and its parts divide channels or pixels; so the loops of the
// schedule stand before its first part by themselves, with the events that they ask for.
#pragma once

#include "generators/group_code.h"
#include "generators/lowering/events.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// `code` as it is without events.
[[nodiscard]] GroupCode with_map_events(GroupCode code, const Network& network,
                                        const GroupSchedule& group, Events events);

}  // namespace laminate
