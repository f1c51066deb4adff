#include "scheduler/explore/fewest_accesses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/explore/dag/family.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/group_search/sequences.h"

namespace laminate::search {

namespace {

bool is_stopped(const ExploreOptions& options) {
    return options.stop != nullptr && options.stop->load();
}

/// A group for a whole sequence with compulsory traffic only; among several, the one with the
/// fewest MACs. nullopt if the family has none.
std::optional<GroupSchedule> fused_whole(const Network& network, const std::vector<LayerId>& layers,
                                         const ExploreOptions& options) {
    const std::vector<LayerProblem> problems = layer_problems(network, layers);
    const Elements least = compulsory_accesses(problems);
    ExploreOptions coarse = options;  // a quick attempt; what it misses is searched later
    if (coarse.tiles == TileSizes::all) coarse.tiles = TileSizes::powers_of_two;
    // Points come by memory, smallest first. One that needs more memory and moves as little
    // computes less.
    std::optional<GroupSchedule> best;
    for (GroupPoint& point : family_front(problems, coarse, coarse.tiles, Refetch::none)) {
        if (point.accesses == least) best = std::move(point.group);
    }
    return best;
}

/// Every sequence fused whole, if that reaches the bound of the network in this memory.
std::optional<Front> at_the_bound(const Network& network, const ExploreOptions& options) {
    if (options.space != Space::fusion && options.space != Space::fusion_recompute)
        return std::nullopt;
    const std::vector<std::vector<LayerId>> sequences = sequences_of(network);
    std::map<std::vector<int64_t>, size_t> shapes;  // first sequence of each
    std::vector<size_t> like, work;
    for (const std::vector<LayerId>& layers : sequences) {
        if (static_cast<int64_t>(layers.size()) >
            options.max_depth.value_or(default_max_depth(options.space)))
            return std::nullopt;
        like.push_back(
            shapes.emplace(shape_key(layer_problems(network, layers)), like.size()).first->second);
        if (like.back() + 1 == like.size()) work.push_back(like.back());
    }
    // There are as many at a time as threads, because one that misses its bound ends the attempt.
    std::vector<std::optional<GroupSchedule>> found(sequences.size());
    const auto threads = static_cast<size_t>(std::max(1, options.threads));
    for (size_t begin = 0; begin < work.size(); begin += threads) {
        const size_t count = std::min(threads, work.size() - begin);
        in_parallel(count, options.threads, [&](size_t n) {
            found[work[begin + n]] = fused_whole(network, sequences[work[begin + n]], options);
        });
        for (size_t n = 0; n < count; ++n) {
            if (!found[work[begin + n]] || is_stopped(options)) return std::nullopt;
        }
    }
    FrontBuilder builder(network);
    std::vector<uint32_t> groups;
    for (size_t n = 0; n < sequences.size(); ++n)
        groups.push_back(builder.found_group(on_layers(network, *found[like[n]], sequences[n])));
    builder.add_point(std::move(groups));
    Front front = std::move(builder).front(options.footprint);
    front.macs_is_axis = false;
    const Elements memory = options.memory.value_or(Elements(INT64_MAX));
    if (front.points.front().counts.accesses != NetworkBound(network).accesses(memory))
        return std::nullopt;
    return front;
}

}  // namespace

Front fewest_accesses(const Network& network, const ExploreOptions& options) {
    if (std::optional<Front> answer = at_the_bound(network, options)) return std::move(*answer);
    ExploreOptions search = options;
    search.macs_is_axis = false;
    Front all = explore(network, search);
    if (all.points.empty()) return all;
    // All points fit. They come by accesses, then by memory, so the last one with as few accesses
    // as the first computes least.
    const auto begin = all.points.begin();
    const auto end = std::find_if(begin, all.points.end(), [&](const FrontPoint& point) {
        return point.counts.accesses != begin->counts.accesses;
    });
    const FrontPoint& least = *(end - 1);
    FrontBuilder builder(network);
    std::vector<uint32_t> groups;
    for (const uint32_t group : least.groups) groups.push_back(builder.group(all.groups[group]));
    builder.add_point(std::move(groups));
    Front front = std::move(builder).front(options.footprint);
    front.macs_is_axis = false;
    if (all.is_complete) return front;
    front.is_complete = false;
    front.gap = all.gap;
    if (all.bounds.empty()) return front;
    // What was left out costs at least as much as one of the steps: it exceeds the budget, or moves
    // at least as much.
    const Elements memory = options.memory.value_or(Elements(INT64_MAX));
    std::erase_if(all.bounds, [&](const FrontBound& step) { return step.memory > memory; });
    Elements bound = front.points.front().counts.accesses;
    for (const FrontBound& step : all.bounds) bound = std::min(bound, step.accesses);
    front.gap = static_cast<double>(front.points.front().counts.accesses.value()) /
                    static_cast<double>(bound.value()) -
                1;
    front.is_complete = front.gap == 0;
    if (!front.is_complete) front.bounds = std::move(all.bounds);
    return front;
}

}  // namespace laminate::search
