#include "scheduler/counts/two_level/call_memory.h"

#include "base/units.h"

namespace laminate::two_level {

namespace {

using Buffer = AxisState::Buffer;
using Track = AxisState::Track;

/// Whether a body runs inside calls of nest k.
bool runs_inside(const AxisState& state, int64_t k, size_t node) {
    while (state.nodes[node].parent != node && node != state.first[k])
        node = state.nodes[node].parent;
    return node == state.first[k];
}

void append_frontiers(std::vector<int64_t>& frontiers, const Buffer& buffer) {
    frontiers.push_back(buffer.frontier);
    for (const Track& t : buffer.tracks) frontiers.push_back(t.frontier);
}

Range need_at(const Buffer& buffer, size_t node) {
    for (const Track& t : buffer.tracks) {
        if (t.node == node) return t.need;
    }
    return {};
}

}  // namespace

CallMemory::CallMemory(const AxisState& state, const AxisProblem& problem)
    : nests_(problem.nests.size()) {
    for (int64_t k = 0; k + 1 < std::ssize(problem.nests); ++k) {
        OfNest& nest = nests_[k];
        for (size_t b = 0; b < state.buffers.size(); ++b) {
            const AxisPlacement& p = problem.arrays[b].placement;
            if (runs_inside(state, k, state.node_of(p.compute))) {
                nest.buffers.push_back(b);
                if (!runs_inside(state, k, state.node_of(p.store))) nest.open.push_back(b);
                continue;
            }
            const Buffer& buffer = state.buffers[b];
            for (size_t n = 0; n < buffer.reader_count; ++n) {
                const size_t r = buffer.first_reader + n;
                const int64_t reader = state.readers[r].reader.nest;
                if (reader != k && runs_inside(state, k, state.first[reader]))
                    nest.waiting.push_back(r);
            }
        }
    }
}

std::vector<int64_t> CallMemory::key_of(const OfNest& nest, Range box, const AxisState& state) {
    std::vector<int64_t> key{box.begin, box.end};
    for (const size_t b : nest.open) append_frontiers(key, state.buffers[b]);
    return key;
}

CallMemory::SetAside CallMemory::set_aside(const OfNest& nest, AxisState& state) {
    SetAside aside;
    for (const size_t b : nest.buffers) {
        aside.brought.push_back(state.buffers[b].brought);
        aside.taps.push_back(state.buffers[b].taps);
    }
    for (const size_t r : nest.waiting)
        aside.calls.push_back(std::exchange(state.readers[r].calls, Range{}));
    for (const size_t b : nest.open) {
        for (Track& t : state.buffers[b].tracks)
            aside.seen.push_back(std::exchange(t.seen, AxisBody{}));
    }
    return aside;
}

CallMemory::Effect CallMemory::effect(const OfNest& nest, size_t node, const SetAside& aside,
                                      AxisState& state) {
    Effect effect;
    for (size_t n = 0; n < nest.buffers.size(); ++n) {
        const Buffer& buffer = state.buffers[nest.buffers[n]];
        effect.brought.push_back(buffer.brought - aside.brought[n]);
        effect.taps.push_back(buffer.taps - aside.taps[n]);
    }
    for (size_t n = 0; n < nest.waiting.size(); ++n) {
        Range& calls = state.readers[nest.waiting[n]].calls;
        effect.calls.push_back(calls);
        calls.extend(aside.calls[n]);
    }
    for (const size_t b : nest.open) {
        Buffer& buffer = state.buffers[b];
        append_frontiers(effect.frontiers, buffer);
        effect.needs.push_back(need_at(buffer, node));
        for (Track& t : buffer.tracks) {
            effect.seen.push_back(t.seen);
            merge(t.seen, aside.seen[effect.seen.size() - 1]);
        }
    }
    return effect;
}

void CallMemory::repeat(const OfNest& nest, const Effect& effect, AxisState& state) {
    for (size_t n = 0; n < nest.buffers.size(); ++n) {
        Buffer& buffer = state.buffers[nest.buffers[n]];
        buffer.brought = checked_add(buffer.brought, effect.brought[n]);
        buffer.taps = checked_add(buffer.taps, effect.taps[n]);
    }
    for (size_t n = 0; n < nest.waiting.size(); ++n)
        state.readers[nest.waiting[n]].calls.extend(effect.calls[n]);
    auto frontier = effect.frontiers.begin();
    auto seen = effect.seen.begin();
    for (size_t n = 0; n < nest.open.size(); ++n) {
        Buffer& buffer = state.buffers[nest.open[n]];
        buffer.frontier = *frontier++;
        for (Track& t : buffer.tracks) {
            t.frontier = *frontier++;
            t.need.extend(effect.needs[n]);
            merge(t.seen, *seen++);
        }
    }
}

}  // namespace laminate::two_level
