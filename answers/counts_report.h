// Counts of a schedule as a table and as JSON. The model, the walker and the generated code print
// through the same functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "answers/output.h"
#include "scheduler/counts/counts.h"
#include "scheduler/counts/done.h"

namespace laminate::cli {

/// One witness: its name ("model", "walker", "measured") and its counts, one entry per group of the
/// schedule.
struct Witness {
    std::string name;
    std::vector<GroupCounts> groups;
};

/// Counts of one image. "total" is the largest live sum, "sum" ConvFusion's sum of all buffers.
///   {"macs", "reads":{"X","W","Y"}, "writes":{"Y"},
///    "buffer_elements":{"X","W","intermediates","Y","total","sum"}}
[[nodiscard]] nlohmann::ordered_json group_json(const GroupCounts& group);
/// The same over all groups (sums of traffic and work, maxima of memory) with "groups": [one object
/// per group].
[[nodiscard]] nlohmann::ordered_json counts_json(const std::vector<GroupCounts>& groups);

/// The numbers of counts_json(), in the order and with the names of side_by_side(). Throws
/// nlohmann::json::exception where one is missing.
struct NamedCount {
    std::string name;
    int64_t value = 0;
};
[[nodiscard]] std::vector<NamedCount> named_counts(const nlohmann::ordered_json& counts);

/// One row per group and a total: MACs, traffic and memory, in elements.
[[nodiscard]] std::string counts_table(const std::vector<GroupCounts>& groups);
/// One row per counted quantity of the whole schedule, one column per witness, and a column that
/// says whether they agree.
[[nodiscard]] std::string side_by_side(const std::vector<Witness>& witnesses);

/// What the code that runs does, as DoneCounts: {"scheduled": {"macs", "reads":{"X","W","Y"},
/// "writes":{"Y"}, "computed"}, "done": {the same}, "scratch_bytes", "layers": [{"layer",
/// "scheduled": {"macs","reads":{"W"},"computed"}, "done": {the same}}]}; sums over the groups, the
/// largest scratch.
[[nodiscard]] nlohmann::ordered_json done_json(const std::vector<DoneCounts>& groups);
/// One row per layer: multiplications scheduled and done.
[[nodiscard]] std::string done_by_layer(const std::vector<DoneCounts>& groups);
/// One row per quantity of the whole schedule: scheduled and done, and whether the closed forms
/// (`model`) equal what was counted on the code that runs. Where they differ, a cell holds both,
/// "model | code".
[[nodiscard]] std::string done_table(const std::vector<DoneCounts>& model,
                                     const std::vector<DoneCounts>& code);

}  // namespace laminate::cli
