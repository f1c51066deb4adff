#include "scheduler/schedule/schedule_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parse_json.h"

namespace laminate {

namespace {

/// Version 1 carried a hash that covered the weights. The text of version 2 knew no kernels.
constexpr int schedule_file_version = 3;
constexpr int oldest_schedule_file_version = 2;

}  // namespace

std::string to_json(const Network& network, const Schedule& schedule) {
    nlohmann::ordered_json json;
    json["schema"] = "laminate.schedule";
    json["version"] = schedule_file_version;
    json["network"] = network.name;
    json["structure_hash"] = structure_hash(network);
    json["schedule"] = to_text(schedule);
    return json.dump(2) + "\n";
}

Schedule parse_schedule_file(const Network& network, const std::string& content) {
    const size_t first = content.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) throw InputError("empty; expected a schedule");
    const auto json = parsed_json<nlohmann::json>(content);
    // The text form starts with a brace too, so whatever parses as a JSON object is taken for JSON.
    if (!json.is_object()) {
        const size_t next = content.find_first_not_of(" \t\r\n", first + 1);
        if (content[first] == '{' && next != std::string::npos && content[next] == '"') {
            throw InputError("broken JSON; expected a laminate.schedule object");
        }
        return parse_schedule(network, content);
    }
    if (json.value("schema", nlohmann::json()) != "laminate.schedule") {
        throw InputError("no \"schema\": \"laminate.schedule\"");
    }
    if (const nlohmann::json version = json.value("version", nlohmann::json());
        version != schedule_file_version && version != oldest_schedule_file_version) {
        throw InputError("schedule file of version " + version.dump() + ", expected " +
                         std::to_string(oldest_schedule_file_version) + " or " +
                         std::to_string(schedule_file_version) +
                         "; its \"schedule\" text can be given as it is");
    }
    const nlohmann::json hash = json.value("structure_hash", nlohmann::json());
    const std::string expected = structure_hash(network);
    if (!hash.is_string() || hash.get<std::string>() != expected) {
        throw InputError("made for another network (hash " + hash.dump() + "), expected " +
                         network.name + " (hash \"" + expected + "\")");
    }
    const nlohmann::json text = json.value("schedule", nlohmann::json());
    if (!text.is_string()) throw InputError("no \"schedule\" text");
    return parse_schedule(network, text.get<std::string>());
}

Schedule load_schedule(const Network& network, const std::string& file) {
    const std::string content = read_file(file);
    try {
        return parse_schedule_file(network, content);
    } catch (const InputError& error) {
        throw InputError(file + ": " + error.what());
    }
}

}  // namespace laminate
