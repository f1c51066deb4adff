// Reads the list of jobs of `laminate sweep`.
#pragma once

#include <string>
#include <vector>

namespace laminate::cli {

struct SweepJob {
    std::string id;       ///< "l2net-0123456789abcdef"
    std::string network;  ///< as in the list
    std::string machine;  ///< "" without
    std::string memory;
    std::string options;  ///< the list's further arguments
    std::vector<std::string> arguments;  ///< of `laminate explore`, without -o
};

/// Reads a list:
///   {"schema": "laminate.jobs", "version": 1, "name": "...", "sweeps": [
///     {"networks": ["zoo:l2net", ...], "machines": ["FILE|NAME", ...], "memory": ["64KiB", ...],
///      "arguments": ["--max-depth=4", ...]}]}
/// Each sweep stands for all networks x machines x budgets. machines, memory and arguments may be
/// left out. A job that occurs twice is done once. Throws InputError "WHERE: ..." for anything
/// else.
[[nodiscard]] std::vector<SweepJob> sweep_jobs(const std::string& text, const std::string& where);

}  // namespace laminate::cli
