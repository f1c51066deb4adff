// How large the buffers of generated code are: the fold rule of docs/counting.md section 5, applied
// to what the loops of a schedule are seen to need.
//
// Needs factor over axes, so the group is executed along one axis at a time, every other loop on a
// single trip: rows, columns, and each set of channel axes that loops connect. A lifetime of a
// buffer is then one lifetime along each axis, every combination of which occurs. What a run notes
// is the rule's vocabulary: the interval needed in a lifetime, and for each loop between store and
// compute level whether it repeats, whether a trip returns to what an earlier one needed, and what
// a body holds at once.
//
// Independent of the cost models and of the walker on purpose (three witnesses), and of Halide.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/schedule/schedule.h"

namespace laminate {

/// How large each dimension of a buffer has to be.
struct BufferShape {
    std::array<int64_t, 3> extent{
        0, 0, 0};                 ///< tensors: channels, rows, columns; weights: z, i, kernel area
    std::array<bool, 3> folds{};  ///< rotates: coordinate modulo extent
    int64_t unclipped_columns = 0;  ///< tensors: columns of a lifetime with the padding around them
    [[nodiscard]] int64_t elements() const { return extent[0] * extent[1] * extent[2]; }
};

struct BufferShapes {
    std::vector<BufferShape> tensors;  ///< in the order of group_tensors()
    std::vector<BufferShape> weights;  ///< by nest; nothing for layers without weights
    BufferShape output;                ///< Y of the sink
};

/// Which strips of the sink are executed in one go.
enum class StripRange {
    all,  ///< from first to last, as docs/counting.md says
    any,  ///< any range of the outermost strip loop, as threads divide it: nothing is present where
          ///< a range begins, so a first call computes more than the same strip does after others,
          ///< and may need a larger buffer
};

[[nodiscard]] BufferShapes buffer_shapes(const GroupSchedule& group,
                                         const std::vector<LayerProblem>& problems,
                                         StripRange strips = StripRange::all);

/// Rows [begin, end) of its output that each nest's innermost bodies work on, all of them, with
/// weights resident: what kernels are asked for.
[[nodiscard]] std::vector<std::set<std::pair<int64_t, int64_t>>> row_steps(
    const GroupSchedule& group, const std::vector<LayerProblem>& problems);

}  // namespace laminate
