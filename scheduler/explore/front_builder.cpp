#include "scheduler/explore/front_builder.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "scheduler/explore/compute_levels.h"

namespace laminate {
namespace search {

namespace {

/// Adds a group that runs after the others.
void add(NetworkCounts& sum, const NetworkCounts& group) {
    sum.accesses += group.accesses;
    sum.macs += group.macs;
    sum.live_total = std::max(sum.live_total, group.live_total);
    sum.sum_total = std::max(sum.sum_total, group.sum_total);
}

}  // namespace

GroupSchedule on_layers(const Network& network, GroupSchedule group,
                        const std::vector<LayerId>& layers) {
    for (size_t k = 0; k < layers.size(); ++k) group.nests[k].layer = network.layer(layers[k]).name;
    return group;
}

FrontBuilder::FrontBuilder(const Network& network)
    : network_(network), is_covered_(network.layers.size()) {
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (must_be_scheduled(network, id)) must_be_covered_.push_back(id);
    }
}

uint32_t FrontBuilder::found_group(GroupSchedule group) {
    return this->group(with_outer_compute_levels(network_, std::move(group), cache_));
}

uint32_t FrontBuilder::group(GroupSchedule group, const NetworkCounts* counts) {
    const auto [known, is_new] =
        known_.try_emplace(to_text(group), static_cast<uint32_t>(front_.groups.size()));
    if (!is_new) return known->second;
    check_group(network_, group);
    counts_.push_back(counts != nullptr ? *counts
                                        : total({two_level_counts(network_, group, &cache_)}));
    std::vector<LayerId> layers;
    for (const Nest& nest : group.nests) layers.push_back(network_.find_layer(nest.layer));
    layers_.push_back(std::move(layers));
    front_.groups.push_back(std::move(group));
    return known->second;
}

void FrontBuilder::add_point(std::vector<uint32_t> groups, std::optional<double> milliseconds,
                             std::optional<Bytes> scratch) {
    std::ranges::fill(is_covered_, 0);
    FrontPoint point{std::move(groups), {}, milliseconds, scratch};
    for (const uint32_t group : point.groups) {
        add(point.counts, counts_[group]);
        for (const LayerId layer : layers_[group]) {
            char& is_covered = is_covered_[layer];
            if (is_covered != 0)
                throw std::logic_error("search: layer " + network_.layer(layer).name +
                                       " is in two groups");
            is_covered = 1;
        }
    }
    for (const LayerId id : must_be_covered_) {
        if (is_covered_[id] == 0)
            throw std::logic_error("search: layer " + network_.layer(id).name + " is in no group");
    }
    front_.points.push_back(std::move(point));
}

Front FrontBuilder::front(Footprint footprint) && {
    front_.footprint = footprint;
    std::ranges::stable_sort(front_.points, {}, [&](const FrontPoint& point) {
        return std::tuple(point.counts.accesses, memory_of(point.counts, footprint),
                          point.counts.macs);
    });
    return std::move(front_);
}

}  // namespace search

Front front_of(const Network& network, const std::vector<Schedule>& schedules) {
    search::FrontBuilder builder(network);
    for (const Schedule& schedule : schedules) {
        std::vector<uint32_t> point;
        for (const GroupSchedule& group : schedule.groups()) point.push_back(builder.group(group));
        builder.add_point(std::move(point));
    }
    Front front = std::move(builder).front(Footprint::live);
    front.is_complete = false;
    front.gap = std::numeric_limits<double>::infinity();
    return front;
}

}  // namespace laminate
