// A front of schedules as table, JSON and CSV; report_page.h makes the page for the browser.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nets/network.h"
#include "scheduler/explore.h"

namespace laminate::cli {

/// Positions of `most` of `count` points (of all when there are fewer), evenly, the first and the last among them.
[[nodiscard]] std::vector<size_t> evenly(size_t count, size_t most);

/// At most `most` rows: the first, the last, and some between, evenly.
[[nodiscard]] std::string front_table(const Front& front, size_t most);

/// {"schema":"laminate.front","version":1,"model","network","network_hash","complete","macs_is_axis","points":[{"file","accesses_elements",
///  "live_total_elements","live_bytes","macs","groups","schedule"}]}; `complete` is false when the search was interrupted.
[[nodiscard]] nlohmann::ordered_json front_json(const Network& network, const Front& front, bool is_complete);

/// One line per point, the schedule text in quotes.
[[nodiscard]] std::string front_csv(const Front& front);

/// DIR/front.json for a directory, else the path itself.
[[nodiscard]] std::string front_file(const std::string& path);
/// What front_json() wrote; throws InputError when the file holds something else.
[[nodiscard]] nlohmann::ordered_json read_front(const std::string& file);
/// Throws InputError when the front is for another network.
void check_front(const std::string& file, const nlohmann::ordered_json& front, const Network& network);

}  // namespace laminate::cli
