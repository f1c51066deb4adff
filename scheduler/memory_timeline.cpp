#include "scheduler/memory_timeline.h"

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

std::vector<StoredBuffer> stored_buffers(const std::vector<LayerProblem>& problems, const GroupSchedule& group,
                                         const GroupCounts& counts) {
    std::vector<StoredBuffer> all;
    size_t input = 0;
    for (const GroupTensor& tensor : group_tensors(problems)) {
        if (!tensor.is_external()) continue;
        all.push_back({placement_of(group, tensor).store, {"X " + tensor.name, counts.inputs.at(input++).buffer}});
    }
    for (size_t k = 0; k < group.nests.size(); ++k) {
        const Nest& nest = group.nests[k];
        const bool is_sink = static_cast<int>(k) == group.sink();
        if (nest.w) all.push_back({nest.w->store, {"W " + nest.layer, counts.layers[k].weight_buffer}});
        all.push_back({nest.y.store, {(is_sink ? "Y " : "A ") + nest.layer, counts.layers[k].output_buffer}});
    }
    return all;
}

/// Goes through a group body by body, with the sink's outermost `depth` loops trip by trip and one trip of the others.
class Unfolder {
public:
    Unfolder(const std::vector<LayerProblem>& problems, const GroupSchedule& group, size_t depth)
        : group_(group), whole_(problems.back().extent), depth_(static_cast<int>(depth)) {}

    /// False, with what was found so far, when there are more than `most` steps.
    bool run(int64_t most) {
        most_ = static_cast<size_t>(most);
        body(group_.sink(), -1, whole_);
        return steps.size() <= most_;
    }

    std::vector<int> steps;

private:
    using Extents = std::array<int64_t, 4>;  ///< by Dim, of the part of the sink's output that a body covers

    static int64_t step_of(const Nest& nest, Loop loop) {
        if (loop.band == Band::inner) return 1;
        return loop.band == Band::outer ? nest[loop.dim] : nest.strip[static_cast<size_t>(loop.dim) - 1];
    }

    /// Body of loop `loop` of `nest`; -1: its call, of the sink the root.
    void body(int nest, int loop, const Extents& extents) {
        if (steps.size() > most_) return;
        const bool is_sink = nest == group_.sink();
        const Level level = is_sink && loop < 0 ? Level{} : Level{nest, loop};
        for (int k = 0; k < group_.sink(); ++k) {
            if (group_.nests[static_cast<size_t>(k)].y.compute == level) body(k, -1, whole_);
        }
        const Nest& n = group_.nests[static_cast<size_t>(nest)];
        const int next = loop + 1;
        if (next == static_cast<int>(n.loops.size())) {
            steps.push_back(nest);
            return;
        }
        if (!is_sink || next >= depth_) {
            body(nest, next, extents);
            return;
        }
        const Loop inner = n.loops[static_cast<size_t>(next)];
        const auto d = static_cast<size_t>(inner.dim);
        const int64_t step = step_of(n, inner);
        for (int64_t begin = 0; begin < extents[d]; begin += step) {
            Extents trip = extents;
            trip[d] = std::min(step, extents[d] - begin);
            body(nest, next, trip);
        }
    }

    const GroupSchedule& group_;
    Extents whole_;
    int depth_;
    size_t most_ = 0;
};

}  // namespace

MemoryTimeline memory_timeline(const std::vector<LayerProblem>& problems, const GroupSchedule& group,
                               const GroupCounts& counts, int64_t max_steps) {
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
    const int64_t most =
        std::max(max_steps, static_cast<int64_t>(group.nests.size()));  // one each with nothing unfolded
    for (size_t depth = 0; depth <= group.nests.back().loops.size(); ++depth) {
        Unfolder unfolder(problems, group, depth);
        if (!unfolder.run(most)) break;
        timeline.steps = std::move(unfolder.steps);
        timeline.unfolded_loops = static_cast<int64_t>(depth);
    }
    return timeline;
}

}  // namespace laminate
