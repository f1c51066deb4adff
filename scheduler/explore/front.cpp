#include "scheduler/explore/front.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace laminate {

Schedule schedule_of(const Network& network, const Front& front, const FrontPoint& point) {
    std::vector<GroupSchedule> groups;
    for (const uint32_t group : point.groups) groups.push_back(front.groups[group]);
    return {network, std::move(groups)};
}

std::variant<FrontPoint, Infeasible> choose(const Front& front, Elements budget) {
    const auto text = [&](const FrontPoint& point) {
        std::string all;
        for (const uint32_t group : point.groups) all += to_text(front.groups[group]) + " ";
        return all;
    };
    const FrontPoint* best = nullptr;
    Elements least = front.points.at(0).counts.live_total;
    for (const FrontPoint& point : front.points) {
        least = std::min(least, point.counts.live_total);
        if (point.counts.live_total > budget) continue;
        const auto key = [](const FrontPoint& p) {
            return std::tuple(p.counts.accesses, p.counts.macs);
        };
        if (best == nullptr || key(point) < key(*best) ||
            (key(point) == key(*best) && text(point) < text(*best)))
            best = &point;
    }
    if (best == nullptr) return Infeasible{least, budget};
    return *best;
}

}  // namespace laminate
