#include "scheduler/schedule/buffer_shapes.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/units.h"

namespace laminate {

namespace {

template <class I>
size_t at(I i) {
    return static_cast<size_t>(i);
}

struct Span {
    int64_t begin = 0;
    int64_t end = 0;
    [[nodiscard]] bool is_empty() const { return begin >= end; }
    [[nodiscard]] Span hull(const Span& other) const {
        if (is_empty()) return other;
        return other.is_empty() ? *this
                                : Span{std::min(begin, other.begin), std::max(end, other.end)};
    }
};

/// Input coordinates that outputs `out`, not empty, read through a window, padding included.
Span window_of(const AxisWindow& w, Span out) {
    if (w.is_sampled()) return {w.sampled_begin(out.begin), w.sampled_end(out.end)};
    if (w.transposed) {  // input q feeds outputs q*S - pad + tap*dilation
        return {floor_div(out.begin + w.pad_begin - w.span() + w.stride, w.stride),
                floor_div(out.end - 1 + w.pad_begin, w.stride) + 1};
    }
    return {out.begin * w.stride - w.pad_begin, (out.end - 1) * w.stride - w.pad_begin + w.span()};
}

Span clipped(Span span, int64_t extent) {
    return {std::clamp<int64_t>(span.begin, 0, extent), std::clamp<int64_t>(span.end, 0, extent)};
}

/// A group with what every run along an axis asks of it.
struct Group {
    Group(const GroupSchedule& schedule, const std::vector<LayerProblem>& layers,
          Trips how = Trips::repeated_at_once)
        : group(schedule),
          problems(layers),
          trips(how),
          tensors(group_tensors(layers)),
          output_tensor(layers.size(), -1) {
        for (size_t t = 0; t < tensors.size(); ++t) {
            if (!tensors[t].is_external())
                output_tensor[at(tensors[t].producer)] = static_cast<int>(t);
        }
        for (int k = 0; k < std::ssize(problems); ++k) paths.push_back(path(group, k));
    }

    [[nodiscard]] const Nest& nest(int k) const { return group.nests[at(k)]; }
    [[nodiscard]] const LayerProblem& problem(int k) const { return problems[at(k)]; }
    [[nodiscard]] Dim dim(Level v) const { return nest(v.nest).loops[at(v.loop)].dim; }
    [[nodiscard]] bool is_dense(int k) const {
        return !problem(k).is_grouped();
    }

    const GroupSchedule& group;
    const std::vector<LayerProblem>& problems;
    Trips trips;
    std::vector<GroupTensor> tensors;
    std::vector<int> output_tensor;  ///< by nest, -1 for the sink
    std::vector<std::vector<Level>> paths;
};

/// Loops that run together because their coordinates are connected: which loops of each nest.
struct Axis {
    enum class Kind { rows, columns, channels } kind = Kind::rows;
    std::vector<std::optional<Dim>> loops;  ///< by nest
    /// Tensors whose extent along this axis is real; the others count as one element, needed or
    /// not. Channels of shared tensors, always whole, are never real.
    std::vector<bool> is_real;
};

/// Rows, columns, and the connected sets of channel axes: the channels of a tensor that one nest
/// reads are the `i` of a dense reader, the `z` of a grouped one.
std::vector<Axis> axes_of(const Group& g) {
    const size_t nests = g.problems.size();
    const size_t tensors = g.tensors.size();
    const std::vector<bool> all(tensors, true);
    std::vector<Axis> axes{
        {Axis::Kind::rows, std::vector<std::optional<Dim>>(nests, Dim::y), all},
        {Axis::Kind::columns, std::vector<std::optional<Dim>>(nests, Dim::x), all}};
    // Nodes: z of nest k at 2k, i at 2k + 1, channels of tensor t behind them.
    std::vector<size_t> parent(2 * nests + tensors);
    std::iota(parent.begin(), parent.end(), size_t{0});
    const std::function<size_t(size_t)> root = [&](size_t n) {
        return parent[n] == n ? n : parent[n] = root(parent[n]);
    };
    for (size_t t = 0; t < tensors; ++t) {
        const GroupTensor& tensor = g.tensors[t];
        if (tensor.is_shared()) continue;
        const int reader = tensor.readers.front().nest;
        parent[root(2 * nests + t)] = root(2 * at(reader) + (g.is_dense(reader) ? 1 : 0));
        if (!tensor.is_external()) parent[root(2 * nests + t)] = root(2 * at(tensor.producer));
    }
    std::map<size_t, Axis> channels;
    for (size_t n = 0; n < 2 * nests; ++n) {
        Axis& axis = channels
                         .try_emplace(root(n), Axis{Axis::Kind::channels,
                                                    std::vector<std::optional<Dim>>(nests),
                                                    std::vector<bool>(tensors)})
                         .first->second;
        axis.loops[n / 2] = n % 2 == 0 ? Dim::z : Dim::i;
    }
    for (size_t t = 0; t < tensors; ++t) {
        if (const auto axis = channels.find(root(2 * nests + t)); axis != channels.end())
            axis->second.is_real[t] = !g.tensors[t].is_shared();
    }
    for (auto& [node, axis] : channels) axes.push_back(std::move(axis));
    return axes;
}

/// What the fold rule asks of one lifetime along one axis.
struct LoopFacts {
    int64_t held = 0;       ///< longest stretch that a body holds
    bool repeats = false;   ///< needed in several trips of one execution of the loop
    bool overlaps = false;  ///< a trip needs something that an earlier one of the lifetime needed
    friend auto operator<=>(const LoopFacts&, const LoopFacts&) = default;
};
struct LifetimeFacts {
    int64_t whole = 0;             ///< interval needed in the lifetime
    std::vector<LoopFacts> loops;  ///< of this axis between store and compute level
    friend auto operator<=>(const LifetimeFacts&, const LifetimeFacts&) = default;
};
using Lifetimes = std::set<LifetimeFacts>;

/// What bodies of one loop need, looked at when they begin.
struct BodyFacts {
    int64_t held = 0;      ///< longest stretch from what a body needs to what any before it needed
    bool returns = false;  ///< a body needs less far on than one before it began
    bool starts_late = false;  ///< a body needs something before where the first one began
    void merge(const BodyFacts& other) {
        held = std::max(held, other.held);
        returns = returns || other.returns;
        starts_late = starts_late || other.starts_late;
    }
};

/// The furthest of several spans.
struct Furthest {
    bool is_any = false;
    int64_t begin = 0;
    int64_t end = 0;
    void add(const Furthest& other) {
        if (!other.is_any) return;
        begin = is_any ? std::max(begin, other.begin) : other.begin;
        end = is_any ? std::max(end, other.end) : other.end;
        is_any = true;
    }
    void add(Span span) {
        if (!span.is_empty()) add(Furthest{true, span.begin, span.end});
    }
    [[nodiscard]] Furthest moved(int64_t by) const { return {is_any, begin + by, end + by}; }
};

/// What trips of a loop do with a tensor.
struct TensorRecord {
    bool is_read = false;
    bool is_clipped = false;  ///< some window begins before the map
    int64_t room =
        std::numeric_limits<int64_t>::max();  ///< from the furthest window to the map's end
    Furthest need;                            ///< of bodies of the compute level
    std::vector<Furthest> bodies;             ///< by loop between store and compute level
    void clear(size_t loops) {
        is_read = is_clipped = false;
        room = std::numeric_limits<int64_t>::max();
        need = {};
        bodies.assign(loops, {});
    }
    /// What other trips do, so much further on.
    void add(const TensorRecord& other, int64_t further) {
        is_read = is_read || other.is_read;
        is_clipped = is_clipped || other.is_clipped;
        if (other.room < std::numeric_limits<int64_t>::max())
            room = std::min(room, other.room - further);
        need.add(other.need.moved(further));
        for (size_t n = 0; n < bodies.size(); ++n) bodies[n].add(other.bodies[n].moved(further));
    }
};

/// Watches one buffer during a run.
class Watched {
public:
    Watched(const Group& g, const Axis& axis, int user, const Placement& placement) {
        bool inside = false;
        for (const Level& v : g.paths[at(user)]) {
            if (inside && axis.loops[at(v.nest)] == g.dim(v)) loops_.push_back(v);
            if (v == placement.store) inside = true;
            if (v == placement.compute) break;
        }
    }

    struct Trip {
        int64_t execution = 0;  ///< of the loop: a number of its own
        int64_t trip = 0;       ///< a number of its own, too
    };

    void begin_lifetime() {
        is_open_ = true;
        frontier_ = 0;
        span_ = {};
        facts_.whole = 0;
        facts_.loops.assign(loops_.size(), {});
        seen_.assign(loops_.size(), {});
        reach_.assign(loops_.size(), {});
        bodies_.resize(loops_.size());
    }
    /// A body of loop number n begins and will need this, padding included.
    void begin_body(size_t n, Span span) {
        if (span.is_empty()) return;
        Reach& reach = reach_[n];
        if (!reach.is_any) reach = {true, span.begin, span.begin, span.end};
        BodyFacts& facts = bodies_[n];
        facts.starts_late = facts.starts_late || span.begin < reach.first;
        facts.returns = facts.returns || span.begin < reach.begin;
        reach.begin = std::max(reach.begin, span.begin);
        reach.end = std::max(reach.end, span.end);
        facts.held = std::max(facts.held, reach.end - span.begin);
    }
    void end_lifetime() {
        is_open_ = false;
        if (span_.is_empty()) return;
        facts_.whole = span_.end - span_.begin;
        lifetimes_.insert(facts_);
    }
    /// A body of the compute level needs this; `now` says in which trip of a loop that is.
    template <class Now>
    void need(Span span, const Now& now) {
        if (span.is_empty()) return;
        for (size_t n = 0; n < loops_.size(); ++n) {
            Seen& seen = seen_[n];
            LoopFacts& facts = facts_.loops[n];
            const Trip trip = now(loops_[n]);
            if (seen.execution != trip.execution) seen = {trip.execution, 0, 0, 0, {}};
            if (seen.trip != trip.trip) {
                seen.trip = trip.trip;
                seen.frontier = frontier_;
                seen.span = {};
                if (++seen.trips > 1) facts.repeats = true;
            }
            seen.span = seen.span.hull(span);
            if (seen.span.begin < seen.frontier) facts.overlaps = true;
            facts.held =
                std::max(facts.held, std::max(seen.frontier, seen.span.end) - seen.span.begin);
        }
        span_ = span_.hull(span);
        frontier_ = std::max(frontier_, span.end);
    }
    /// What a rehearsal changes.
    struct Presence {
        bool is_open = false;
        int64_t frontier = 0;
    };
    [[nodiscard]] Presence presence() const { return {is_open_, frontier_}; }
    void set(const Presence& presence) {
        is_open_ = presence.is_open;
        frontier_ = presence.frontier;
    }
    /// The trips of loop `repeated` that `record` is of come more often, as far as `further`
    /// coordinates on (Repeats).
    void repeat(Level repeated, const TensorRecord& record, int64_t further) {
        if (!is_open_) return;
        frontier_ += further;
        for (size_t n = 0; n < record.bodies.size(); ++n) {
            const Furthest& body = record.bodies[n];
            if (!body.is_any) continue;
            reach_[n].begin = std::max(reach_[n].begin, body.begin + further);
            reach_[n].end = std::max(reach_[n].end, body.end + further);
        }
        if (!record.need.is_any) return;
        span_.end = std::max(span_.end, record.need.end + further);
        // Only trips of loops around the repeated one go on.
        for (size_t n = 0; n < loops_.size() && loops_[n] != repeated; ++n) {
            Seen& seen = seen_[n];
            seen.span.end = std::max(seen.span.end, record.need.end + further);
            facts_.loops[n].held = std::max(
                facts_.loops[n].held, std::max(seen.frontier, seen.span.end) - seen.span.begin);
        }
    }
    /// What is not present yet, in the lifetime under way if there is one.
    [[nodiscard]] Span missing(Span span) const {
        return is_open_ ? Span{std::max(span.begin, frontier_), span.end} : span;
    }

    /// Reaching down to what is present.
    [[nodiscard]] Span without_gap(Span span) const {
        if (!is_open_ || frontier_ == 0 || span.is_empty()) return span;
        return {std::min(span.begin, frontier_), span.end};
    }

    [[nodiscard]] const std::vector<Level>& loops() const { return loops_; }
    [[nodiscard]] const Lifetimes& lifetimes() const { return lifetimes_; }
    /// By loop, over all lifetimes.
    [[nodiscard]] const std::vector<BodyFacts>& bodies() const { return bodies_; }

private:
    /// Of a loop's bodies so far in the lifetime.
    struct Reach {
        bool is_any = false;
        int64_t first = 0;  ///< where the first one began
        int64_t begin = 0;  ///< where the furthest one began
        int64_t end = 0;
    };
    struct Seen {
        int64_t execution = 0;
        int64_t trip = 0;
        int64_t trips = 0;
        int64_t frontier = 0;  ///< when the trip began
        Span span;             ///< needed in the trip so far
    };

    std::vector<Level> loops_;
    bool is_open_ = false;
    int64_t frontier_ = 0;
    Span span_;
    LifetimeFacts facts_;
    std::vector<Seen> seen_;
    std::vector<Reach> reach_;
    std::vector<BodyFacts> bodies_;
    Lifetimes lifetimes_;
};

/// Ranges in the order in which they occur, with how often each does so in a row.
class Occurrences {
public:
    void add(Range range) {
        if (all_.size() == marked_ || all_.back().first != range) all_.emplace_back(range, 0);
        ++all_.back().second;
    }
    /// Begins what repeat() repeats.
    size_t mark() { return marked_ = all_.size(); }
    /// What came since `mark` comes `times` more often, each time `shift` further on.
    void repeat(size_t mark, int64_t times, int64_t shift) {
        const size_t end = all_.size();
        if (shift == 0) {
            for (size_t n = mark; n < end; ++n) all_[n].second *= 1 + times;
            return;
        }
        all_.reserve(end + (end - mark) * static_cast<size_t>(times));
        for (int64_t more = 1; more <= times; ++more) {
            for (size_t n = mark; n < end; ++n) {
                const auto [range, count] = all_[n];
                all_.emplace_back(Range{range.begin + more * shift, range.end + more * shift},
                                  count);
            }
        }
    }
    [[nodiscard]] auto begin() const { return all_.begin(); }
    [[nodiscard]] auto end() const { return all_.end(); }
    [[nodiscard]] std::map<Range, int64_t> by_range() const {
        std::map<Range, int64_t> times;
        for (const auto& [range, count] : all_) times.try_emplace(times.end(), range)->second += count;
        return times;
    }

private:
    std::vector<std::pair<Range, int64_t>> all_;
    size_t marked_ = 0;
};

/// Watches what comes in with the bodies of compute levels during a run along rows: the rows of those
/// tensors for which the traffic has kept rows.
class StepWatch {
public:
    explicit StepWatch(RowTraffic& traffic) : traffic_(traffic), came_in_(traffic.kept.size()) {}

    /// A body begins that needs `all` of a tensor, of which `incoming` is not present yet; what is ends
    /// at `frontier`.
    void begin(int t, Span all, Span incoming, int64_t frontier) {
        came_in_[at(t)] = incoming.is_empty() ? 0 : incoming.end - incoming.begin;
        std::optional<int64_t>& kept = traffic_.kept[at(t)];
        if (!kept || all.is_empty()) return;
        kept = std::max(*kept, frontier - all.begin);
        int64_t& before = traffic_.before[{t, came_in_[at(t)]}];
        before = std::max(before, frontier - all.begin);
    }
    /// A kernel stores rows of the body under way.
    void store(int t) {
        if (!traffic_.kept[at(t)]) return;
        const IncomingRows rows{t, came_in_[at(t)]};
        std::set<IncomingRows>& beside = traffic_.beside[rows];
        for (const IncomingRows& other : present_) {
            if (other == rows) continue;
            beside.insert(other);
            traffic_.beside[other].insert(rows);
        }
        present_.insert(rows);
    }
    void end(int t) { present_.erase({t, came_in_[at(t)]}); }

private:
    RowTraffic& traffic_;
    std::vector<int64_t> came_in_;  ///< by tensor: rows, with the body under way
    std::set<IncomingRows> present_;
};

/// What a run along an axis logs.
struct RunLogs {
    std::vector<Occurrences> steps;        ///< by nest: what kernels compute
    std::vector<Occurrences> brought_in;   ///< by tensor, of external inputs
    std::vector<Occurrences> first_reads;  ///< by nest: of its weights, first in a lifetime
};

/// Finds the trips of long loops, in a run along rows or columns, that do what the trips before
/// did, further on, and has them done at once. It is independent of what the counts do for the same
/// reason (counts/two_level/steady_trips.h), as all of this file.
///
/// What trips do depends on what is present of each tensor, alone. If after some trips this is as
/// much further on as the nests, and no window was clipped, the next as many do the same. Then all
/// sizes that are noted, which are differences of coordinates of one tensor, are noted again, and
/// only what is needed at most grows, by as much as the trips are further on. So two equal blocks
/// of trips in turn say all of the next ones, until a window reaches the end of the map.
class Repeats {
public:
    /// How much further on nests and tensors are after some trips of a loop; none where no one
    /// number says it.
    struct Shifts {
        int64_t trips = 0;  ///< 0: the loop does not repeat itself
        std::vector<std::optional<int64_t>> nests, tensors;
    };
    /// A loop of many trips under way.
    struct Loop {
        Level level;
        const Shifts* shifts = nullptr;
        Loop* outer = nullptr;
        int64_t trips = -1;  ///< of the block under way so far, -1 before the first one
        int equal_blocks = 0;
        std::vector<TensorRecord> record{};         ///< of the block
        std::vector<bool> is_reader{};              ///< by nest, in the block
        std::vector<Watched::Presence> before{};    ///< the block
        std::array<std::vector<size_t>, 3> logs{};  ///< where those of the block begin
    };

    Repeats(const Group& g, const Axis& axis, std::vector<Watched>& tensors, RunLogs& logs)
        : g_(g), axis_(axis), tensors_(tensors), logs_(logs) {}

    // What happens in trips.
    void note_reader(int t, int nest) {
        if (innermost_ == nullptr) return;
        innermost_->record[at(t)].is_read = true;
        innermost_->is_reader[at(nest)] = true;
    }
    void note_window(int t, Span window, int64_t extent) {
        if (innermost_ == nullptr) return;
        TensorRecord& of = innermost_->record[at(t)];
        of.is_clipped = of.is_clipped || window.begin < 0;
        of.room = std::min(of.room, extent - window.end);
    }
    void note_need(int t, Span span) {
        if (innermost_ != nullptr) innermost_->record[at(t)].need.add(span);
    }
    void note_body(int t, size_t loop, Span span) {
        if (innermost_ != nullptr) innermost_->record[at(t)].bodies[loop].add(span);
    }

    /// A loop begins that may repeat itself.
    std::optional<Loop> begin(Level level, int64_t trips) {
        constexpr int64_t fewest_blocks = 8;
        if (trips < fewest_blocks || !is_possible()) return std::nullopt;
        auto [known, is_new] = shifts_.try_emplace(level);
        if (is_new) known->second = shifts_of(level);
        const Shifts& shifts = known->second;
        if (shifts.trips == 0 || trips < fewest_blocks * shifts.trips) return std::nullopt;
        return Loop{level, &shifts, innermost_};
    }
    /// Called before each trip, of which so many whole ones are left: how many of these repeat the
    /// last ones. What they do is done.
    int64_t repeated(Loop& loop, int64_t left) {
        const int64_t period = loop.shifts->trips;
        if (loop.trips >= 0 && ++loop.trips < period) return 0;
        int64_t times = 0;
        if (loop.trips == period) {
            loop.equal_blocks = repeats(loop) ? loop.equal_blocks + 1 : 0;
            if (loop.equal_blocks == 2) {
                times = do_again(loop, left / period);
                loop.equal_blocks = 0;
            }
            add_to_outer(loop, times);
        }
        begin_block(loop);
        return times * period;
    }
    void end(const Loop& loop) {
        add_to_outer(loop, 0);
        innermost_ = loop.outer;
    }

    /// The whole run begins, and others may begin `shift` outputs of nest k further on each.
    std::optional<Loop> begin_run(int k, int64_t shift) {
        if (shift == 0 || !is_possible()) return std::nullopt;
        const auto shifts = shifts_after(k, shift, 1);
        if (!shifts) return std::nullopt;
        return Loop{Level{}, &(shifts_[Level{}] = *shifts), nullptr};
    }
    void begin_block(Loop& loop) {
        innermost_ = &loop;
        loop.trips = 0;
        loop.is_reader.assign(g_.problems.size(), false);
        loop.record.resize(tensors_.size());
        loop.before.clear();
        for (size_t t = 0; t < tensors_.size(); ++t) {
            loop.record[t].clear(tensors_[t].loops().size());
            loop.before.push_back(tensors_[t].presence());
        }
        for_each_log([&](std::vector<Occurrences>& all, size_t n) {
            loop.logs[n].clear();
            for (Occurrences& one : all) loop.logs[n].push_back(one.mark());
        });
    }
    /// How many of so many others are the same as the run that ends. Their logs are added to its
    /// own.
    int64_t end_run(const Loop& run, int64_t others) {
        innermost_ = nullptr;
        return repeats(run) ? do_again(run, others) : 0;
    }

private:
    [[nodiscard]] bool is_possible() const {
        return g_.trips == Trips::repeated_at_once && axis_.kind != Axis::Kind::channels;
    }
    template <class Work>
    void for_each_log(const Work& work) {
        work(logs_.steps, 0);
        work(logs_.brought_in, 1);
        work(logs_.first_reads, 2);
    }

    /// After `shift` outputs of nest k, and within `trips` trips.
    [[nodiscard]] std::optional<Shifts> shifts_after(int k, int64_t shift, int64_t trips) const {
        Shifts shifts{trips, {}, {}};
        shifts.nests.resize(g_.problems.size());
        shifts.tensors.resize(g_.tensors.size());
        shifts.nests[at(k)] = shift;
        for (size_t t = g_.tensors.size(); t-- > 0;) {
            bool is_one = true;
            for (const TensorReader& reader : g_.tensors[t].readers) {
                const std::optional<int64_t> outputs = shifts.nests[at(reader.nest)];
                if (!outputs) continue;
                const LayerProblem& p = g_.problem(reader.nest);
                const AxisWindow& w = axis_.kind == Axis::Kind::rows ? p.y() : p.x();
                const bool is_pixel = p.inputs[at(reader.operand)].is_pixel;
                if (!is_pixel && (w.is_sampled() || (w.transposed && *outputs % w.stride != 0)))
                    return std::nullopt;
                const int64_t inputs = is_pixel       ? 0
                                       : w.transposed ? *outputs / w.stride
                                                      : *outputs * w.stride;
                is_one = is_one && shifts.tensors[t].value_or(inputs) == inputs;
                shifts.tensors[t] = inputs;
            }
            if (!is_one) shifts.tensors[t] = std::nullopt;
            if (shifts.tensors[t] && !g_.tensors[t].is_external())
                shifts.nests[at(g_.tensors[t].producer)] = shifts.tensors[t];
        }
        return shifts;
    }
    /// Windows of transposed layers repeat themselves after a few trips.
    [[nodiscard]] Shifts shifts_of(Level level) const {
        constexpr int64_t most_trips = 16;
        const Nest& nest = g_.nest(level.nest);
        const int64_t step = nest.step(nest.loops[at(level.loop)]);
        for (int64_t trips = 1; trips <= most_trips; ++trips) {
            if (auto shifts = shifts_after(level.nest, trips * step, trips)) return *shifts;
        }
        return {};
    }

    /// Whether the block did what the next one will do.
    [[nodiscard]] bool repeats(const Loop& loop) const {
        for (size_t k = 0; k < loop.is_reader.size(); ++k) {
            if (loop.is_reader[k] && !loop.shifts->nests[k]) return false;
        }
        for (size_t t = 0; t < loop.record.size(); ++t) {
            const TensorRecord& of = loop.record[t];
            if (!of.is_read) continue;
            const std::optional<int64_t> shift = loop.shifts->tensors[t];
            if (!shift || (*shift > 0 && (of.is_clipped || of.room < 0))) return false;
            const Watched::Presence now = tensors_[t].presence();
            if (now.is_open && now.frontier != loop.before[t].frontier + *shift) return false;
        }
        return true;
    }
    /// Repeats the block, at most so often, until a window reaches the end of the map. Returns how
    /// often.
    int64_t do_again(const Loop& loop, int64_t times) {
        const Shifts& shifts = *loop.shifts;
        for (size_t t = 0; t < tensors_.size(); ++t) {
            const int64_t shift = loop.record[t].is_read ? *shifts.tensors[t] : 0;
            if (shift > 0) times = std::min(times, loop.record[t].room / shift);
        }
        if (times <= 0) return 0;
        for (size_t t = 0; t < tensors_.size(); ++t) {
            if (loop.record[t].is_read)
                tensors_[t].repeat(loop.level, loop.record[t], times * *shifts.tensors[t]);
        }
        // Weights have no coordinates along rows and columns.
        const std::array<const std::vector<std::optional<int64_t>>*, 3> by{
            &shifts.nests, &shifts.tensors, nullptr};
        for_each_log([&](std::vector<Occurrences>& all, size_t n) {
            for (size_t k = 0; k < all.size(); ++k)
                all[k].repeat(loop.logs[n][k], times,
                              by[n] == nullptr ? 0 : (*by[n])[k].value_or(0));
        });
        return times;
    }
    /// The loop around this one has had its block, and that block's repetitions.
    static void add_to_outer(const Loop& loop, int64_t times) {
        if (loop.outer == nullptr) return;
        for (size_t t = 0; t < loop.record.size(); ++t) {
            const int64_t shift = loop.shifts->tensors[t].value_or(0);
            loop.outer->record[t].add(loop.record[t], times * shift);
        }
        for (size_t k = 0; k < loop.is_reader.size(); ++k) {
            if (loop.is_reader[k]) loop.outer->is_reader[k] = true;
        }
    }

    const Group& g_;
    const Axis& axis_;
    std::vector<Watched>& tensors_;
    RunLogs& logs_;
    std::map<Level, Shifts> shifts_;  ///< by the loop that repeats itself
    Loop* innermost_ = nullptr;       ///< whose block is under way
};

/// What the schedule places in the body of a level.
struct Stop {
    bool is_used = false;
    std::vector<int> tensors_stored, tensors_needed, weights_stored, weights_needed;
    std::vector<std::pair<int, size_t>> tensors_slid;  ///< whose loop number so and so this is
    std::vector<int> weights_begin;  ///< lifetimes of weights that are read in place
    // These are of the body under way; no body of a level runs inside another one of it.
    std::vector<std::pair<int, Span>> calls;  ///< of producers
    std::vector<std::pair<int, Span>> needs;  ///< of tensors
};

struct NestState {
    Span part;  ///< what the body under way covers of the loops that run
    std::vector<Watched::Trip> trips;
};

/// Executes the group along one axis.
class AxisRun {
public:
    /// How kernels read weights in place, by nest: output channels together, and where a lifetime
    /// begins.
    struct WeightsInPlace {
        std::vector<int64_t> channels_together;
        std::vector<Level> stores;
    };
    /// `output`: what is computed of the sink's output along the axis, nothing for all of it.
    /// `next_start`: runs that begin so much further on may be the same one (alike()).
    AxisRun(const Group& g, const Axis& axis, const std::optional<Span>& output = {},
            const WeightsInPlace* in_place = nullptr, StepWatch* watch = nullptr,
            int64_t next_start = 0)
        : g_(g),
          axis_(axis),
          in_place_(in_place),
          steps_watch_(watch),
          repeats_(g, axis, tensors_, logs_),
          stops_(g.problems.size()),
          state_(g.problems.size()) {
        for (const GroupTensor& tensor : g.tensors)
            tensors_.emplace_back(g, axis, tensor.readers.front().nest,
                                  placement_of(g.group, tensor));
        for (int k = 0; k < std::ssize(g.problems); ++k) {
            stops_[at(k)].resize(g.nest(k).loops.size());
            state_[at(k)].trips.resize(g.nest(k).loops.size());
        }
        for (int k = 0; k < std::ssize(g.problems); ++k) {
            weights_.push_back(g.nest(k).w
                                   ? std::optional<Watched>(std::in_place, g, axis, k, *g.nest(k).w)
                                   : std::nullopt);
            if (weights_.back()) {
                stop(g.nest(k).w->store).weights_stored.push_back(k);
                stop(g.nest(k).w->compute).weights_needed.push_back(k);
            }
        }
        // Readers first: what a producer brings in depends on what its readers do.
        for (size_t t = g.tensors.size(); t-- > 0;) {
            const Placement& placement = placement_of(g.group, g.tensors[t]);
            stop(placement.store).tensors_stored.push_back(static_cast<int>(t));
            stop(placement.compute).tensors_needed.push_back(static_cast<int>(t));
            if (axis.kind == Axis::Kind::rows) continue;
            for (size_t n = 0; n < tensors_[t].loops().size(); ++n)
                stop(tensors_[t].loops()[n]).tensors_slid.emplace_back(static_cast<int>(t), n);
        }
        for (const auto& stops : stops_) {
            const auto used =
                std::find_if(stops.rbegin(), stops.rend(), [](const Stop& s) { return s.is_used; });
            last_stop_.push_back(static_cast<int>(stops.rend() - used) - 1);
        }
        // What threads divide is a loop in any case.
        if (g.nest(g.group.sink()).loops.front().band == Band::strip)
            last_stop_.back() = std::max(last_stop_.back(), 0);
        if (in_place != nullptr) stop_where_weights_begin();
        fresh_.resize(g.tensors.size());
        skips_.resize(g.tensors.size());
        logs_.steps.resize(g.problems.size());
        logs_.brought_in.resize(g.tensors.size());
        for (size_t t = g.tensors.size(); t-- > 0;) skips_[t] = skips(g.tensors[t]);
        unclipped_columns_.resize(g.tensors.size());
        const int sink = g.group.sink();
        state_[at(sink)].part = work_of_call(sink, output.value_or(extent_of_output(sink)));
        std::optional<Repeats::Loop> run = repeats_.begin_run(sink, next_start);
        if (run) repeats_.begin_block(*run);
        body(Level{});
        if (run)
            alike_ =
                repeats_.end_run(*run, (extent_of_output(sink).end - output->end) / next_start);
    }
    AxisRun(const AxisRun&) = delete;
    AxisRun& operator=(const AxisRun&) = delete;
    ~AxisRun() = default;

    /// How many runs that begin after this one, each `next_start` after the one before, are the
    /// same. What they do is in the logs of this one.
    [[nodiscard]] int64_t alike() const { return alike_; }

    [[nodiscard]] const Watched& tensor(size_t t) const { return tensors_[t]; }
    [[nodiscard]] const Watched& weights(size_t k) const { return *weights_[k]; }
    [[nodiscard]] int64_t unclipped_columns(size_t t) const { return unclipped_columns_[t]; }
    /// By nest.
    [[nodiscard]] const std::vector<Occurrences>& steps() const { return logs_.steps; }
    /// By external input.
    [[nodiscard]] const std::vector<Occurrences>& brought_in() const { return logs_.brought_in; }
    /// The innermost loop of each nest that is not the kernel's.
    [[nodiscard]] const std::vector<int>& last_stops() const { return last_stop_; }
    /// By nest: of its weights, for the first time in a lifetime.
    [[nodiscard]] const std::vector<Occurrences>& first_reads() const { return logs_.first_reads; }

private:
    Stop& stop(Level level) {
        Stop& s = level.is_root() ? root_ : stops_[at(level.nest)][at(level.loop)];
        s.is_used = true;
        return s;
    }

    /// Lifetimes that begin in loops that kernels execute in one go begin with every execution.
    void stop_where_weights_begin() {
        logs_.first_reads.resize(g_.problems.size());
        read_before_.resize(g_.problems.size());
        for (int k = 0; k < std::ssize(g_.problems); ++k) {
            const Level level = in_place_->stores[at(k)];
            if (level.is_root() || level.loop <= last_stop_[at(level.nest)]) {
                read_before_[at(k)] = 0;
                stop(level).weights_begin.push_back(k);
            }
        }
    }
    /// A kernel of nest k reads the weights of what the body under way covers.
    void read_weights(int k) {
        if (in_place_ == nullptr || !g_.nest(k).w) return;
        const std::optional<Dim> d = axis_.loops[at(k)];
        const bool is_index = axis_.kind == Axis::Kind::channels && d;
        Span span = is_index ? state_[at(k)].part : Span{0, 1};
        if (is_index && d == Dim::z)
            span.end =
                span.begin + round_up(span.end - span.begin, in_place_->channels_together[at(k)]);
        if (std::optional<int64_t>& before = read_before_[at(k)]) {
            span.begin = std::max(span.begin, *before);
            *before = std::max(*before, span.end);
        }
        if (!span.is_empty()) logs_.first_reads[at(k)].add({span.begin, span.end});
    }

    /// Without loops that run, and for shared channels, one element stands for all.
    [[nodiscard]] Span extent_of_output(int k) const {
        const LayerProblem& p = g_.problem(k);
        if (axis_.kind == Axis::Kind::rows) return {0, p[Dim::y]};
        if (axis_.kind == Axis::Kind::columns) return {0, p[Dim::x]};
        const int t = g_.output_tensor[at(k)];
        return t < 0 ? Span{0, 1} : Span{0, axis_.is_real[at(t)] ? p[Dim::z] : 1};
    }
    /// What the loops of a nest cover in a call that computes `output`.
    [[nodiscard]] Span work_of_call(int k, Span output) const {
        if (axis_.kind != Axis::Kind::channels || output.is_empty()) return output;
        const std::optional<Dim> d = axis_.loops[at(k)];
        if (!d) return {0, 1};
        const int t = g_.output_tensor[at(k)];
        if (*d == Dim::z && t >= 0 && axis_.is_real[at(t)]) return output;
        return {0, g_.problem(k)[*d]};
    }
    /// What the body under way, of `level`, will have nest k work on.
    [[nodiscard]] Span work(int k, Level level) {
        if (level.nest == k || k == g_.group.sink()) return state_[at(k)].part;
        return work_of_call(k, missing(g_.output_tensor[at(k)], level));
    }

    [[nodiscard]] Span need_of_reader(const TensorReader& reader, int t, Level level,
                                      bool clip = true) {
        const LayerProblem& p = g_.problem(reader.nest);
        const Span part = work(reader.nest, level);
        repeats_.note_reader(t, reader.nest);
        if (part.is_empty()) return {};
        const LayerInput& input = p.inputs[at(reader.operand)];
        if (axis_.kind == Axis::Kind::channels ? input.is_plane : input.is_pixel) return {0, 1};
        if (axis_.kind != Axis::Kind::channels) {
            const AxisWindow& w = axis_.kind == Axis::Kind::rows ? p.y() : p.x();
            const Span window = window_of(w, part);
            if (!clip) return window;
            repeats_.note_window(t, window, w.in);
            return clipped(window, w.in);
        }
        const std::optional<Dim> d = axis_.loops[at(reader.nest)];
        Span channels = part;
        if (d == Dim::z && p.operation == Operation::concat) {
            channels = clipped(
                {part.begin - input.first_output_channel, part.end - input.first_output_channel},
                input.channels);
        } else if (d == Dim::z && !g_.is_dense(reader.nest)) {
            const int64_t outputs = p[Dim::z] / p.groups;
            channels = {part.begin / outputs * p[Dim::i],
                        ((part.end - 1) / outputs + 1) * p[Dim::i]};
        }
        return axis_.is_real[at(t)] || channels.is_empty() ? channels : Span{0, 1};
    }
    [[nodiscard]] Span need(int t, Level level) {
        Span all;
        for (const TensorReader& reader : g_.tensors[at(t)].readers)
            all = all.hull(need_of_reader(reader, t, level));
        return g_.tensors[at(t)].is_shared() ? tensors_[at(t)].without_gap(all) : all;
    }
    [[nodiscard]] Span missing(int t, Level level) {
        const Fresh& known = fresh_[at(t)];
        if (known.body != body_) {
            const Span all = need(t, level);
            Span span = tensors_[at(t)].missing(all);
            const bool returns = span.begin > all.begin && !span.is_empty();
            if (returns && skips_[at(t)] &&
                placement_of(g_.group, g_.tensors[at(t)]).compute != level)
                span.begin = rehearsed_begin(t, level, span.end);
            fresh_[at(t)] = {body_, span};
        }
        return known.span;
    }

    /// Whether bodies may step over coordinates of a tensor: a window smaller than its stride does,
    /// and what feeds one that does.
    [[nodiscard]] bool skips(const GroupTensor& tensor) const {
        if (tensor.is_shared() || axis_.kind == Axis::Kind::channels) return false;
        const int reader = tensor.readers.front().nest;
        const AxisWindow& w =
            axis_.kind == Axis::Kind::rows ? g_.problem(reader).y() : g_.problem(reader).x();
        if (!w.transposed && w.span() < w.stride) return true;
        const int output = g_.output_tensor[at(reader)];
        return output >= 0 && skips_[at(output)];
    }
    /// Where the body under way, which returns to what is present of a tensor that it skips parts
    /// of, first brings something in: the new part need not begin at the frontier. Found by
    /// executing the body for the tensor and what is computed from it, with everything put back
    /// afterwards. `none` if nothing comes in.
    int64_t rehearsed_begin(int t, Level level, int64_t none) {
        const auto state = state_;
        const auto fresh = fresh_;
        const auto rehearsal = rehearsal_;
        const int64_t body_before = body_;
        std::vector<Watched::Presence> presence;
        for (const Watched& watched : tensors_) presence.push_back(watched.presence());
        rehearsal_ = {t, std::nullopt};
        body(level);
        const int64_t begin = rehearsal_.begin.value_or(none);
        state_ = state;
        fresh_ = fresh;
        rehearsal_ = rehearsal;
        body_ = body_before;
        for (size_t n = 0; n < tensors_.size(); ++n) tensors_[n].set(presence[n]);
        return begin;
    }
    /// A body of a rehearsal: only the tensor in question and those computed from it, which have
    /// higher numbers.
    void rehearse_body(Level level, const Stop& here) {
        const int tensor = rehearsal_.tensor;
        std::vector<std::pair<int, Span>> calls;
        for (const int t : here.tensors_stored) {
            if (t >= tensor) tensors_[at(t)].set({true, 0});
        }
        for (const int t : here.tensors_needed) {
            if (t < tensor) continue;
            const Span span = missing(t, level);
            if (t != tensor) {
                calls.emplace_back(t, span);
            } else if (!span.is_empty()) {
                rehearsal_.begin = span.begin;
                return;
            }
        }
        for (const auto& [t, span] : calls) {
            if (!span.is_empty())
                tensors_[at(t)].set(
                    {true, std::max(tensors_[at(t)].presence().frontier, span.end)});
        }
        for (auto call = calls.rbegin(); call != calls.rend() && !rehearsal_.begin; ++call) {
            const int k = g_.tensors[at(call->first)].producer;
            if (call->second.is_empty()) continue;
            state_[at(k)].part = work_of_call(k, call->second);
            loops(k, 0);
        }
        if (!rehearsal_.begin)
            level.is_root() ? loops(g_.group.sink(), 0) : loops(level.nest, level.loop + 1);
        for (const int t : here.tensors_stored) {
            if (t >= tensor) tensors_[at(t)].set({false, 0});
        }
    }

    void body(Level level) {
        body_ = ++serial_;
        Stop& here = level.is_root() ? root_ : stops_[at(level.nest)][at(level.loop)];
        if (rehearsal_.tensor >= 0) return rehearse_body(level, here);
        for (const int t : here.tensors_stored) {
            tensors_[at(t)].begin_lifetime();
            if (axis_.kind == Axis::Kind::columns) note_unclipped(t, level);
        }
        for (const int k : here.weights_stored) weights_[at(k)]->begin_lifetime();
        for (const auto& [t, loop] : here.tensors_slid) {
            const Span span = unclipped_need(t, level);
            tensors_[at(t)].begin_body(loop, span);
            repeats_.note_body(t, loop, span);
        }
        for (const int k : here.weights_begin) read_before_[at(k)] = 0;

        const auto now = [&](Level v) { return state_[at(v.nest)].trips[at(v.loop)]; };
        here.calls.clear();
        for (const int t : here.tensors_needed) {
            const Span span = missing(t, level);
            if (const int k = g_.tensors[at(t)].producer; k >= 0) {
                here.calls.emplace_back(k, span);
            } else if (!span.is_empty()) {
                logs_.brought_in[at(t)].add({span.begin, span.end});
            }
        }
        for (const int k : here.weights_needed) {
            const Span part = work(k, level);
            const bool is_index = axis_.kind == Axis::Kind::channels || part.is_empty();
            weights_[at(k)]->need(is_index ? part : Span{0, 1}, now);
        }
        here.needs.clear();
        for (const int t : here.tensors_needed) here.needs.emplace_back(t, need(t, level));
        for (const auto& [t, span] : here.needs) {
            if (steps_watch_ != nullptr)
                steps_watch_->begin(t, span, missing(t, level), tensors_[at(t)].presence().frontier);
        }
        for (const auto& [t, span] : here.needs) {
            tensors_[at(t)].need(span, now);
            repeats_.note_need(t, span);
        }
        for (auto call = here.calls.rbegin(); call != here.calls.rend(); ++call) {
            const auto& [k, output] = *call;
            if (output.is_empty()) continue;
            state_[at(k)].part = work_of_call(k, output);
            loops(k, 0);
        }
        level.is_root() ? loops(g_.group.sink(), 0) : loops(level.nest, level.loop + 1);

        for (const int t : here.tensors_needed) {
            if (steps_watch_ != nullptr) steps_watch_->end(t);
        }
        for (const int t : here.tensors_stored) tensors_[at(t)].end_lifetime();
        for (const int k : here.weights_stored) weights_[at(k)]->end_lifetime();
    }

    void loops(int k, int first) {
        if (first > last_stop_[at(k)]) {
            if (rehearsal_.tensor < 0) {
                logs_.steps[at(k)].add({state_[at(k)].part.begin, state_[at(k)].part.end});
                read_weights(k);
                if (steps_watch_ != nullptr && g_.output_tensor[at(k)] >= 0)
                    steps_watch_->store(g_.output_tensor[at(k)]);
            }
            return;
        }
        const auto inside = [&] {
            stops_[at(k)][at(first)].is_used ? body({k, first}) : loops(k, first + 1);
        };
        const Nest& nest = g_.nest(k);
        const Loop loop = nest.loops[at(first)];
        if (axis_.loops[at(k)] != loop.dim) return inside();
        NestState& state = state_[at(k)];
        const Span whole = state.part;
        const int64_t step = nest.step(loop);
        const int64_t execution = ++serial_;
        std::optional<Repeats::Loop> repeat;
        if (rehearsal_.tensor < 0)
            repeat = repeats_.begin({k, first}, (whole.end - whole.begin) / step);
        for (int64_t begin = whole.begin; begin < whole.end && !rehearsal_.begin; begin += step) {
            if (repeat) begin += step * repeats_.repeated(*repeat, (whole.end - begin) / step);
            if (begin >= whole.end) break;
            state.part = {begin, std::min(begin + step, whole.end)};
            state.trips[at(first)] = {execution, ++serial_};
            inside();
        }
        if (repeat) repeats_.end(*repeat);
        state.part = whole;
    }

    [[nodiscard]] Span unclipped_need(int t, Level level) {
        Span all;
        for (const TensorReader& reader : g_.tensors[at(t)].readers)
            all = all.hull(need_of_reader(reader, t, level, false));
        // What a shared tensor's gap is filled with comes in, too.
        return g_.tensors[at(t)].is_shared() ? tensors_[at(t)].without_gap(all) : all;
    }
    void note_unclipped(int t, Level level) {
        const Span all = unclipped_need(t, level);
        unclipped_columns_[at(t)] = std::max(unclipped_columns_[at(t)], all.end - all.begin);
    }

    struct Fresh {
        int64_t body = 0;
        Span span;
    };
    struct Rehearsal {
        int tensor = -1;               ///< none under way
        std::optional<int64_t> begin;  ///< found
    };

    const Group& g_;
    const Axis& axis_;
    const WeightsInPlace* in_place_;
    StepWatch* steps_watch_;
    std::vector<Watched> tensors_;
    RunLogs logs_;
    Repeats repeats_;
    std::vector<std::optional<Watched>> weights_;
    Stop root_;
    std::vector<std::vector<Stop>> stops_;  ///< by nest and loop
    std::vector<int> last_stop_;  ///< by nest: the innermost loop in whose body something is placed
    std::vector<NestState> state_;
    std::vector<int64_t> unclipped_columns_;
    int64_t alike_ = 0;
    int64_t serial_ = 0;
    int64_t body_ = 0;          ///< number of the body under way
    std::vector<Fresh> fresh_;  ///< what is missing at the begin of that body
    std::vector<bool> skips_;   ///< by tensor
    /// By nest: the end of what was read of its weights in the lifetime under way; none if every
    /// execution of the kernel is a lifetime.
    std::vector<std::optional<int64_t>> read_before_;
    Rehearsal rehearsal_;
};

/// No level.
constexpr size_t none = std::numeric_limits<size_t>::max();

/// One axis of one buffer after all runs along it.
struct AxisOfBuffer {
    int dimension = -1;  ///< of the buffer, -1: its loops do not index it
    std::vector<Level> loops;
    Lifetimes lifetimes;
    std::vector<BodyFacts> bodies;  ///< by loop

    AxisOfBuffer(int dim, const std::vector<const Watched*>& runs)
        : dimension(dim), loops(runs.front()->loops()), bodies(loops.size()) {
        for (const Watched* run : runs) {
            lifetimes.insert(run->lifetimes().begin(), run->lifetimes().end());
            for (size_t n = 0; n < run->bodies().size(); ++n) bodies[n].merge(run->bodies()[n]);
        }
    }
    /// The number of a loop along this axis.
    [[nodiscard]] std::optional<size_t> number_of(Level v) const {
        const auto found = std::find(loops.begin(), loops.end(), v);
        if (found == loops.end()) return std::nullopt;
        return at(found - loops.begin());
    }
};

/// The fold rule in one lifetime.
struct FoldedLifetime {
    BufferShape shape;
    /// By dimension: number of the level between store and compute at which it folds.
    std::array<size_t, 3> folded_at{none, none, none};
};

/// `facts[a]` along axis a.
FoldedLifetime fold_lifetime(const std::vector<Level>& between,
                             const std::vector<AxisOfBuffer>& axes,
                             const std::vector<const LifetimeFacts*>& facts) {
    FoldedLifetime folded;
    for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].dimension >= 0) folded.shape.extent[at(axes[a].dimension)] = facts[a]->whole;
    }
    const LoopFacts* run = nullptr;  // innermost loop so far of adjacent ones of one dimension
    int run_dimension = -1;
    size_t run_level = none;
    const auto goes_on = [&] {
        if (run == nullptr) return true;
        folded.shape.extent[at(run_dimension)] = run->held;
        folded.shape.folds[at(run_dimension)] = true;
        folded.folded_at[at(run_dimension)] = run_level;
        return !run->overlaps;
    };
    for (size_t level = 0; level < between.size(); ++level) {
        for (size_t a = 0; a < axes.size(); ++a) {
            const std::optional<size_t> number = axes[a].number_of(between[level]);
            if (!number) continue;
            const LoopFacts& loop = facts[a]->loops[*number];
            if (!loop.repeats) continue;
            if (run_dimension != axes[a].dimension && !goes_on()) return folded;
            if (axes[a].dimension < 0) return folded;
            run = &loop;
            run_dimension = axes[a].dimension;
            run_level = level;
        }
    }
    goes_on();
    return folded;
}

/// Calls `make` with every combination of lifetimes along the axes.
void for_each_lifetime(const std::vector<AxisOfBuffer>& axes,
                       const std::function<void(const std::vector<const LifetimeFacts*>&)>& make) {
    std::vector<const LifetimeFacts*> facts(axes.size());
    const std::function<void(size_t)> combine = [&](size_t a) {
        if (a == axes.size()) return make(facts);
        for (const LifetimeFacts& one : axes[a].lifetimes) {
            facts[a] = &one;
            combine(a + 1);
        }
    };
    combine(0);
}

/// Whether the dimension of axis a may slide with the loop at `level`: no loop of the axis down to it
/// repeats in a lifetime in which the rule stops before that loop.
bool may_slide(size_t a, size_t level, const std::vector<Level>& between,
               const std::vector<AxisOfBuffer>& axes) {
    bool is_allowed = true;
    for_each_lifetime(axes, [&](const std::vector<const LifetimeFacts*>& facts) {
        const size_t folded_at =
            fold_lifetime(between, axes, facts).folded_at[at(axes[a].dimension)];
        for (size_t v = 0; v <= level; ++v) {
            const std::optional<size_t> number = axes[a].number_of(between[v]);
            if (number && facts[a]->loops[*number].repeats && (folded_at == none || folded_at < v))
                is_allowed = false;
        }
    });
    return is_allowed;
}

/// How the dimension of axis a slides: with the loop that leaves the least to hold.
std::optional<Slide> slide_along(size_t a, const std::vector<Level>& between,
                                 const std::vector<AxisOfBuffer>& axes) {
    std::optional<Slide> best;
    for (size_t level = 0; level < between.size(); ++level) {
        const std::optional<size_t> number = axes[a].number_of(between[level]);
        if (!number || !may_slide(a, level, between, axes)) continue;
        const BodyFacts& bodies = axes[a].bodies[*number];
        if (!bodies.starts_late && (!best || bodies.held < best->room))
            best = Slide{between[level], bodies.held, bodies.returns};
    }
    return best;
}

/// One size for all lifetimes: the largest extent of each dimension.
BufferShape fold(const std::vector<Level>& between, const std::vector<AxisOfBuffer>& axes) {
    BufferShape largest;
    for_each_lifetime(axes, [&](const std::vector<const LifetimeFacts*>& facts) {
        const BufferShape shape = fold_lifetime(between, axes, facts).shape;
        for (size_t d = 0; d < 3; ++d) {
            largest.extent[d] = std::max(largest.extent[d], shape.extent[d]);
            largest.folds[d] = largest.folds[d] || shape.folds[d];
        }
    });
    return largest;
}

std::vector<Level> levels_between(const std::vector<Level>& path, const Placement& placement) {
    const auto store = std::find(path.begin(), path.end(), placement.store);
    const auto compute = std::find(store, path.end(), placement.compute);
    return {store + 1, compute == path.end() ? compute : compute + 1};
}

BufferShape sink_output_shape(const Nest& nest, const LayerProblem& p) {
    BufferShape shape;
    for (const Dim d : {Dim::z, Dim::y, Dim::x}) {
        int64_t extent = p[d];
        for (int l = 0; l <= nest.y.store.loop; ++l) {
            const Loop loop = nest.loops[at(l)];
            if (loop.dim != d) continue;
            const int64_t step = loop.band == Band::strip   ? nest.strip[at(d) - 1]
                                 : loop.band == Band::outer ? nest[d]
                                                            : 1;
            extent = std::min(extent, step);
        }
        shape.extent[at(d)] = extent;
    }
    return shape;
}

/// From the runs along each axis.
using Runs = std::vector<std::vector<const AxisRun*>>;

/// The axes of one buffer. `dimension_of` an axis: of the buffer, -1 where none.
template <class Watch, class Dimension>
std::vector<AxisOfBuffer> axes_of_buffer(const std::vector<Axis>& axes, const Runs& runs,
                                         const Watch& watched_by, const Dimension& dimension_of) {
    std::vector<AxisOfBuffer> seen;
    for (size_t a = 0; a < axes.size(); ++a) {
        std::vector<const Watched*> watched;
        for (const AxisRun* run : runs[a]) watched.push_back(&watched_by(*run));
        const int dimension = dimension_of(axes[a]);
        if (dimension >= 0 || !watched.front()->loops().empty())
            seen.emplace_back(dimension, watched);
    }
    return seen;
}

BufferShape tensor_shape(const Group& g, size_t t, const std::vector<Axis>& axes,
                         const Runs& runs) {
    const GroupTensor& tensor = g.tensors[t];
    const TensorReader& reader = tensor.readers.front();
    const auto seen = axes_of_buffer(
        axes, runs, [&](const AxisRun& run) -> const Watched& { return run.tensor(t); },
        [&](const Axis& axis) {
            if (axis.kind == Axis::Kind::channels) return axis.is_real[t] ? 0 : -1;
            return axis.kind == Axis::Kind::rows ? 1 : 2;
        });
    const std::vector<Level> between =
        levels_between(g.paths[at(reader.nest)], placement_of(g.group, tensor));
    BufferShape shape = fold(between, seen);
    // Shared: all channels whenever anything is needed.
    if (tensor.is_shared() && shape.extent[1] > 0)
        shape.extent[0] = g.problem(reader.nest).inputs[at(reader.operand)].channels;
    for (const AxisRun* run : runs[1])
        shape.unclipped_columns = std::max(shape.unclipped_columns, run->unclipped_columns(t));
    for (size_t a = 0; a < seen.size(); ++a) {
        if (seen[a].dimension != 0 && seen[a].dimension != 2) continue;
        const auto d = at(seen[a].dimension);
        int64_t whole = 0;
        for (const LifetimeFacts& lifetime : seen[a].lifetimes)
            whole = std::max(whole, lifetime.whole);
        if (whole > shape.extent[d]) shape.slide[d] = slide_along(a, between, seen);
    }
    return shape;
}

BufferShape weights_shape(const Group& g, size_t k, const std::vector<Axis>& axes,
                          const Runs& runs) {
    if (!g.group.nests[k].w) return {};
    const auto seen = axes_of_buffer(
        axes, runs, [&](const AxisRun& run) -> const Watched& { return run.weights(k); },
        [&](const Axis& axis) {
            const bool indexes = axis.kind == Axis::Kind::channels && axis.loops[k];
            return !indexes ? -1 : axis.loops[k] == Dim::z ? 0 : 1;
        });
    BufferShape shape = fold(levels_between(g.paths[k], *g.group.nests[k].w), seen);
    shape.extent[2] = g.problems[k].y().kernel * g.problems[k].x().kernel;
    return shape;
}

}  // namespace

BufferShapes buffer_shapes(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                           StripRange strips, Trips trips) {
    const Group g(group, problems, trips);
    const std::vector<Axis> axes = axes_of(g);
    std::list<AxisRun> made;
    Runs runs;
    for (const Axis& axis : axes) runs.push_back({&made.emplace_back(g, axis)});
    const Nest& sink = group.nests.back();
    if (strips == StripRange::any && sink.loops.front().band == Band::strip) {
        // Strips after the second one of a range do what they do in a range that begins at 0.
        const Dim d = sink.loops.front().dim;
        const size_t strip_axis = d == Dim::y ? 0 : 1;
        const int64_t extent = problems.back()[d], step = sink.strip[at(d) - 1];
        for (int64_t begin = step; begin < extent; begin += step) {
            const AxisRun& run = made.emplace_back(g, axes[strip_axis],
                                                   Span{begin, std::min(begin + 2 * step, extent)},
                                                   nullptr, nullptr, step);
            runs[strip_axis].push_back(&run);
            begin += step * run.alike();
        }
    }
    BufferShapes shapes;
    for (size_t t = 0; t < g.tensors.size(); ++t)
        shapes.tensors.push_back(tensor_shape(g, t, axes, runs));
    for (size_t k = 0; k < problems.size(); ++k)
        shapes.weights.push_back(weights_shape(g, k, axes, runs));
    shapes.output = sink_output_shape(sink, problems.back());
    return shapes;
}

namespace {

/// Kernels read weights in place: no level of theirs keeps loops apart.
GroupSchedule with_resident_weights(GroupSchedule group) {
    for (Nest& nest : group.nests) {
        if (nest.w) nest.w = Placement{};
    }
    return group;
}

/// Calls `make` with the runs along each axis, once for all strips in order and once for each strip
/// that a thread may begin with. `axes`: the first ones of axes_of(). `watch`: of the runs along
/// rows.
void for_each_start(const Group& g, const std::vector<LayerProblem>& problems,
                    const std::vector<Axis>& axes,
                    const std::function<void(const Axis&, const AxisRun&)>& make,
                    StepWatch* watch = nullptr) {
    const auto of = [&](const Axis& axis) {
        return axis.kind == Axis::Kind::rows ? watch : nullptr;
    };
    for (const Axis& axis : axes) make(axis, AxisRun(g, axis, {}, nullptr, of(axis)));
    const Nest& sink = g.group.nests.back();
    const Loop outermost = sink.loops.front();
    if (outermost.band != Band::strip) return;
    const size_t along = outermost.dim == Dim::y ? 0 : 1;
    if (along >= axes.size()) return;
    const Axis& strips = axes[along];
    const int64_t extent = problems.back()[outermost.dim];
    const int64_t step = sink.strip[at(outermost.dim) - 1];
    for (int64_t begin = step; begin < extent; begin += step) {
        const AxisRun run(g, strips, Span{begin, std::min(begin + 2 * step, extent)}, nullptr,
                          of(strips), step);
        make(strips, run);
        begin += step * run.alike();
    }
}

/// Whether a loop of a nest, no strip, runs once in every call.
bool is_single_trip(const Group& g, Level level) {
    const Nest& nest = g.nest(level.nest);
    const Loop loop = nest.loops[at(level.loop)];
    return nest.step(loop) >=
           (loop.band == Band::outer ? g.problem(level.nest)[loop.dim] : nest[loop.dim]);
}

/// Whether loops before kernels, strips excepted, go over rows alone.
bool has_row_loops_alone(const Group& g, const std::vector<int>& last_stops) {
    for (int k = 0; k < std::ssize(g.problems); ++k) {
        for (int l = 0; l <= last_stops[at(k)]; ++l) {
            const Loop loop = g.nest(k).loops[at(l)];
            if (loop.dim != Dim::y && loop.band != Band::strip && !is_single_trip(g, {k, l}))
                return false;
        }
    }
    return true;
}

}  // namespace

AskedBoxes asked_boxes(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                       const std::vector<int64_t>& channels_together, Trips trips) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems, trips);
    AxisRun::WeightsInPlace in_place{channels_together, {}};
    in_place.channels_together.resize(problems.size(), 1);
    for (const Nest& nest : group.nests)
        in_place.stores.push_back(nest.w ? nest.w->store : Level{});
    AskedBoxes boxes;
    boxes.nests.resize(problems.size());
    boxes.weights.resize(problems.size());
    for (const Axis& axis : axes_of(g)) {
        const AxisRun run(g, axis, {}, &in_place);
        for (size_t k = 0; k < problems.size(); ++k) {
            const bool is_channels = axis.kind == Axis::Kind::channels;
            boxes.nests[k].push_back({axis.loops[k], run.steps()[k].by_range()});
            boxes.weights[k].push_back(
                {is_channels ? axis.loops[k] : std::nullopt, run.first_reads()[k].by_range()});
        }
        for (size_t t = 0; t < g.tensors.size() && g.tensors[t].is_external(); ++t) {
            boxes.inputs.resize(std::max(boxes.inputs.size(), t + 1));
            const Dim along = axis.kind == Axis::Kind::rows      ? Dim::y
                              : axis.kind == Axis::Kind::columns ? Dim::x
                                                                 : Dim::z;
            const bool is_real = axis.kind != Axis::Kind::channels || axis.is_real[t];
            boxes.inputs[t].push_back(
                {is_real ? std::optional(along) : std::nullopt, run.brought_in()[t].by_range()});
        }
    }
    // A shared tensor comes in with all of its channels, which no axis has.
    for (size_t t = 0; t < boxes.inputs.size(); ++t) {
        if (!g.tensors[t].is_shared()) continue;
        const TensorReader& reader = g.tensors[t].readers.front();
        const int64_t channels = g.problem(reader.nest).inputs[at(reader.operand)].channels;
        boxes.inputs[t].push_back({Dim::z, {{Range{0, channels}, 1}}});
    }
    return boxes;
}

int64_t kernel_calls(const AskedBoxes& boxes) {
    int64_t calls = 0;
    for (const BoxRanges& nest : boxes.nests) {
        int64_t of_nest = 1;
        for (const AxisRanges& axis : nest) {
            int64_t ranges = 0;
            for (const auto& [range, times] : axis.times) ranges += times;
            of_nest = checked_multiply(of_nest, ranges);
        }
        calls = checked_add(calls, of_nest);
    }
    return calls;
}

void for_each_box(const BoxRanges& ranges,
                  const std::function<void(const PerDim<Range>&, int64_t times)>& make) {
    PerDim<Range> box{Range{0, 1}, Range{0, 1}, Range{0, 1}, Range{0, 1}};
    const std::function<void(size_t, int64_t)> combine = [&](size_t axis, int64_t times) {
        if (axis == ranges.size()) return make(box, times);
        for (const auto& [range, count] : ranges[axis].times) {
            if (ranges[axis].dim) box[*ranges[axis].dim] = range;
            combine(axis + 1, times * count);
        }
    };
    combine(0, 1);
}

std::vector<PerDim<bool>> whole_dimensions(const GroupSchedule& group,
                                           const std::vector<LayerProblem>& problems) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems);
    std::vector<PerDim<bool>> whole(problems.size(), {true, true, true, true});
    for_each_start(g, problems, axes_of(g), [&](const Axis& axis, const AxisRun& run) {
        for (size_t k = 0; k < problems.size(); ++k) {
            if (!axis.loops[k]) continue;
            for (const auto& [range, times] : run.steps()[k]) {
                if (range != Range{0, problems[k][*axis.loops[k]]})
                    whole[k][*axis.loops[k]] = false;
            }
        }
    });
    return whole;
}

std::vector<bool> columns_at_once(const GroupSchedule& group,
                                  const std::vector<LayerProblem>& problems) {
    return columns_at_once(group, problems, buffer_shapes(group, problems, StripRange::any));
}

std::vector<bool> columns_at_once(const GroupSchedule& group,
                                  const std::vector<LayerProblem>& problems,
                                  const BufferShapes& shapes) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems);
    const std::vector<Axis> axes = axes_of(g);
    const Axis& columns = *std::ranges::find(axes, Axis::Kind::columns, &Axis::kind);
    const Nest& sink = group.nests.back();
    const auto strips = std::ranges::find(sink.loops, Loop{Dim::x, Band::strip});
    const int64_t extent = problems.back()[Dim::x];
    const int64_t step = strips == sink.loops.end() ? extent : sink.step(*strips);
    std::vector<bool> at_once(problems.size(), true);
    for (int64_t begin = 0; begin < extent; begin += step) {
        const AxisRun run(g, columns, Span{begin, std::min(begin + step, extent)}, nullptr, nullptr,
                          step);
        for (size_t k = 0; k < problems.size(); ++k) {
            int64_t boxes = 0;
            for (const auto& [range, times] : run.steps()[k]) boxes += times;
            if (boxes > 1 + run.alike()) at_once[k] = false;
        }
        begin += step * run.alike();
    }
    for (size_t t = 0; t < g.tensors.size(); ++t) {
        const Level store = placement_of(group, g.tensors[t]).store;
        const bool outlives_strips =
            strips != sink.loops.end() &&
            (store.is_root() ||
             (store.nest == group.sink() && store.loop < strips - sink.loops.begin()));
        if (!outlives_strips && !shapes.tensors[t].slide[2]) continue;
        for (const TensorReader& reader : g.tensors[t].readers) at_once[at(reader.nest)] = false;
        if (!g.tensors[t].is_external()) at_once[at(g.tensors[t].producer)] = false;
    }
    return at_once;
}

std::vector<int64_t> channel_blocks(const GroupSchedule& group,
                                    const std::vector<LayerProblem>& problems) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems);
    std::vector<int64_t> blocks(problems.size(), 0);
    for (const Axis& axis : axes_of(g)) {
        if (axis.kind != Axis::Kind::channels) continue;
        const AxisRun run(g, axis);
        for (size_t k = 0; k < problems.size(); ++k) {
            if (axis.loops[k] != Dim::z) continue;
            for (const auto& [range, times] : run.steps()[k]) {
                blocks[k] = std::gcd(blocks[k], range.begin);
                if (range.end != problems[k][Dim::z]) blocks[k] = std::gcd(blocks[k], range.end);
            }
        }
    }
    return blocks;
}

std::vector<std::set<std::pair<int64_t, int64_t>>> row_steps(
    const GroupSchedule& group, const std::vector<LayerProblem>& problems, Trips trips) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems, trips);
    std::vector<std::set<std::pair<int64_t, int64_t>>> steps(problems.size());
    const std::vector<Axis> rows{axes_of(g).front()};
    for_each_start(g, problems, rows, [&](const Axis&, const AxisRun& run) {
        for (size_t k = 0; k < steps.size(); ++k) {
            for (const auto& [range, times] : run.steps()[k])
                steps[k].emplace(range.begin, range.end);
        }
    });
    return steps;
}

RowTraffic row_traffic(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
                       Trips trips) {
    const GroupSchedule resident = with_resident_weights(group);
    const Group g(resident, problems, trips);
    RowTraffic traffic;
    traffic.kept.resize(g.tensors.size());
    const std::vector<Axis> all = axes_of(g), axes{all[0], all[1]};
    if (!has_row_loops_alone(g, AxisRun(g, axes.front()).last_stops())) return traffic;
    for (size_t t = 0; t < g.tensors.size(); ++t) {
        const GroupTensor& tensor = g.tensors[t];
        if (tensor.is_external() || tensor.is_shared()) continue;
        const Placement& placement = placement_of(resident, tensor);
        const int reader = tensor.readers.front().nest;
        const std::vector<Level> between = levels_between(g.paths[at(reader)], placement);
        if (!placement.compute.is_root() && placement.compute.nest == reader &&
            std::ranges::all_of(between, [&](Level v) {
                return g.dim(v) == Dim::y || g.nest(v.nest).loops[at(v.loop)].band != Band::strip;
            }))
            traffic.kept[t] = 0;
    }
    StepWatch watch(traffic);
    for_each_start(g, problems, axes, [](const Axis&, const AxisRun&) {}, &watch);
    return traffic;
}

}  // namespace laminate
