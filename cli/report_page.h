// A front as one HTML file that needs nothing else: the three axes, and for the schedule that is clicked the network's graph with its groups, memory over time, traffic
// per tensor, loop nests, and what was measured of it beside what was predicted. The page writes all that it shows as CSV and JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/measurements.h"
#include "nets/network.h"
#include "scheduler/schedule.h"

namespace laminate::cli {

/// Points whose inside the page holds; a larger front shows all points, and this many of them, evenly, in detail.
constexpr int64_t report_details = 120;

/// `front`: front_json(), or with "model": "depth-first" schedules that another model found. Deterministic. Throws InputError when a point misses a key or its schedule is not one of this network.
[[nodiscard]] std::string report_page(const Network& network, const nlohmann::ordered_json& front,
                                      const std::vector<Measurement>& measurements = {}, int threads = 1);

/// What the page draws of a group: {"layers":[...],"accesses","least" (every tensor once),"macs","live" (elements),"traffic":[{"name",
/// "reads","writes","elements"}],"phases":[{"layer","macs","live","buffers":[[name, elements]]}],"steps":[[phase,times in a row]],"unfolded","nest"}.
[[nodiscard]] nlohmann::ordered_json report_group(const Network& network, const GroupSchedule& group);

// The page with @TITLE@, @STYLE@, @DATA@, @SCRIPT@ to be filled in, and what goes there; cli/report/.
extern const char* const report_html;
extern const char* const report_css;
extern const char* const report_script;

}  // namespace laminate::cli
