// Schedules that the depth-first model found, by name, as the front that --schedule DIR#NAME reads.
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

/// Not every stack is a schedule: layers that only run on the reference operators, stacks that are
/// costed twice.
class FoundSchedules {
public:
    FoundSchedules(const Network& network, const depth_first::DepthFirst& model)
        : network_(network), model_(model) {}

    /// {"name", "schedule"}; null where there is no schedule: refusal() says why.
    nlohmann::ordered_json add(const std::string& name,
                               const std::vector<depth_first::ScheduledStack>& stacks);
    /// Of one point: each of its stacks with its tile and overlap.
    nlohmann::ordered_json add(const std::string& name, const depth_first::Strategy& strategy);

    [[nodiscard]] bool empty() const { return schedules_.empty(); }
    [[nodiscard]] const std::string& refusal() const { return refusal_; }
    /// Loop nests of what add() returned; empty where there is no schedule.
    [[nodiscard]] std::vector<std::string> nests(const nlohmann::ordered_json& added) const;
    /// front_json() of all, counted by the two-level model; equal ones are one point with several
    /// names. `page`: where report_page.h's page of it goes.
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
