// Memory of this process and of the machine, as Linux accounts for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace laminate::cli {

/// Bytes that this process may still take without pushing out others: the least of the system's
/// estimate (MemAvailable) and what its control group and its limit of address space leave. Nullopt
/// when the system tells none of them.
[[nodiscard]] std::optional<int64_t> available_memory_bytes();

/// Throws InfeasibleError "WHAT BYTES, of ..." when fewer bytes are available. `what` ends in a
/// verb: "checking the code takes".
void require_available_memory(const std::string& what, int64_t bytes);

/// Measures how far the resident set grows after construction. The constructor first returns memory
/// that the allocator keeps to the system, so that using it again counts.
class PeakWatch {
public:
    PeakWatch();
    /// Bytes above the start at the highest point so far; nullopt when /proc cannot reset the peak.
    [[nodiscard]] std::optional<int64_t> growth_bytes() const;

private:
    std::optional<int64_t> start_bytes_;
};

}  // namespace laminate::cli
