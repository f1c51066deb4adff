// Schedules as Halide programs (generators/halide/), for `show --halide` and `validate --halide`.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "generators/halide/levels.h"
#include "instrumentation/count_pass.h"
#include "nets/network/network.h"
#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate::cli {

struct HalideFileOptions {
    bool closest = false;
    std::string name;       ///< of the generator; empty: the network's
    std::string constants;  ///< directory for weights, biases and slopes as .npy; empty: none
};
/// A C++ file with a Halide::Generator per group. Throws InputError with every reason where Halide
/// does not execute the schedule exactly; with `closest`, the reasons and both counts stand in the
/// file instead.
[[nodiscard]] std::string halide_file(const Network& network, const Schedule& schedule,
                                      const HalideFileOptions& options);

/// What Halide made of one group.
struct HalideVerdict {
    std::vector<HalideExclusion> exclusions;
    std::string no_form;  ///< why the group is no Halide program here
    std::string failure;  ///< what Halide refused, or a result that is wrong
    std::optional<GroupCounts> counts;
    std::string difference;  ///< from the model; empty: equal
    [[nodiscard]] bool is_inside() const { return exclusions.empty() && no_form.empty(); }
};
[[nodiscard]] HalideVerdict halide_verdict(const Network& network, const GroupSchedule& group,
                                           const GroupCounts& model, uint64_t seed, CountMode mode);

/// Verdicts on the groups of many schedules, by reason.
class HalideSummary {
public:
    void add(const HalideVerdict& verdict, const GroupCounts& model);
    [[nodiscard]] std::string text() const;
    [[nodiscard]] nlohmann::ordered_json json() const;

private:
    struct Outside {
        int groups = 0;
        int equal = 0;    ///< in every count all the same
        int refused = 0;  ///< by Halide
        double most = 1;  ///< largest ratio of Halide's accesses to the schedule's
    };
    int inside_ = 0;
    int equal_ = 0;
    int outside_ = 0;
    std::map<std::string, Outside> reasons_;  ///< a group counts for each of its reasons
};

}  // namespace laminate::cli
