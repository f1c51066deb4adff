#include "cli/front_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace laminate::cli {

using Json = nlohmann::ordered_json;

std::string front_file(const std::string& path) {
    return std::filesystem::is_directory(path) ? (std::filesystem::path(path) / "front.json").string() : path;
}

Json parse_front(const std::string& text, const std::string& file) {
    Json front = Json::parse(text, nullptr, false);
    if (!front.is_object() || front.value("schema", Json()) != "laminate.front" || !front.contains("points")) {
        throw InputError(file + ": is no front; expected JSON with \"schema\": \"laminate.front\" and \"points\"");
    }
    if (const auto version = front.value("version", Json()); version != front_version) {
        throw InputError(fmt::format("{}: front of version {}, expected {}; laminate explore writes it anew", file, version.dump(), front_version));
    }
    const Json& points = front["points"];
    if (!points.is_array()) throw InputError(fmt::format("{}: points: found {}, expected a list", file, points.type_name()));
    for (size_t n = 0; n < points.size(); ++n) {
        if (!points[n].is_object()) throw InputError(fmt::format("{}: points[{}]: found {}, expected an object", file, n, points[n].type_name()));
        for (const char* key : {"schedule", "file"}) {
            const Json entry = points[n].value(key, std::string_view(key) == "file" ? Json("") : Json());
            if (!entry.is_string()) throw InputError(fmt::format("{}: points[{}].{}: found {}, expected text", file, n, key, entry.type_name()));
        }
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
    throw InputError(fmt::format("{}: is for network {} ({}), found {} ({})", file, text("network"), text("structure_hash"), network.name,
                                 structure_hash(network)));
}

}  // namespace laminate::cli
