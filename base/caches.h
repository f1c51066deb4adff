// The data caches of this machine, as Linux describes them. Schedules and kernels are laid out for
// them. The C library's answers are wrong on some virtual machines.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace laminate {

struct Cache {
    int64_t level = 0;
    Bytes size;
};

/// The assumed size of a second-level cache if it is unknown: for code for another machine, or if
/// the operating system does not tell.
inline constexpr Bytes usual_second_level_cache{1 << 20};

/// Data and unified caches of the first core, nearest first. Empty if the operating system does not
/// tell. `directory` is for tests.
[[nodiscard]] inline std::vector<Cache> data_caches(
    const std::filesystem::path& directory = "/sys/devices/system/cpu/cpu0/cache") {
    std::vector<Cache> caches;
    for (int n = 0;; ++n) {
        const auto word = [&](const char* file) {
            std::string text;
            std::ifstream(directory / ("index" + std::to_string(n)) / file) >> text;
            return text;
        };
        const std::string level = word("level"), kind = word("type"),
                          size = word("size");  // size: "32K"
        if (level.empty() || size.empty()) return caches;
        if (kind == "Instruction") continue;
        const auto number = [](const std::string& text) {
            int64_t value = 0;
            std::from_chars(text.data(), text.data() + text.size(), value);
            return value;
        };
        const int64_t unit = size.back() == 'K' ? 1024 : size.back() == 'M' ? 1024 * 1024 : 1;
        const int64_t bytes = number(size) * unit;
        if (bytes > 0) caches.push_back({number(level), Bytes(bytes)});
    }
}

/// The second-level cache of one core of this machine.
[[nodiscard]] inline Bytes second_level_cache() {
    for (const Cache& cache : data_caches()) {
        if (cache.level == 2) return cache.size;
    }
    return usual_second_level_cache;
}

}  // namespace laminate
