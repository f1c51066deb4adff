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
template <class Points>
void add_point(Points& front, GroupSchedule group, const GroupCounts& counts, Footprint footprint) {
    front.counts.push_back(total({counts}));
    front.points.push_back({std::move(group), counts.accesses(),
                            memory_of(front.counts.back(), footprint), counts.macs()});
}

/// Adds a point of the search after checking its costs against the model. The search takes loops
/// with one trip for loops with several. So a point costs less in the model, where a search that
/// was cut short did not come to the structure that has these loops innermost; it never costs more.
void add_checked_point(SegmentFront& front, const std::vector<LayerProblem>& problems,
                       const GroupSearch::Point& point, Footprint footprint, TwoLevelCache& cache) {
    GroupSchedule group = search::group_schedule(problems, point.choice);
    const GroupCounts counts = two_level_counts(problems, group, &cache);
    add_point(front, std::move(group), counts, footprint);
    const GroupPoint& result = front.points.back();
    const Cost counted = cost_of(result);
    if (counted.accesses <= point.cost.accesses && counted.memory <= point.cost.memory &&
        counted.macs <= point.cost.macs)
        return;
    const auto text = [](const Cost& c) {
        return "accesses " + std::to_string(c.accesses) + ", memory " + std::to_string(c.memory) +
               ", MACs " + std::to_string(c.macs);
    };
    throw std::logic_error("search: " + to_text(result.group) + ": searched " + text(point.cost) +
                           "; model " + text(counted));
}

/// Adds what line buffers, strips and tiles of the whole group reach.
template <class Points>
void add_family(Points& front, const std::vector<LayerProblem>& problems,
                const ExploreOptions& options) {
    ExploreOptions coarse = options;
    coarse.tiles = TileSizes::powers_of_two;
    TwoLevelCache cache;
    for (GroupPoint& point : family_front(problems, coarse, options.tiles)) {
        const GroupCounts counts = two_level_counts(problems, point.group, &cache);
        add_point(front, std::move(point.group), counts, options.footprint);
    }
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
                  bool macs_is_axis, const SegmentContext& context, const SegmentOutlook& outlook)
        : problems_(problems),
          options_(options),
          context_(context),
          outlook_(outlook),
          limits_(context.limits) {
        limits_.insert(limits_.end(), context.known.begin(), context.known.end());
        own_.tiles = search_tiles(options);
        own_.live = options.footprint == Footprint::live;
        own_.macs_is_axis = macs_is_axis;
        own_.recompute = options.recompute && options.space != Space::fusion;
        own_.structures.is_baseline = options.space == Space::baseline;
        own_.structures.only_resident = options.space == Space::fusion;
        if (options.memory) own_.memory = static_cast<double>(options.memory->value());
        own_.stop = options.stop;
        own_.max_steps = steps_of(options.max_steps, problems.size(), context.parts_are_complete);
    }

    SegmentFront front() {
        if (problems_.size() > 1) {
            if (is_beaten(outlook_.least)) return result();
            if (is_hard() && ends_soon()) return result();
            if (is_hard() &&
                is_beaten(search::CallBound(problems_, search::Detail::fine, context_.halo_tables)
                              .steps())) {
                open_.clear();
                return result();
            }
            find_good_points();
        }
        if (problems_.size() < too_deep_for_parts || context_.parts_are_complete)
            open_ = run(own_);
        else
            open_ = {Cost{}};
        if (own_.bound != nullptr) open_ = unbeaten(at_least_both(open_, bound_));
        return result();
    }

private:
    /// Searches, knowing what was found before. Returns what it left open.
    std::vector<Cost> run(const search::GroupSearchOptions& how) {
        GroupSearch search(problems_, how);
        for (const Cost& cost : limits_) search.know(cost);
        for (const GroupSearch::Point& point : found_) search.know(point);
        search.run();
        found_ = search.front();
        return search.open();
    }

    /// What was found, and these costs.
    [[nodiscard]] Archive<char> with_found(const std::vector<Cost>& costs) const {
        Archive<char> all(own_.macs_is_axis);
        for (const Cost& cost : costs) all.offer(cost, 0);
        for (const GroupSearch::Point& point : found_) all.offer(point.cost, 0);
        return all;
    }
    [[nodiscard]] std::vector<Cost> unbeaten(std::vector<Cost> bounds) const {
        const Archive<char> all = with_found(limits_);
        std::erase_if(bounds, [&](const Cost& cost) { return all.beats_all_above(cost); });
        return bounds;
    }

    /// Whether known costs beat all that is not below this bound. The search uses it from now on.
    [[nodiscard]] bool is_beaten(std::vector<Cost> bound) {
        bound_ = std::move(bound);
        own_.bound = &bound_;
        return unbeaten(bound_).empty();
    }
    /// Whether good schedules are worth their time, and a fine bound.
    [[nodiscard]] bool is_hard() const {
        return problems_.size() >= deep && problems_.size() < very_deep &&
               options_.max_steps != INT64_MAX;
    }
    /// Searches with a part of the work. Most segments of classifiers take no more.
    [[nodiscard]] bool ends_soon() {
        if (problems_.size() >= too_deep_for_parts && !context_.parts_are_complete) return false;
        search::GroupSearchOptions little = own_;
        little.max_steps = options_.max_steps / part_of_rounds;
        if (own_.tiles == search::Tiles::all) {
            little.tiles = search::Tiles::powers_of_two;
            (void)run(little);
            little.tiles = own_.tiles;
        }
        open_ = unbeaten(at_least_both(run(little), bound_));
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
        } else if (context_.parts_are_complete) {
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
    /// Tiles of annealing are any integers, so its points are no points of the space. Their
    /// structures may have better tiles, so points count that beat known costs, be they wanted or
    /// not.
    [[nodiscard]] Structures annealed_structures() const {
        return structures_of(search::annealed(problems_, own_, with_found(context_.known).costs(),
                                              unbeaten(bound_)));
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
        result.points.insert(result.points.end(), outlook_.points.begin(), outlook_.points.end());
        result.counts.insert(result.counts.end(), outlook_.counts.begin(), outlook_.counts.end());
        if (problems_.size() > 1 && outlook_.points.empty() && !open_.empty())
            add_family(result, problems_, options_);
        return result;
    }

    const std::vector<LayerProblem>& problems_;
    const ExploreOptions& options_;
    const SegmentContext& context_;
    const SegmentOutlook& outlook_;
    std::vector<Cost> limits_;  ///< what beats all that is not wanted
    search::GroupSearchOptions own_;
    std::vector<Cost> bound_;
    std::vector<GroupSearch::Point> found_;
    std::vector<Cost> open_;
};

}  // namespace

search::Cost cost_of(const GroupPoint& point) {
    return {static_cast<double>(point.accesses.value()),
            static_cast<double>(point.live_total.value()), static_cast<double>(point.macs.value())};
}

SegmentOutlook outlook_of(const std::vector<LayerProblem>& problems, const ExploreOptions& options,
                          std::shared_ptr<search::HaloTables> halo_tables) {
    SegmentOutlook outlook;
    outlook.least =
        search::CallBound(problems, search::Detail::coarse, std::move(halo_tables)).steps();
    // Strips are outside the space, so they may be better than all of it.
    if (problems.size() > deepest_of_papers && options.max_steps != INT64_MAX)
        add_family(outlook, problems, options);
    return outlook;
}

SegmentFront search_segment(const std::vector<LayerProblem>& problems,
                            const ExploreOptions& options, bool macs_is_axis,
                            const SegmentContext& context) {
    SegmentOutlook own;
    if (context.outlook == nullptr && problems.size() > 1)
        own = outlook_of(problems, options, context.halo_tables);
    return SegmentSearch(problems, options, macs_is_axis, context,
                         context.outlook != nullptr ? *context.outlook : own)
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
        search_segment(problems, options, options.macs_is_axis.value_or(true), {}).points;
    std::sort(points.begin(), points.end(),
              [](const GroupPoint& a, const GroupPoint& b) { return cost_of(a) < cost_of(b); });
    return points;
}

}  // namespace laminate
