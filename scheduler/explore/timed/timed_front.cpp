#include "scheduler/explore/timed/timed_front.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "scheduler/counts/done.h"
#include "scheduler/counts/two_level/two_level.h"
#include "scheduler/counts/work.h"
#include "scheduler/explore/compute_levels.h"
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/planner/depthwise_pairs.h"
#include "scheduler/explore/planner/line_buffers.h"
#include "scheduler/explore/planner/runs.h"
#include "scheduler/explore/timed/cover.h"
#include "scheduler/schedule/kernels/layer_forms.h"

namespace laminate {

using timed::Cover;
using timed::Groups;
using timed::Part;
using timed::Priced;
using timed::Pricing;
using timed::Wish;

namespace {

/// The work of the busiest thread in parts of a group's work for one image. Threads divide the
/// channels and pixels of map kernels, of other groups the strips of all images.
double longest_part(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                    int threads, int64_t images) {
    const KernelScope scope = kernel_row(group.nests.front().kernel.kind).scope;
    if (scope == KernelScope::map || scope == KernelScope::sum)
        return static_cast<double>(images) / threads;
    const Nest& sink = group.nests.back();
    if (sink.loops.front().band != Band::strip)
        return static_cast<double>(longest_share(images, 1, threads));
    const int64_t extent = problems.back()[sink.loops.front().dim];
    const int64_t step = sink.step(sink.loops.front());
    return static_cast<double>(longest_share(images * extent, step, threads)) /
           static_cast<double>(extent);
}

constexpr Elements any_memory(std::numeric_limits<int64_t>::max());

/// Groups that schedules may consist of.
class Candidates {
public:
    Candidates(const Network& network, const TimedOptions& options)
        : network_(network),
          options_(options),
          pricing_(network, options),
          part_(network.layers.size()) {
        std::iota(part_.begin(), part_.end(), size_t{0});
    }

    void add(std::vector<Schedule> schedules) {
        std::vector<const GroupSchedule*> all;
        for (Schedule& schedule : schedules) {
            schedule = with_layers_alone(network_, schedule, options_.threads);
            for (const GroupSchedule& group : schedule.groups()) all.push_back(&group);
        }
        pricing_.price_together(all);
        for (const Schedule& schedule : schedules) {
            Groups groups;
            for (const GroupSchedule& group : schedule.groups()) groups.push_back(&known(group));
            schedules_.push_back(with_pairs(std::move(groups)));
        }
    }
    void add_searched() {
        // An interrupt ends the search; what it has found is still priced.
        std::vector<GroupSchedule> forms(2 * options_.searched.size());
        in_parallel(options_.searched.size(), options_.planning_threads(), [&](size_t n) {
            forms[2 * n] = options_.searched[n];
            forms[2 * n + 1] = with_whole_tiles(network_, options_.searched[n]);
        });
        std::vector<const GroupSchedule*> all;
        for (const GroupSchedule& form : forms) all.push_back(&form);
        pricing_.price_together(all);
        for (const GroupSchedule& form : forms) others_.push_back(&known(form));
    }

    /// Adds forms of single layers that hold less at a time than the smallest of their groups among
    /// the candidates; within a limit, than the largest.
    void add_tiled_layers() {
        std::map<LayerId, const Priced*> alone;
        for (const Groups& groups : schedules_) {
            for (const Priced* priced : groups) {
                if (priced->group.nests.size() != 1) continue;
                const LayerId layer = network_.find_layer(priced->group.nests.front().layer);
                const Priced*& known = alone.try_emplace(layer, priced).first->second;
                if (options_.memory ? priced->memory() > known->memory()
                                    : priced->memory() < known->memory())
                    known = priced;
            }
        }
        for (const auto& [layer, priced] : alone) {
            if (is_stopped()) return;
            const Groups& forms = pricing_.tiled(layer, *priced);
            others_.insert(others_.end(), forms.begin(), forms.end());
        }
    }

    [[nodiscard]] SharedByPlans& shared_by_plans() { return shared_by_plans_; }

    [[nodiscard]] bool is_stopped() const { return options_.stop != nullptr && *options_.stop; }

    /// Every part of the network, with its groups that fit into `memory`.
    [[nodiscard]] std::vector<Cover> parts(const std::optional<Bytes>& memory) const {
        std::map<size_t, Part> parts;
        const auto part_with = [&](const Priced* priced) -> Part& {
            return parts[part_of(network_.find_layer(priced->group.nests.front().layer))];
        };
        for (const Groups& groups : schedules_) {
            std::map<Part*, Groups> ways;
            for (const Priced* priced : groups) ways[&part_with(priced)].push_back(priced);
            for (auto& [part, way] : ways) {
                if (std::ranges::find(part->ways, way) == part->ways.end())
                    part->ways.push_back(std::move(way));
            }
        }
        for (const Priced* priced : others_) part_with(priced).others.push_back(priced);
        for (LayerId id = 0; id < std::ssize(network_.layers); ++id) {
            const auto part = parts.find(part_of(id));
            if (part != parts.end()) part->second.layers.push_back(network_.layer(id).name);
        }
        std::vector<Cover> covers;
        for (const auto& [first, part] : parts) covers.emplace_back(part, memory);
        return covers;
    }

    [[nodiscard]] std::vector<Cover> parts() const { return parts(options_.memory); }

    /// The groups, but for those of which others of the same layers need at most two thirds of the
    /// memory and are not surely slower. Memory that stays within a core's cache is not worth a
    /// choice.
    [[nodiscard]] Groups with_less_memory(Groups groups) const {
        const auto layers_of = [](const Priced* priced) {
            std::set<std::string> layers;
            for (const Nest& nest : priced->group.nests) layers.insert(nest.layer);
            return layers;
        };
        std::map<std::set<std::string>, Groups> by_layers;
        for (const Groups& schedule : schedules_) {
            for (const Priced* priced : schedule) by_layers[layers_of(priced)].push_back(priced);
        }
        for (const Priced*& chosen : groups) {
            if (chosen->memory() <= most_winograd_memory(options_.second_level_cache)) continue;
            const Priced* best = chosen;
            for (const Priced* other : by_layers[layers_of(chosen)]) {
                if (3 * other->memory().value() <= 2 * chosen->memory().value() &&
                    timed::surely_faster * other->milliseconds <= chosen->milliseconds &&
                    (best == chosen || other->milliseconds < best->milliseconds))
                    best = other;
            }
            chosen = best;
        }
        return groups;
    }

    /// The least memory that a schedule of these groups needs.
    [[nodiscard]] Bytes least_memory() const {
        std::set<Bytes> sizes;
        for (const Groups& groups : schedules_) {
            for (const Priced* priced : groups) sizes.insert(priced->memory());
        }
        for (const Priced* priced : others_) sizes.insert(priced->memory());
        const std::vector<Bytes> ascending(sizes.begin(), sizes.end());
        return *std::ranges::partition_point(ascending, [&](Bytes memory) {
            return std::ranges::any_of(parts(memory), [](const Cover& part) {
                return part.cheapest({any_memory}).empty();
            });
        });
    }

private:
    /// A depthwise layer joins the group of the 1x1 layer that alone reads it, or the other way
    /// round, where that is expected to be faster. Groups of both stay candidates.
    Groups with_pairs(Groups groups) {
        if (options_.kernels.any_size) return groups;
        std::map<TensorId, const Priced*> alone;  // by output
        for (const Priced* priced : groups) {
            const LayerId layer = network_.find_layer(priced->group.nests.front().layer);
            const TensorId output = network_.layer(layer).output;
            if (priced->group.nests.size() == 1 && !network_.is_output(output) &&
                network_.consumers(output).size() == 1)
                alone.emplace(output, priced);
        }
        std::set<const Priced*> joined;
        for (const Priced*& priced : groups) {
            std::vector<LayerId> layers;
            for (const Nest& nest : priced->group.nests)
                layers.push_back(network_.find_layer(nest.layer));
            const auto before = alone.find(network_.layer(layers.front()).inputs.front());
            if (before == alone.end() || layers.size() > 2) continue;
            layers.insert(layers.begin(), before->second->sink);
            const auto group = depthwise_pair_group(
                network_, layers, {options_.unit, options_.threads, options_.second_level_cache});
            if (!group) continue;
            const Priced& pair = known(*group);
            const std::optional<Bytes>& scratch = options_.kernels.scratch;
            if (pair.milliseconds >= priced->milliseconds + before->second->milliseconds ||
                (options_.memory && pair.memory() > *options_.memory) ||
                (scratch && pair.scratch > *scratch))
                continue;
            others_.insert(others_.end(), {priced, before->second});
            joined.insert(before->second);
            alone.erase(before);
            alone.erase(network_.layer(priced->sink).output);
            priced = &pair;
        }
        std::erase_if(groups, [&](const Priced* priced) { return joined.contains(priced); });
        return groups;
    }

    const Priced& known(const GroupSchedule& group) {
        const size_t first = part_of(network_.find_layer(group.nests.front().layer));
        for (const Nest& nest : group.nests)
            part_[part_of(network_.find_layer(nest.layer))] = first;
        return pricing_.price(group);
    }
    [[nodiscard]] size_t part_of(LayerId layer) const {
        auto part = static_cast<size_t>(layer);
        while (part_[part] != part) part = part_[part];
        return part;
    }

    const Network& network_;
    const TimedOptions& options_;
    Pricing pricing_;
    SharedByPlans shared_by_plans_;
    std::vector<Groups> schedules_;
    Groups others_;
    std::vector<size_t> part_;  ///< by layer: another layer of its part, itself for the first
};

template <class Wanted>
bool has_layer(const Network& network, const Wanted& wanted) {
    for (LayerId id = 0; id < std::ssize(network.layers); ++id) {
        if (is_schedulable(network, id) && wanted(layer_problem(network, id))) return true;
    }
    return false;
}

bool is_wide_map_for_winograd(const LayerProblem& p) {
    return kernel_pays(p, KernelKind::winograd_map) && is_wide_map(p);
}

/// Adds the planner's schedules. `budgets`: of live memory.
void add_candidates(Candidates& candidates, const Network& network, const TimedOptions& options,
                    const std::vector<Bytes>& budgets) {
    LineBufferOptions plain;
    plain.threads = options.threads;
    plain.winograd = options.kernels.filters();
    plain.shared = &candidates.shared_by_plans();
    plain.unit = options.unit;
    std::vector<LineBufferOptions> wishes;
    for (const auto& [numerator, denominator] :
         {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{4, 1}}) {
        wishes.push_back(plain);
        wishes.back().second_level_cache =
            Bytes(options.second_level_cache.value() * numerator / denominator);
    }
    plain.second_level_cache = options.second_level_cache;
    if (planned_runs(network) != schedulable_chains(network)) {
        wishes.push_back(plain);
        wishes.back().joins = false;
    }
    if (plain.winograd && options.kernels.tile_rows >= 6 &&
        has_layer(network, is_wide_map_for_winograd)) {
        wishes.push_back(plain);
        wishes.back().wide_maps = true;
    }
    const bool has_lines_for_winograd = has_layer(
        network, [](const LayerProblem& p) { return kernel_pays(p, KernelKind::winograd_rows); });
    for (const int64_t tile_rows : {4, 6}) {
        if (!has_lines_for_winograd || options.kernels.tile_rows < tile_rows) break;
        // Line buffers of four and two rows in place of two and two are half as high again: six
        // times the cache for groups as long as those that have four times above; eight for six
        // rows.
        wishes.push_back(plain);
        wishes.back().tile_rows = tile_rows;
        wishes.back().second_level_cache =
            Bytes((tile_rows + 2) * options.second_level_cache.value());
        // The same in strips of columns: as many layers in less memory, or more layers. Transformed
        // weights of 64 channels, 576 KiB, pass a second-level cache of 512 KiB at no measurable
        // cost.
        constexpr Bytes measured{768 << 10};
        const Bytes cache = options.second_level_cache, of_strips = std::max(cache, measured);
        std::set<Bytes> sizes{of_strips * 12};
        // Lines for a usual cache can be as fast where the cache is larger, and take less memory.
        for (const int64_t caches : {2, 4, 8, 12})
            sizes.insert({cache * caches, std::min(cache, usual_second_level_cache) * caches});
        for (const Bytes size : sizes) {
            wishes.push_back(wishes.back());
            wishes.back().weights_of_strips = of_strips;
            wishes.back().second_level_cache = size;
        }
    }
    for (const Bytes budget : budgets) {
        wishes.push_back(plain);
        wishes.back().memory = budget;
    }
    // The last one is the network layer by layer. An interrupt leaves out what has not begun.
    std::vector<std::optional<Schedule>> found(wishes.size() + 1);
    in_parallel(found.size(), options.planning_threads(), [&](size_t n) {
        if (n > 0 && candidates.is_stopped()) return;
        if (n == wishes.size()) {
            found[n] = layer_by_layer_schedule(network, options.threads, plain.winograd);
            return;
        }
        auto planned = line_buffer_schedule(network, wishes[n]);
        if (auto* schedule = std::get_if<Schedule>(&planned)) found[n] = std::move(*schedule);
    });
    std::vector<Schedule> schedules;
    for (std::optional<Schedule>& one : found) {
        if (one) schedules.push_back(*std::move(one));
    }
    candidates.add(std::move(schedules));
}

/// Budgets of live memory for the candidates: within a limit, parts of it and of its halves, so
/// that twice the memory has the candidates of once; without one, powers of the square root of two.
std::vector<Bytes> budgets_within(const std::optional<Bytes>& memory, bool all) {
    std::vector<Bytes> budgets;
    constexpr double smallest = 16 << 10, largest = 16 << 20;
    if (memory) {
        auto half = static_cast<double>(memory->value());
        do {
            for (const double part : {1.0, 0.85, 0.7, 0.6})
                budgets.emplace_back(static_cast<int64_t>(part * half));
            half /= 2;
        } while (half >= smallest / 4);
        return budgets;
    }
    const double step = all ? std::sqrt(2.0) : 4.0;
    for (double budget = all ? smallest : 16 * smallest; budget <= largest; budget *= step)
        budgets.emplace_back(static_cast<int64_t>(budget));
    return budgets;
}

/// The smallest schedules of the planner, for a memory that nothing else fits into.
void add_smallest(Candidates& candidates, const Network& network, const TimedOptions& options) {
    LineBufferOptions smallest;
    smallest.threads = options.threads;
    smallest.winograd = options.kernels.filters();
    smallest.shared = &candidates.shared_by_plans();
    smallest.unit = options.unit;
    smallest.memory = Bytes(0);
    const auto none = line_buffer_schedule(network, smallest);
    if (const auto* infeasible = std::get_if<Infeasible>(&none)) {
        smallest.memory = to_bytes(infeasible->demand);
        candidates.add({std::get<Schedule>(line_buffer_schedule(network, smallest))});
    } else {
        candidates.add({std::get<Schedule>(none)});
    }
}

Groups in_order(Groups groups) {
    std::ranges::sort(groups, {}, &Priced::sink);
    return groups;
}

/// The cheapest groups of all parts; empty if some part has none.
Groups cheapest(const std::vector<Cover>& parts, const Wish& wish) {
    Groups groups;
    for (const Cover& part : parts) {
        const Groups& own = part.cheapest(wish);
        if (own.empty()) return {};
        groups.insert(groups.end(), own.begin(), own.end());
    }
    return groups;
}

using Values = std::array<double, 4>;

Values values_of(const FrontPoint& point, const FrontAxes& axes) {
    return {axes.accesses ? static_cast<double>(point.counts.accesses.value()) : 0,
            axes.memory ? static_cast<double>(point.counts.live_total.value()) : 0,
            axes.macs ? static_cast<double>(point.counts.macs.value()) : 0,
            axes.time ? *point.milliseconds : 0};
}

/// Keeps the points that no other one beats on the axes.
void keep_best(std::vector<FrontPoint>& points, const FrontAxes& axes) {
    std::vector<FrontPoint> kept;
    for (size_t n = 0; n < points.size(); ++n) {
        const Values own = values_of(points[n], axes);
        bool is_beaten = false;
        for (size_t m = 0; m < points.size() && !is_beaten; ++m) {
            const Values other = values_of(points[m], axes);
            const bool is_no_worse =
                std::ranges::equal(other, own, [](double a, double b) { return a <= b; });
            is_beaten = m != n && is_no_worse && (other != own || m < n);
        }
        if (!is_beaten) kept.push_back(points[n]);
    }
    points = std::move(kept);
}

}  // namespace

double predicted_milliseconds(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                              const CpuSpeed& speed, int threads, Bytes other_weights,
                              int64_t images, GroupLoops* loops) {
    constexpr double nanoseconds_per_millisecond = 1e6;
    const CoreCaches caches{speed.second_level_cache, speed.third_level_cache};
    return nanoseconds_of(group_work(group, problems, caches, other_weights, loops), speed) *
           longest_part(group, problems, threads, images) / nanoseconds_per_millisecond;
}

std::vector<double> predicted_group_milliseconds(const Network& network, const Schedule& schedule,
                                                 const CpuSpeed& speed, int threads) {
    const auto weights_of = [](const std::vector<LayerProblem>& problems) {
        Bytes bytes;
        for (const LayerProblem& p : problems) bytes += to_bytes(p.weight_elements());
        return bytes;
    };
    Bytes all;
    for (const GroupSchedule& group : schedule.groups())
        all += weights_of(group_problems(network, group));
    std::vector<double> times;
    for (const GroupSchedule& group : schedule.groups()) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        times.push_back(predicted_milliseconds(group, problems, speed, threads,
                                               Bytes(all.value() - weights_of(problems).value()),
                                               images_of(network, group)));
    }
    return times;
}

double predicted_milliseconds(const Network& network, const Schedule& schedule,
                              const CpuSpeed& speed, int threads) {
    const std::vector<double> times =
        predicted_group_milliseconds(network, schedule, speed, threads);
    return std::accumulate(times.begin(), times.end(), 0.0);
}

namespace {

/// Builds the points of a front with time.
class TimedPoints {
public:
    explicit TimedPoints(const Network& network) : network_(network), builder_(network) {}

    void add(const Groups& groups) {
        Groups ordered = in_order(groups);
        if (!known_.insert(ordered).second) return;
        Candidate point;
        point.groups = std::move(ordered);
        for (const Priced* priced : point.groups) {
            point.milliseconds += priced->milliseconds;
            point.scratch = std::max(point.scratch, priced->scratch);
        }
        candidates_.push_back(std::move(point));
    }

    /// Nothing is said of schedules outside the candidates. Points below `least_rate` times the
    /// rate of the fastest one are left out; 0 keeps all.
    [[nodiscard]] Front front(const FrontAxes& axes, double least_rate) && {
        const auto fastest = std::ranges::min_element(candidates_, {}, &Candidate::milliseconds);
        const double least =
            fastest == candidates_.end() || least_rate == 0 ? 0 : least_rate * rate(*fastest);
        for (const Candidate& candidate : candidates_) {
            if (least > 0 && rate(candidate) < least) continue;
            std::vector<uint32_t> point;
            for (const Priced* priced : candidate.groups) {
                const auto [place, is_new] = places_.try_emplace(priced, 0);
                if (is_new) place->second = builder_.group(priced->group);
                point.push_back(place->second);
            }
            builder_.add_point(std::move(point), candidate.milliseconds, candidate.scratch);
        }
        Front front = std::move(builder_).front(Footprint::live);
        keep_best(front.points, axes);
        front.macs_is_axis = axes.macs;
        front.is_complete = false;
        front.gap = std::numeric_limits<double>::infinity();
        return front;
    }

private:
    struct Candidate {
        Groups groups;
        double milliseconds = 0;
        Bytes scratch;
    };

    /// Multiplications that the code does in a millisecond.
    [[nodiscard]] double rate(const Candidate& candidate) {
        double sum = 0;
        for (const Priced* priced : candidate.groups) {
            const auto [known, is_new] = multiplications_.try_emplace(priced, 0);
            if (is_new) {
                const DoneCounts done =
                    done_counts(priced->group, group_problems(network_, priced->group));
                known->second = static_cast<double>(done.done().value());
            }
            sum += known->second;
        }
        return sum / candidate.milliseconds;
    }

    const Network& network_;
    search::FrontBuilder builder_;
    std::map<const Priced*, uint32_t> places_;  ///< in the front
    std::map<const Priced*, double> multiplications_;
    std::set<Groups> known_;
    std::vector<Candidate> candidates_;
};

/// Slower points are code that waits for sums and copies: a machine that has so little memory may
/// ask for them by a budget. With the model's error, points run at 60 % of the fastest one's rate.
constexpr double least_rate = 0.85;

/// The fastest groups of all parts, none if nothing fits.
std::optional<Groups> fastest(Candidates& candidates, const Network& network,
                              const TimedOptions& options) {
    add_candidates(candidates, network, options, budgets_within(options.memory, false));
    if (options.memory) candidates.add_tiled_layers();
    candidates.add_searched();
    const std::vector<Cover> parts = candidates.parts();
    if (Groups best = cheapest(parts, {any_memory}); !best.empty() || parts.empty())
        return candidates.with_less_memory(std::move(best));
    add_smallest(candidates, network, options);
    if (Groups best = cheapest(candidates.parts(), {any_memory}); !best.empty()) return best;
    return std::nullopt;
}

/// The least memory that is enough for a schedule.
Bytes least_memory(const Network& network, TimedOptions options) {
    const auto limit = [&](std::optional<Bytes> memory) {
        options.memory = memory;
        if (options.kernels.scratch) options.kernels.scratch = memory;
    };
    limit(std::nullopt);
    Bytes least;
    {
        Candidates candidates(network, options);
        add_candidates(candidates, network, options, {});
        candidates.add_tiled_layers();
        candidates.add_searched();
        add_smallest(candidates, network, options);
        least = candidates.least_memory();
    }
    // Within another budget other groups are looked at.
    for (;;) {
        limit(Bytes(least.value() - 1));
        Candidates candidates(network, options);
        const auto groups = fastest(candidates, network, options);
        if (!groups) return least;
        least = Bytes(0);
        for (const Priced* priced : *groups) least = std::max(least, priced->memory());
    }
}

/// Whether `memory` is not close below `step`.
bool is_next_step(Elements memory, Elements step) {
    constexpr double closest = 1.02;
    return static_cast<double>(memory.value()) * closest < static_cast<double>(step.value());
}

/// Live memory of groups, without values that are close below another one.
std::vector<Elements> memory_steps(const std::vector<Cover>& parts) {
    std::set<Elements, std::greater<>> all;
    for (const Cover& part : parts) {
        for (const Elements memory : part.memories()) all.insert(memory);
    }
    std::vector<Elements> steps;
    for (const Elements memory : all) {
        if (steps.empty() || is_next_step(memory, steps.back())) steps.push_back(memory);
    }
    return steps;
}

}  // namespace

std::vector<GroupSchedule> groups_of_steps(const Front& front) {
    std::vector<const FrontPoint*> points;
    for (const FrontPoint& point : front.points) points.push_back(&point);
    std::ranges::stable_sort(points, std::greater<>(),
                             [](const FrontPoint* point) { return point->counts.live_total; });
    std::set<uint32_t> places;
    std::optional<Elements> step;
    for (const FrontPoint* point : points) {
        const Elements memory = point->counts.live_total;
        if (step && point != points.back() && !is_next_step(memory, *step)) continue;
        step = memory;
        places.insert(point->groups.begin(), point->groups.end());
    }
    std::vector<GroupSchedule> groups;
    for (const uint32_t place : places) groups.push_back(front.groups[place]);
    return groups;
}

Front timed_front(const Network& network, const FrontAxes& axes, const TimedOptions& options) {
    Candidates candidates(network, options);
    add_candidates(candidates, network, options, budgets_within(options.memory, true));
    candidates.add_tiled_layers();
    candidates.add_searched();
    add_smallest(candidates, network, options);
    std::vector<Cover> parts = candidates.parts();
    double accesses = 0, milliseconds = 0;
    for (const Cover& part : parts) {
        milliseconds += part.first_way().first;
        accesses += part.first_way().second;
    }
    // Prices of an access from a thousandth of what it takes on average to a thousand times that.
    std::vector<double> prices{0, std::numeric_limits<double>::infinity()};
    for (double price = 1e-3; price <= 1e3; price *= 4)
        prices.push_back(price * milliseconds / std::max(1.0, accesses));
    std::vector<Wish> wishes;
    for (const Elements memory : memory_steps(parts)) {
        for (const double price : prices) wishes.push_back({memory, price});
    }
    for (Cover& part : parts) part.find(wishes, options.planning_threads());
    TimedPoints points(network);
    for (const Wish& wish : wishes) {
        if (const Groups groups = cheapest(parts, wish); !groups.empty()) points.add(groups);
    }
    // A search that was asked for is to be seen as it is.
    return std::move(points).front(axes, options.searched.empty() ? least_rate : 0);
}

Front fastest_front(const Network& network, const TimedOptions& options) {
    Candidates candidates(network, options);
    TimedPoints points(network);
    if (const auto groups = fastest(candidates, network, options)) points.add(*groups);
    return std::move(points).front({}, 0);
}

std::variant<Schedule, Infeasible> fastest_schedule(const Network& network,
                                                    const TimedOptions& options) {
    Candidates candidates(network, options);
    const auto groups = fastest(candidates, network, options);
    if (!groups)
        return Infeasible{
            Elements(ceil_div(least_memory(network, options).value(), bytes_per_element)),
            Elements(options.memory->value() / bytes_per_element)};
    std::vector<GroupSchedule> all;
    for (const Priced* priced : in_order(*groups)) all.push_back(priced->group);
    return Schedule(network, std::move(all));
}

}  // namespace laminate
