// The files of a compiled network around its objects: header, libraries, and the directory that appears whole or not at all.
// Nothing here knows Halide.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/manifest.h"

namespace laminate {

/// A directory made aside, and put in its place by publish(). Without publish() it is removed.
class CompiledDirectory {
public:
    /// Throws InputError when `place` is a file, or a directory with contents that `laminate compile` did not make, or cannot be written.
    explicit CompiledDirectory(const std::filesystem::path& place);
    ~CompiledDirectory();
    CompiledDirectory(const CompiledDirectory&) = delete;
    CompiledDirectory& operator=(const CompiledDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& aside() const { return aside_; }
    void publish();

private:
    std::filesystem::path place_;
    std::filesystem::path aside_;
};

/// "NAME_group3"
[[nodiscard]] std::string group_symbol(const std::string& name, size_t group);

/// NAME.h: the C struct of runtime/compiled_network.h, the symbol NAME_network, and the sizes of inputs and outputs.
[[nodiscard]] std::string header_text(const Manifest& manifest);

struct LinkTools {
    std::string compiler = "cc";
    std::string archiver = "ar";
};

/// Makes libNAME.a and libNAME.so in `directory` from its groups.o (when there are groups), its manifest.json and the constants, and removes
/// groups.o. Throws InputError with the first line that a tool said when it fails.
void link_libraries(const std::filesystem::path& directory, const Manifest& manifest, const std::vector<float>& constants, size_t group_count,
                    const LinkTools& tools);

}  // namespace laminate
