#include "scheduler/counts/two_level/axis_state.h"

#include <algorithm>

namespace laminate::two_level {

AxisState::AxisState(const AxisProblem& problem)
    : first(problem.nests.size()), loops(problem.nests.size()), waiting(problem.nests.size()) {
    add_nodes(problem);
    for (const AxisArray& array : problem.arrays) add_buffer(array);
    for (const bool weights : {false, true}) {
        for (size_t b = buffers.size(); b-- > 0;) {
            if (buffers[b].is_weights == weights)
                nodes[node_of(problem.arrays[b].placement.compute)].computed.push_back(b);
        }
    }
}

void AxisState::add_nodes(const AxisProblem& problem) {
    // Loops inside every level that matters need not run.
    for (const AxisArray& array : problem.arrays) {
        const AxisLevel compute = array.placement.compute;
        loops[compute.nest] = std::max(loops[compute.nest], compute.depth);
    }
    const auto nests = static_cast<int64_t>(problem.nests.size());
    for (int64_t k = 0; k < nests; ++k) {
        first[k] = nodes.size();
        for (int64_t depth = 0; depth <= loops[k]; ++depth)
            nodes.push_back({{k, depth}, nodes.size() - 1, {}, {}, {}});
    }
    const size_t root = first[nests - 1];
    nodes[root].parent = root;
    for (const AxisArray& array : problem.arrays) {
        if (array.producer >= 0)
            nodes[first[array.producer]].parent = node_of(array.placement.compute);
    }
}

void AxisState::add_buffer(const AxisArray& array) {
    const size_t b = buffers.size();
    Buffer buffer;
    buffer.is_weights = array.is_weights;
    buffer.producer = array.producer;
    buffer.whole = array.whole;
    buffer.first_reader = readers.size();
    buffer.reader_count = array.readers.size();
    for (const AxisReader& reader : array.readers) {
        const bool inside = array.placement.compute.nest == reader.nest;
        if (!inside) waiting[reader.nest].push_back(readers.size());
        readers.push_back({reader, inside, {}});
    }
    const size_t store = node_of(array.placement.store);
    const size_t compute = node_of(array.placement.compute);
    size_t levels = 1;
    for (size_t node = compute; node != store; node = nodes[node].parent) ++levels;
    buffer.tracks.resize(levels);
    for (size_t node = compute; levels-- > 0; node = nodes[node].parent) {
        nodes[node].tracked.emplace_back(b, levels);
        buffer.tracks[levels].node = node;
    }
    nodes[store].stored.push_back(b);
    buffers.push_back(std::move(buffer));
}

bool merge(AxisBody& into, const AxisBody& other) {
    const AxisBody before = into;
    into.trips = std::max(into.trips, other.trips);
    into.held = std::max(into.held, other.held);
    into.overlaps = into.overlaps || other.overlaps;
    return into != before;
}

}  // namespace laminate::two_level
