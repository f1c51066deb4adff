#include "scheduler/explore/dag/dag_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/explore/dag/family.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/group_front.h"
#include "scheduler/explore/pareto.h"

namespace laminate {

namespace {

using search::Archive;
using search::Cost;

SizedPoints sized_front(const Network& network, const std::vector<LayerId>& layers,
                        const ExploreOptions& options) {
    const bool macs_is_axis = options.macs_is_axis.value_or(false);
    if (layers.size() > 1 || !must_be_scheduled(network, layers.front()))
        return sized_family(layer_problems(network, layers), options, options.tiles,
                            Refetch::largest, macs_is_axis);
    SizedPoints points(macs_is_axis);
    for (GroupPoint& point : group_front(network, layers, options)) {
        points.offer(cost_of(point.accesses, point.live_total, point.macs),
                     {std::make_shared<const GroupSchedule>(std::move(point.group)), 0, 0});
    }
    return points;
}

}  // namespace

std::vector<std::vector<LayerId>> groups_ending_at(const Network& network, LayerId sink,
                                                   int64_t max_depth) {
    std::set<std::vector<LayerId>> found;
    std::vector<std::vector<LayerId>> open{{sink}};
    found.insert(open.front());
    while (!open.empty()) {
        const std::vector<LayerId> group = std::move(open.back());
        open.pop_back();
        if (static_cast<int64_t>(group.size()) >= max_depth) continue;
        for (const LayerId member : group) {
            for (const TensorId tensor : network.layer(member).inputs) {
                const LayerId producer = network.producer(tensor);
                if (producer < 0 || network.is_output(tensor) || !is_schedulable(network, producer))
                    continue;
                if (std::binary_search(group.begin(), group.end(), producer)) continue;
                const std::vector<LayerId> readers = network.consumers(tensor);
                const auto is_inside = [&](LayerId reader) {
                    return std::binary_search(group.begin(), group.end(), reader);
                };
                if (!std::all_of(readers.begin(), readers.end(), is_inside)) continue;
                std::vector<LayerId> larger = group;
                larger.insert(std::upper_bound(larger.begin(), larger.end(), producer), producer);
                if (found.insert(larger).second) open.push_back(std::move(larger));
            }
        }
    }
    std::vector<std::vector<LayerId>> groups(found.begin(), found.end());
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return groups;
}

OneSinkGroups one_sink_groups(const Network& network, int64_t max_depth) {
    OneSinkGroups groups;
    groups.ending_at.resize(network.layers.size());
    for (LayerId sink = 0; sink < static_cast<LayerId>(network.layers.size()); ++sink) {
        if (!is_schedulable(network, sink)) continue;
        for (std::vector<LayerId>& layers : groups_ending_at(network, sink, max_depth)) {
            groups.ending_at[sink].push_back(groups.layers.size());
            groups.layers.push_back(std::move(layers));
        }
    }
    return groups;
}

std::vector<GroupPoint> dag_group_front(const Network& network, const std::vector<LayerId>& layers,
                                        const ExploreOptions& options) {
    return with_schedules(sized_front(network, layers, options));
}

namespace {

/// A partial answer: a cover of some layers, from the network's end.
struct Cover {
    const SizedPoint* group = nullptr;
    const std::vector<LayerId>* layers = nullptr;
    std::shared_ptr<const Cover> before;
};
using Covers = Archive<std::shared_ptr<const Cover>>;

/// Beyond this many pairs of partial covers and groups the MACs axis is dropped.
constexpr size_t most_pairs = 4'000'000;

/// The front of all covers. `fronts` holds the front of the first group of each shape; `like` names
/// that group. nullopt if there are too many pairs on three axes.
std::optional<Covers> best_covers(const Network& network, const OneSinkGroups& groups,
                                  const std::vector<size_t>& like,
                                  const std::vector<SizedPoints>& fronts, bool macs_is_axis) {
    Covers nothing(macs_is_axis);
    nothing.offer(Cost{}, std::make_shared<Cover>());
    size_t pairs = 0;
    Covers covers =
        over_covers(network, groups, nothing, Covers(macs_is_axis),
                    [&](const Covers& before, size_t group, Covers& target) {
                        const SizedPoints& points = fronts[like[group]];
                        pairs += before.size() * points.size();
                        if (macs_is_axis && pairs > most_pairs) return;
                        search::add_pairs(before, points, target,
                                          [&](const auto& cover, const SizedPoint& point) {
                                              return std::make_shared<const Cover>(
                                                  Cover{&point, &groups.layers[group], cover});
                                          });
                    });
    if (macs_is_axis && pairs > most_pairs) return std::nullopt;
    return covers;
}

SizedPoints on_two_axes(const SizedPoints& points) {
    SizedPoints result(false);
    for (size_t n = 0; n < points.size(); ++n) result.offer(points.costs()[n], points.items()[n]);
    return result;
}

/// Groups of the same shape share one front, that of the first such group.
struct Shapes {
    std::vector<size_t> like;  ///< by group: the first group of its shape
    /// the first groups, large ones first because they take the most time
    std::vector<size_t> first;
};

Shapes shapes_of(const Network& network, const OneSinkGroups& groups) {
    Shapes found;
    std::map<std::vector<int64_t>, size_t> shapes;
    for (size_t number = 0; number < groups.layers.size(); ++number) {
        found.like.push_back(
            shapes.emplace(shape_key(layer_problems(network, groups.layers[number])), number)
                .first->second);
        if (found.like.back() == number) found.first.push_back(number);
    }
    std::stable_sort(found.first.begin(), found.first.end(), [&](size_t a, size_t b) {
        return groups.layers[a].size() > groups.layers[b].size();
    });
    return found;
}

/// By group: the front, if it is the first of its shape, else an empty one. After an interrupt only
/// single layers, which an answer needs, are explored, and only coarsely.
std::vector<SizedPoints> fronts_of_shapes(const Network& network, const OneSinkGroups& groups,
                                          const Shapes& shapes, const ExploreOptions& options) {
    std::vector<SizedPoints> fronts(groups.layers.size(),
                                    SizedPoints(options.macs_is_axis.value_or(false)));
    std::mutex mutex;
    ExploreProgress progress{0, static_cast<int64_t>(shapes.first.size()), ""};
    in_parallel(shapes.first.size(), std::max(1, options.threads), [&](size_t n) {
        const std::vector<LayerId>& layers = groups.layers[shapes.first[n]];
        ExploreOptions own = options;
        if (options.stop != nullptr && options.stop->load()) {
            if (layers.size() > 1) return;
            own.stop = nullptr;
            own.tiles = TileSizes::powers_of_two;
        }
        fronts[shapes.first[n]] = sized_front(network, layers, own);
        if (!options.progress) return;
        const std::lock_guard<std::mutex> lock(mutex);
        ++progress.segments_done;
        progress.segment = network.layer(layers.front()).name;
        if (layers.size() > 1) progress.segment += " .. " + network.layer(layers.back()).name;
        options.progress(progress);
    });
    return fronts;
}

Front front_of_covers(const Network& network, const Covers& covers, Footprint footprint) {
    search::FrontBuilder builder(network);
    std::map<std::pair<const SizedPoint*, const std::vector<LayerId>*>, uint32_t> known;
    for (const auto& cover : covers.items()) {
        std::vector<uint32_t> point;
        for (const Cover* c = cover.get(); c->group != nullptr; c = c->before.get()) {
            const auto [entry, is_new] = known.try_emplace({c->group, c->layers});
            if (is_new)
                entry->second =
                    builder.found_group(search::on_layers(network, c->group->schedule(), *c->layers));
            point.push_back(entry->second);
        }
        builder.add_point(std::move(point));
    }
    Front front = std::move(builder).front(footprint);
    front.macs_is_axis = covers.macs_is_axis();
    return front;
}

/// Bounds an interrupted front by compulsory traffic: the groups that were left out may move as
/// little, in any memory.
void bound_by_compulsory_accesses(const Network& network, Front& front) {
    const Elements least = compulsory_accesses(network);
    front.bounds = {{Elements{}, least}};
    front.gap = std::numeric_limits<double>::infinity();
    if (least == Elements{}) return;
    front.gap = 0;
    for (const FrontPoint& point : front.points) {
        const double ratio =
            static_cast<double>(point.counts.accesses.value()) / static_cast<double>(least.value());
        front.gap = std::max(front.gap, ratio - 1);
    }
}

}  // namespace

Front explore_dag(const Network& network, const ExploreOptions& options) {
    OneSinkGroups groups =
        one_sink_groups(network, options.max_depth.value_or(default_max_depth(Space::dag)));
    if (groups.layers.empty())
        throw InputError("network " + network.name +
                         ": no layer that a schedule covers; nothing to explore");
    const Shapes shapes = shapes_of(network, groups);
    std::vector<SizedPoints> fronts = fronts_of_shapes(network, groups, shapes, options);
    for (std::vector<size_t>& ending : groups.ending_at)
        std::erase_if(ending, [&](size_t group) { return fronts[shapes.like[group]].size() == 0; });
    std::optional<Covers> complete =
        best_covers(network, groups, shapes.like, fronts, options.macs_is_axis.value_or(false));
    if (!complete) {
        for (SizedPoints& points : fronts) points = on_two_axes(points);
        complete = best_covers(network, groups, shapes.like, fronts, false);
    }
    Front front = front_of_covers(network, *complete, options.footprint);
    front.is_complete = options.stop == nullptr || !options.stop->load();
    if (!front.is_complete && !front.points.empty()) bound_by_compulsory_accesses(network, front);
    return front;
}

}  // namespace laminate
