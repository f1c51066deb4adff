// Reads one JSON object of a data file key by key. Every message says where, what was found and
// what was expected. Private to the rooms that read such files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace laminate {

/// A view of `json`, which must outlive it. Every message begins with `where`: the file, then the
/// path to this object.
class JsonObject {
public:
    /// Throws InputError if `json` is not an object.
    JsonObject(const nlohmann::json& json, std::string where);

    [[nodiscard]] const std::string& where() const { return where_; }
    [[nodiscard]] bool has(const std::string& key) const { return json_.contains(key); }
    /// The value of a key, which counts as known from now on. Throws InputError if it is missing.
    [[nodiscard]] const nlohmann::json& at(const std::string& key, const std::string& expected);
    /// Non-empty text.
    [[nodiscard]] std::string text(const std::string& key);
    [[nodiscard]] std::string text_or(const std::string& key, const std::string& otherwise);
    [[nodiscard]] int64_t positive_integer(const std::string& key);
    [[nodiscard]] int64_t positive_integer_or(const std::string& key, int64_t otherwise);
    /// A number, 0 or more.
    [[nodiscard]] double number(const std::string& key);
    /// The number in {"value": number >= 0, "source": text}.
    [[nodiscard]] double sourced_number(const std::string& key);
    [[nodiscard]] double positive_sourced_number(const std::string& key);
    [[nodiscard]] std::vector<std::string> texts(const std::string& key);
    [[nodiscard]] JsonObject object(const std::string& key);
    /// One object for each entry of a non-empty array.
    [[nodiscard]] std::vector<JsonObject> objects(const std::string& key);
    /// Checks "schema" and "version" 1 of a file, and returns its "name".
    [[nodiscard]] std::string header(const std::string& schema);
    /// Throws InputError for the first key that was never asked for, and lists those that were.
    void refuse_other_keys() const;

    /// Throws InputError "where: key: found ..., expected ...".
    [[noreturn]] void fail(const std::string& key, const std::string& found,
                           const std::string& expected) const;

private:
    const nlohmann::json& json_;
    std::string where_;
    std::set<std::string> known_;
};

/// Throws InputError when `text` is no JSON, or nests deeper than parse_json.h allows.
[[nodiscard]] nlohmann::json parse_json(const std::string& text, const std::string& where);

}  // namespace laminate
