#include "papers/depth_first/schedule_files.h"

#include <nlohmann/json.hpp>

#include "answers/front_file.h"
#include "answers/front_report.h"
#include "base/error.h"
#include "scheduler/schedule/loop_nest.h"

namespace laminate::cli {

nlohmann::ordered_json FoundSchedules::add(const std::string& name,
                                           const std::vector<depth_first::ScheduledStack>& stacks) {
    try {
        Schedule schedule = depth_first::schedule_of(network_, model_.workload(), stacks);
        std::string text = to_text(schedule);
        schedules_.try_emplace(text, Named{std::move(schedule), {}})
            .first->second.names.push_back(name);
        return {{"name", name}, {"schedule", std::move(text)}};
    } catch (const InputError& error) {
        refusal_ = error.what();
        return nullptr;
    }
}

nlohmann::ordered_json FoundSchedules::add(const std::string& name,
                                           const depth_first::Strategy& strategy) {
    std::vector<depth_first::ScheduledStack> stacks;
    for (const std::vector<size_t>& layers : model_.stacks(strategy.stacks))
        stacks.push_back({layers, strategy});
    return add(name, stacks);
}

std::vector<std::string> FoundSchedules::nests(const nlohmann::ordered_json& added) const {
    std::vector<std::string> texts;
    for (const nlohmann::ordered_json& entry : added)
        texts.push_back(
            entry.is_null()
                ? ""
                : loop_nest_text(network_,
                                 schedules_.at(entry["schedule"].get<std::string>()).schedule));
    return texts;
}

nlohmann::ordered_json FoundSchedules::front(const NetworkArgument& given,
                                             const std::string& page) const {
    std::vector<Schedule> schedules;
    for (const auto& [text, named] : schedules_) schedules.push_back(named.schedule);
    nlohmann::ordered_json json = found_front(network_, schedules, "depth-first", given);
    json["machine"] = model_.machine().name;
    json["page"] = page;
    for (size_t n = 0; n < json["points"].size(); ++n) {
        for (const std::string& name : schedules_.at(schedule_text(json, n)).names)
            name_point(json, n, name);
    }
    return json;
}

}  // namespace laminate::cli
