// Which instructions this machine has, by the names that a manifest uses (those of the compiler:
// "avx2", "fma", "avx512f").
#pragma once

#include <string>
#include <vector>

namespace laminate {

/// Features that can be asked for on this architecture; empty where none needs asking.
[[nodiscard]] const std::vector<std::string>& known_cpu_features();
/// False also for a name that is not known.
[[nodiscard]] bool cpu_has(const std::string& feature);
/// The known features that this machine has.
[[nodiscard]] std::vector<std::string> host_cpu_features();

}  // namespace laminate
