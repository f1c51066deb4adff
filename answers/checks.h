// Checks of option values. Their messages say what was found and what was expected, where CLI11's
// own checks print the limits of double or internal tables.
#pragma once

#include <CLI/App.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace laminate::cli {

/// A whole number from 1 on.
inline CLI::Validator positive() {
    return {[](std::string& text) {
                int64_t value = 0;
                const bool fits = CLI::detail::lexical_cast(text, value) && value >= 1;
                return fits ? std::string()
                            : "found \"" + text + "\", expected a whole number from 1";
            },
            "POSITIVE", "positive"};
}

/// A number above 0.
inline CLI::Validator above_zero() {
    return {[](std::string& text) {
                double value = 0;
                const bool fits =
                    CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value > 0;
                return fits ? std::string() : "found \"" + text + "\", expected a number above 0";
            },
            "POSITIVE", "above zero"};
}

/// A number, 0 or more.
inline CLI::Validator not_negative() {
    return {[](std::string& text) {
                double value = 0;
                const bool fits =
                    CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= 0;
                return fits ? std::string()
                            : "found \"" + text + "\", expected a number, 0 or more";
            },
            "NONNEGATIVE", "not negative"};
}

/// Refuses the empty text, which a shell passes for an unset variable.
inline CLI::Validator file_name() {
    return {[](std::string& text) {
                return text.empty() ? std::string("found \"\", expected a file") : std::string();
            },
            "", "file name"};
}

/// Maps a name to its value: ->transform(one_of(names)). --help lists the names.
template <class Value>
CLI::Validator one_of(const std::map<std::string, Value>& values) {
    std::string names;
    for (const auto& [name, value] : values) names += (names.empty() ? "" : ",") + name;
    return {[values, names](std::string& text) {
                const auto found = values.find(text);
                if (found == values.end())
                    return "found \"" + text + "\", expected one of " + names;
                text = std::to_string(static_cast<int64_t>(found->second));
                return std::string();
            },
            "{" + names + "}", "one of"};
}

}  // namespace laminate::cli
