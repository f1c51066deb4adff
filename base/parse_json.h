// Parses JSON from anywhere. The library builds, copies, prints and compares values by recursion,
// which a file of two million brackets turns into a stack overflow; deep nesting is refused here,
// before a value exists.
#pragma once

#include <string_view>

namespace laminate {

/// Levels of arrays and objects. Our own files have fewer than ten.
inline constexpr int most_json_levels = 64;

/// What a message says of a text with more.
inline constexpr const char* too_deep_text = "nests deeper than 64 levels, expected JSON of a few";

/// Whether the brackets of a JSON text nest deeper than most_json_levels.
[[nodiscard]] inline bool nests_too_deep(std::string_view json) {
    int levels = 0;
    bool is_text = false;
    for (size_t k = 0; k < json.size(); ++k) {
        const char c = json[k];
        if (is_text) {
            if (c == '\\') ++k;
            if (c == '"') is_text = false;
        } else if (c == '"') {
            is_text = true;
        } else if (c == '[' || c == '{') {
            if (++levels > most_json_levels) return true;
        } else if (c == ']' || c == '}') {
            --levels;
        }
    }
    return false;
}

/// The value of a text; is_discarded() for what is not JSON or nests too deep. Json is one of the
/// classes of nlohmann/json.hpp.
template <class Json>
[[nodiscard]] Json parsed_json(std::string_view text) {
    if (nests_too_deep(text)) return Json(Json::value_t::discarded);
    return Json::parse(text, nullptr, false);
}

}  // namespace laminate
