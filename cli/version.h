// Which program this is, and on what it runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace laminate::cli {

/// "0.1.0"
[[nodiscard]] std::string program_version();
/// {"laminate", "halide", "host_target", "cpu", "cores"}: the versions and the machine behind what was measured.
[[nodiscard]] nlohmann::ordered_json made_by();

}  // namespace laminate::cli
