// Reading the front.json that front_report.h makes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "nets/network.h"

namespace laminate::cli {

/// 1 carried a hash over the weights too.
inline constexpr int front_version = 2;

/// DIR/front.json for a directory, else the path itself.
[[nodiscard]] std::string front_file(const std::string& path);
/// What front_json() wrote: "points" are objects that have a "schedule" and, where it is there, a "file", both text. Throws InputError "FILE: ..." when the
/// text is something else, or of another version; whoever reads more of it checks that.
[[nodiscard]] nlohmann::ordered_json parse_front(const std::string& text, const std::string& file);
[[nodiscard]] nlohmann::ordered_json read_front(const std::string& file);
/// Throws InputError when the front is for another network.
void check_front(const std::string& file, const nlohmann::ordered_json& front, const Network& network);

}  // namespace laminate::cli
