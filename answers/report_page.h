// A front as one self-contained HTML file: its three axes and, for the selected schedule, the
// network's graph with the groups, memory over time, traffic per tensor, loop nests, and
// measurements beside predictions. The page exports everything it shows as CSV and JSON.
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

/// Points that the page shows in detail. Of a larger front it shows all points, and this many of
/// them, evenly spread, in detail.
constexpr int64_t report_details = 120;

/// `front` comes from front_json() or found_front(). `groups` are its "group_schedules" by place,
/// if they are at hand and checked against the network; otherwise they are parsed from their texts.
/// Deterministic. Throws InputError when a point lacks a key or its schedule is not one of this
/// network.
[[nodiscard]] std::string report_page(const Network& network, const nlohmann::ordered_json& front,
                                      const std::vector<Measurement>& measurements = {},
                                      int threads = 1,
                                      const std::vector<GroupSchedule>* groups = nullptr);

/// Name of the page's file, which lies beside front.json.
[[nodiscard]] std::string page_name(const nlohmann::ordered_json& front);
/// Writes front.json and its page into `directory`; other arguments as for report_page().
void write_front(const std::filesystem::path& directory, const Network& network,
                 const nlohmann::ordered_json& front, int threads = 1,
                 const std::vector<GroupSchedule>* groups = nullptr);

/// JSON on one line that is safe inside a script element: nothing in it looks like the element's
/// end. Names may hold any bytes, as in json_text.h.
[[nodiscard]] std::string script_json(const nlohmann::ordered_json& json);

// The page, with places @TITLE@, @STYLE@, @DATA@ and @SCRIPT@, its style and its script; the files
// are in answers/page/.
extern const char* const report_html;
extern const char* const report_css;
extern const char* const report_script;

}  // namespace laminate::cli
