// A front of schedules as table, JSON, CSV and a page for the browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "nets/network.h"
#include "scheduler/explore.h"

namespace laminate::cli {

/// At most `most` rows: the first, the last, and some between, evenly.
[[nodiscard]] std::string front_table(const Front& front, size_t most);

/// {"schema":"laminate.front","version":1,"model","network","network_hash","complete","macs_is_axis","points":[{"file","accesses_elements",
///  "live_total_elements","live_bytes","macs","groups","schedule"}]}; `complete` is false when the search was interrupted.
[[nodiscard]] nlohmann::ordered_json front_json(const Network& network, const Front& front, bool is_complete);

/// One line per point, the schedule text in quotes.
[[nodiscard]] std::string front_csv(const Front& front);

/// One self-contained file: a drawing of accesses against memory, and the table of all points.
[[nodiscard]] std::string front_html(const Network& network, const Front& front);

}  // namespace laminate::cli
