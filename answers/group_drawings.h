// The drawings of groups on the page of a front. A front has thousands of groups, many of which
// differ in the names of their layers alone. Such groups are counted and written once, as a
// template with places for names.
#pragma once

#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// A JSON list on one line, safe inside a script element, with one object per group in their order.
/// The groups must be legal in the network.
///   {"layers":[...], "accesses", "least" (every tensor once), "macs", "live" (elements),
///    "traffic":[{"name","reads","writes","elements"}],
///    "phases":[{"layer","macs","live","buffers":[[name, elements]]}],
///    "steps":[[phase, times in a row]], "unfolded", "nest"}
/// Names may hold any bytes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string group_drawings(const Network& network,
                                         const std::vector<const GroupSchedule*>& groups,
                                         int threads = 1);

}  // namespace laminate::cli
