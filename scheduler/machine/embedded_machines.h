// Data files that the build puts into the program (scheduler/CMakeLists.txt), so that names work from
// anywhere. Private to the scheduler.
#pragma once

#include <string_view>
#include <vector>

namespace laminate {

struct EmbeddedFile {
    std::string_view name;  ///< without .json
    std::string_view text;
};
[[nodiscard]] const std::vector<EmbeddedFile>& embedded_machines();
/// scheduler/models/depth_first/published_layers.json
[[nodiscard]] std::string_view published_layers_text();

}  // namespace laminate
