// What a directory of `laminate compile` is, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "answers/output.h"
#include "runtime/manifest.h"

namespace laminate::cli {

/// {"name", "dims"}, and "type" where that is not float32.
[[nodiscard]] nlohmann::ordered_json tensor_json(const Tensor& tensor);

/// A table of the steps that run the network, in their order.
[[nodiscard]] std::string steps_table(const Manifest& manifest);

/// `laminate info` of such a directory: what it computes, for which machine, whether its library is
/// whole and can run here. Reads files only, so that it answers for other machines' code too.
/// Throws InputError when there is no manifest, or none that can be read.
[[nodiscard]] Exit compiled_info(const std::string& directory, const Output& output);

}  // namespace laminate::cli
