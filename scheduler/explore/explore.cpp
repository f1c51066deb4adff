#include "scheduler/explore/explore.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "scheduler/counts/bounds.h"
#include "scheduler/explore/compute_levels.h"
#include "scheduler/explore/dag/dag_groups.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/group_search/group_search.h"
#include "scheduler/explore/group_search/sequences.h"
#include "scheduler/explore/pareto.h"
#include "scheduler/explore/partitions.h"

namespace laminate {

namespace {

using search::Cost;
using search::GroupSearch;
using search::Partial;
using search::Partials;
using search::Partitions;

/// Beyond this many pairs the MACs axis is dropped.
constexpr size_t most_pairs = 4'000'000;

Partials on_two_axes(const Partials& a) {
    Partials result(false);
    for (size_t n = 0; n < a.size(); ++n) result.offer(a.costs()[n], a.items()[n]);
    return result;
}

struct Segment {
    std::vector<LayerId> layers;
    size_t sequence = 0;
    size_t begin = 0;
    size_t like = 0;  ///< first segment of the same shape
    SegmentOutlook outlook;
    SegmentFront front;  ///< if it is that segment
    [[nodiscard]] size_t end() const { return begin + layers.size(); }
};

class Explorer {
public:
    Explorer(const Network& network, const ExploreOptions& options)
        : network_(network), options_(options) {
        sequences_ = search::sequences_of(network);
        if (sequences_.empty())
            throw InputError("network " + network.name +
                             ": no layer that a schedule covers; nothing to explore");
        macs_is_axis_ =
            options.macs_is_axis.value_or(sequences_.size() == 1 && sequences_.front().size() <= 3);
        std::vector<LayerId> layers;
        for (const auto& sequence : sequences_)
            layers.insert(layers.end(), sequence.begin(), sequence.end());
        halo_tables_ = std::make_shared<search::HaloTables>(layer_problems(network, layers));
        find_segments();
        for (const auto& sequence : sequences_)
            partitions_.emplace_back(sequence.size(), macs_is_axis_);
    }

    Front run() {
        // Shorter runs of layers come first, because the results of the runs inside a run prune its
        // search. What other segments cost limits it too, so all segments of one length are done
        // before longer ones begin, and the answer does not depend on the order in which threads
        // finish.
        size_t longest = 0;
        for (const auto& sequence : sequences_) longest = std::max(longest, sequence.size());
        for (size_t length = 1; length <= longest; ++length) {
            if (length == 2) look_ahead();
            search_runs(length);
        }
        return network_front();
    }

private:
    void find_segments() {
        std::map<std::vector<int64_t>, size_t> shapes;
        const bool fuses =
            options_.space == Space::fusion || options_.space == Space::fusion_recompute;
        const int64_t deepest =
            fuses ? options_.max_depth.value_or(default_max_depth(options_.space)) : 1;
        const auto depth =
            static_cast<size_t>(std::clamp<int64_t>(deepest, 1, GroupSearch::most_layers));
        for (size_t s = 0; s < sequences_.size(); ++s) {
            for (size_t length = 1; length <= std::min(depth, sequences_[s].size()); ++length) {
                for (size_t begin = 0; begin + length <= sequences_[s].size(); ++begin) {
                    const auto first = sequences_[s].begin() + static_cast<std::ptrdiff_t>(begin);
                    Segment segment{{first, first + static_cast<std::ptrdiff_t>(length)},
                                    s,
                                    begin,
                                    segments_.size(),
                                    {},
                                    {}};
                    const auto key = shape_key(layer_problems(network_, segment.layers));
                    segment.like = shapes.emplace(key, segments_.size()).first->second;
                    progress_.segments_total += segment.like == segments_.size() ? 1 : 0;
                    segments_.push_back(std::move(segment));
                }
            }
        }
    }

    [[nodiscard]] bool is_stopped() const {
        return options_.stop != nullptr && options_.stop->load();
    }

    /// The first segments of each shape, of these lengths.
    [[nodiscard]] std::vector<size_t> shapes(size_t shortest, size_t longest) const {
        std::vector<size_t> shapes;
        for (size_t n = 0; n < segments_.size(); ++n) {
            const size_t length = segments_[n].layers.size();
            if (segments_[n].like == n && length >= shortest && length <= longest)
                shapes.push_back(n);
        }
        return shapes;
    }

    /// Finds what is said of segments of several layers before they are searched.
    void look_ahead() {
        std::vector<size_t> all = shapes(2, GroupSearch::most_layers);
        // The longest take the most time.
        std::ranges::stable_sort(all, std::ranges::greater(),
                                 [&](size_t n) { return segments_[n].layers.size(); });
        in_parallel(all.size(), std::max(1, options_.threads), [&](size_t n) {
            Segment& segment = segments_[all[n]];
            if (!is_stopped())
                segment.outlook =
                    outlook_of(layer_problems(network_, segment.layers), options_, halo_tables_);
        });
        for (const Segment& segment : segments_) {
            if (segment.layers.size() == 1) continue;
            const SegmentOutlook& outlook = segments_[segment.like].outlook;
            std::vector<Cost> known;
            for (const GroupPoint& point : outlook.points) known.push_back(cost_of(point));
            partitions_[segment.sequence].expect(segment.begin, segment.end(), known,
                                                 outlook.least);
        }
    }

    /// Searches all segments of one length, where all shorter ones are known.
    void search_runs(size_t length) {
        for (size_t s = 0; s < sequences_.size(); ++s) {
            for (size_t begin = 0; begin + length <= sequences_[s].size(); ++begin)
                partitions_[s].combine(begin, begin + length);
        }
        // The last pair of DMCNN-VD takes as long as all others together, so last segments begin
        // first.
        std::vector<size_t> all = shapes(length, length);
        std::ranges::reverse(all);
        const auto limits = limits_of(length);
        in_parallel(all.size(), std::max(1, options_.threads), [&](size_t n) {
            Segment& segment = segments_[all[n]];
            const auto own = limits.find(all[n]);
            search_one(segment, own == limits.end() ? std::vector<Cost>() : own->second.costs());
            const std::lock_guard<std::mutex> lock(mutex_);
            ++progress_.segments_done;
            tell(segment);
        });
        for (Segment& segment : segments_) {
            if (segment.layers.size() != length) continue;
            partitions_[segment.sequence].add(segment.begin, segment.layers, front_of(segment));
        }
    }

    /// By shape of segments of one length: costs that beat all its schedules that are not wanted.
    /// Nothing on three axes, and where the bounds of other layers are not there.
    [[nodiscard]] std::map<size_t, search::CostFront> limits_of(size_t length) {
        std::map<size_t, search::CostFront> limits;
        if (macs_is_axis_ || length == 1 || is_stopped() || shapes(length, length).empty())
            return limits;
        for (Partitions& partitions : partitions_) partitions.find_limits();
        // Whatever matters to one of the segments of a shape is looked for.
        for (const Segment& segment : segments_) {
            if (segment.layers.size() != length) continue;
            const Partitions& partitions = partitions_[segment.sequence];
            // Known schedules of a whole sequence may be strips, and what is nearest to the best
            // schedule of the space need not be better than these. So it has no limits.
            const bool is_whole = length == sequences_[segment.sequence].size();
            search::CostFront own = is_whole ? search::CostFront(false)
                                             : partitions.limits(segment.begin, segment.end());
            const auto [all, is_new] = limits.try_emplace(segment.like, std::move(own));
            if (!is_new) all->second = search::weaker(all->second, own);
        }
        return limits;
    }

    void tell(const Segment& segment) {
        if (!options_.progress) return;
        progress_.segment = network_.layer(segment.layers.front()).name;
        if (segment.layers.size() > 1)
            progress_.segment += " .. " + network_.layer(segment.layers.back()).name;
        options_.progress(progress_);
    }

    /// Whether the two runs that lack one layer were searched to the end; they contain all other
    /// parts.
    [[nodiscard]] bool parts_are_complete(const Segment& segment) const {
        return std::all_of(segments_.begin(), segments_.end(), [&](const Segment& s) {
            const bool is_part = s.sequence == segment.sequence &&
                                 s.layers.size() + 1 == segment.layers.size() &&
                                 (s.begin == segment.begin || s.begin == segment.begin + 1);
            return !is_part || front_of(s).open.empty();
        });
    }

    void search_one(Segment& segment, std::vector<Cost> limits) {
        const bool stopped = is_stopped();
        const bool has_outlook = !segment.outlook.least.empty();
        const std::vector<LayerProblem> problems = layer_problems(network_, segment.layers);
        const Cost compulsory{static_cast<double>(compulsory_accesses(problems).value()), 0, 0};
        if (stopped && segment.layers.size() > 1) {
            segment.front.points = segment.outlook.points;
            segment.front.counts = segment.outlook.counts;
            segment.front.open =
                has_outlook ? segment.outlook.least : std::vector<Cost>{compulsory};
            return;
        }
        ExploreOptions own = options_;
        // An answer needs single layers, so they are always searched, if only coarsely.
        if (stopped) {
            own.stop = nullptr;
            own.tiles = TileSizes::powers_of_two;
        }
        const SegmentContext context{
            partitions_[segment.sequence].best(segment.begin, segment.end()).costs(),
            std::move(limits), parts_are_complete(segment), halo_tables_,
            has_outlook ? &segment.outlook : nullptr};
        segment.front = search_segment(problems, own, macs_is_axis_, context);
        if (stopped) segment.front.open.push_back(compulsory);
        segment.outlook = {};  // the front has its points
    }

    /// Segments of one shape share the front of the first.
    [[nodiscard]] const SegmentFront& front_of(const Segment& segment) const {
        return segments_[segment.like].front;
    }

    Front network_front() {
        std::vector<const Partials*> parts;
        size_t pairs = 1;
        for (size_t s = 0; s < sequences_.size(); ++s) {
            parts.push_back(&partitions_[s].best(0, sequences_[s].size()));
            pairs = std::min(most_pairs + 1, pairs * std::max<size_t>(1, parts.back()->size()));
        }
        const bool macs_is_axis = macs_is_axis_ && pairs <= most_pairs;
        Partials front(macs_is_axis);
        Partials least(false);
        for (size_t s = 0; s < sequences_.size(); ++s) {
            const Partials own = macs_is_axis ? *parts[s] : on_two_axes(*parts[s]);
            const Partials& own_least = partitions_[s].least(0, sequences_[s].size());
            if (s == 0) {
                front = own;
                least = own_least;
                continue;
            }
            Partials sum(macs_is_axis);
            add_pairs(front, own, sum);
            front = std::move(sum);
            Partials sum_least(false);
            add_pairs(least, own_least, sum_least);
            least = std::move(sum_least);
        }
        Front result = points_of(front);
        result.macs_is_axis = macs_is_axis;
        result.is_complete = std::ranges::all_of(
            segments_, [&](const Segment& s) { return front_of(s).open.empty(); });
        if (!result.is_complete) add_bounds(front, least, result);
        return result;
    }

    [[nodiscard]] Front points_of(const Partials& front) const {
        std::vector<std::vector<const Partial*>> points;
        for (const auto& partial : front.items()) {
            std::vector<const Partial*>& groups = points.emplace_back();
            collect_groups(*partial, groups);
            std::ranges::sort(groups, {},
                              [](const Partial* group) { return group->layers->back(); });
        }
        const auto schedules = schedules_of(points);
        search::FrontBuilder builder(network_);
        std::unordered_map<const Partial*, uint32_t> known;
        for (const auto& groups : points) {
            std::vector<uint32_t> point;
            for (const Partial* group : groups) {
                const auto [entry, is_new] = known.try_emplace(group);
                if (is_new)
                    entry->second = builder.group(
                        search::on_layers(network_, *schedules.at(group), *group->layers),
                        group->counts);
                point.push_back(entry->second);
            }
            builder.add_point(std::move(point));
        }
        return std::move(builder).front(options_.footprint);
    }

    /// The schedule of each group, with the compute levels of move_compute_levels_out(). Groups
    /// of layers of one shape name the first of these layers, so equal ones are looked at once.
    [[nodiscard]] std::unordered_map<const Partial*, std::shared_ptr<const GroupSchedule>>
    schedules_of(const std::vector<std::vector<const Partial*>>& points) const {
        std::map<std::string, std::shared_ptr<GroupSchedule>> by_text;
        std::unordered_map<const Partial*, std::shared_ptr<const GroupSchedule>> schedules;
        for (const auto& groups : points) {
            for (const Partial* group : groups) {
                const auto [entry, is_new] = schedules.try_emplace(group);
                if (!is_new) continue;
                const GroupSchedule& found = group->group->group;
                auto& schedule = by_text[to_text(found)];
                if (!schedule) schedule = std::make_shared<GroupSchedule>(found);
                entry->second = schedule;
            }
        }
        std::vector<GroupSchedule*> all;
        for (const auto& [text, schedule] : by_text) all.push_back(schedule.get());
        move_compute_levels_out(network_, all, options_.threads);
        return schedules;
    }

    static void add_bounds(const Partials& front, const Partials& least, Front& result) {
        const Partials reached = on_two_axes(front);
        for (const Cost& bound : least.costs()) {
            result.bounds.push_back({Elements(static_cast<int64_t>(bound.memory)),
                                     Elements(static_cast<int64_t>(bound.accesses))});
            // The bound holds from its memory on. The front begins at its own least memory.
            const Cost* best = nullptr;
            for (const Cost& cost : reached.costs()) {
                if (best == nullptr || cost.memory <= bound.memory) best = &cost;
            }
            if (best == nullptr) continue;
            const double ratio = bound.accesses > 0 ? best->accesses / bound.accesses
                                                    : std::numeric_limits<double>::infinity();
            result.gap = std::max(result.gap, ratio - 1);
        }
    }

    const Network& network_;
    const ExploreOptions& options_;
    bool macs_is_axis_ = false;
    std::vector<std::vector<LayerId>> sequences_;
    std::shared_ptr<search::HaloTables> halo_tables_;  ///< for all layers of the sequences
    std::vector<Segment> segments_;
    std::vector<Partitions> partitions_;
    std::mutex mutex_;  ///< guards the progress
    ExploreProgress progress_;
};

}  // namespace

Front explore(const Network& network, const ExploreOptions& options) {
    return options.space == Space::dag ? explore_dag(network, options)
                                       : Explorer(network, options).run();
}

}  // namespace laminate
