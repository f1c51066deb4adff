#include "scheduler/explore/group_front.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/dag/family.h"
#include "scheduler/explore/group_search/annealing.h"
#include "scheduler/explore/group_search/call_bound.h"
#include "scheduler/explore/group_search/group_search.h"
#include "scheduler/explore/group_search/sequences.h"

namespace laminate {

namespace {

using search::Archive;
using search::Cost;
using search::GroupSearch;

/// Adds a point with the counts of the model.
void add_point(SegmentFront& front, GroupSchedule group, const GroupCounts& counts,
               Footprint footprint) {
    front.counts.push_back(total({counts}));
    front.points.push_back({std::move(group), counts.accesses(),
                            memory_of(front.counts.back(), footprint), counts.macs()});
}

/// Adds a point of the search after checking its costs against the model.
void add_checked_point(SegmentFront& front, const std::vector<LayerProblem>& problems,
                       const GroupSearch::Point& point, Footprint footprint, TwoLevelCache& cache) {
    GroupSchedule group = search::group_schedule(problems, point.choice);
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    add_point(front, std::move(group), counts, footprint);
    const GroupPoint& result = front.points.back();
    if (cost_of(result) == point.cost) return;
    const auto text = [](const Cost& c) {
        return "accesses " + std::to_string(c.accesses) + ", memory " + std::to_string(c.memory) +
               ", MACs " + std::to_string(c.macs);
    };
    throw std::logic_error("search: " + to_text(result.group) + ": searched " + text(point.cost) +
                           "; model " + text(cost_of(result)));
}

/// From this depth on, most of the space is bounded anyway.
constexpr size_t very_deep = 6;

/// Searches of pairs come to an end. A segment with half-searched parts would be left half searched
/// too, so it gets just enough work for good points, and is bounded by its calls.
int64_t steps_of(int64_t max_steps, size_t layers, bool parts_are_complete) {
    if (layers <= 2) return max_steps < INT64_MAX / 10 ? 10 * max_steps : max_steps;
    if (max_steps == INT64_MAX) return max_steps;
    if (!parts_are_complete) return max_steps / 100;
    return layers >= very_deep ? max_steps / 20 : max_steps;
}

/// From this depth on, the line-buffer family is searched first, because bounds prune little
/// without its points.
constexpr size_t deep = 4;

/// Of the search for better structures near known ones: rounds at most, and the part of
/// ExploreOptions::max_steps that each may take.
constexpr int most_rounds = 8;
constexpr int64_t part_of_rounds = 20;

/// Searches the structures that differ from those of `found` in one layer, and those of what is
/// found then, until that finds nothing or takes too long. `run` replaces `found`.
template <class Run>
void search_nearby(search::GroupSearchOptions options, int64_t max_steps, const Run& run,
                   const std::vector<GroupSearch::Point>& found) {
    options.max_steps = max_steps / part_of_rounds;
    for (int round = 0; round < most_rounds; ++round) {
        std::vector<IndexVector<search::LayerStructure, int>> near;
        std::vector<Cost> before;
        for (const GroupSearch::Point& point : found) {
            before.push_back(point.cost);
            const auto is_same = [&](const auto& other) {
                return std::ranges::equal(other, point.choice.structures, search::say_the_same);
            };
            if (std::ranges::none_of(near, is_same)) near.push_back(point.choice.structures);
        }
        options.near = &near;
        (void)run(options);
        if (std::ranges::equal(found, before, {}, &GroupSearch::Point::cost)) return;
    }
}

Archive<char> archive_of(const std::vector<Cost>& costs, bool macs_is_axis) {
    Archive<char> archive(macs_is_axis);
    for (const Cost& cost : costs) archive.offer(cost, 0);
    return archive;
}

}  // namespace

search::Cost cost_of(const GroupPoint& point) {
    return {static_cast<double>(point.accesses.value()),
            static_cast<double>(point.live_total.value()), static_cast<double>(point.macs.value())};
}

SegmentFront search_segment(const std::vector<LayerProblem>& problems,
                            const ExploreOptions& options, bool macs_is_axis,
                            const std::vector<Cost>& known, bool parts_are_complete) {
    search::GroupSearchOptions own;
    own.tiles = search_tiles(options);
    own.live = options.footprint == Footprint::live;
    own.macs_is_axis = macs_is_axis;
    own.recompute = options.recompute && options.space != Space::fusion;
    own.structures.is_baseline = options.space == Space::baseline;
    own.structures.only_resident = options.space == Space::fusion;
    if (options.memory) own.memory = static_cast<double>(options.memory->value());
    own.stop = options.stop;
    own.max_steps = steps_of(options.max_steps, problems.size(), parts_are_complete);
    std::optional<search::CallBound> bound;
    if (problems.size() > 1) {
        bound.emplace(problems);
        own.bound = &*bound;
        const Archive<char> reached = archive_of(known, macs_is_axis);
        if (std::all_of(bound->steps().begin(), bound->steps().end(),
                        [&](const Cost& step) { return reached.beats_all_above(step); }))
            return {};
    }
    std::vector<GroupSearch::Point> found;
    const auto run = [&](const search::GroupSearchOptions& how) {
        auto search = std::make_unique<GroupSearch>(problems, how);
        for (const Cost& cost : known) search->know(cost);
        for (const GroupSearch::Point& point : found) search->know(point);
        search->run();
        found = search->front();
        return search;
    };
    if (problems.size() >= deep && (parts_are_complete || problems.size() < very_deep)) {
        search::GroupSearchOptions kept = own;
        kept.structures.only_kept = true;
        (void)run(kept);
    }
    if (problems.size() > 1 && problems.size() < very_deep && own.tiles == search::Tiles::all) {
        search::GroupSearchOptions coarse = own;
        coarse.tiles = search::Tiles::powers_of_two;
        (void)run(coarse);
    }
    SegmentFront result;
    if (problems.size() < deep || parts_are_complete) {
        const auto full = run(own);
        result.open = full->open();
    } else {
        result.open = {Cost{}};
    }
    if (bound) {
        result.open = at_least_both(result.open, *bound);
        const auto drop_beaten = [&] {
            Archive<char> reached = archive_of(known, macs_is_axis);
            for (const GroupSearch::Point& point : found) reached.offer(point.cost, 0);
            std::erase_if(result.open,
                          [&](const Cost& cost) { return reached.beats_all_above(cost); });
            return reached.costs();
        };
        const std::vector<Cost> reached = drop_beaten();
        if (!result.open.empty() && problems.size() < very_deep) {
            for (GroupSearch::Point& point : search::annealed(problems, own, reached, result.open))
                found.push_back(std::move(point));
            search_nearby(own, options.max_steps, run, found);
            (void)drop_beaten();
        }
    }
    TwoLevelCache cache;
    for (const GroupSearch::Point& point : found)
        add_checked_point(result, problems, point, options.footprint, cache);
    if (problems.size() > 1 && !result.open.empty()) {
        // Not everything was searched, so add what line buffers and tiles of the whole group reach.
        ExploreOptions coarse = options;
        coarse.tiles = TileSizes::powers_of_two;
        for (GroupPoint& point : family_front(problems, coarse, options.tiles)) {
            const GroupCounts counts = two_level_counts(problems, point.group, &cache);
            add_point(result, std::move(point.group), counts, options.footprint);
        }
    }
    return result;
}

std::vector<GroupPoint> group_front(const Network& network, const std::vector<LayerId>& segment,
                                    const ExploreOptions& options) {
    if (segment.size() > 1 && !std::all_of(segment.begin(), segment.end(),
                                           [&](LayerId l) { return search::may_fuse(network, l); }))
        return {};
    return group_front(layer_problems(network, segment), options);
}

std::vector<GroupPoint> group_front(const std::vector<LayerProblem>& problems,
                                    const ExploreOptions& options) {
    if (problems.size() > 1 &&
        !std::all_of(problems.begin(), problems.end(),
                     [](const LayerProblem& p) { return search::may_fuse(p); }))
        return {};
    std::vector<GroupPoint> points =
        search_segment(problems, options, options.macs_is_axis.value_or(true), {}, true).points;
    std::sort(points.begin(), points.end(),
              [](const GroupPoint& a, const GroupPoint& b) { return cost_of(a) < cost_of(b); });
    return points;
}

}  // namespace laminate
