// Instruction sets of this machine, by the names that a manifest uses (those of the compiler:
// "avx2", "fma", "avx512f").
#pragma once

#include <string>
#include <vector>

namespace laminate {

/// Features that exist on this architecture; empty where every machine has the same.
[[nodiscard]] const std::vector<std::string>& known_cpu_features();
/// False for an unknown name, too.
[[nodiscard]] bool cpu_has(const std::string& feature);
/// The known features that this machine has.
[[nodiscard]] std::vector<std::string> host_cpu_features();

}  // namespace laminate
