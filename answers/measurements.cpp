#include "answers/measurements.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "answers/counts_report.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace laminate::cli {

namespace {

using Json = nlohmann::ordered_json;

/// "validate" or "bench" for what may be an answer of one of them.
std::optional<std::string> verb_of(const Json& answer) {
    if (!answer.is_object()) return std::nullopt;
    const auto schema = answer.find("schema");
    if (schema == answer.end()) return std::nullopt;
    for (const char* verb : {"validate", "bench"})
        if (*schema == std::string("laminate.") + verb) return verb;
    return std::nullopt;
}

/// False for the answer of a compiled directory, which has no schedule and no structure hash.
bool is_about(const Json& answer, const Network& network) {
    return answer.contains("structure_hash") && answer["structure_hash"] == structure_hash(network);
}

/// Model, walker and generated code in columns, a row for each quantity.
Json counted_json(const Json& entry, size_t source) {
    Json names = Json::array(), rows = Json::array();
    for (const char* witness : {"model", "walker", "measured"}) {
        if (!entry.contains(witness)) continue;
        names.push_back(witness);
        size_t at = 0;
        for (const NamedCount& count : named_counts(entry[witness])) {
            if (names.size() == 1) rows.push_back({count.name});
            rows.at(at++).push_back(count.value);
        }
    }
    return {{"equal", entry.at("equal").get<bool>()},
            {"witnesses", std::move(names)},
            {"rows", std::move(rows)},
            {"source", source}};
}

Json times_json(const Json& variant) {
    Json times;
    for (const char* key : {"median_ms", "min_ms", "spread", "gflops", "of_peak"})
        times[key] = variant.at(key).get<double>();
    for (const char* key : {"runs", "groups", "arena_bytes"})
        times[key] = variant.at(key).get<int64_t>();
    if (const Json& peak = variant.at("peak_rss_bytes"); !peak.is_null())
        times["peak_rss_bytes"] = peak.get<int64_t>();
    return times;
}

/// What `bench` found of one schedule. A network that does not fit in memory layer by layer is not
/// timed so.
Json timed_json(const Json& race, size_t source) {
    Json timed{{"fused", times_json(race.at("fused"))}, {"source", source}};
    if (race.contains("left_out"))
        timed["left_out"] = race["left_out"].get<std::string>();
    else
        timed["layer_by_layer"] = times_json(race.at("layer_by_layer"));
    return timed;
}

}  // namespace

Measurement read_measurement(const std::string& file, const Network& network) {
    Measurement measurement{file, parsed_json<Json>(read_file(file))};
    if (!verb_of(measurement.answer))
        throw InputError(
            file + ": is no measurement; expected what --json of laminate validate or bench wrote");
    if (!is_about(measurement.answer, network))
        throw InputError(fmt::format("{}: is not about network {} ({})", file, network.name,
                                     structure_hash(network)));
    return measurement;
}

std::vector<Measurement> measurements_beside(const std::string& front_file,
                                             const Network& network) {
    namespace fs = std::filesystem;
    std::vector<Measurement> measurements;
    std::error_code error;
    const fs::path directory =
        fs::path(front_file).has_parent_path() ? fs::path(front_file).parent_path() : fs::path(".");
    for (const auto& entry : fs::directory_iterator(directory, error)) {
        if (entry.path().extension() != ".json" || !entry.is_regular_file(error) ||
            entry.path().filename() == fs::path(front_file).filename())
            continue;
        Measurement measurement{entry.path().string(), parsed_json<Json>(read_file(entry.path()))};
        if (verb_of(measurement.answer) && is_about(measurement.answer, network))
            measurements.push_back(std::move(measurement));
    }
    std::ranges::sort(measurements, {}, &Measurement::file);
    return measurements;
}

Json measured_json(const std::vector<std::string>& schedules,
                   const std::vector<Measurement>& measurements) {
    std::map<std::string, size_t> known;
    for (size_t n = 0; n < schedules.size(); ++n) known.emplace(schedules[n], n);
    Json sources = Json::array();
    Json points = Json::array();
    for (size_t n = 0; n < schedules.size(); ++n) points.push_back(Json::object());
    for (const Measurement& measurement : measurements) {
        try {
            const Json& answer = measurement.answer;
            const std::string verb = verb_of(answer).value();
            int64_t found = 0;
            const auto note = [&](const Json& entry, const char* key, const auto& value) {
                const char* schedule =
                    entry.contains("schedule_given") ? "schedule_given" : "schedule";
                const auto point = known.find(entry.at(schedule).get<std::string>());
                if (point == known.end()) return;
                points[point->second][key] = value();
                ++found;
            };
            if (verb == "validate") {
                for (const Json& entry : answer.at("schedules"))
                    note(entry, "counted", [&] { return counted_json(entry, sources.size()); });
            } else {
                // An answer is of one schedule, or of a front's with a list of them.
                const Json races =
                    answer.contains("schedules") ? answer["schedules"] : Json::array({answer});
                for (const Json& race : races) {
                    if (!race.at("correct").get<bool>()) continue;
                    note(race.at("fused"), "timed",
                         [&] { return timed_json(race, sources.size()); });
                }
            }
            Json source{{"file", std::filesystem::path(measurement.file).filename().string()},
                        {"verb", verb}};
            for (const char* key : {"made_by", "threads"})
                if (answer.contains(key)) source[key] = answer[key];
            source["schedules"] = found;
            sources.push_back(std::move(source));
        } catch (const nlohmann::json::exception& error) {
            throw InputError(measurement.file + ": " + error.what());
        }
    }
    return {{"sources", std::move(sources)}, {"points", std::move(points)}};
}

}  // namespace laminate::cli
