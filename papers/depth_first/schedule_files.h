// The schedules that the depth-first model found, by name, as a front that --schedule DIR#NAME
// reads.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "answers/network_argument.h"
#include "answers/program.h"
#include "papers/depth_first/depth_first.h"
#include "papers/depth_first/schedules.h"

namespace laminate::cli {

/// Some stacks are no schedule: those with layers that only the reference operators run, and those
/// that a quirk costs twice.
class FoundSchedules {
public:
    FoundSchedules(const Network& network, const depth_first::DepthFirst& model)
        : network_(network), model_(model) {}

    /// {"name", "schedule"}, or null if there is no schedule; refusal() then says why.
    nlohmann::ordered_json add(const std::string& name,
                               const std::vector<depth_first::ScheduledStack>& stacks);
    /// The same for one point: each stack with the point's tile and overlap.
    nlohmann::ordered_json add(const std::string& name, const depth_first::Strategy& strategy);

    [[nodiscard]] bool empty() const { return schedules_.empty(); }
    [[nodiscard]] const std::string& refusal() const { return refusal_; }
    /// The loop nests of what add() returned; an empty text if there is no schedule.
    [[nodiscard]] std::vector<std::string> nests(const nlohmann::ordered_json& added) const;
    /// front_json() of all schedules, counted by the two-level model. Equal schedules are one point
    /// with several names. `page` is the file of the page by report_page.h.
    [[nodiscard]] nlohmann::ordered_json front(const NetworkArgument& given,
                                               const std::string& page) const;

private:
    const Network& network_;
    const depth_first::DepthFirst& model_;
    struct Named {
        Schedule schedule;
        std::vector<std::string> names;
    };
    std::map<std::string, Named> schedules_;  ///< by text
    std::string refusal_;
};

}  // namespace laminate::cli
