// What a group keeps in memory while it runs: the curve whose peak is GroupCounts::live_total.
//
// A buffer occupies its whole size (GroupCounts) during the whole body of its store level
// (docs/counting.md section 5). Every moment of a group belongs to the innermost body of one nest,
// and the live buffers are those stored on the path to it. So each nest has one level of memory, a
// *phase*, and a running group goes from phase to phase, producers first within each body.
//
// The order of phases is exact for the loops of the sink, whose trips follow from the sizes alone.
// They are unfolded from the outermost inwards as far as `max_steps` allows; in folded loops each
// nest has one step per body. The time of a step is in MACs: the exact MACs of a phase, divided
// evenly among its steps. In fact calls differ: the first one of a lifetime does more, and a call
// that finds everything present does nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/counts/counts.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

struct LiveBuffer {
    std::string name;  ///< "X input", "W conv1", "A conv1" (its output, on chip), "Y conv2"
    Elements elements;
    friend bool operator==(const LiveBuffer&, const LiveBuffer&) = default;
};

/// The innermost body of one nest.
struct MemoryPhase {
    std::string layer;
    Macs macs;  ///< of the layer in the whole group; 0 for pooling, Add and Concat
    std::vector<LiveBuffer> buffers;  ///< live buffers, outermost store level first
    Elements live;                    ///< their sum
};

/// A phase that occurs `times` times in a row.
struct MemoryRun {
    int phase = 0;
    int64_t times = 0;
    friend bool operator==(const MemoryRun&, const MemoryRun&) = default;
};

struct MemoryTimeline {
    std::vector<MemoryPhase> phases;  ///< by nest; the largest `live` is GroupCounts::live_total
    std::vector<MemoryRun> runs;      ///< in order; neighbours are different phases
    int64_t unfolded_loops = 0;       ///< loops of the sink, from the outermost inwards
};

/// `group` is legal and `counts` are its counts. Each nest has at least one step, even beyond
/// `max_steps`.
[[nodiscard]] MemoryTimeline memory_timeline(const std::vector<LayerProblem>& problems,
                                             const GroupSchedule& group, const GroupCounts& counts,
                                             int64_t max_steps = 400);

}  // namespace laminate
