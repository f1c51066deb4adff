#include "scheduler/counts/memory_timeline.h"

#include <algorithm>
#include <array>
#include <utility>

namespace laminate {

namespace {

/// A buffer and the body in which it lives.
struct StoredBuffer {
    Level store;
    LiveBuffer buffer;
};

std::vector<StoredBuffer> stored_buffers(const std::vector<LayerProblem>& problems,
                                         const GroupSchedule& group, const GroupCounts& counts) {
    std::vector<StoredBuffer> all;
    size_t input = 0;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) continue;
        all.push_back({placement_of(group, tensor).store,
                       {"X " + tensor.name, counts.inputs.at(input++).buffer}});
    }
    for (size_t k = 0; k < group.nests.size(); ++k) {
        const Nest& nest = group.nests[k];
        const bool is_sink = static_cast<int>(k) == group.sink();
        if (nest.w)
            all.push_back({nest.w->store, {"W " + nest.layer, counts.layers[k].weight_buffer}});
        all.push_back(
            {nest.y.store, {(is_sink ? "Y " : "A ") + nest.layer, counts.layers[k].output_buffer}});
    }
    return all;
}

/// Walks a group body by body: the sink's outermost `depth` loops trip by trip, all other loops
/// once.
class Unfolder {
public:
    Unfolder(const std::vector<LayerProblem>& problems, const GroupSchedule& group, size_t depth)
        : group_(group), whole_(problems.back().extent), depth_(static_cast<int>(depth)) {
        for (int k = 0; k < group.sink(); ++k) {
            const Level hang = group.nest(k).y.compute;
            if (hang.nest == group.sink()) innermost_call_ = std::max(innermost_call_, hang.loop);
        }
    }

    /// Returns false, and stops, if there are more than `most` steps.
    bool run(int64_t most) {
        most_ = most;
        body(group_.sink(), -1, whole_);
        return steps_ <= most_;
    }

    std::vector<MemoryRun> runs;

private:
    /// extents of the part of the sink's output that a body covers
    using Extents = PerDim<int64_t>;

    void add(int phase, int64_t times) {
        steps_ += times;
        if (!runs.empty() && runs.back().phase == phase)
            runs.back().times += times;
        else
            runs.push_back({phase, times});
    }

    /// The body of loop `loop` of `nest`. Loop -1 is the nest's call, or the root for the sink.
    void body(int nest, int loop, const Extents& extents) {
        if (steps_ > most_) return;
        const bool is_sink = nest == group_.sink();
        const Level level = is_sink && loop < 0 ? Level{} : Level{nest, loop};
        for (int k = 0; k < group_.sink(); ++k) {
            if (group_.nest(k).y.compute == level) body(k, -1, whole_);
        }
        const Nest& n = group_.nest(nest);
        const int next = loop + 1;
        if (next == static_cast<int>(n.loops.size())) return add(nest, 1);
        if (is_sink && loop >= innermost_call_) return add(nest, trips_from(next, extents));
        if (!is_sink || next >= depth_) {
            body(nest, next, extents);
            return;
        }
        const Loop inner = group_.loop({nest, next});
        const Dim d = inner.dim;
        const int64_t step = n.step(inner);
        for (int64_t begin = 0; begin < extents[d]; begin += step) {
            Extents trip = extents;
            trip[d] = std::min(step, extents[d] - begin);
            body(nest, next, trip);
        }
    }

    /// Trips of the sink's unfolded loops from `first` on together, which call no producer. At most
    /// one more than `most_`.
    [[nodiscard]] int64_t trips_from(int first, const Extents& extents) const {
        int64_t trips = 1;
        for (const Dim d : all_dims)
            trips = std::min(most_ + 1, trips * trips_along(d, first, extents[d]));
        return trips;
    }

    [[nodiscard]] int64_t trips_along(Dim dim, int first, int64_t extent) const {
        const Nest& sink = group_.nests.back();
        const int end = std::min(depth_, static_cast<int>(sink.loops.size()));
        while (first < end && group_.loop({group_.sink(), first}).dim != dim) ++first;
        if (first >= end) return 1;
        const int64_t step = sink.step(group_.loop({group_.sink(), first}));
        int64_t trips = extent / step;
        if (trips > 0) trips *= std::min(most_ + 1, trips_along(dim, first + 1, step));
        if (extent % step != 0) trips += trips_along(dim, first + 1, extent % step);
        return std::min(most_ + 1, trips);
    }

    const GroupSchedule& group_;
    Extents whole_;
    int depth_;
    /// The sink's innermost loop in whose body a producer is called; -1 if there is none.
    int innermost_call_ = -1;
    int64_t most_ = 0;
    int64_t steps_ = 0;
};

}  // namespace

MemoryTimeline memory_timeline(const std::vector<LayerProblem>& problems,
                               const GroupSchedule& group, const GroupCounts& counts,
                               int64_t max_steps) {
    MemoryTimeline timeline;
    const std::vector<StoredBuffer> buffers = stored_buffers(problems, group, counts);
    for (size_t k = 0; k < group.nests.size(); ++k) {
        MemoryPhase phase{group.nests[k].layer, counts.layers[k].macs, {}, {}};
        for (const Level& level : path(group, static_cast<int>(k))) {
            for (const StoredBuffer& stored : buffers) {
                if (stored.store != level) continue;
                phase.buffers.push_back(stored.buffer);
                phase.live += stored.buffer.elements;
            }
        }
        timeline.phases.push_back(std::move(phase));
    }
    // With nothing unfolded, each nest has one step.
    const int64_t most = std::max(max_steps, static_cast<int64_t>(group.nests.size()));
    for (size_t depth = 0; depth <= group.nests.back().loops.size(); ++depth) {
        Unfolder unfolder(problems, group, depth);
        if (!unfolder.run(most)) break;
        timeline.runs = std::move(unfolder.runs);
        timeline.unfolded_loops = static_cast<int64_t>(depth);
    }
    return timeline;
}

}  // namespace laminate
