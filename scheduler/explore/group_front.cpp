#include "scheduler/explore/group_front.h"

#include <algorithm>
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

/// From this depth on, good schedules are looked for first, because bounds prune little without.
constexpr size_t deep = 3;

/// From this depth on, a segment with half-searched parts is not searched to the end.
constexpr size_t too_deep_for_parts = 4;

/// Up to this depth, a front that was searched to the end is that of the papers' space alone.
constexpr size_t deepest_of_papers = 3;

/// Of the search for better structures near known ones: rounds at most, and the part of
/// ExploreOptions::max_steps that each may take, as may the first try without them.
constexpr int most_rounds = 8;
constexpr int64_t part_of_rounds = 20;

class SegmentSearch {
public:
    /// The arguments are those of search_segment(), and outlive the search.
    SegmentSearch(const std::vector<LayerProblem>& problems, const ExploreOptions& options,
                  bool macs_is_axis, const std::vector<Cost>& known, bool parts_are_complete,
                  std::shared_ptr<search::HaloTables> halo_tables)
        : problems_(problems),
          options_(options),
          known_(known),
          halo_tables_(std::move(halo_tables)),
          parts_are_complete_(parts_are_complete) {
        own_.tiles = search_tiles(options);
        own_.live = options.footprint == Footprint::live;
        own_.macs_is_axis = macs_is_axis;
        own_.recompute = options.recompute && options.space != Space::fusion;
        own_.structures.is_baseline = options.space == Space::baseline;
        own_.structures.only_resident = options.space == Space::fusion;
        if (options.memory) own_.memory = static_cast<double>(options.memory->value());
        own_.stop = options.stop;
        own_.max_steps = steps_of(options.max_steps, problems.size(), parts_are_complete);
    }

    SegmentFront front() {
        if (problems_.size() > 1) {
            if (is_beaten(search::Detail::coarse)) return {};
            if (is_hard() && ends_soon()) return result();
            if (is_hard() && is_beaten(search::Detail::fine)) {
                open_.clear();
                return result();
            }
            find_good_points();
        }
        if (problems_.size() < too_deep_for_parts || parts_are_complete_)
            open_ = run(own_);
        else
            open_ = {Cost{}};
        if (bound_) open_ = unbeaten(at_least_both(open_, *bound_));
        return result();
    }

private:
    /// Searches, knowing what was found before. Returns what it left open.
    std::vector<Cost> run(const search::GroupSearchOptions& how) {
        GroupSearch search(problems_, how);
        for (const Cost& cost : known_) search.know(cost);
        for (const GroupSearch::Point& point : found_) search.know(point);
        search.run();
        found_ = search.front();
        return search.open();
    }

    [[nodiscard]] Archive<char> reached() const {
        Archive<char> reached(own_.macs_is_axis);
        for (const Cost& cost : known_) reached.offer(cost, 0);
        for (const GroupSearch::Point& point : found_) reached.offer(point.cost, 0);
        return reached;
    }
    [[nodiscard]] std::vector<Cost> unbeaten(std::vector<Cost> bounds) const {
        const Archive<char> all = reached();
        std::erase_if(bounds, [&](const Cost& cost) { return all.beats_all_above(cost); });
        return bounds;
    }

    /// Whether known costs beat all that the bound leaves.
    [[nodiscard]] bool is_beaten(search::Detail detail) {
        bound_.emplace(problems_, detail, halo_tables_);
        own_.bound = &*bound_;
        return unbeaten(bound_->steps()).empty();
    }
    /// Whether good schedules are worth their time, and a fine bound.
    [[nodiscard]] bool is_hard() const {
        return problems_.size() >= deep && problems_.size() < very_deep &&
               options_.max_steps != INT64_MAX;
    }
    /// Searches with a part of the work. Most segments of classifiers take no more.
    [[nodiscard]] bool ends_soon() {
        if (problems_.size() >= too_deep_for_parts && !parts_are_complete_) return false;
        search::GroupSearchOptions little = own_;
        little.max_steps = options_.max_steps / part_of_rounds;
        if (own_.tiles == search::Tiles::all) {
            little.tiles = search::Tiles::powers_of_two;
            (void)run(little);
            little.tiles = own_.tiles;
        }
        open_ = unbeaten(at_least_both(run(little), *bound_));
        return open_.empty();
    }

    void find_good_points() {
        if (problems_.size() < very_deep) {
            search::GroupSearchOptions coarse = own_;
            const bool tries_all = own_.tiles == search::Tiles::all;
            if (tries_all) coarse.tiles = search::Tiles::powers_of_two;
            if (is_hard()) search_nearby(coarse, annealed_structures());
            if (tries_all) (void)run(coarse);
            if (tries_all && is_hard()) {
                coarse.tiles = search::Tiles::divisors;
                search_nearby(coarse, structures_of(found_));
                (void)run(coarse);
            }
        } else if (parts_are_complete_) {
            search::GroupSearchOptions kept = own_;
            kept.structures.only_kept = true;
            (void)run(kept);
        }
    }

    using Structures = std::vector<IndexVector<search::LayerStructure, int>>;
    static Structures structures_of(const std::vector<GroupSearch::Point>& points) {
        Structures all;
        for (const GroupSearch::Point& point : points) {
            const auto is_same = [&](const auto& other) {
                return std::ranges::equal(other, point.choice.structures, search::say_the_same);
            };
            if (std::ranges::none_of(all, is_same)) all.push_back(point.choice.structures);
        }
        return all;
    }
    /// Tiles of annealing are any integers, so its points are no points of the space.
    [[nodiscard]] Structures annealed_structures() const {
        return structures_of(search::annealed(problems_, own_, reached().costs(),
                                              unbeaten(bound_->steps())));
    }

    /// Searches the structures that differ from `near` in one layer, then those that differ from
    /// what is found so, until that finds nothing or takes too long.
    void search_nearby(search::GroupSearchOptions options, Structures near) {
        options.max_steps = options_.max_steps / part_of_rounds;
        options.near = &near;
        for (int round = 0; round < most_rounds && !near.empty(); ++round) {
            const std::vector<GroupSearch::Point> before = found_;
            (void)run(options);
            if (std::ranges::equal(found_, before, {}, &GroupSearch::Point::cost,
                                   &GroupSearch::Point::cost))
                return;
            near = structures_of(found_);
        }
    }

    [[nodiscard]] SegmentFront result() const {
        SegmentFront result;
        result.open = open_;
        TwoLevelCache cache;
        for (const GroupSearch::Point& point : found_)
            add_checked_point(result, problems_, point, options_.footprint, cache);
        const bool has_strips =
            problems_.size() > deepest_of_papers && options_.max_steps != INT64_MAX;
        if (problems_.size() == 1 || (open_.empty() && !has_strips)) return result;
        // Add what line buffers, strips and tiles of the whole group reach. Strips are outside the
        // space, so they may be better than all of it.
        ExploreOptions coarse = options_;
        coarse.tiles = TileSizes::powers_of_two;
        for (GroupPoint& point : family_front(problems_, coarse, options_.tiles)) {
            const GroupCounts counts = two_level_counts(problems_, point.group, &cache);
            add_point(result, std::move(point.group), counts, options_.footprint);
        }
        return result;
    }

    const std::vector<LayerProblem>& problems_;
    const ExploreOptions& options_;
    const std::vector<Cost>& known_;
    std::shared_ptr<search::HaloTables> halo_tables_;
    bool parts_are_complete_;
    search::GroupSearchOptions own_;
    std::optional<search::CallBound> bound_;
    std::vector<GroupSearch::Point> found_;
    std::vector<Cost> open_;
};

}  // namespace

search::Cost cost_of(const GroupPoint& point) {
    return {static_cast<double>(point.accesses.value()),
            static_cast<double>(point.live_total.value()), static_cast<double>(point.macs.value())};
}

SegmentFront search_segment(const std::vector<LayerProblem>& problems,
                            const ExploreOptions& options, bool macs_is_axis,
                            const std::vector<Cost>& known, bool parts_are_complete,
                            std::shared_ptr<search::HaloTables> halo_tables) {
    return SegmentSearch(problems, options, macs_is_axis, known, parts_are_complete,
                         std::move(halo_tables))
        .front();
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
