// A front as one HTML file that needs nothing else: the three axes, and for the schedule that is
// clicked the network's graph with its groups, memory over time, traffic per tensor, loop nests,
// and what was measured of it beside what was predicted. The page writes all that it shows as CSV
// and JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "answers/measurements.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// Points whose inside the page holds; a larger front shows all points, and this many of them,
/// evenly, in detail.
constexpr int64_t report_details = 120;

/// `front`: front_json() or found_front(). `groups`: its "group_schedules" by place, checked
/// against the network, where they are at hand; else they are read from their texts. Deterministic.
/// Throws InputError when a point misses a key or its schedule is not one of this network.
[[nodiscard]] std::string report_page(const Network& network, const nlohmann::ordered_json& front,
                                      const std::vector<Measurement>& measurements = {},
                                      int threads = 1,
                                      const std::vector<GroupSchedule>* groups = nullptr);

/// The page's file beside its front.json, by name.
[[nodiscard]] std::string page_name(const nlohmann::ordered_json& front);
/// front.json and its page into `directory`; the rest as in report_page().
void write_front(const std::filesystem::path& directory, const Network& network,
                 const nlohmann::ordered_json& front, int threads = 1,
                 const std::vector<GroupSchedule>* groups = nullptr);

/// On one line, for a script element: nothing in it may look like the end of the element. Names may
/// hold any bytes, as in json_text.h.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& json);

// The page with @TITLE@, @STYLE@, @DATA@, @SCRIPT@ to be filled in, and what goes there;
// cli/report/.
extern const char* const report_html;
extern const char* const report_css;
extern const char* const report_script;

}  // namespace laminate::cli
