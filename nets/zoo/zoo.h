// Published networks with seeded He-initialised weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nets/network/network.h"

namespace laminate {

struct ZooEntry {
    std::string name;                  ///< "l2net"
    std::vector<std::string> aliases;  ///< "4k" for l2net-4k, "wide" for l2net-wide
    std::string about;                 ///< one line with the source
    int64_t height;                    ///< default input size
    int64_t width;
};

struct ZooOptions {
    std::optional<int64_t> height{};
    std::optional<int64_t> width{};
    int64_t batch = 1;
    uint64_t seed = 1;
};

[[nodiscard]] const std::vector<ZooEntry>& zoo_entries();
/// Throws InputError listing the known names.
[[nodiscard]] Network zoo_network(const std::string& name, const ZooOptions& options = {});

}  // namespace laminate
