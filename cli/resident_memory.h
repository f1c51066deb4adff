// The memory of this process as Linux accounts for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace laminate::cli {

/// What this process may still take without any other being pushed out: the system's estimate
/// (MemAvailable), or what its control group leaves where that is less. None where /proc does not
/// say.
[[nodiscard]] std::optional<int64_t> available_memory_bytes();

/// Throws InfeasibleError "WHAT BYTES, of ..." when fewer than so many bytes are available; `what`
/// ends in its verb: "checking the code takes".
void require_available_memory(const std::string& what, int64_t bytes);

/// Watches how far the resident set grows from the moment of construction on. Memory that the
/// allocator keeps for later is given back to the system first, so that using it again counts.
class PeakWatch {
public:
    PeakWatch();
    /// Bytes above the start at the highest point so far; none where /proc does not let the peak be
    /// reset.
    [[nodiscard]] std::optional<int64_t> growth_bytes() const;

private:
    std::optional<int64_t> start_bytes_;
};

}  // namespace laminate::cli
