#include "base/json_object.h"

#include <utility>

#include "base/error.h"
#include "base/parse_json.h"

namespace laminate {

namespace {
constexpr const char* sourced = R"({"value": number >= 0, "source": text})";
}

JsonObject::JsonObject(const nlohmann::json& json, std::string where)
    : json_(json), where_(std::move(where)) {
    if (!json_.is_object())
        throw InputError(where_ + ": found " + json_.dump() + ", expected an object");
}

void JsonObject::fail(const std::string& key, const std::string& found,
                      const std::string& expected) const {
    throw InputError(where_ + ": " + key + ": found " + found + ", expected " + expected);
}

const nlohmann::json& JsonObject::at(const std::string& key, const std::string& expected) {
    known_.insert(key);
    if (!has(key)) throw InputError(where_ + ": " + key + ": missing, expected " + expected);
    return json_[key];
}

std::string JsonObject::text(const std::string& key) {
    const nlohmann::json& entry = at(key, "text");
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty())
        fail(key, entry.dump(), "text");
    return entry.get<std::string>();
}

std::string JsonObject::text_or(const std::string& key, const std::string& otherwise) {
    known_.insert(key);
    return has(key) ? text(key) : otherwise;
}

int64_t JsonObject::positive_integer(const std::string& key) {
    const nlohmann::json& entry = at(key, "an integer > 0");
    // Larger unsigned numbers would wrap.
    if (!entry.is_number_integer() || entry.get<double>() > 9e18 || entry.get<int64_t>() <= 0)
        fail(key, entry.dump(), "an integer > 0");
    return entry.get<int64_t>();
}

int64_t JsonObject::positive_integer_or(const std::string& key, int64_t otherwise) {
    known_.insert(key);
    return has(key) ? positive_integer(key) : otherwise;
}

double JsonObject::number(const std::string& key) {
    const nlohmann::json& entry = at(key, "a number >= 0");
    if (!entry.is_number() || entry.get<double>() < 0) fail(key, entry.dump(), "a number >= 0");
    return entry.get<double>();
}

double JsonObject::sourced_number(const std::string& key) {
    const nlohmann::json& entry = at(key, sourced);
    if (!entry.is_object() || !entry.contains("value") || !entry["value"].is_number())
        fail(key, entry.dump(), sourced);
    if (!entry.contains("source") || !entry["source"].is_string() ||
        entry["source"].get_ref<const std::string&>().empty())
        fail(key, "no source", sourced);
    const auto value = entry["value"].get<double>();
    if (value < 0) fail(key, entry["value"].dump(), sourced);
    return value;
}

double JsonObject::positive_sourced_number(const std::string& key) {
    const double value = sourced_number(key);
    if (value == 0) fail(key, "0", R"({"value": number > 0, "source": text})");
    return value;
}

std::vector<std::string> JsonObject::texts(const std::string& key) {
    const nlohmann::json& entry = at(key, "a list of texts");
    if (!entry.is_array()) fail(key, entry.dump(), "a list of texts");
    std::vector<std::string> result;
    for (const nlohmann::json& item : entry) {
        if (!item.is_string()) fail(key, item.dump(), "a list of texts");
        result.push_back(item.get<std::string>());
    }
    return result;
}

JsonObject JsonObject::object(const std::string& key) {
    return {at(key, "an object"), where_ + ": " + key};
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) {
    const nlohmann::json& entry = at(key, "a list of objects");
    if (!entry.is_array() || entry.empty()) fail(key, entry.dump(), "a list of objects");
    std::vector<JsonObject> result;
    for (size_t i = 0; i < entry.size(); ++i)
        result.emplace_back(entry[i], where_ + ": " + key + "[" + std::to_string(i) + "]");
    return result;
}

std::string JsonObject::header(const std::string& schema) {
    if (at("schema", "\"" + schema + "\"") != schema)
        fail("schema", json_["schema"].dump(), "\"" + schema + "\"");
    if (at("version", "1") != 1) fail("version", json_["version"].dump(), "1");
    return text("name");
}

void JsonObject::refuse_other_keys() const {
    std::string known;
    for (const std::string& key : known_) known += (known.empty() ? "" : ", ") + key;
    for (const auto& [key, entry] : json_.items()) {
        if (!known_.contains(key))
            throw InputError(where_ + ": unknown key \"" + key + "\"; known: " + known);
    }
}

nlohmann::json parse_json(const std::string& text, const std::string& where) {
    if (nests_too_deep(text)) throw InputError(where + ": " + too_deep_text);
    auto json = parsed_json<nlohmann::json>(text);
    if (json.is_discarded()) throw InputError(where + ": found no JSON, expected a JSON object");
    return json;
}

}  // namespace laminate
