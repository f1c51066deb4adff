// Data files that the build embeds in the program (scheduler/CMakeLists.txt), so their names work
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
[[nodiscard]] const std::vector<EmbeddedFile>& embedded_cpu_speeds();

/// Sorted by name.
[[nodiscard]] std::vector<std::string> names_of(const std::vector<EmbeddedFile>& files);

struct FoundFile {
    std::string text;
    std::string where;  ///< messages about it begin with this
};
/// The embedded file of this name, or else the file on disk. Throws InputError with a list of the
/// names if there is neither. Messages about embedded files begin with `kind`.
[[nodiscard]] FoundFile find_file(const std::vector<EmbeddedFile>& files, const std::string& kind,
                                  const std::string& name_or_file);

}  // namespace laminate
