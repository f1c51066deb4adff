// Orders and levels of one layer's nest, as far as costs can tell them apart.
//
// The nest is zo yo xo io | (inner loops in some order) | n m. A level is a position 0 .. 4: 0 is
// the body of the innermost outer loop, p the body of the p-th inner loop. Two decisions do not
// matter: the order of the outer loops, because every level of the nest is inside them, and the
// compute level of external inputs, because as deep as possible is never worse. What remains of 24
// orders and the pairs of levels is which loops lie above, between and below the levels, which
// dimensions of a buffer fold, and which tiles multiply a buffer: a few hundred *structures* per
// layer. Among structures with the same call patterns (axis_patterns.h), those that no other one
// equals or beats in every term for all tiles suffice.
//
// A loop with a single trip is treated as one with several. The result is never better than the
// truth, and equals it in the structure that has the loop innermost.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/explore/group_search/axis_patterns.h"
#include "scheduler/schedule/problem.h"

namespace laminate::search {

/// How long the weights of a layer are kept.
enum class WeightsLife : uint8_t {
    own,  ///< stored at a level of the layer's own nest
    /// as long as the layer's output buffer; everything that the scope needs is brought first
    scope,
    resident,  ///< at the root, whole
};

/// A loop between the store and the compute level of a tensor, outermost first.
struct ScopeLoop {
    enum Axis : uint8_t { y = 0, x = 1, channel = 2 };
    Axis axis = y;
    int level = 0;  ///< number of loops of this axis up to this one
    friend auto operator<=>(const ScopeLoop&, const ScopeLoop&) = default;
};

struct LayerStructure {
    // What the schedule says.
    std::array<Dim, 4> order{};
    int store = 0;    ///< of the layer's input; -1 stores it where the output is stored (retention)
    int compute = 0;  ///< of the layer's input
    int weights_store = 0;
    WeightsLife weights = WeightsLife::own;

    // What the costs depend on.
    std::array<Kind, 2> kind{};  ///< of the loops over y and x, for the layer's input
    /// Kind of the loop over the input's channels: i, or z in a grouped layer.
    Kind channel_kind = Kind::below;
    /// Ungrouped: z is around the store level of the input, so every channel reads it again.
    bool z_above = false;
    /// By ScopeLoop::Axis: number of the loop at which the input's buffer folds; 0 if it does not.
    std::array<int, 3> fold{};
    /// Whether y and x are inside the weights' store level: weights come once per tile instead of
    /// once per coordinate.
    std::array<bool, 2> weights_per_tile{};
    /// whether the weight buffer is as wide as the tile of z
    bool weights_hold_z = false;
    bool weights_hold_i = false;
    std::array<bool, 3> output_holds{};  ///< last layer: whether z, y and x are inside ii
    /// Whether tiles are as large as calls, because something is kept beyond a call.
    bool whole_calls = false;
    /// the weights are stored inside the compute level of an input from inside the group, ...
    bool weights_below = false;
    /// ... the last layer's output too: they do not live while the producer runs
    bool output_below = false;
    /// y, x: holds only for tiles in which nothing reads what something earlier in the lifetime did
    std::array<bool, 2> disjoint{};
    std::vector<ScopeLoop> scope;  ///< loops between the levels of the input
};

/// Whether both say the same; what costs depend on follows from it.
[[nodiscard]] bool say_the_same(const LayerStructure& a, const LayerStructure& b);

/// Position of a layer in its group, and its surroundings.
struct LayerContext {
    bool is_first = true;
    bool is_last = true;
    /// Loops between the levels of the layer's output; empty for the last layer.
    std::vector<ScopeLoop> scope;
    /// Along y and x: whether pieces of the output that are asked for one after the other in a
    /// lifetime may read nothing in common, although neighbours would.
    std::array<bool, 2> may_be_apart{};
    friend auto operator<=>(const LayerContext&, const LayerContext&) = default;
};

/// Limits of a space, apart from tiles.
struct StructureLimits {
    bool is_baseline = false;    ///< inner order zi yi xi ii only
    bool only_resident = false;  ///< fused groups have weights at the root
    /// Retention wherever it is legal, as in the line-buffer family.
    bool only_kept = false;
};

[[nodiscard]] std::vector<LayerStructure> layer_structures(const LayerProblem& problem,
                                                           const LayerContext& context,
                                                           const StructureLimits& limits);

/// Whether neighbouring coordinates of every sufficiently large tile share input. If a transposed
/// kernel equals its stride, that depends on the tile.
enum class Sharing : uint8_t { always, never, by_tile };
[[nodiscard]] Sharing sharing(const AxisWindow& window);

}  // namespace laminate::search
