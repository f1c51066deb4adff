#include "scheduler/search/counted.h"

#include <map>
#include <utility>

#include "scheduler/models/two_level/two_level.h"

namespace laminate::search {

std::vector<FrontPoint> counted(const Network& network, std::vector<Schedule> schedules) {
    TwoLevelCache cache;
    std::map<GroupSchedule, GroupCounts> known;
    std::vector<FrontPoint> points;
    for (Schedule& schedule : schedules) {
        std::vector<GroupCounts> counts;
        for (const GroupSchedule& group : schedule.groups()) {
            auto found = known.find(group);
            if (found == known.end()) found = known.emplace(group, two_level_counts(network, group, &cache)).first;
            counts.push_back(found->second);
        }
        points.push_back({std::move(schedule), total(counts)});
    }
    return points;
}

}  // namespace laminate::search
