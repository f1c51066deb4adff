// Orders and levels of one layer's nest, as the costs see them.
//
// The nest is zo yo xo io | (inner loops in some order) | n m. A level is a position 0 .. 4: 0 is
// the body of the innermost outer loop, p the body of the p-th inner loop. The order of the outer
// loops and the compute level of what comes from external memory decide nothing: the first because
// every own level is inside them, the second because as deep as possible is never worse. What is
// left of 24 orders and the pairs of levels is which loops lie above, between and below the levels,
// which dimensions of a buffer fold, and which tiles multiply a buffer: a few hundred *structures*
// per layer. Of structures with the same call patterns (axis_patterns.h) those that are at least as
// good in every term for all tiles suffice.
//
// A loop with a single trip is taken for one with several: never better than the truth, and equal
// to it in the structure that has the loop innermost.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/axis_patterns.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// How long the weights of a layer stay.
enum class WeightsLife : uint8_t {
    own,    ///< stored at a level of the layer's own nest
    scope,  ///< as long as the layer's output buffer; all of what the scope needs is brought first
    resident,  ///< at the root, whole
};

/// A loop between the store and the compute level of a tensor, outermost first.
struct ScopeLoop {
    enum Axis : uint8_t { y = 0, x = 1, channel = 2 };
    Axis axis = y;
    int level = 0;  ///< number of loops of this axis so far
    friend auto operator<=>(const ScopeLoop&, const ScopeLoop&) = default;
};

struct LayerStructure {
    // What the schedule says.
    std::array<Dim, 4> order{};
    int store = 0;    ///< of the layer's input; -1: where its output is stored (retention)
    int compute = 0;  ///< of the layer's input
    int weights_store = 0;
    WeightsLife weights = WeightsLife::own;

    // What follows for the costs.
    std::array<Kind, 2> kind{};  ///< of the loops over y, x for the layer's input
    Kind channel_kind =
        Kind::below;  ///< of the loop that runs over the input's channels: i; z in a grouped layer
    bool z_above =
        false;  ///< z around the store level of the input (ungrouped): every channel reads it again
    std::array<int, 3> fold{};  ///< by ScopeLoop::Axis: number of the loop at which the input's
                                ///< buffer folds, 0: it does not
    std::array<bool, 2> weights_per_tile{};  ///< y, x inside the weights' store level: once per
                                             ///< tile instead of once per coordinate
    bool weights_hold_z = false;             ///< the weight buffer is as wide as the tile of z
    bool weights_hold_i = false;
    std::array<bool, 3> output_holds{};  ///< last layer: z, y, x inside ii
    bool whole_calls = false;  ///< tiles are as large as the calls: something is kept beyond a call
    bool weights_below = false;  ///< the weights are stored inside the compute level of an input
                                 ///< from inside the group, ...
    bool output_below =
        false;  ///< ... the last layer's output too: they do not live while the producer runs
    std::array<bool, 2> disjoint{};  ///< y, x: holds only for tiles in which nothing reads what
                                     ///< something earlier in the lifetime did
    std::vector<ScopeLoop> scope;    ///< loops between the levels of the input
};

/// Where a layer stands in its group, and what surrounds it.
struct LayerContext {
    bool is_first = true;
    bool is_last = true;
    std::vector<ScopeLoop>
        scope;  ///< loops between the levels of the layer's output; empty for the last layer
    /// y, x: the pieces of the output that are asked for one after the other in a lifetime may read
    /// nothing in common, although neighbours would.
    std::array<bool, 2> may_be_apart{};
    friend auto operator<=>(const LayerContext&, const LayerContext&) = default;
};

/// What a space allows beyond tiles.
struct StructureLimits {
    bool is_baseline = false;    ///< inner order zi yi xi ii only
    bool only_resident = false;  ///< fused groups: weights at the root
    bool only_kept =
        false;  ///< retention wherever it is legal: the line-buffer family, to begin with
};

[[nodiscard]] std::vector<LayerStructure> layer_structures(const LayerProblem& problem,
                                                           const LayerContext& context,
                                                           const StructureLimits& limits);

/// Neighbouring coordinates of every sufficiently large tile share input. Where a transposed kernel
/// equals its stride that depends on the tile.
enum class Sharing : uint8_t { always, never, by_tile };
[[nodiscard]] Sharing sharing(const AxisWindow& window);

}  // namespace laminate::search
