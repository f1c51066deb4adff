// Reads the front.json that front_report.h writes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

/// Version 1 carried a hash over the weights too; version 2 had the text of each point's schedule.
inline constexpr int front_version = 3;

/// DIR/front.json for a directory, else the path itself. Throws InputError, which names the first
/// front, for a directory of fronts that a sweep has made.
[[nodiscard]] std::string front_file(const std::string& path);
/// Parses the output of front_json(). Checks the version, and that "points" are objects whose
/// "schedule" lists places in "group_schedules", which are texts; who reads other keys checks them.
/// Throws InputError "FILE: ...".
[[nodiscard]] nlohmann::ordered_json parse_front(const std::string& text, const std::string& file);
[[nodiscard]] nlohmann::ordered_json read_front(const std::string& file);
/// Throws InputError when the front is for another network.
void check_front(const std::string& file, const nlohmann::ordered_json& front,
                 const Network& network);

/// The schedule of point n as to_text() writes it. Throws InputError when the point has none.
[[nodiscard]] std::string schedule_text(const nlohmann::ordered_json& front, size_t n);
/// Positions of `most` of `count` points (of all when there are fewer), evenly spread, including
/// the first and the last.
[[nodiscard]] std::vector<size_t> evenly(size_t count, size_t most);

/// Schedules of a front for a network, with their points.
struct FrontSchedules {
    std::vector<Schedule> schedules;
    std::vector<size_t> points;  ///< the number of each schedule
    size_t front_size = 0;
};
/// Of the front in `path` (front_file()): `most` schedules, evenly spread, including the first and
/// the last, or all for 0. Throws InputError for a front of another network.
[[nodiscard]] FrontSchedules front_schedules(const Network& network, const std::string& path,
                                             int64_t most);
/// "#3", or "#best" for a point with a name. --schedule takes it behind the front's directory.
[[nodiscard]] std::string point_name(const nlohmann::ordered_json& front, size_t n);

/// A schedule of a front on the command line: "DIR#3", "DIR#best", "front.json#3", or DIR alone for
/// a front with one schedule.
struct FrontReference {
    std::string file;
    std::string point;  ///< empty: the only one
};
/// Nullopt when the argument is an existing file, or has no directory or file before its last #.
[[nodiscard]] std::optional<FrontReference> front_reference(const std::string& argument);
/// The network as schedules, code and runs have it: with its dense images together
/// (nets/network/dense_images.h), unless `schedule` refers to a front of the network as it is given.
[[nodiscard]] Network to_run(Network network, const std::string& schedule = {});
/// The number of the point. Throws InputError, which lists the points, when there is no such one.
[[nodiscard]] size_t point_of(const FrontReference& reference, const nlohmann::ordered_json& front);

}  // namespace laminate::cli
