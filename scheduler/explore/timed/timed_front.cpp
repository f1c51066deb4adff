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
#include "scheduler/explore/front_builder.h"
#include "scheduler/explore/planner/line_buffers.h"

namespace laminate {

namespace {

/// The part of a group's work that the busiest thread has. Threads divide the channels and pixels
/// of map kernels, of other groups the strips.
double longest_part(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                    int threads) {
    const KernelScope scope = kernel_row(group.nests.front().kernel.kind).scope;
    if (scope == KernelScope::map || scope == KernelScope::sum) return 1.0 / threads;
    const Nest& sink = group.nests.back();
    if (sink.loops.front().band != Band::strip) return 1;
    const Dim d = sink.loops.front().dim;
    const int64_t extent = problems.back()[d];
    return static_cast<double>(longest_share(extent, sink.step(sink.loops.front()), threads)) /
           static_cast<double>(extent);
}

/// A group with kernels and all that is known of it.
struct Priced {
    GroupSchedule group;
    Elements accesses;
    Elements live;
    Bytes scratch;
    Macs macs;
    double milliseconds = 0;
    [[nodiscard]] bool fits(const std::optional<Bytes>& memory) const {
        return !memory || std::max(to_bytes(live), scratch) <= *memory;
    }
};

/// A prediction less than this part of another one is taken for faster.
constexpr double surely_faster = 0.93;

using Groups = std::vector<const Priced*>;

/// One way to execute a part of the network.
struct Way {
    Groups groups;
    double accesses = 0;
    double milliseconds = 0;
    Elements live;
};

class Candidates {
public:
    Candidates(const Network& network, const TimedOptions& options)
        : network_(network), options_(options), part_(network.layers.size()) {
        std::iota(part_.begin(), part_.end(), size_t{0});
        for (const Layer& layer : network.layers) {
            if (layer.weights) weights_ += to_bytes(Elements(element_count(layer.weights->dims)));
        }
    }

    void add(const Schedule& schedule) {
        Groups groups;
        const Schedule whole = with_layers_alone(network_, schedule);
        for (const GroupSchedule& group : whole.groups()) {
            const Priced* priced = &price(group);
            groups.push_back(priced);
            const size_t first = part_of(network_.find_layer(group.nests.front().layer));
            for (const Nest& nest : group.nests)
                part_[part_of(network_.find_layer(nest.layer))] = first;
        }
        schedules_.push_back(std::move(groups));
    }

    /// The ways of every part of the network that fit, in the order of the candidates.
    [[nodiscard]] std::vector<std::vector<Way>> parts() const {
        std::map<size_t, std::vector<Way>> parts;
        for (const Groups& groups : schedules_) {
            std::map<size_t, Way> ways;
            for (const Priced* priced : groups) {
                const std::string& first = priced->group.nests.front().layer;
                Way& way = ways[part_of(network_.find_layer(first))];
                way.groups.push_back(priced);
                way.accesses += static_cast<double>(priced->accesses.value());
                way.milliseconds += priced->milliseconds;
                way.live = std::max(way.live, priced->live);
            }
            for (auto& [part, way] : ways) {
                std::vector<Way>& known = parts[part];
                const auto fits = [&](const Priced* priced) {
                    return priced->fits(options_.memory);
                };
                if (std::ranges::all_of(way.groups, fits) &&
                    std::ranges::find(known, way.groups, &Way::groups) == known.end())
                    known.push_back(std::move(way));
            }
        }
        std::vector<std::vector<Way>> all;
        for (auto& [part, ways] : parts) all.push_back(std::move(ways));
        return all;
    }

    /// The least memory that any candidate needs.
    [[nodiscard]] Elements least_memory() const {
        Elements least(std::numeric_limits<int64_t>::max());
        for (const auto& groups : schedules_) {
            Elements most;
            for (const Priced* priced : groups) {
                const Elements scratch(ceil_div(priced->scratch.value(), bytes_per_element));
                most = std::max({most, priced->live, scratch});
            }
            least = std::min(least, most);
        }
        return least;
    }

private:
    [[nodiscard]] size_t part_of(LayerId layer) const {
        auto part = static_cast<size_t>(layer);
        while (part_[part] != part) part = part_[part];
        return part;
    }

    /// Groups of the same shape are priced once.
    const Priced& price(const GroupSchedule& group) {
        const auto [known, is_new] = by_text_.try_emplace(to_text(group));
        if (!is_new) return known->second;
        const std::vector<LayerProblem> problems = group_problems(network_, group);
        GroupSchedule nameless = group;
        for (Nest& nest : nameless.nests) nest.layer.clear();
        const auto [like, is_first] =
            by_shape_.try_emplace(std::pair(shape_key(problems), std::move(nameless)));
        Priced& priced = known->second;
        if (is_first) {
            const GroupCounts counts = two_level_counts(problems, group, &cache_);
            priced.accesses = counts.accesses();
            priced.live = counts.live_total;
            priced.macs = counts.macs();
            choose_kernels(priced, problems, group);
            priced.scratch = scratch_bytes(priced.group, problems);
            like->second = priced;
            return priced;
        }
        priced = like->second;
        for (size_t k = 0; k < group.nests.size(); ++k)
            priced.group.nests[k].layer = group.nests[k].layer;
        return priced;
    }

    /// The default kernels, or those without minimal filtering if they are clearly faster.
    void choose_kernels(Priced& priced, const std::vector<LayerProblem>& problems,
                        const GroupSchedule& group) const {
        Bytes own;
        for (const LayerProblem& p : problems) own += to_bytes(p.weight_elements());
        const auto time = [&](const GroupSchedule& with_kernels) {
            return predicted_milliseconds(with_kernels, problems, options_.speed, options_.threads,
                                          Bytes(weights_.value() - own.value()));
        };
        priced.group = with_default_kernels(problems, group, options_.unit, options_.kernels);
        priced.milliseconds = time(priced.group);
        if (!options_.kernels.filters() || group.nests.front().kernel.is_chosen()) return;
        KernelOptions by_definition = options_.kernels;
        by_definition.winograd = false;
        GroupSchedule other = with_default_kernels(problems, group, options_.unit, by_definition);
        if (other == priced.group) return;
        const double milliseconds = time(other);
        if (milliseconds >= surely_faster * priced.milliseconds) return;
        priced.group = std::move(other);
        priced.milliseconds = milliseconds;
    }

    const Network& network_;
    const TimedOptions& options_;
    Bytes weights_;
    TwoLevelCache cache_;
    std::map<std::string, Priced> by_text_;
    std::map<std::pair<std::vector<int64_t>, GroupSchedule>, Priced> by_shape_;
    std::vector<Groups> schedules_;
    std::vector<size_t> part_;  ///< by layer: another layer of its part, itself for the first
};

/// Adds the planner's schedules. `budgets`: of live memory.
void add_candidates(Candidates& candidates, const Network& network, const TimedOptions& options,
                    const std::vector<Bytes>& budgets) {
    LineBufferOptions plain;
    plain.threads = options.threads;
    plain.winograd = options.kernels.filters();
    const auto is_stopped = [&] { return options.stop != nullptr && options.stop->load(); };
    const auto add = [&](const LineBufferOptions& wanted) {
        const auto found = line_buffer_schedule(network, wanted);
        if (const auto* schedule = std::get_if<Schedule>(&found)) candidates.add(*schedule);
    };
    for (const auto& [numerator, denominator] :
         {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{4, 1}}) {
        plain.second_level_cache =
            Bytes(options.second_level_cache.value() * numerator / denominator);
        add(plain);
        if (is_stopped()) return;
    }
    candidates.add(layer_by_layer_schedule(network, options.threads, plain.winograd));
    plain.second_level_cache = options.second_level_cache;
    for (const Bytes budget : budgets) {
        if (is_stopped()) return;
        plain.memory = budget;
        add(plain);
    }
}

/// Budgets of live memory for the candidates: within a limit, parts of it, because code pads what
/// the model counts; without one, powers of the square root of two.
std::vector<Bytes> budgets_within(const std::optional<Bytes>& memory, bool all) {
    std::vector<Bytes> budgets;
    if (memory) {
        for (const double part : {1.0, 0.85, 0.7, 0.6, 0.5, 0.35, 0.25, 0.125})
            budgets.emplace_back(static_cast<int64_t>(part * static_cast<double>(memory->value())));
        return budgets;
    }
    constexpr double smallest = 16 << 10, largest = 16 << 20;
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
    smallest.memory = Bytes(0);
    const auto none = line_buffer_schedule(network, smallest);
    if (const auto* infeasible = std::get_if<Infeasible>(&none)) {
        smallest.memory = to_bytes(infeasible->demand);
        candidates.add(std::get<Schedule>(line_buffer_schedule(network, smallest)));
    } else {
        candidates.add(std::get<Schedule>(none));
    }
}

Groups in_order(const Network& network, Groups groups) {
    std::ranges::sort(groups, {}, [&](const Priced* priced) {
        return network.find_layer(priced->group.nests.back().layer);
    });
    return groups;
}

/// The way of every part with the lowest sum of time and priced accesses within a memory; empty if
/// some part has none. The planner's own way, the first, is kept unless another one is faster by
/// more than what the model of time is sure of.
Groups cheapest(const std::vector<std::vector<Way>>& parts, Elements memory,
                double milliseconds_per_access) {
    Groups groups;
    for (const std::vector<Way>& ways : parts) {
        const Way* best = nullptr;
        std::pair<double, double> least;
        for (const Way& way : ways) {
            if (way.live > memory) continue;
            const double time = way.milliseconds * (&way == &ways.front() ? surely_faster : 1);
            const double price = std::isinf(milliseconds_per_access)
                                     ? way.accesses
                                     : time + milliseconds_per_access * way.accesses;
            if (best != nullptr && std::pair(price, time) >= least) continue;
            best = &way;
            least = {price, time};
        }
        if (best == nullptr) return {};
        groups.insert(groups.end(), best->groups.begin(), best->groups.end());
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
                              const CpuSpeed& speed, int threads, Bytes other_weights) {
    constexpr double nanoseconds_per_millisecond = 1e6;
    const CoreCaches caches{speed.second_level_cache, speed.third_level_cache};
    return nanoseconds_of(group_work(group, problems, caches, other_weights), speed) *
           longest_part(group, problems, threads) / nanoseconds_per_millisecond;
}

double predicted_milliseconds(const Network& network, const Schedule& schedule,
                              const CpuSpeed& speed, int threads) {
    const auto weights_of = [](const std::vector<LayerProblem>& problems) {
        Bytes bytes;
        for (const LayerProblem& p : problems) bytes += to_bytes(p.weight_elements());
        return bytes;
    };
    Bytes all;
    for (const GroupSchedule& group : schedule.groups())
        all += weights_of(group_problems(network, group));
    double sum = 0;
    for (const GroupSchedule& group : schedule.groups()) {
        const std::vector<LayerProblem> problems = group_problems(network, group);
        sum += predicted_milliseconds(group, problems, speed, threads,
                                      Bytes(all.value() - weights_of(problems).value()));
    }
    return sum;
}

namespace {

/// Builds the points of a front with time.
class TimedPoints {
public:
    explicit TimedPoints(const Network& network) : network_(network), builder_(network) {}

    void add(const Groups& groups) {
        const Groups ordered = in_order(network_, groups);
        if (!known_.insert(ordered).second) return;
        std::vector<uint32_t> point;
        double milliseconds = 0;
        Bytes scratch;
        for (const Priced* priced : ordered) {
            point.push_back(builder_.group(priced->group));
            milliseconds += priced->milliseconds;
            scratch = std::max(scratch, priced->scratch);
        }
        builder_.add_point(std::move(point), milliseconds, scratch);
    }

    /// Nothing is said of schedules outside the candidates.
    [[nodiscard]] Front front(const FrontAxes& axes) && {
        Front front = std::move(builder_).front(Footprint::live);
        keep_best(front.points, axes);
        front.macs_is_axis = axes.macs;
        front.is_complete = false;
        front.gap = std::numeric_limits<double>::infinity();
        return front;
    }

private:
    const Network& network_;
    search::FrontBuilder builder_;
    std::set<Groups> known_;
};

constexpr Elements any_memory(std::numeric_limits<int64_t>::max());

/// The fastest groups of all parts, none if nothing fits.
std::optional<Groups> fastest(Candidates& candidates, const Network& network,
                              const TimedOptions& options) {
    add_candidates(candidates, network, options, budgets_within(options.memory, false));
    const auto parts = candidates.parts();
    if (Groups best = cheapest(parts, any_memory, 0); !best.empty() || parts.empty()) return best;
    add_smallest(candidates, network, options);
    if (Groups best = cheapest(candidates.parts(), any_memory, 0); !best.empty()) return best;
    return std::nullopt;
}

}  // namespace

Front timed_front(const Network& network, const FrontAxes& axes, const TimedOptions& options) {
    Candidates candidates(network, options);
    add_candidates(candidates, network, options, budgets_within(options.memory, true));
    add_smallest(candidates, network, options);
    const std::vector<std::vector<Way>> parts = candidates.parts();
    std::set<Elements> memories;
    double accesses = 0, milliseconds = 0;
    for (const std::vector<Way>& ways : parts) {
        for (const Way& way : ways) memories.insert(way.live);
        if (ways.empty()) continue;
        accesses += ways.front().accesses;
        milliseconds += ways.front().milliseconds;
    }
    // Prices of an access from a thousandth of what it takes on average to a thousand times that.
    std::vector<double> prices{0, std::numeric_limits<double>::infinity()};
    for (double price = 1e-3; price <= 1e3; price *= 4)
        prices.push_back(price * milliseconds / std::max(1.0, accesses));
    TimedPoints points(network);
    for (const Elements memory : memories) {
        for (const double price : prices) {
            if (const Groups groups = cheapest(parts, memory, price); !groups.empty())
                points.add(groups);
        }
    }
    return std::move(points).front(axes);
}

Front fastest_front(const Network& network, const TimedOptions& options) {
    Candidates candidates(network, options);
    TimedPoints points(network);
    if (const auto groups = fastest(candidates, network, options)) points.add(*groups);
    return std::move(points).front({});
}

std::variant<Schedule, Infeasible> fastest_schedule(const Network& network,
                                                    const TimedOptions& options) {
    Candidates candidates(network, options);
    const auto groups = fastest(candidates, network, options);
    if (!groups)
        return Infeasible{candidates.least_memory(),
                          Elements(options.memory->value() / bytes_per_element)};
    std::vector<GroupSchedule> all;
    for (const Priced* priced : in_order(network, *groups)) all.push_back(priced->group);
    return Schedule(network, std::move(all));
}

}  // namespace laminate
