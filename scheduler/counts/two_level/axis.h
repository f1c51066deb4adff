// One axis of a group: what every buffer needs and gets along it, with the other axes left out.
//
// Why this suffices: the loops of one axis (rows; columns; a run of connected channels) decide
// alone what is needed along it. An element is present before an iteration exactly when, on some
// axis, an earlier iteration of that axis' own loops in the same lifetime needed its coordinate:
// pick that earlier iteration and leave the other axes' loops where they are, and the combination
// came earlier too. So `new = needed minus present` factors into one interval per axis, every count
// is a product over axes of sums over one axis' iterations, and loops of an axis that does not
// index a buffer look like an axis of extent 1: the first trip in a lifetime brings everything,
// later trips nothing. A tensor that several nests read keeps this: what is needed of it along an
// axis is the hull over its readers, looked at on that axis alone, and its channels are indexed by
// no loop.
//
// Along one axis loops run forward, so what is present in a lifetime is everything below one
// coordinate, the frontier. (docs/counting.md sections 2 to 5; the recursion of ConvFusion section
// VI generalised to every store and compute level.)
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::two_level {

/// What a nest's loops on this axis iterate over, and so what a body of them reads of the nest's
/// inputs.
enum class Role : int64_t {
    none = 0,     ///< no loop of the nest belongs to the axis
    spatial = 1,  ///< rows or columns of the output; reads a window
    outputs = 2,  ///< output channels z, the inputs do not depend on them
    grouped = 3,  ///< output channels z that read the channels of the groups that they touch, of
                  ///< Concat those of the operand
    inputs = 4,   ///< input channels i: reads them, they are the producer's z
    within_group = 5,  ///< input channels i of a grouped layer: index its weights only
};

/// A body on one axis: the code between a loop of this axis and the next one inside. depth 0 is the
/// nest's call (for the sink: the root), depth q the body of its q-th loop of this axis.
struct AxisLevel {
    int64_t nest = 0;
    int64_t depth = 0;
    friend bool operator==(const AxisLevel&, const AxisLevel&) = default;
};

struct AxisNest {
    Role role = Role::none;
    std::vector<int64_t>
        steps;  ///< elements that one trip of each loop covers, outermost first: strip, T, 1
    int64_t extent = 1;         ///< D of the role's dimension
    AxisWindow window;          ///< spatial
    int64_t group_outputs = 1;  ///< grouped: output channels of one group
    int64_t group_inputs = 1;   ///< grouped: D_i
};

struct AxisPlacement {
    AxisLevel store;
    AxisLevel compute;
};

/// A nest that reads an array.
struct AxisReader {
    int64_t nest = 0;
    int64_t first_output = 0;  ///< grouped: output channel that reads the tensor's channel 0
    int64_t channels = 1;      ///< grouped: of the tensor; output channels beyond do not read it
};

/// A tensor or the weights of a nest.
struct AxisArray {
    bool is_weights = false;
    int64_t producer = -1;  ///< nest that is called for what is new, or -1
    std::vector<AxisReader>
        readers;  ///< weights: one; several share a tensor, the hull of what they read is needed
    /// Not 0: all or nothing, [0, whole) is needed wherever a reader reads anything. A shared
    /// tensor along channels: on the axis of its producer's z its channels, on every other axis of
    /// channels 1.
    int64_t whole = 0;
    AxisPlacement
        placement;  ///< of a tensor with a producer: the producer hangs at the compute level
};

struct AxisProblem {
    std::vector<AxisNest> nests;    ///< producers first, sink last
    std::vector<AxisArray> arrays;  ///< tensors by producer, external inputs first; then weights
    /// Everything above as numbers: equal keys, equal counts.
    [[nodiscard]] std::vector<int64_t> key() const;
};

/// What one lifetime of a buffer shows of a body between its store and compute level.
struct AxisBody {
    int64_t trips =
        0;  ///< most trips of the loop, in one execution of it, that need anything of the buffer
    int64_t held = 0;  ///< most consecutive coordinates held at once if a coordinate goes after the
                       ///< last body that needs it
    bool overlaps = false;  ///< some execution needs a coordinate that an earlier one of the same
                            ///< lifetime needed
};
/// By AxisBuffer::levels.
using AxisLifetime = std::vector<AxisBody>;

struct AxisBuffer {
    int64_t brought = 0;  ///< sum of the new intervals over all iterations of the compute level
    int64_t taps = 0;  ///< the same, each coordinate weighted with its kernel taps in the producer
                       ///< (spatial), else as `brought`
    std::vector<AxisLevel>
        levels;  ///< bodies from the store to the compute level, both included, outermost first
    /// All that needed anything; those alike in `overlaps` and in which loops have several trips
    /// are one, with the largest `held`.
    std::vector<AxisLifetime> lifetimes;
};

struct AxisCounts {
    std::vector<AxisBuffer> buffers;  ///< by AxisProblem::arrays
    int64_t sink_taps = 0;            ///< as AxisBuffer::taps for the sink's whole output
};

/// Throws std::overflow_error beyond 64 bits.
[[nodiscard]] AxisCounts axis_counts(const AxisProblem& problem);

}  // namespace laminate::two_level
