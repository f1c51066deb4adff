// Where a group's buffers go when Halide infers their regions: for each buffer the loops at which a
// Halide schedule stores it and computes it.
//
// docs/counting.md brings in what no earlier trip of the lifetime brought in, over any loops.
// Halide brings in what a body needs, less what the previous trip of one loop left behind (the
// sliding window). Both do the same where a buffer is computed below at most one loop that returns
// to old coordinates, and below no loop that returns to all of them. Copies of X and W can be moved
// out to such a place without a change of any count, because the fold rule of section 5 stops at
// the same loops; a producer cannot, because its own loops hang there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// Why Halide's inference does not execute a schedule as it says.
enum class HalideReason {
    second_loop,    ///< kept along two loops: Halide slides along one
    idle_loop,      ///< kept over a loop that does not index it: Halide computes it at every trip
    short_window,   ///< a producer's input kept along a loop whose last trip is short
    shared_branch,  ///< kept for a layer between whose output has several readers
    short_tile,     ///< kept along an inner loop, in tiles of which the last is short: not folded
    outside_call,   ///< kept along a loop of a producer, stored outside its call: not always folded
    inside_window,  ///< stored inside the loop along which the layer's output is kept
    before_window,  ///< brought in ahead of a window in its loop: runs while the window fills
    concat_channels,  ///< operands of a Concat of which a body computes some channels
    short_strip,      ///< the last strip has fewer tiles than the others
    short_visit,  ///< the last partial sum has fewer input channels; only with windows or producers
    group_parts,  ///< channels of a grouped convolution in parts of a group
    skipped_rows,     ///< a copy that moves out of a loop whose trips leave rows or columns out
    shared_channels,  ///< a tensor of several readers, none of which needs all of its channels
    shared_gaps,      ///< a tensor of several readers, whose trips leave rows or columns out
    shared_rates,     ///< a tensor of several readers, which move on at different rates
    shared_window,    ///< a window of several readers beside another window of the same loop
    parallel_window,  ///< two windows of one loop, neither of which is made from the other
    filled_window,    ///< brought in for a window of the loop, but not kept along it itself
    edge_window,      ///< a window of which every trip lies partly in padding
};
constexpr HalideReason last_halide_reason = HalideReason::edge_window;
/// A line for tables.
[[nodiscard]] std::string to_text(HalideReason reason);

struct HalideExclusion {
    HalideReason reason = HalideReason::second_loop;
    std::string text;  ///< with the names of this group
};

struct HalideLevels {
    Level lifetime;  ///< the schedule's store level
    Level store;     ///< what is kept is kept within this body; outside of it nothing is shared
    Level compute;   ///< new elements are brought in in this body
    /// The axis along which trips share coordinates, if any: the buffer rotates there.
    std::optional<Dim> slides;
    /// The loop whose trips share them, and an outer loop of the same axis that has to be one with
    /// it.
    std::optional<Level> slide_loop;
    std::optional<Level> merged_loop;
    /// Coordinates of the axis that one more coordinate of that loop's dimension needs.
    int64_t scale = 1;
    /// Why Halide brings in something else than the schedule says.
    std::optional<HalideExclusion> exclusion;
};

/// Whether output channel z reads a channel, or channels, that z chooses.
[[nodiscard]] bool is_channelwise(const LayerProblem& problem);

/// Whether a window reads beyond the end of its input.
[[nodiscard]] bool passes_end(const AxisWindow& window);

/// The window through which a layer reads an operand along rows or columns: of one row or column
/// whatever the output, that is with stride 0, where the operand has one pixel.
[[nodiscard]] AxisWindow operand_window(const LayerProblem& problem, int operand, Dim axis);

/// The sizes and overlaps of a group, one axis at a time.
class HalidePlacement {
public:
    HalidePlacement(const GroupSchedule& group, const std::vector<LayerProblem>& problems);

    [[nodiscard]] const std::vector<HalideLevels>& tensors() const { return tensors_levels_; }
    /// The weights of each nest; nullopt for layers without weights.
    [[nodiscard]] const std::vector<std::optional<HalideLevels>>& weights() const {
        return weights_levels_;
    }
    [[nodiscard]] const std::vector<GroupTensor>& group_tensors() const { return tensors_; }
    /// The most trips that a loop makes in any call of its nest.
    [[nodiscard]] int64_t trips(Level level) const;
    /// The largest extent of d that one body of `level` covers of the output of nest k. Halide
    /// fills a sliding window step by step, so a call that adds to one has the size of a step from
    /// the first on.
    [[nodiscard]] int64_t covered(int k, Dim d, Level level) const;

    /// Whether a tensor is computed from another one.
    [[nodiscard]] bool is_made_from(int made, int source) const;
    /// The outermost level of a nest whose body is executed as often as that one's.
    [[nodiscard]] Level outermost_like(Level level) const;
    /// Whether a tensor's coordinates along an axis go on where its readers' padding begins,
    /// instead of being clamped to its edge. They do along the loop of a window, for what slides
    /// there and all that is made from it: Halide slides only what it proves to move on evenly, and
    /// it does not of what is made for a clamped window.
    [[nodiscard]] bool is_extended(int tensor, Dim axis) const;
    /// Whether some of those coordinates lie outside of [0, read_end). Nothing is brought in or
    /// multiplied there.
    [[nodiscard]] bool overruns(int tensor, Dim axis) const;
    /// The end of the coordinates of a tensor that the group's output depends on.
    [[nodiscard]] int64_t read_end(int tensor, Dim axis) const;
    /// The same of those that one of its readers depends on.
    [[nodiscard]] int64_t read_end(const TensorReader& reader, Dim axis) const;
    /// The tensor that a nest makes; -1: the group's output.
    [[nodiscard]] int output_tensor(int k) const;

private:
    [[nodiscard]] int64_t needed(int tensor, Dim axis, Level level) const;
    /// What a trip of a loop needs along an axis, padding included, and how far the next trip is.
    struct Moving {
        Range needed;
        int64_t rate = 0;
    };
    [[nodiscard]] Moving moving(const TensorReader& reader, Dim axis, Level loop) const;
    /// The hull over the readers; the rate is the fastest one's.
    [[nodiscard]] Moving moving(int tensor, Dim axis, Level loop) const;
    /// Coordinates that a trip of `loop` shares with the trip before; 0 or less: none.
    [[nodiscard]] int64_t overlap(int tensor, Dim axis, Level loop) const;
    [[nodiscard]] int64_t scale(int tensor, Dim axis, int nest) const;
    [[nodiscard]] bool indexes(int tensor, Dim axis, Level loop) const;
    [[nodiscard]] bool indexes_output(int k, Dim d, Level loop) const;
    [[nodiscard]] bool is_retained(int tensor, Level loop) const;
    [[nodiscard]] std::vector<Level> between(int user, const Placement& placement) const;
    /// Halide makes the first rows of a sliding window in as many calls as there are steps in them.
    void check_calls(int tensor);
    /// The second producer of a chain does not slide where the last trip is short.
    void check_second_producer(int tensor);
    /// Halide brings every operand in, whichever channels are computed.
    void check_concat(int k);
    /// Of a tensor with several readers, docs/counting.md brings in all channels and what lies
    /// between; Halide brings in what they read, and bounds poorly what moves at several rates.
    void check_shared(int t);
    /// Halide 21 fills several windows of one loop rightly only in a chain of single readers
    /// (halide/Halide#8140).
    void check_windows(int t, int other);
    /// Trips that begin inside a group of a grouped convolution share its input channels.
    void check_groups(int t);
    /// Coordinates go on into padding (is_extended), so Halide's buffers hold what a trip needs
    /// with the padding around it. The schedule's are as large if one trip meets no padding.
    void check_edges(int t);
    /// Whether a window made from a tensor is kept along a loop: its first rows need more of the
    /// tensor than a trip does, which Halide brings in step by step.
    [[nodiscard]] bool fills_window(int tensor, Level loop) const;
    [[nodiscard]] int64_t step(Level loop) const;
    [[nodiscard]] bool is_ragged(Level loop) const;
    /// The level, or where it would lie inside the body that now calls a layer of the path from
    /// `user` to the sink, that body.
    [[nodiscard]] Level around_calls(int user, Level level) const;
    /// Whether trips of a loop from `from` inwards to the level at which a tensor is brought in
    /// leave coordinates between them out.
    [[nodiscard]] bool leaves_out(int tensor, const Placement& placement, Level from) const;
    [[nodiscard]] bool is_next_loop(Level outer, Level inner) const;
    /// Why a copy that moves out of a loop is not what the schedule brings in.
    [[nodiscard]] std::optional<HalideExclusion> copied_ahead(int t, const HalideLevels& levels,
                                                              Level loop) const;
    [[nodiscard]] HalideLevels tensor_levels(int t) const;
    [[nodiscard]] HalideLevels weight_levels(int k) const;

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    std::vector<GroupTensor> tensors_;
    std::vector<HalideLevels> tensors_levels_;
    std::vector<std::optional<HalideLevels>> weights_levels_;
};

}  // namespace laminate
