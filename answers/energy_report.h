// Energy of a schedule on a machine, by part, as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nets/network/network.h"
#include "scheduler/counts/energy.h"

namespace laminate::cli {

/// Accesses of the network's best schedule within the machine's register file
/// (EnergyCounts::register_file_misses), found by a search; none for a machine without one. Throws
/// InfeasibleError when no schedule fits into it.
[[nodiscard]] std::optional<Elements> register_file_misses(const Network& network,
                                                           const EnergyTable& machine, int threads);

/// One row per part: nanojoules and share.
[[nodiscard]] std::string energy_text(const Energy& energy);

/// {"machine":, "macs_pj":, "register_file_pj":, "internal_pj":, "external_pj":, "total_pj":}
[[nodiscard]] nlohmann::ordered_json energy_json(const EnergyTable& machine, const Energy& energy);

}  // namespace laminate::cli
