// Identifies the program and the machine it runs on.
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace laminate::cli {

/// "0.1.0"
[[nodiscard]] std::string program_version();
/// {"laminate", "halide", "host_target", "cpu", "cores"}: versions and machine, for measurements.
[[nodiscard]] nlohmann::ordered_json made_by();
/// "laminate 0.1.0", the Halide version, the host target and the features of this CPU; one fact per
/// line.
[[nodiscard]] std::string version_text();
/// The text of an exception that is no std::exception, such as Halide's errors.
[[nodiscard]] std::string other_error_text(const std::exception_ptr& error);

}  // namespace laminate::cli
