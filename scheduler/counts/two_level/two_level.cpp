#include "scheduler/counts/two_level/two_level.h"

#include <unordered_map>

#include "base/hash.h"
#include "scheduler/counts/two_level/axis_sweep.h"
#include "scheduler/counts/two_level/group_model.h"

namespace laminate {

struct TwoLevelCache::Entries {
    std::unordered_map<std::vector<int64_t>, two_level::AxisCounts, SequenceHash> axes;
};

TwoLevelCache::TwoLevelCache() : entries_(std::make_unique<Entries>()) {}
TwoLevelCache::TwoLevelCache(TwoLevelCache&&) noexcept = default;
TwoLevelCache& TwoLevelCache::operator=(TwoLevelCache&&) noexcept = default;
TwoLevelCache::~TwoLevelCache() = default;

const two_level::AxisCounts& TwoLevelCache::counts(const two_level::AxisProblem& problem) {
    std::vector<int64_t> key = problem.key();
    const auto known = entries_->axes.find(key);
    if (known != entries_->axes.end()) return known->second;
    return entries_->axes.emplace(std::move(key), axis_counts(problem)).first->second;
}

GroupCounts two_level_counts(const std::vector<LayerProblem>& problems, const GroupSchedule& group,
                             TwoLevelCache* cache) {
    TwoLevelCache own;
    TwoLevelCache& axes = cache != nullptr ? *cache : own;
    const two_level::GroupModel model(problems, group);
    two_level::AxisTable table = model.empty_table();
    for (size_t a = 0; a < model.axis_count(); ++a)
        table.set(a, axes.counts(model.axis_problem(a, group)));
    return model.counts(table, group);
}

Macs two_level_work(const std::vector<LayerProblem>& problems, const GroupSchedule& group) {
    const two_level::GroupModel model(problems, group);
    std::vector<two_level::AxisCounts> counts;
    for (size_t a = 0; a < model.axis_count(); ++a)
        counts.push_back(axis_counts(model.axis_problem(a, group)));
    two_level::AxisTable table = model.empty_table();
    for (size_t a = 0; a < model.axis_count(); ++a) table.set(a, counts[a]);
    return model.work(table);
}

GroupCounts two_level_counts(const Network& network, const GroupSchedule& group,
                             TwoLevelCache* cache) {
    return two_level_counts(group_problems(network, group), group, cache);
}

NetworkCounts two_level_counts(const Network& network, const Schedule& schedule,
                               TwoLevelCache* cache) {
    std::vector<GroupCounts> groups;
    for (const GroupSchedule& group : schedule.groups())
        groups.push_back(two_level_counts(network, group, cache));
    return total(groups);
}

}  // namespace laminate
