// The files of a compiled network around its objects: header and libraries. Nothing here knows
// Halide.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace laminate {

/// The files that compile_network wrote into a directory; none if it holds no manifest that can be
/// read.
[[nodiscard]] std::optional<std::vector<std::string>> compiled_files(
    const std::filesystem::path& directory);

/// "NAME_group3"
[[nodiscard]] std::string group_symbol(const std::string& name, size_t group);

/// "NAME_hook": what code with hooks calls.
[[nodiscard]] std::string hook_symbol(const std::string& name);

/// NAME.h: the C struct of runtime/compiled_network.h, the symbol NAME_network, and the sizes of
/// inputs and outputs.
[[nodiscard]] std::string header_text(const Manifest& manifest);

struct LinkTools {
    std::string compiler = "cc";
    std::string archiver = "ar";
};

/// Tries the tools on an object file of the target in `directory`, and removes it: compilers and
/// linkers are for one kind of processor. Throws InputError with what a tool said and the options
/// that name others.
void check_tools(const std::filesystem::path& directory, const std::string& object_file,
                 const std::string& target, const LinkTools& tools);

/// Makes libNAME.a and libNAME.so in `directory` from object files there that define the functions
/// group_symbol(NAME, 0 .. function_count - 1), with hooks if the manifest says so, its
/// manifest.json and the constants, and removes the objects. Returns the tools' CPU seconds. Throws
/// InputError with the first line that a tool said when it fails.
double link_libraries(const std::filesystem::path& directory, const Manifest& manifest,
                      std::span<const float> constants, size_t function_count,
                      const std::vector<std::string>& object_files, const LinkTools& tools);

}  // namespace laminate
