// Reading the front.json that front_report.h makes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nets/network/network.h"

namespace laminate::cli {

/// 1 carried a hash over the weights too; 2 had the text of each point's schedule.
inline constexpr int front_version = 3;

/// DIR/front.json for a directory, else the path itself. Throws InputError for a directory of
/// fronts, as a sweep makes it; it names the first of them.
[[nodiscard]] std::string front_file(const std::string& path);
/// What front_json() wrote: "points" are objects whose "schedule" is a list of places in
/// "group_schedules", which are texts. Throws InputError "FILE: ..." when the text is something
/// else, or of another version; whoever reads more of it checks that.
[[nodiscard]] nlohmann::ordered_json parse_front(const std::string& text, const std::string& file);
[[nodiscard]] nlohmann::ordered_json read_front(const std::string& file);
/// Throws InputError when the front is for another network.
void check_front(const std::string& file, const nlohmann::ordered_json& front,
                 const Network& network);

/// Point n's text, as to_text() of its schedule. Throws InputError when the point has none.
[[nodiscard]] std::string schedule_text(const nlohmann::ordered_json& front, size_t n);
/// "#3", or "#best" for a point that has a name; behind the front's directory it is what --schedule
/// takes.
[[nodiscard]] std::string point_name(const nlohmann::ordered_json& front, size_t n);

/// A schedule of a front as the command line gives it: "DIR#3", "DIR#best", "front.json#3", or DIR
/// alone of a front with one schedule.
struct FrontReference {
    std::string file;
    std::string point;  ///< empty: the only one
};
/// None where the argument is no such thing: an existing file, or no directory or file before the
/// last #.
[[nodiscard]] std::optional<FrontReference> front_reference(const std::string& argument);
/// Throws InputError when the front has no such point; it names those there are.
[[nodiscard]] size_t point_of(const FrontReference& reference, const nlohmann::ordered_json& front);

}  // namespace laminate::cli
