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

#include "scheduler/schedule/buffer_shapes.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

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
    /// Empty, or why Halide brings in more than the schedule says.
    std::string exclusion;
};

/// Whether output channel z reads a channel, or channels, that z chooses.
[[nodiscard]] bool is_channelwise(const LayerProblem& problem);

/// The sizes and overlaps of a group, one axis at a time.
class HalidePlacement {
public:
    HalidePlacement(const GroupSchedule& group, const std::vector<LayerProblem>& problems);

    [[nodiscard]] const std::vector<HalideLevels>& tensors() const { return tensors_levels_; }
    /// By nest; nothing for layers without weights.
    [[nodiscard]] const std::vector<std::optional<HalideLevels>>& weights() const {
        return weights_levels_;
    }
    [[nodiscard]] const std::vector<GroupTensor>& group_tensors() const { return tensors_; }
    /// The most trips that a loop makes in any call of its nest.
    [[nodiscard]] int64_t trips(Level level) const;
    /// The largest extent of d that one body of `level` covers of the output of nest k.
    [[nodiscard]] int64_t covered(int k, Dim d, Level level) const;

private:
    [[nodiscard]] int64_t needed(int tensor, Dim axis, Level level) const;
    /// Coordinates that a trip of `loop` shares with the trip before; 0 or less: none.
    [[nodiscard]] int64_t overlap(int tensor, Dim axis, Level loop) const;
    [[nodiscard]] int64_t scale(int tensor, Dim axis, int nest) const;
    [[nodiscard]] bool indexes(int tensor, Dim axis, Level loop) const;
    [[nodiscard]] bool indexes_output(int k, Dim d, Level loop) const;
    [[nodiscard]] bool is_retained(int tensor, Level loop) const;
    [[nodiscard]] int output_tensor(int k) const;
    [[nodiscard]] std::vector<Level> between(int user, const Placement& placement) const;
    /// Halide makes the first rows of a sliding window in as many calls as there are steps in them.
    void check_calls(int tensor);
    /// The second producer of a chain does not slide where the last trip is short.
    void check_second_producer(int tensor);
    /// Halide brings every operand in, whichever channels are computed.
    void check_concat(int k);
    [[nodiscard]] bool is_ragged(Level loop) const;
    [[nodiscard]] bool is_next_loop(Level outer, Level inner) const;
    [[nodiscard]] HalideLevels tensor_levels(int t) const;
    [[nodiscard]] HalideLevels weight_levels(int k) const;

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    std::vector<GroupTensor> tensors_;
    std::vector<HalideLevels> tensors_levels_;
    std::vector<std::optional<HalideLevels>> weights_levels_;
};

}  // namespace laminate
