// What the page of a front draws of its groups. A front has thousands of them, which differ from
// one another in the names of their layers or in little else: those on layers of one shape are
// counted and written once, with places for names.
#pragma once

#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// A list in JSON, on one line, that may stand in a script element; of each group, which is legal
/// in the network, in their order:
/// {"layers":[...],"accesses","least" (every tensor once),"macs","live"
/// (elements),"traffic":[{"name","reads","writes","elements"}],"phases":[{"layer","macs",
/// "live","buffers":[[name, elements]]}],"steps":[[phase,times in a row]],"unfolded","nest"}. Names
/// may hold any bytes; what is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string group_drawings(const Network& network,
                                         const std::vector<const GroupSchedule*>& groups,
                                         int threads = 1);

}  // namespace laminate::cli
