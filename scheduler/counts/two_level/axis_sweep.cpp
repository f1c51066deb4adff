#include "scheduler/counts/two_level/axis_sweep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "scheduler/counts/two_level/axis_state.h"
#include "scheduler/counts/two_level/call_memory.h"
#include "scheduler/counts/two_level/steady_trips.h"
#include "scheduler/schedule/window.h"

namespace laminate::two_level {

namespace {

using Node = AxisState::Node;
using Buffer = AxisState::Buffer;
using Reader = AxisState::Reader;
using Track = AxisState::Track;

constexpr Range unit{0, 1};

/// Runs the loops of one axis in their order, once, with the lifetimes and frontiers of all
/// buffers.
class AxisSweep {
public:
    /// Gives up (complete() is false) after `step_limit` bodies. `remember`: repeats calls from a
    /// CallMemory.
    AxisSweep(const AxisProblem& problem, bool remember, int64_t step_limit)
        : problem_(problem), state_(problem), steady_(problem, state_), steps_left_(step_limit) {
        if (remember) memory_.emplace(state_, problem);
        const int64_t sink = std::ssize(problem.nests) - 1;
        body(state_.first[sink], whole(sink));
    }

    [[nodiscard]] bool complete() const { return steps_left_ > 0; }

    [[nodiscard]] AxisCounts counts() const {
        AxisCounts counts;
        for (const Buffer& b : state_.buffers) {
            AxisBuffer result{b.brought, b.taps, {}, b.lifetimes};
            for (const Track& t : b.tracks) result.levels.push_back(state_.nodes[t.node].level);
            counts.buffers.push_back(std::move(result));
        }
        const AxisNest& sink = problem_.nests.back();
        counts.sink_taps = sink.role == Role::spatial ? taps_of(sink.window, {0, sink.extent})
                           : sink.role == Role::outputs || sink.role == Role::grouped ? sink.extent
                                                                                      : 1;
        return counts;
    }

private:
    [[nodiscard]] const AxisNest& nest(int64_t k) const {
        return problem_.nests[static_cast<size_t>(k)];
    }

    /// The whole range of the role's dimension.
    [[nodiscard]] Range whole(int64_t k) const {
        const AxisNest& n = nest(k);
        return n.role == Role::none ? unit : Range{0, n.extent};
    }

    /// The range that the loops of nest k run over if the nest is called for `call`.
    [[nodiscard]] Range range_of_call(int64_t k, Range call) const {
        const Role role = nest(k).role;
        return role == Role::inputs || role == Role::within_group ? whole(k) : call;
    }

    /// What a body of the reader's nest reads if it covers `part`.
    [[nodiscard]] Range reads(const AxisReader& reader, bool is_weights, Range part) const {
        const AxisNest& n = nest(reader.nest);
        if (reader.is_repeated) return unit;
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

    /// What the body in progress needs of the buffer. The body covers `part` of its nest, and its
    /// inner loops have run.
    [[nodiscard]] Range need_of(const Buffer& buffer, Range part) const {
        Range need;
        for (const Reader& reader : state_.readers_of(buffer)) {
            if (reader.inside)
                need.extend(reads(reader.reader, buffer.is_weights, part));
            else if (!reader.calls.empty())
                need.extend(reads(reader.reader, buffer.is_weights,
                                  range_of_call(reader.reader.nest, reader.calls)));
        }
        if (need.empty()) return need;
        if (buffer.whole > 0) return {0, buffer.whole};
        // One branch may jump over what another reads later, so a shared tensor has no gaps above
        // the begin of its lifetime.
        const bool is_shared = buffer.reader_count > 1;
        if (is_shared && buffer.frontier > 0) need.begin = std::min(need.begin, buffer.frontier);
        return need;
    }

    void body(size_t node_index, Range part) {
        if (--steps_left_ <= 0) return;
        const Node& node = state_.nodes[node_index];
        begin_body(node);
        const auto [k, depth] = node.level;
        if (depth < state_.loops[k]) {
            const int64_t step = nest(k).steps[static_cast<size_t>(depth)];
            for (const auto& [b, t] : state_.nodes[node_index + 1].tracked)
                state_.buffers[b].tracks[t].trips = 0;
            SteadyTrips::Execution steady(steady_, k, node_index + 1, part, step);
            for (int64_t begin = part.begin; begin < part.end; begin += step) {
                body(node_index + 1, {begin, std::min(begin + step, part.end)});
                begin += step * steady.repeat(begin);
            }
        }
        // A buffer changes only at its own compute level, so consumers may be looked at before
        // their producers: a producer must bring what its consumers call for in this body.
        for (const size_t b : node.computed) {
            const Range need = need_of(state_.buffers[b], part);
            if (!need.empty()) bring(b, need);
        }
        end_body(node);
    }

    void begin_body(const Node& node) {
        for (const size_t b : node.stored) {
            Buffer& buffer = state_.buffers[b];
            buffer.frontier = 0;
            for (Track& t : buffer.tracks) {
                t.frontier = 0;
                t.seen = {};
            }
            buffer.tracks.front().trips = 0;  // the loop around the lifetime is outside it
        }
        for (const auto& [b, t] : node.tracked) state_.buffers[b].tracks[t].need = {};
        for (const size_t b : node.computed) {
            for (Reader& reader : state_.readers_of(state_.buffers[b])) reader.calls = {};
        }
    }

    void end_body(const Node& node) {
        for (const auto& [b, t] : node.tracked) {
            Track& track = state_.buffers[b].tracks[t];
            if (track.need.empty()) continue;
            // A call is no trip of a loop. Its number would rise as long as the nest runs, so that
            // no trip would do the same as the one before.
            if (node.level.depth > 0)
                track.seen.trips = std::max(track.seen.trips, ++track.trips);
            // Coordinates that are needed again stay until now, so everything from the begin of
            // this need to the frontier was held at once, when the frontier last moved.
            track.seen.held = std::max(track.seen.held,
                                       std::max(track.frontier, track.need.end) - track.need.begin);
            if (track.need.begin < track.frontier) track.seen.overlaps = true;
            track.frontier = std::max(track.frontier, track.need.end);
        }
        for (const size_t b : node.stored) end_lifetime(state_.buffers[b]);
    }

    void end_lifetime(Buffer& buffer) {
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
            ++state_.lifetime_changes;
            return;
        }
        for (size_t t = 0; t < same->size(); ++t) {
            if (merge((*same)[t], buffer.tracks[t].seen)) ++state_.lifetime_changes;
        }
    }

    void bring(size_t b, Range need) {
        Buffer& buffer = state_.buffers[b];
        for (Track& t : buffer.tracks) t.need.extend(need);
        const Range fresh{std::max(need.begin, buffer.frontier), need.end};
        if (fresh.empty()) return;
        buffer.frontier = fresh.end;
        buffer.brought = checked_add(buffer.brought, fresh.size());
        if (buffer.producer < 0) return;
        const AxisNest& p = nest(buffer.producer);
        buffer.taps = checked_add(
            buffer.taps, p.role == Role::spatial ? taps_of(p.window, fresh) : fresh.size());
        for (const size_t r : state_.waiting[buffer.producer])
            state_.readers[r].calls.extend(fresh);
        call(buffer.producer, fresh);
    }

    void call(int64_t k, Range box) {
        const auto run = [&] { body(state_.first[k], range_of_call(k, box)); };
        if (memory_)
            memory_->call(k, box, state_, run);
        else
            run();
    }

    const AxisProblem& problem_;
    AxisState state_;
    SteadyTrips steady_;
    std::optional<CallMemory> memory_;
    int64_t steps_left_;
};

}  // namespace

AxisCounts axis_counts(const AxisProblem& problem) {
    // Every coordinate of every nest a few times: enough unless something is computed many times.
    int64_t plain_steps = 10'000;
    for (const AxisNest& n : problem.nests) plain_steps += 16 * n.extent;
    const AxisSweep plain(problem, false, plain_steps);
    if (plain.complete()) return plain.counts();
    return AxisSweep(problem, true, INT64_MAX).counts();
}

}  // namespace laminate::two_level
