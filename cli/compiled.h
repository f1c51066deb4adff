// Describes a directory of `laminate compile`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "answers/output.h"
#include "runtime/manifest.h"

namespace laminate::cli {

/// {"name", "dims"}, and "type" unless it is float32.
[[nodiscard]] nlohmann::ordered_json tensor_json(const Tensor& tensor);

/// A table of the steps that run the network, in order.
[[nodiscard]] std::string steps_table(const Manifest& manifest);

/// `laminate info` of such a directory: what it computes, for which machine, and whether its
/// library is whole and can run here. Only reads files, so it works for other machines' code too.
/// Throws InputError when the manifest is missing or cannot be read.
[[nodiscard]] Exit compiled_info(const std::string& directory, const Output& output);

}  // namespace laminate::cli
