// The form of JSON in files and on stdout.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace laminate::cli {

/// Indented, with a newline at its end. Names of files and tensors may hold any bytes; bytes that
/// are not UTF-8 become U+FFFD.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json& json) {
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace laminate::cli
