#include "scheduler/counts/two_level/axis.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "scheduler/schedule/window.h"

namespace laminate::two_level {

namespace {

constexpr Range unit{0, 1};

/// Runs the loops of one axis in their order, once, with the lifetimes and frontiers of all
/// buffers.
class AxisSweep {
public:
    /// Gives up (complete() is false) after `step_limit` bodies unless `remember` calls that
    /// repeat, which makes recomputation linear instead of exponential in the number of layers.
    AxisSweep(const AxisProblem& problem, bool remember, int64_t step_limit)
        : problem_(problem), remember_(remember), steps_left_(step_limit) {
        lay_out();
        const int64_t sink = count() - 1;
        body(first_[static_cast<size_t>(sink)], whole(sink));
    }

    [[nodiscard]] bool complete() const { return steps_left_ > 0; }

    [[nodiscard]] AxisCounts counts() const {
        AxisCounts counts;
        for (const Buffer& b : buffers_) {
            AxisBuffer result{b.brought, b.taps, {}, b.lifetimes};
            for (const Track& t : b.tracks) result.levels.push_back(nodes_[t.node].level);
            counts.buffers.push_back(std::move(result));
        }
        const AxisNest& sink = problem_.nests.back();
        counts.sink_taps = sink.role == Role::spatial ? taps_of(sink.window, {0, sink.extent})
                           : sink.role == Role::outputs || sink.role == Role::grouped ? sink.extent
                                                                                      : 1;
        return counts;
    }

private:
    /// A body between store and compute level of a buffer.
    struct Track {
        size_t node = 0;
        Range need;            ///< hull over the execution of the body in progress
        int64_t frontier = 0;  ///< end of what earlier executions in this lifetime needed
        int64_t trips = 0;     ///< of the loop execution in progress, those that needed anything
        AxisBody seen;         ///< in the lifetime in progress
    };
    struct Reader {
        AxisReader reader;
        bool inside = false;  ///< compute level in the nest's own loops (depth 0 included)
        Range calls;  ///< otherwise: hull of the nest's calls in the compute body in progress
    };
    struct Buffer {
        bool is_weights = false;
        int64_t producer = -1;
        int64_t whole = 0;
        size_t readers_begin = 0;  ///< of readers_
        size_t readers_end = 0;
        int64_t frontier = 0;  ///< everything below was brought in this lifetime
        int64_t brought = 0;
        int64_t taps = 0;
        std::vector<Track> tracks;
        std::vector<AxisLifetime> lifetimes;
    };
    struct Node {
        AxisLevel level;
        size_t parent = 0;
        std::vector<size_t> stored;    ///< buffers whose lifetime is one execution of this body
        std::vector<size_t> computed;  ///< tensors from the sink upwards, then weights
        std::vector<std::pair<size_t, size_t>> tracked;  ///< (buffer, track)
    };

    [[nodiscard]] int64_t count() const { return static_cast<int64_t>(problem_.nests.size()); }
    [[nodiscard]] const AxisNest& nest(int64_t k) const {
        return problem_.nests[static_cast<size_t>(k)];
    }
    [[nodiscard]] size_t node_of(AxisLevel level) const {
        return first_[static_cast<size_t>(level.nest)] + static_cast<size_t>(level.depth);
    }

    void lay_out() {
        const size_t nests = problem_.nests.size();
        // Loops inside every level that matters never run.
        loops_.assign(nests, 0);
        for (const AxisArray& array : problem_.arrays) {
            const AxisLevel compute = array.placement.compute;
            size_t& depth = loops_[static_cast<size_t>(compute.nest)];
            depth = std::max(depth, static_cast<size_t>(compute.depth));
        }
        first_.resize(nests);
        nodes_.reserve(std::accumulate(loops_.begin(), loops_.end(), nests));
        for (size_t k = 0; k < nests; ++k) {
            first_[k] = nodes_.size();
            for (size_t q = 0; q <= loops_[k]; ++q) {
                Node node;
                node.level = {static_cast<int64_t>(k), static_cast<int64_t>(q)};
                node.parent = nodes_.size() - 1;
                nodes_.push_back(std::move(node));
            }
        }
        nodes_[first_[nests - 1]].parent = first_[nests - 1];
        for (const AxisArray& array : problem_.arrays) {
            if (array.producer < 0) continue;
            nodes_[first_[static_cast<size_t>(array.producer)]].parent =
                node_of(array.placement.compute);
        }
        waiting_.resize(nests);
        buffers_.resize(problem_.arrays.size());
        for (size_t b = 0; b < buffers_.size(); ++b) {
            Buffer& buffer = buffers_[b];
            const AxisArray& array = problem_.arrays[b];
            buffer.is_weights = array.is_weights;
            buffer.producer = array.producer;
            buffer.whole = array.whole;
            buffer.readers_begin = readers_.size();
            for (const AxisReader& reader : array.readers) {
                const bool inside = array.placement.compute.nest == reader.nest;
                if (!inside) waiting_[static_cast<size_t>(reader.nest)].push_back(readers_.size());
                readers_.push_back({reader, inside, {}});
            }
            buffer.readers_end = readers_.size();
            const size_t store = node_of(array.placement.store);
            const size_t compute = node_of(array.placement.compute);
            size_t levels = 1;
            for (size_t node = compute; node != store; node = nodes_[node].parent) ++levels;
            buffer.tracks.resize(levels);
            for (size_t node = compute; levels-- > 0; node = nodes_[node].parent) {
                nodes_[node].tracked.emplace_back(b, levels);
                buffer.tracks[levels].node = node;
            }
            nodes_[store].stored.push_back(b);
        }
        for (const bool weights : {false, true}) {
            for (size_t b = buffers_.size(); b-- > 0;) {
                if (buffers_[b].is_weights == weights)
                    nodes_[node_of(problem_.arrays[b].placement.compute)].computed.push_back(b);
            }
        }
        if (remember_) find_open_buffers();
    }

    /// The whole range of the role's dimension where the nest's calls do not restrict it.
    [[nodiscard]] Range whole(int64_t k) const {
        const AxisNest& n = nest(k);
        return n.role == Role::none ? unit : Range{0, n.extent};
    }

    /// What the loops of nest k run over when the nest is called for `call`.
    [[nodiscard]] Range range_of_call(int64_t k, Range call) const {
        const Role role = nest(k).role;
        return role == Role::inputs || role == Role::within_group ? whole(k) : call;
    }

    /// What a body of the reader's nest that covers `part` reads.
    [[nodiscard]] Range reads(const AxisReader& reader, bool is_weights, Range part) const {
        const AxisNest& n = nest(reader.nest);
        switch (n.role) {
            case Role::spatial:
                return is_weights ? unit : window_of(n.window, part);
            case Role::outputs:
                return is_weights ? part : unit;
            case Role::grouped: {
                if (is_weights) return part;
                const Range channels{part.begin / n.group_outputs * n.group_inputs,
                                     ((part.end - 1) / n.group_outputs + 1) * n.group_inputs};
                return {std::max<int64_t>(channels.begin - reader.first_output, 0),
                        std::min(channels.end - reader.first_output, reader.channels)};
            }
            case Role::inputs:
                return part;
            case Role::within_group:
                return is_weights ? part : unit;
            case Role::none:
                break;
        }
        return unit;
    }

    /// What the body in progress, which covers `part` of its nest and is done but for what comes
    /// first in it, needs of the buffer.
    [[nodiscard]] Range need_of(const Buffer& buffer, Range part) const {
        Range need;
        for (size_t r = buffer.readers_begin; r < buffer.readers_end; ++r) {
            const Reader& reader = readers_[r];
            if (reader.inside)
                need.extend(reads(reader.reader, buffer.is_weights, part));
            else if (!reader.calls.empty())
                need.extend(reads(reader.reader, buffer.is_weights,
                                  range_of_call(reader.reader.nest, reader.calls)));
        }
        if (need.empty()) return need;
        if (buffer.whole > 0) return {0, buffer.whole};
        // One branch may jump over what another reads later: a shared tensor has no gaps above the
        // begin of its lifetime.
        const bool is_shared = buffer.readers_end - buffer.readers_begin > 1;
        if (is_shared && buffer.frontier > 0) need.begin = std::min(need.begin, buffer.frontier);
        return need;
    }

    void body(size_t node_index, Range part) {
        if (--steps_left_ <= 0) return;
        Node& node = nodes_[node_index];
        for (const size_t b : node.stored) {
            buffers_[b].frontier = 0;
            for (Track& t : buffers_[b].tracks) {
                t.frontier = 0;
                t.seen = {};
            }
            buffers_[b].tracks.front().trips = 0;  // the loop around the lifetime is outside it
        }
        for (const auto& [b, t] : node.tracked) buffers_[b].tracks[t].need = {};
        for (const size_t b : node.computed) {
            for (size_t r = buffers_[b].readers_begin; r < buffers_[b].readers_end; ++r)
                readers_[r].calls = {};
        }

        const auto k = static_cast<size_t>(node.level.nest);
        const auto depth = static_cast<size_t>(node.level.depth);
        if (depth < loops_[k]) {
            const int64_t step = problem_.nests[k].steps[depth];
            for (const auto& [b, t] : nodes_[node_index + 1].tracked)
                buffers_[b].tracks[t].trips = 0;
            for (int64_t begin = part.begin; begin < part.end; begin += step) {
                body(node_index + 1, {begin, std::min(begin + step, part.end)});
            }
        }
        // A buffer changes only at its own compute level, so consumers may be looked at before
        // their producers: what a producer must bring is what its consumers will call for in this
        // body.
        for (const size_t b : node.computed) {
            const Range need = need_of(buffers_[b], part);
            if (!need.empty()) bring(b, need);
        }
        for (const auto& [b, t] : node.tracked) {
            Track& track = buffers_[b].tracks[t];
            if (track.need.empty()) continue;
            track.seen.trips = std::max(track.seen.trips, ++track.trips);
            // What came in before stays until now when its coordinates are needed again: from this
            // need's begin to the frontier everything is held at once (at the moment when the
            // frontier last moved).
            track.seen.held = std::max(track.seen.held,
                                       std::max(track.frontier, track.need.end) - track.need.begin);
            if (track.need.begin < track.frontier) track.seen.overlaps = true;
            track.frontier = std::max(track.frontier, track.need.end);
        }
        for (const size_t b : node.stored) end_lifetime(buffers_[b]);
    }

    static void end_lifetime(Buffer& buffer) {
        if (buffer.tracks.front().seen.held == 0) return;  // nothing was needed
        const auto alike = [&](const AxisLifetime& other) {
            for (size_t t = 0; t < other.size(); ++t) {
                const AxisBody& seen = buffer.tracks[t].seen;
                if ((other[t].trips > 1) != (seen.trips > 1) || other[t].overlaps != seen.overlaps)
                    return false;
            }
            return true;
        };
        const auto same = std::find_if(buffer.lifetimes.begin(), buffer.lifetimes.end(), alike);
        if (same == buffer.lifetimes.end()) {
            buffer.lifetimes.emplace_back();
            for (const Track& t : buffer.tracks) buffer.lifetimes.back().push_back(t.seen);
            return;
        }
        for (size_t t = 0; t < same->size(); ++t) merge((*same)[t], buffer.tracks[t].seen);
    }

    static void merge(AxisBody& into, const AxisBody& other) {
        into.trips = std::max(into.trips, other.trips);
        into.held = std::max(into.held, other.held);
        into.overlaps = into.overlaps || other.overlaps;
    }

    void bring(size_t b, Range need) {
        Buffer& buffer = buffers_[b];
        for (Track& t : buffer.tracks) t.need.extend(need);
        const Range fresh{std::max(need.begin, buffer.frontier), need.end};
        if (fresh.empty()) return;
        buffer.frontier = fresh.end;
        buffer.brought = checked_add(buffer.brought, fresh.size());
        if (buffer.producer < 0) return;
        const AxisNest& p = nest(buffer.producer);
        buffer.taps = checked_add(
            buffer.taps, p.role == Role::spatial ? taps_of(p.window, fresh) : fresh.size());
        for (const size_t r : waiting_[static_cast<size_t>(buffer.producer)])
            readers_[r].calls.extend(fresh);
        call(buffer.producer, fresh);
    }

    void call(int64_t k, Range box) {
        const size_t node = first_[static_cast<size_t>(k)];
        if (!remember_) {
            body(node, range_of_call(k, box));
            return;
        }
        Memory& memory = memories_[static_cast<size_t>(k)];
        std::vector<int64_t> before{box.begin, box.end};
        for (const size_t b : memory.open) push_state(before, b);
        const auto known = memory.calls.find(before);
        if (known != memory.calls.end()) {
            replay(memory, known->second);
            return;
        }
        // Run it, with the accumulators that reach outside set aside so that they show this call
        // alone.
        std::vector<int64_t> start;
        std::vector<Range> set_aside;
        for (const size_t b : memory.buffers) {
            start.push_back(buffers_[b].brought);
            start.push_back(buffers_[b].taps);
        }
        for (const size_t r : memory.waiting)
            set_aside.push_back(std::exchange(readers_[r].calls, Range{}));
        std::vector<AxisBody> seen_before;
        for (const size_t b : memory.open) {
            for (Track& t : buffers_[b].tracks)
                seen_before.push_back(std::exchange(t.seen, AxisBody{}));
        }
        body(node, range_of_call(k, box));
        Call result;
        for (size_t n = 0; n < memory.buffers.size(); ++n) {
            const Buffer& buffer = buffers_[memory.buffers[n]];
            result.brought.push_back(buffer.brought - start[2 * n]);
            result.taps.push_back(buffer.taps - start[2 * n + 1]);
        }
        for (size_t n = 0; n < memory.waiting.size(); ++n) {
            Range& calls = readers_[memory.waiting[n]].calls;
            result.calls.push_back(calls);
            calls.extend(set_aside[n]);
        }
        for (const size_t b : memory.open) {
            push_state(result.after, b);
            result.needs.push_back(need_at(b, node));
            for (Track& t : buffers_[b].tracks) {
                result.seen.push_back(t.seen);
                merge(t.seen, seen_before[result.seen.size() - 1]);
            }
        }
        memory.calls.emplace(std::move(before), std::move(result));
    }

    // ---- repeated calls, remembered
    struct Call {
        std::vector<int64_t> brought;  ///< by Memory::buffers
        std::vector<int64_t> taps;
        std::vector<Range> calls;    ///< by Memory::waiting
        std::vector<Range> needs;    ///< by Memory::open
        std::vector<int64_t> after;  ///< state of Memory::open
        std::vector<AxisBody> seen;  ///< tracks of Memory::open
    };
    struct KeyHash {
        size_t operator()(const std::vector<int64_t>& key) const {
            size_t h = 1469598103934665603ULL;
            for (const int64_t v : key) h = (h ^ static_cast<size_t>(v)) * 1099511628211ULL;
            return h;
        }
    };
    struct Memory {
        std::vector<size_t> buffers;  ///< brought somewhere inside a call of this nest
        std::vector<size_t> open;     ///< those of them that live longer than the call
        std::vector<size_t> waiting;  ///< readers that run inside, of buffers brought outside
        std::unordered_map<std::vector<int64_t>, Call, KeyHash> calls;
    };

    void find_open_buffers() {
        memories_.resize(problem_.nests.size());
        for (size_t k = 0; k + 1 < problem_.nests.size(); ++k) {
            const auto runs_inside = [&](size_t node) {  // is the node in a call of nest k?
                while (nodes_[node].parent != node && node != first_[k]) node = nodes_[node].parent;
                return node == first_[k];
            };
            for (size_t b = 0; b < buffers_.size(); ++b) {
                const AxisPlacement& p = problem_.arrays[b].placement;
                if (runs_inside(node_of(p.compute))) {
                    memories_[k].buffers.push_back(b);
                    if (!runs_inside(node_of(p.store))) memories_[k].open.push_back(b);
                    continue;
                }
                for (size_t r = buffers_[b].readers_begin; r < buffers_[b].readers_end; ++r) {
                    const auto reader = static_cast<size_t>(readers_[r].reader.nest);
                    if (reader != k && runs_inside(first_[reader]))
                        memories_[k].waiting.push_back(r);
                }
            }
        }
    }

    void push_state(std::vector<int64_t>& state, size_t b) const {
        state.push_back(buffers_[b].frontier);
        for (const Track& t : buffers_[b].tracks) state.push_back(t.frontier);
    }

    [[nodiscard]] Range need_at(size_t b, size_t node) const {
        for (const Track& t : buffers_[b].tracks) {
            if (t.node == node) return t.need;
        }
        return {};
    }

    void replay(const Memory& memory, const Call& call) {
        for (size_t n = 0; n < memory.buffers.size(); ++n) {
            Buffer& buffer = buffers_[memory.buffers[n]];
            buffer.brought = checked_add(buffer.brought, call.brought[n]);
            buffer.taps = checked_add(buffer.taps, call.taps[n]);
        }
        for (size_t n = 0; n < memory.waiting.size(); ++n)
            readers_[memory.waiting[n]].calls.extend(call.calls[n]);
        size_t at = 0;
        size_t track = 0;
        for (size_t n = 0; n < memory.open.size(); ++n) {
            Buffer& buffer = buffers_[memory.open[n]];
            buffer.frontier = call.after[at++];
            for (Track& t : buffer.tracks) {
                t.frontier = call.after[at++];
                t.need.extend(call.needs[n]);
                merge(t.seen, call.seen[track++]);
            }
        }
    }

    const AxisProblem& problem_;
    bool remember_;
    int64_t steps_left_;
    std::vector<size_t> first_;  ///< node of depth 0, by nest
    std::vector<size_t> loops_;  ///< loops that run, by nest
    std::vector<Node> nodes_;
    std::vector<Buffer> buffers_;
    std::vector<Reader> readers_;
    std::vector<std::vector<size_t>> waiting_;  ///< by nest: its readers that are not inside
    std::vector<Memory> memories_;
};

}  // namespace

std::vector<int64_t> AxisProblem::key() const {
    std::vector<int64_t> key{static_cast<int64_t>(nests.size())};
    for (const AxisNest& n : nests) {
        key.push_back(static_cast<int64_t>(n.role));
        if (n.role == Role::none) continue;
        key.push_back(n.extent);
        key.push_back(static_cast<int64_t>(n.steps.size()));
        key.insert(key.end(), n.steps.begin(), n.steps.end());
        if (n.role == Role::grouped) key.insert(key.end(), {n.group_outputs, n.group_inputs});
        if (n.role != Role::spatial) continue;
        const AxisWindow& w = n.window;
        key.insert(key.end(),
                   {w.transposed ? 1 : 0, w.kernel, w.stride, w.dilation, w.pad_begin, w.in});
    }
    for (const AxisArray& a : arrays) {
        const AxisPlacement& p = a.placement;
        key.insert(key.end(),
                   {a.is_weights ? 1 : 0, a.producer, a.whole, p.store.nest, p.store.depth,
                    p.compute.nest, p.compute.depth, static_cast<int64_t>(a.readers.size())});
        for (const AxisReader& r : a.readers)
            key.insert(key.end(), {r.nest, r.first_output, r.channels});
    }
    return key;
}

AxisCounts axis_counts(const AxisProblem& problem) {
    // Every coordinate of every nest a few times: enough where nothing is computed more than a few
    // times.
    int64_t plain_steps = 10'000;
    for (const AxisNest& n : problem.nests) plain_steps += 16 * n.extent;
    const AxisSweep plain(problem, false, plain_steps);
    if (plain.complete()) return plain.counts();
    return AxisSweep(problem, true, INT64_MAX).counts();
}

}  // namespace laminate::two_level
