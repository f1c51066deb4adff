#include "answers/front_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "nets/network/dense_images.h"
#include "nets/network/network.h"

namespace laminate::cli {

using Json = nlohmann::ordered_json;

std::string front_file(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code unreadable;
    if (!fs::is_directory(path, unreadable)) return path;
    const fs::path file = fs::path(path) / "front.json";
    if (fs::exists(file, unreadable)) return file.string();
    std::string inside;  // the first by name, as the order of the file system is arbitrary
    for (const fs::directory_entry& entry : fs::directory_iterator(path, unreadable)) {
        if (!fs::exists(entry.path() / "front.json", unreadable)) continue;
        if (inside.empty() || entry.path().string() < inside) inside = entry.path().string();
    }
    if (!inside.empty())
        throw InputError(
            path + ": has no front.json, expected the directory of one front, such as " + inside);
    return file.string();
}

Json parse_front(const std::string& text, const std::string& file) {
    auto front = parsed_json<Json>(text);
    if (!front.is_object() || front.value("schema", Json()) != "laminate.front" ||
        !front.contains("points")) {
        throw InputError(
            file +
            ": is no front; expected JSON with \"schema\": \"laminate.front\" and \"points\"");
    }
    if (const auto version = front.value("version", Json()); version != front_version) {
        throw InputError(
            fmt::format("{}: front of version {}, expected {}; laminate explore writes it anew",
                        file, version.dump(), front_version));
    }
    const Json& points = front["points"];
    if (!points.is_array())
        throw InputError(
            fmt::format("{}: points: found {}, expected a list", file, points.type_name()));
    const Json groups = front.value("group_schedules", Json());
    if (!groups.is_array() ||
        !std::ranges::all_of(groups, [](const Json& group) { return group.is_string(); }))
        throw InputError(fmt::format("{}: group_schedules: found {}, expected a list of texts",
                                     file, groups.type_name()));
    for (size_t n = 0; n < points.size(); ++n) {
        if (!points[n].is_object())
            throw InputError(fmt::format("{}: points[{}]: found {}, expected an object", file, n,
                                         points[n].type_name()));
        const Json schedule = points[n].value("schedule", Json());
        const bool is_list =
            schedule.is_array() && std::ranges::all_of(schedule, [&](const Json& group) {
                return group.is_number_unsigned() && group.get<size_t>() < groups.size();
            });
        if (!is_list)
            throw InputError(fmt::format(
                "{}: points[{}].schedule: found {}, expected a list of places in group_schedules",
                file, n, schedule.type_name()));
    }
    return front;
}

Json read_front(const std::string& file) { return parse_front(read_file(file), file); }

void check_front(const std::string& file, const Json& front, const Network& network) {
    const auto text = [&](const char* key) {
        const Json found = front.value(key, Json());
        return found.is_string() ? found.get<std::string>() : "?";
    };
    if (text("structure_hash") == structure_hash(network)) return;
    throw InputError(fmt::format("{}: is for network {} ({}), found {} ({})", file, text("network"),
                                 text("structure_hash"), network.name, structure_hash(network)));
}

std::string schedule_text(const nlohmann::ordered_json& front, size_t n) {
    try {
        std::string text;
        for (const nlohmann::ordered_json& group : front.at("points").at(n).at("schedule"))
            text += (text.empty() ? "" : " ") +
                    front.at("group_schedules").at(group.get<size_t>()).get<std::string>();
        return text;
    } catch (const nlohmann::json::exception& error) {
        throw InputError(fmt::format("point {}: {}", n, error.what()));
    }
}

std::vector<size_t> evenly(size_t count, size_t most) {
    const size_t wanted = std::min(count, most);
    std::vector<size_t> positions;
    for (size_t n = 0; n < wanted; ++n)
        positions.push_back(wanted == 1 ? 0 : n * (count - 1) / (wanted - 1));
    return positions;
}

FrontSchedules front_schedules(const Network& network, const std::string& path, int64_t most) {
    const std::string file = front_file(path);
    const Json front = read_front(file);
    check_front(file, front, network);
    FrontSchedules found;
    found.front_size = front["points"].size();
    for (const size_t n :
         evenly(found.front_size, most == 0 ? found.front_size : static_cast<size_t>(most))) {
        found.schedules.push_back(parse_schedule(network, schedule_text(front, n)));
        found.points.push_back(n);
    }
    return found;
}

std::string point_name(const nlohmann::ordered_json& front, size_t n) {
    const nlohmann::ordered_json& point = front.at("points").at(n);
    return "#" +
           (point.contains("names") ? point["names"].at(0).get<std::string>() : std::to_string(n));
}

std::optional<FrontReference> front_reference(const std::string& argument) {
    std::error_code too_long_for_a_path;
    if (std::filesystem::is_directory(argument, too_long_for_a_path))
        return FrontReference{front_file(argument), ""};
    const size_t mark = argument.rfind('#');
    if (mark == std::string::npos || std::filesystem::exists(argument, too_long_for_a_path))
        return std::nullopt;
    const std::string place = argument.substr(0, mark);
    if (!std::filesystem::exists(place, too_long_for_a_path)) return std::nullopt;
    return FrontReference{front_file(place), argument.substr(mark + 1)};
}

Network to_run(Network network, const std::string& schedule) {
    if (const std::optional<FrontReference> reference = front_reference(schedule)) {
        const Json front = read_front(reference->file);
        if (front.value("structure_hash", Json()) == structure_hash(network)) return network;
    }
    return with_dense_images_together(std::move(network));
}

size_t point_of(const FrontReference& reference, const nlohmann::ordered_json& front) {
    const nlohmann::ordered_json& points = front.at("points");
    std::string expected =
        points.empty() ? "one with schedules" : fmt::format("#0 to #{}", points.size() - 1);
    const bool is_number = !reference.point.empty() && reference.point.size() < 10 &&
                           reference.point.find_first_not_of("0123456789") == std::string::npos;
    if (reference.point.empty() && points.size() == 1) return 0;
    if (is_number && std::stoul(reference.point) < points.size())
        return std::stoul(reference.point);
    for (size_t n = 0; n < points.size(); ++n) {
        for (const nlohmann::ordered_json& name :
             points[n].value("names", nlohmann::ordered_json::array())) {
            if (name == reference.point) return n;
            expected += ", #" + name.get<std::string>();
        }
    }
    throw InputError(
        fmt::format("{}: has {} schedules, found {}, expected {}", reference.file, points.size(),
                    reference.point.empty() ? "none chosen" : "#" + reference.point, expected));
}

}  // namespace laminate::cli
