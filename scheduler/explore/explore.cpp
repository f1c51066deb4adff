#include "scheduler/explore/explore.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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

namespace laminate {

namespace {

using search::Archive;
using search::Cost;
using search::GroupSearch;

// ---- whole networks

/// A partial answer: a group, or two answers that follow each other. A bound has neither.
struct Partial {
    const GroupPoint* group = nullptr;
    const NetworkCounts* counts = nullptr;
    const std::vector<LayerId>* layers = nullptr;
    std::shared_ptr<const Partial> first;
    std::shared_ptr<const Partial> second;
};
using Partials = Archive<std::shared_ptr<const Partial>>;

/// Beyond this many pairs the MACs axis is dropped.
constexpr size_t most_pairs = 4'000'000;

/// Adds to `sum` everything of `a` with everything of `b`.
void add_pairs(const Partials& a, const Partials& b, Partials& sum) {
    search::add_pairs(a, b, sum, [](const auto& first, const auto& second) {
        return std::make_shared<const Partial>(Partial{nullptr, nullptr, nullptr, first, second});
    });
}

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
    SegmentFront front;
};

/// Partitions of one sequence: for every contiguous run of its layers the best ones, and lower
/// bounds on their costs.
class Partitions {
public:
    Partitions(size_t layers, bool macs_is_axis) : layers_(layers) {
        for (auto* table : {&best_, &least_}) {
            for (size_t n = 0; n < (layers + 1) * (layers + 1); ++n)
                table->emplace_back(table == &least_ ? false : macs_is_axis);
        }
    }

    /// Combines shorter runs.
    void combine(size_t begin, size_t end) {
        for (size_t middle = begin + 1; middle < end; ++middle) {
            add_pairs(at(best_, begin, middle), segment_fronts_.at({middle, end}).first,
                      at(best_, begin, end));
            add_pairs(at(least_, begin, middle), segment_fronts_.at({middle, end}).second,
                      at(least_, begin, end));
        }
    }

    void add(const Segment& segment, bool macs_is_axis) {
        const size_t end = segment.begin + segment.layers.size();
        auto& [points, least] =
            segment_fronts_
                .try_emplace({segment.begin, end}, Partials(macs_is_axis), Partials(false))
                .first->second;
        for (size_t n = 0; n < segment.front.points.size(); ++n) {
            const GroupPoint& point = segment.front.points[n];
            const auto partial = std::make_shared<const Partial>(
                Partial{&point, &segment.front.counts[n], &segment.layers, nullptr, nullptr});
            points.offer(cost_of(point), partial);
            at(best_, segment.begin, end).offer(cost_of(point), partial);
            least.offer(cost_of(point), partial);
            at(least_, segment.begin, end).offer(cost_of(point), partial);
        }
        for (const Cost& cost : segment.front.open) {
            least.offer(cost, nullptr);
            at(least_, segment.begin, end).offer(cost, nullptr);
        }
    }

    [[nodiscard]] const Partials& best(size_t begin, size_t end) const {
        return best_[begin * (layers_ + 1) + end];
    }
    [[nodiscard]] const Partials& least(size_t begin, size_t end) const {
        return least_[begin * (layers_ + 1) + end];
    }

private:
    [[nodiscard]] Partials& at(std::vector<Partials>& table, size_t begin, size_t end) {
        return table[begin * (layers_ + 1) + end];
    }

    size_t layers_;
    std::vector<Partials> best_;
    std::vector<Partials> least_;
    std::map<std::pair<size_t, size_t>, std::pair<Partials, Partials>> segment_fronts_;
};

/// The single groups of a partial answer.
void collect_groups(const Partial& partial, std::vector<const Partial*>& groups) {
    if (partial.group != nullptr) groups.push_back(&partial);
    for (const auto* part : {partial.first.get(), partial.second.get()}) {
        if (part != nullptr) collect_groups(*part, groups);
    }
}

class Explorer {
public:
    Explorer(const Network& network, const ExploreOptions& options)
        : network_(network), options_(options) {
        sequences_ = search::sequences_of(network);
        if (sequences_.empty())
            throw InputError("network " + network.name +
                             ": no layer that a schedule covers; nothing to explore");
        macs_is_axis_ =
            options.macs_is_axis.value_or(sequences_.size() == 1 && sequences_.front().size() <= 4);
        std::vector<LayerId> layers;
        for (const auto& sequence : sequences_)
            layers.insert(layers.end(), sequence.begin(), sequence.end());
        halo_tables_ = std::make_shared<search::HaloTables>(layer_problems(network, layers));
        find_segments();
        is_searched_.assign(segments_.size(), false);
        for (const auto& sequence : sequences_)
            partitions_.emplace_back(sequence.size(), macs_is_axis_);
    }

    Front run() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (size_t s = 0; s < sequences_.size(); ++s) {
                for (size_t begin = 0; begin < sequences_[s].size(); ++begin)
                    open({s, begin, begin + 1});
            }
        }
        const int threads = std::max(1, options_.threads);
        in_parallel(static_cast<size_t>(threads), threads, [&](size_t) { search_what_is_ready(); });
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
                                    {}};
                    const auto key = shape_key(layer_problems(network_, segment.layers));
                    segment.like = shapes.emplace(key, segments_.size()).first->second;
                    progress_.segments_total += segment.like == segments_.size() ? 1 : 0;
                    segment_of_[{s, begin, begin + length}] = segments_.size();
                    segments_.push_back(std::move(segment));
                }
            }
        }
    }

    // Shorter runs of layers come first, because only the results of the runs inside a run prune
    // its search. A run is searched as soon as the two runs that lack one of its layers are done,
    // so the answer does not depend on the order in which threads finish.

    /// Layers [begin, end) of a sequence.
    struct Run {
        size_t sequence = 0;
        size_t begin = 0;
        size_t end = 0;
        friend auto operator<=>(const Run&, const Run&) = default;
    };

    /// Opens a run in which all shorter runs are closed.
    void open(const Run& run) {
        partitions_[run.sequence].combine(run.begin, run.end);
        const auto found = segment_of_.find(run);
        // Not a segment of the space; its parts together still count.
        if (found == segment_of_.end()) {
            Segment none;
            none.begin = run.begin;
            none.layers.resize(run.end - run.begin);
            return close(run, none);
        }
        Segment& segment = segments_[found->second];
        const bool is_first = segment.like == found->second;
        if (is_first) {
            // Start the longest segments first: they take the most time.
            ready_.emplace(-std::ssize(segment.layers), found->second);
        } else if (is_searched_[segment.like]) {
            segment.front = segments_[segment.like].front;
            close(run, segment);
        } else {
            followers_[segment.like].push_back(run);
        }
    }

    void close(const Run& run, const Segment& segment) {
        partitions_[run.sequence].add(segment, macs_is_axis_);
        const auto part_is_closed = [&](const Run& longer) {
            if (++closed_parts_[longer] == 2) open(longer);
        };
        if (run.begin > 0) part_is_closed({run.sequence, run.begin - 1, run.end});
        if (run.end < sequences_[run.sequence].size())
            part_is_closed({run.sequence, run.begin, run.end + 1});
    }

    void search_what_is_ready() {
        std::unique_lock<std::mutex> lock(mutex_);
        try {
            for (;;) {
                changed_.wait(lock, [&] { return has_failed_ || !ready_.empty() || is_over(); });
                if (has_failed_ || is_over()) return;
                const size_t n = ready_.begin()->second;
                ready_.erase(ready_.begin());
                lock.unlock();
                search_one(segments_[n]);
                lock.lock();
                finish(n);
                changed_.notify_all();
            }
        } catch (...) {
            if (!lock.owns_lock()) lock.lock();
            has_failed_ = true;
            changed_.notify_all();
            throw;
        }
    }

    void finish(size_t n) {
        const Segment& segment = segments_[n];
        is_searched_[n] = true;
        ++progress_.segments_done;
        tell(segment);
        close({segment.sequence, segment.begin, segment.begin + segment.layers.size()}, segment);
        for (const Run& run : std::exchange(followers_[n], {})) open(run);
    }

    [[nodiscard]] bool is_over() const {
        return progress_.segments_done == progress_.segments_total;
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
            return !is_part || s.front.open.empty();
        });
    }

    void search_one(Segment& segment) {
        const bool stopped = options_.stop != nullptr && options_.stop->load();
        const std::vector<LayerProblem> problems = layer_problems(network_, segment.layers);
        const Cost compulsory{static_cast<double>(compulsory_accesses(problems).value()), 0, 0};
        if (stopped && segment.layers.size() > 1) {
            segment.front.open = {compulsory};
            return;
        }
        ExploreOptions own = options_;
        // An answer needs single layers, so they are always searched, if only coarsely.
        if (stopped) {
            own.stop = nullptr;
            own.tiles = TileSizes::powers_of_two;
        }
        const Partials& known = partitions_[segment.sequence].best(
            segment.begin, segment.begin + segment.layers.size());
        segment.front = search_segment(problems, own, macs_is_axis_, known.costs(),
                                       parts_are_complete(segment), halo_tables_);
        if (stopped) segment.front.open.push_back(compulsory);
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
        result.is_complete = std::all_of(segments_.begin(), segments_.end(),
                                         [](const Segment& s) { return s.front.open.empty(); });
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

    /// The schedule of each group, with the compute levels of with_outer_compute_levels(). Groups of
    /// layers of one shape name the first of these layers, so equal ones are looked at once.
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
        std::vector<std::shared_ptr<GroupSchedule>> all;
        for (const auto& [text, schedule] : by_text) all.push_back(schedule);
        const auto threads = static_cast<size_t>(std::max(1, options_.threads));
        in_parallel(threads, options_.threads, [&](size_t thread) {
            TwoLevelCache cache;
            for (size_t n = thread; n < all.size(); n += threads)
                *all[n] = with_outer_compute_levels(network_, std::move(*all[n]), cache);
        });
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
    std::map<Run, size_t> segment_of_;
    // The mutex guards the members below and the partitions.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::pair<std::ptrdiff_t, size_t>> ready_;  ///< segments to search, the next one first
    std::vector<bool> is_searched_;                      ///< by segment
    std::map<size_t, std::vector<Run>> followers_;       ///< by segment: open runs of its shape
    /// closed ones of the two runs that lack one layer
    std::map<Run, int> closed_parts_;
    bool has_failed_ = false;
    ExploreProgress progress_;
};

}  // namespace

Front explore(const Network& network, const ExploreOptions& options) {
    return options.space == Space::dag ? explore_dag(network, options)
                                       : Explorer(network, options).run();
}

}  // namespace laminate
