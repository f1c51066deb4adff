// What a mapping of a layer, a point of a sweep or a cut of the network minimises.
#pragma once

#include <cstdint>
#include <string>

namespace laminate::depth_first {

enum class Objective {
    energy,
    latency,
    energy_delay,  ///< the product of both
};
[[nodiscard]] const char* to_string(Objective objective);
/// "energy", "latency", "edp". Throws InputError.
[[nodiscard]] Objective parse_objective(const std::string& text);
[[nodiscard]] double value(Objective objective, double energy_pj, int64_t latency_cycles);

}  // namespace laminate::depth_first
