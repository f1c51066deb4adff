// One axis of a group: what every buffer needs and receives along it, the other axes left out.
//
// Axes can be counted separately because the loops of one axis (rows, columns, or a run of
// connected channels) alone decide what is needed along it. An element is present before an
// iteration exactly if, on some axis, an earlier iteration of that axis' own loops in the same
// lifetime needed its coordinate: combined with the current positions of the other axes' loops,
// that iteration came earlier too. So `new = needed minus present` factors into one interval per
// axis, and every count is a product over axes of sums over one axis' iterations. An axis that does
// not index a buffer acts like an axis of extent 1: the first trip in a lifetime brings everything,
// later trips bring nothing. This also holds for a tensor that several nests read: along an axis
// the hull over its readers is needed, and no loop indexes its channels.
//
// Along one axis loops run forward, so everything below one coordinate, the frontier, is present in
// a lifetime. See docs/counting.md sections 2 to 5; this is the recursion of ConvFusion section VI,
// generalised to every store and compute level.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/schedule/problem.h"

namespace laminate::two_level {

/// What a nest's loops on this axis iterate over, which decides what their bodies read of the
/// nest's inputs.
enum class Role : int64_t {
    none = 0,     ///< no loop of the nest belongs to the axis
    spatial = 1,  ///< rows or columns of the output; reads a window
    outputs = 2,  ///< output channels z, on which the inputs do not depend
    /// Output channels z that read the channels of their own groups; in Concat, the operand's
    /// channels.
    grouped = 3,
    inputs = 4,        ///< input channels i, which are the producer's z
    within_group = 5,  ///< input channels i of a grouped layer, which index only its weights
};

/// A body on one axis: the code between a loop of this axis and the next one inside. Depth 0 is the
/// nest's call (for the sink, the root); depth q is the body of its q-th loop of this axis.
struct AxisLevel {
    int64_t nest = 0;
    int64_t depth = 0;
    friend bool operator==(const AxisLevel&, const AxisLevel&) = default;
};

struct AxisNest {
    Role role = Role::none;
    /// Elements that one trip of each loop covers, outermost first: strip, T, 1.
    std::vector<int64_t> steps;
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
    int64_t first_output = 0;  ///< grouped: the output channel that reads the tensor's channel 0
    int64_t channels = 1;      ///< grouped: channels of the tensor
    /// The tensor has one element along the axis, which every output reads.
    bool is_repeated = false;
};

/// A tensor or the weights of a nest.
struct AxisArray {
    bool is_weights = false;
    int64_t producer = -1;  ///< nest that is called for what is new, or -1 for an external input
    /// Weights have one reader. Several readers share a tensor; the hull of what they read is
    /// needed.
    std::vector<AxisReader> readers;
    /// If not 0, all of [0, whole) is needed wherever a reader reads anything. Used for the
    /// channels of a shared tensor: `whole` is their number on the axis of the producer's z, and 1
    /// on every other axis of channels.
    int64_t whole = 0;
    /// A producer is called at the compute level of its tensor.
    AxisPlacement placement;
};

struct AxisProblem {
    std::vector<AxisNest> nests;    ///< producers first, sink last
    std::vector<AxisArray> arrays;  ///< tensors by producer, external inputs first, then weights
    /// The whole problem as numbers. Equal keys have equal counts.
    [[nodiscard]] std::vector<int64_t> key() const;
};

/// What one lifetime of a buffer shows of a body between its store and its compute level.
struct AxisBody {
    /// Most trips, in one execution of the loop, that need anything of the buffer.
    int64_t trips = 0;
    /// Most consecutive coordinates held at once, if a coordinate is dropped after the last body
    /// that needs it.
    int64_t held = 0;
    /// Whether some execution needs a coordinate that an earlier one of the same lifetime needed.
    bool overlaps = false;
    friend bool operator==(const AxisBody&, const AxisBody&) = default;
};
/// Indexed like AxisBuffer::levels.
using AxisLifetime = std::vector<AxisBody>;

struct AxisBuffer {
    int64_t brought = 0;  ///< sum of the new intervals over all iterations of the compute level
    /// On a spatial axis, the same sum with each coordinate weighted by its kernel taps in the
    /// producer; otherwise equal to `brought`.
    int64_t taps = 0;
    /// Bodies from the store to the compute level, both included, outermost first.
    std::vector<AxisLevel> levels;
    /// All lifetimes that needed anything. Those that agree in `overlaps` and in which loops have
    /// several trips are merged, with the largest `held`.
    std::vector<AxisLifetime> lifetimes;
};

struct AxisCounts {
    std::vector<AxisBuffer> buffers;  ///< indexed like AxisProblem::arrays
    int64_t sink_taps = 0;            ///< like AxisBuffer::taps, for the sink's whole output
};

}  // namespace laminate::two_level
