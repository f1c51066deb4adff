// The bodies, buffers and readers of one axis while its loops run. AxisSweep (axis_sweep.cpp) runs
// the loops; CallMemory (call_memory.h) repeats calls without running them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/indexed.h"
#include "base/range.h"
#include "scheduler/counts/two_level/axis.h"

namespace laminate::two_level {

struct AxisState {
    /// A body between the store and the compute level of a buffer.
    struct Track {
        size_t node = 0;
        Range need;            ///< hull over the execution of the body in progress
        int64_t frontier = 0;  ///< end of what earlier executions in this lifetime needed
        int64_t trips = 0;     ///< trips of the loop in progress that needed anything
        AxisBody seen;         ///< in the lifetime in progress
    };
    struct Reader {
        AxisReader reader;
        bool inside = false;  ///< compute level in the nest's own loops (depth 0 included)
        Range calls;  ///< otherwise the hull of the nest's calls in the compute body in progress
    };
    struct Buffer {
        bool is_weights = false;
        int64_t producer = -1;
        int64_t whole = 0;
        size_t first_reader = 0;  ///< in AxisState::readers
        size_t reader_count = 0;
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

    explicit AxisState(const AxisProblem& problem);

    [[nodiscard]] size_t node_of(AxisLevel level) const {
        return first[level.nest] + static_cast<size_t>(level.depth);
    }
    [[nodiscard]] std::span<const Reader> readers_of(const Buffer& buffer) const {
        return std::span(readers).subspan(buffer.first_reader, buffer.reader_count);
    }
    [[nodiscard]] std::span<Reader> readers_of(const Buffer& buffer) {
        return std::span(readers).subspan(buffer.first_reader, buffer.reader_count);
    }

    std::vector<Node> nodes;
    IndexVector<size_t, int64_t> first;   ///< by nest: its node of depth 0
    IndexVector<int64_t, int64_t> loops;  ///< by nest: how many of its loops run
    std::vector<Buffer> buffers;          ///< by AxisProblem::arrays
    std::vector<Reader> readers;
    IndexVector<std::vector<size_t>, int64_t> waiting;  ///< by nest: its readers not `inside`
    int64_t lifetime_changes = 0;  ///< how often Buffer::lifetimes have changed

private:
    void add_nodes(const AxisProblem& problem);
    void add_buffer(const AxisArray& array);
};

/// Takes the larger counts of two executions of a body. Returns whether that changes any.
bool merge(AxisBody& into, const AxisBody& other);

}  // namespace laminate::two_level
