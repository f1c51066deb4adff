// Measurements of a front's schedules: the answers (--json) of `validate`, which counts, and of
// `bench`, which times. A schedule is recognised by its text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nets/network/network.h"

namespace laminate::cli {

struct Measurement {
    std::string file;
    nlohmann::ordered_json answer;
};

/// Throws InputError unless the file is an answer of `validate` or `bench` for this network.
[[nodiscard]] Measurement read_measurement(const std::string& file, const Network& network);

/// All such answers in the directory of a front, sorted by name.
[[nodiscard]] std::vector<Measurement> measurements_beside(const std::string& front_file,
                                                           const Network& network);

/// The measurements as a page shows them, with a point for each of `schedules`. Of two measurements
/// of a schedule the later one counts.
///   {"sources":[{"file","verb","made_by","threads","schedules"}],
///    "points":[{} or {"counted":{"equal", "witnesses":[NAME...], "rows":[[NAME,VALUE...]...],
///                                "source"},
///                     "timed":{"fused":{"median_ms",...}, "layer_by_layer":{...}, "source"}}]}
/// A `bench` that left out the network layer by layer has its reason "left_out" instead. Throws
/// InputError "FILE: ..." when an answer lacks a key.
[[nodiscard]] nlohmann::ordered_json measured_json(const std::vector<std::string>& schedules,
                                                   const std::vector<Measurement>& measurements);

}  // namespace laminate::cli
