#include "scheduler/explore/dag/dag_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/parallel.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/counts/two_level/group_model.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/explore/explore.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/group_search/axis_options.h"
#include "scheduler/explore/pareto.h"

namespace laminate {

namespace {

using search::Archive;
using search::Cost;
using two_level::AxisTable;
using two_level::GroupModel;

/// Where the producers of a group hang, and how long what they computed is kept.
enum class Hang {
    rows_recomputed,     ///< at the sink's yo, stored there: halo rows are computed again
    rows_kept,           ///< at yo, stored at the root
    tiles_recomputed,    ///< at xo, stored there
    tiles_kept_along_x,  ///< at xo, stored at yo
    tiles_kept,          ///< at xo, stored at the root
    column_strips,       ///< at yo inside column strips xs, stored at xs
    own_rows,            ///< as deep as yi loops of all readers allow, stored at the root
    own_rows_in_strips,  ///< the same inside column strips xs, stored at xs
};
constexpr std::array<Hang, 8> all_hangs{
    Hang::rows_recomputed, Hang::rows_kept,     Hang::tiles_recomputed, Hang::tiles_kept_along_x,
    Hang::tiles_kept,      Hang::column_strips, Hang::own_rows,         Hang::own_rows_in_strips};

bool has_strips(Hang hang) {
    return hang == Hang::column_strips || hang == Hang::own_rows_in_strips;
}
bool is_row_by_row(Hang hang) { return hang == Hang::own_rows || hang == Hang::own_rows_in_strips; }
bool recomputes(Hang hang) {
    return hang == Hang::rows_recomputed || hang == Hang::tiles_recomputed ||
           hang == Hang::tiles_kept_along_x || has_strips(hang);
}
bool has_tile_columns(Hang hang) {
    return hang == Hang::tiles_recomputed || hang == Hang::tiles_kept_along_x ||
           hang == Hang::tiles_kept;
}

/// Levels on the paths of all readers, outermost first.
std::vector<Level> common_path(const GroupSchedule& group, const GroupTensor& tensor) {
    std::vector<Level> levels = path(group, tensor.readers.front().nest);
    for (const TensorReader& reader : tensor.readers) {
        const std::vector<Level> other = path(group, reader.nest);
        levels.erase(std::mismatch(levels.begin(), levels.end(), other.begin(), other.end()).first,
                     levels.end());
    }
    return levels;
}

class Family {
public:
    Family(const std::vector<LayerProblem>& problems, Hang hang)
        : problems_(problems), tensors_(group_tensors(problems)), hang_(hang) {}

    /// `refetched`: nests whose weights are fetched again in every call, slice by slice of z; the
    /// others' stay for the whole group.
    [[nodiscard]] GroupSchedule group(bool keep_inputs, const std::vector<bool>& refetched) const {
        GroupSchedule group;
        for (size_t k = 0; k < problems_.size(); ++k) group.nests.push_back(nest(k, refetched[k]));
        for (int k = group.sink() - 1; k >= 0; --k) {
            const auto own = std::find_if(tensors_.begin(), tensors_.end(),
                                          [&](const GroupTensor& t) { return t.producer == k; });
            group.nests[static_cast<size_t>(k)].y = intermediate(group, *own);
        }
        for (const GroupTensor& tensor : tensors_) {
            if (!tensor.is_external()) continue;
            const TensorReader& first = tensor.readers.front();
            group.nests[static_cast<size_t>(first.nest)].x.push_back(
                {first.operand, external(group, tensor, keep_inputs)});
        }
        return group;
    }

private:
    [[nodiscard]] Nest nest(size_t k, bool is_refetched) const {
        const LayerProblem& p = problems_[k];
        const bool is_sink = k + 1 == problems_.size();
        Nest nest;
        nest.layer = p.name;
        nest.tile = p.extent;
        if (is_sink && has_strips(hang_)) {
            nest.loops.push_back({Dim::x, Band::strip});
            nest.strip[1] = p[Dim::x];
        }
        for (const Dim d : all_dims) nest.loops.push_back({d, Band::outer});
        // A slice of refetched weights serves a whole call; resident weights let the input pass row
        // by row.
        if (is_refetched)
            for (const Dim d : all_dims) nest.loops.push_back({d, Band::inner});
        else
            for (const Dim d : {Dim::y, Dim::x, Dim::z, Dim::i})
                nest.loops.push_back({d, Band::inner});
        const int own = static_cast<int>(k);
        if (p.has_weights()) {
            nest.w = Placement{};
            if (is_refetched)
                nest.w = Placement{{own, nest.find({Dim::i, Band::outer})},
                                   {own, nest.find({Dim::z, Band::inner})}};
        }
        if (is_sink) {
            const Level y{own, nest.find({Dim::i, Band::inner}) - 1};
            nest.y = {y, y};
        }
        return nest;
    }

    [[nodiscard]] Placement intermediate(const GroupSchedule& group,
                                         const GroupTensor& tensor) const {
        const Nest& last = group.nests.back();
        const Level rows{group.sink(), last.find({Dim::y, Band::outer})};
        const Level columns{group.sink(), last.find({Dim::x, Band::outer})};
        const Level strips{group.sink(), last.find({Dim::x, Band::strip})};
        switch (hang_) {
            case Hang::rows_recomputed:
                return {rows, rows};
            case Hang::rows_kept:
                return {{}, rows};
            case Hang::tiles_recomputed:
                return {columns, columns};
            case Hang::tiles_kept_along_x:
                return {rows, columns};
            case Hang::tiles_kept:
                return {{}, columns};
            case Hang::column_strips:
                return {strips, rows};
            case Hang::own_rows:
            case Hang::own_rows_in_strips:
                break;
        }
        std::vector<Level> levels = common_path(group, tensor);
        const auto is_row_loop = [&](Level level) {
            return level.is_root() || group.nests[static_cast<size_t>(level.nest)]
                                              .loops[static_cast<size_t>(level.loop)]
                                              .dim == Dim::y;
        };
        while (!is_row_loop(levels.back())) levels.pop_back();
        return {hang_ == Hang::own_rows ? Level{} : strips, levels.back()};
    }

    /// As deep as it can be computed; kept for the group, or as long as the intermediates are.
    [[nodiscard]] Placement external(const GroupSchedule& group, const GroupTensor& tensor,
                                     bool keep) const {
        std::vector<Level> levels = common_path(group, tensor);
        for (const TensorReader& reader : tensor.readers) {
            const LayerProblem& p = problems_[static_cast<size_t>(reader.nest)];
            if (p.groups == 1 || p[Dim::i] == 1) continue;
            const Level ii{reader.nest, group.nests[static_cast<size_t>(reader.nest)].find(
                                            {Dim::i, Band::inner})};
            levels.erase(std::find(levels.begin(), levels.end(), ii), levels.end());
        }
        Level store;
        if (!keep && problems_.size() > 1) store = group.nests.front().y.store;
        return {store, levels.back()};
    }

    const std::vector<LayerProblem>& problems_;
    std::vector<GroupTensor> tensors_;
    Hang hang_;
};

/// Sizes to try: of `all`, those that matter where no padding interferes.
std::vector<int64_t> family_sizes(int64_t extent, TileSizes kind) {
    return kind == TileSizes::all ? search::tile_candidates(extent, search::Tiles::trips)
                                  : tile_sizes(extent, kind);
}

/// A point whose schedule is one that many share, with the sink's sizes of its own.
struct SizedPoint {
    std::shared_ptr<const GroupSchedule> group;
    int64_t rows = 0;     ///< T_y of the sink; 0: as in `group`
    int64_t columns = 0;  ///< T_x, or the strip where there is one

    [[nodiscard]] GroupSchedule schedule() const {
        GroupSchedule sized = *group;
        if (rows > 0) set_sizes(sized, rows, columns);
        return sized;
    }
    static void set_sizes(GroupSchedule& group, int64_t rows, int64_t columns) {
        Nest& sink = group.nests.back();
        sink.tile[Dim::y] = rows;
        (sink.strip[1] > 0 ? sink.strip[1] : sink.tile[Dim::x]) = columns;
    }
};

using SizedPoints = Archive<SizedPoint>;

/// Groups of more layers get fewer candidates.
constexpr size_t long_group = 8;

/// How many of the largest weights may be fetched again: any number, of long groups none or all.
std::vector<size_t> refetch_counts(size_t weights) {
    std::vector<size_t> counts(weights + 1);
    std::iota(counts.begin(), counts.end(), size_t{0});
    if (weights > long_group) counts = {0, weights};
    return counts;
}

Cost cost_of(Elements accesses, Elements memory, Macs macs) {
    return {static_cast<double>(accesses.value()), static_cast<double>(memory.value()),
            static_cast<double>(macs.value())};
}

/// `strips`: widths of strips that go row by row.
SizedPoints sized_family(const std::vector<LayerProblem>& problems, const ExploreOptions& options,
                         TileSizes strips, Refetch refetch, bool macs_is_axis) {
    std::vector<size_t> by_weights;
    for (size_t k = 0; k < problems.size(); ++k) {
        if (problems[k].has_weights()) by_weights.push_back(k);
    }
    std::stable_sort(by_weights.begin(), by_weights.end(), [&](size_t a, size_t b) {
        return problems[a].weight_elements() > problems[b].weight_elements();
    });
    const LayerProblem& sink = problems.back();
    // The time of one schedule grows with the square of its layers.
    const TileSizes kind = problems.size() > long_group && options.tiles == TileSizes::all
                               ? TileSizes::powers_of_two
                               : options.tiles;
    const std::vector<int64_t> rows = family_sizes(sink[Dim::y], kind);
    const std::vector<int64_t> columns = family_sizes(sink[Dim::x], kind);
    const std::vector<int64_t> strip_columns = family_sizes(sink[Dim::x], strips);
    const bool recompute = options.recompute && options.space != Space::fusion;
    SizedPoints points(macs_is_axis);
    const auto try_sizes = [&](Hang hang, GroupSchedule group) {
        const auto shared = std::make_shared<const GroupSchedule>(group);
        const GroupModel model(problems, group);
        TwoLevelCache cache;
        AxisTable table = model.empty_table();
        for (size_t a = 0; a < model.axis_count(); ++a)
            table.set(a, cache.counts(model.axis_problem(a, group)));
        const size_t y_axis = model.axis_of(problems.size() - 1, Dim::y);
        const size_t x_axis = model.axis_of(problems.size() - 1, Dim::x);
        const bool many_columns = has_tile_columns(hang) || has_strips(hang);
        for (const int64_t row : is_row_by_row(hang) ? std::vector<int64_t>{sink[Dim::y]} : rows) {
            SizedPoint::set_sizes(group, row, sink[Dim::x]);
            table.set(y_axis, cache.counts(model.axis_problem(y_axis, group)));
            for (const int64_t column : hang == Hang::own_rows_in_strips ? strip_columns
                                        : many_columns                   ? columns
                                                       : std::vector<int64_t>{sink[Dim::x]}) {
                SizedPoint::set_sizes(group, row, column);
                table.set(x_axis, cache.counts(model.axis_problem(x_axis, group)));
                const GroupModel::Totals totals = model.totals(table, group);
                const Elements memory =
                    options.footprint == Footprint::live ? totals.live_total : totals.sum_total;
                if (options.memory && memory > *options.memory) continue;
                points.offer(cost_of(totals.accesses, memory, totals.macs), {shared, row, column});
            }
        }
    };
    for (const Hang hang : all_hangs) {
        if (recomputes(hang) && (!recompute || problems.size() == 1)) continue;
        const Family family(problems, hang);
        for (const bool keep_inputs : {false, true}) {
            if (keep_inputs && !recomputes(hang)) continue;  // kept anyway
            for (const size_t count : refetch_counts(by_weights.size())) {
                if (count > 0 && (is_row_by_row(hang) || refetch == Refetch::none ||
                                  options.space == Space::fusion))
                    continue;
                if (options.stop != nullptr && options.stop->load() && points.size() > 0)
                    return points;
                std::vector<bool> refetched(problems.size(), false);
                for (size_t n = 0; n < count; ++n) refetched[by_weights[n]] = true;
                try_sizes(hang, family.group(keep_inputs, refetched));
            }
        }
    }
    return points;
}

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

std::vector<GroupPoint> with_schedules(const SizedPoints& points) {
    std::vector<GroupPoint> result;
    for (size_t n = 0; n < points.size(); ++n) {
        const Cost& cost = points.costs()[n];
        result.push_back(
            {points.items()[n].schedule(), Elements(static_cast<int64_t>(cost.accesses)),
             Elements(static_cast<int64_t>(cost.memory)), Macs(static_cast<int64_t>(cost.macs))});
    }
    return result;
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
            groups.ending_at[static_cast<size_t>(sink)].push_back(groups.layers.size());
            groups.layers.push_back(std::move(layers));
        }
    }
    return groups;
}

std::vector<GroupPoint> dag_group_front(const Network& network, const std::vector<LayerId>& layers,
                                        const ExploreOptions& options) {
    return with_schedules(sized_front(network, layers, options));
}

std::vector<GroupPoint> family_front(const std::vector<LayerProblem>& problems,
                                     const ExploreOptions& options, TileSizes strips,
                                     Refetch refetch) {
    return with_schedules(sized_family(problems, options, strips, refetch, false));
}

namespace {

/// A partial answer: the cover of some layers, from the network's end.
struct Cover {
    const SizedPoint* group = nullptr;
    const std::vector<LayerId>* layers = nullptr;
    std::shared_ptr<const Cover> before;
};
using Covers = Archive<std::shared_ptr<const Cover>>;

/// Beyond this many pairs of partial covers and groups the MACs axis is given up.
constexpr size_t most_pairs = 4'000'000;

/// The front of all covers; `fronts` by group, of the first of its shape (`like`). None: more pairs
/// on three axes than wanted.
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

/// Groups that share their shape share one front: the first group of each shape.
struct Shapes {
    std::vector<size_t> like;   ///< by group: the first group of its shape
    std::vector<size_t> first;  ///< the first groups, large ones first: they take the most time
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

/// The front of the first group of each shape, by group; other groups' fronts are empty. After an
/// interrupt only single layers, which an answer needs, are explored, and coarsely.
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
                    builder.group(search::on_layers(network, c->group->schedule(), *c->layers));
            point.push_back(entry->second);
        }
        builder.add_point(std::move(point));
    }
    Front front = std::move(builder).front(footprint);
    front.macs_is_axis = covers.macs_is_axis();
    return front;
}

/// Bounds an interrupted front by what must cross: groups were left out that may move as little,
/// in any memory.
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
