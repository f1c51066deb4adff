// Data files that the build puts into the program (scheduler/CMakeLists.txt), so that names work
// from anywhere. Private to the scheduler.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laminate {

struct EmbeddedFile {
    std::string_view name;  ///< without .json
    std::string_view text;
};
[[nodiscard]] const std::vector<EmbeddedFile>& embedded_machines();
[[nodiscard]] const std::vector<EmbeddedFile>& embedded_energy_tables();

/// In order of the alphabet.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<EmbeddedFile>& files);

struct FoundFile {
    std::string text;
    std::string where;  ///< begins messages about it
};
/// The one of this name, otherwise the file on disk. Throws InputError, which lists the names, when
/// there is neither; `kind` begins messages about those that are embedded.
[[nodiscard]] FoundFile find_file(const std::vector<EmbeddedFile>& files, const std::string& kind,
                                  const std::string& name_or_file);

}  // namespace laminate
