// JSON as it goes into files and to stdout.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace laminate::cli {

/// Indented, with a newline at its end. Names of files and tensors may hold any bytes; what is no
/// UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json& json) {
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace laminate::cli
