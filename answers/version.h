// Which program this is, and on what it runs.
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace laminate::cli {

/// "0.1.0"
[[nodiscard]] std::string program_version();
/// {"laminate", "halide", "host_target", "cpu", "cores"}: the versions and the machine behind what
/// was measured.
[[nodiscard]] nlohmann::ordered_json made_by();
/// "laminate 0.1.0", the Halide version, the host target and the features of this CPU; one fact per
/// line.
[[nodiscard]] std::string version_text();
/// What an exception that is no std::exception says; Halide's errors are of that kind.
[[nodiscard]] std::string other_error_text(const std::exception_ptr& error);

}  // namespace laminate::cli
