// Which part of which tensor a loop body needs, and which part of it is new: the interval
// arithmetic of the generated code, in Halide expressions over trip numbers and call boxes
// (docs/counting.md section 4).
//
// Axes of a tensor are Dim::z (channels), Dim::y, Dim::x: the output loops of its producer.
// Everything here looks at one axis by itself; an interval whose begin is not below its end is
// empty. Tensors are numbered as in group_tensors().
#pragma once

#include <Halide.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generators/lowering/extents.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

using Halide::Expr;
using Halide::Internal::Stmt;

struct Interval {
    Expr begin;
    Expr end;
};
[[nodiscard]] Expr is_non_empty(const Interval& interval);

/// The axes of a tensor.
inline constexpr std::array<Dim, 3> tensor_axes{Dim::z, Dim::y, Dim::x};

class Regions {
public:
    Regions(const GroupSchedule& group, const std::vector<LayerProblem>& problems,
            const std::vector<GroupTensor>& tensors, const GroupExtents& extents);

    // ---- state of the execution
    /// The body of `level` is being written: values that are used again get names in it, until it
    /// is left. Bodies nest.
    void enter_body(Level level);
    /// The body with its names around it.
    [[nodiscard]] Stmt leave_body(Stmt body);
    /// The value, or its name in the body under way.
    [[nodiscard]] Expr named(const std::string& name, const Expr& value);

    void set_call(int nest, Dim d, const Interval& box) { calls_[index(nest)][d] = box; }
    /// `trip` counts from 0 at the first iteration executed; `part` is what the body covers of the
    /// loop's dimension.
    void set_loop(Level level, const Expr& trip, const Interval& part) {
        loops_[index(level.nest)][index(level.loop)] = {trip, part};
    }
    [[nodiscard]] Expr trip(Level level) const {
        return loops_[index(level.nest)][index(level.loop)].trip;
    }
    /// What one body of loop `loop` of `nest` covers of d; loop == -1: the whole call.
    [[nodiscard]] Interval covered(int nest, Dim d, int loop) const;

    // ---- tensors
    /// What the body of `level` needs of a tensor; clipped to the tensor unless told otherwise. Of
    /// a shared tensor all channels, whether needed or not, and the hull of rows and of columns
    /// over those readers that have something to do along that axis. Of another, an interval that
    /// means nothing where its reader has nothing to do (GroupLowering::is_called).
    [[nodiscard]] Interval needed(int tensor, Dim axis, Level level, bool clipped = true);
    [[nodiscard]] Interval needed_by(const TensorReader& reader, Dim axis, Level level,
                                     bool clipped = true);
    /// `needed` minus what earlier trips in the same lifetime brought.
    [[nodiscard]] Interval missing(int tensor, Dim axis, Level level);
    [[nodiscard]] bool indexes(int tensor, Level loop) const;
    [[nodiscard]] const Placement& placement(int tensor) const {
        return placements_[index(tensor)];
    }
    /// Of the nest's output; none of the sink's.
    [[nodiscard]] int output_tensor(int nest) const { return output_tensor_[index(nest)]; }

    // ---- weights
    /// Weights of nest k, axis z or i.
    [[nodiscard]] Interval missing_weights(int k, Dim axis, Level level);
    [[nodiscard]] bool indexes_weights(int k, Level loop) const;

    /// Loops strictly inside `store`, down to and including `level`, on the path of nest k: the
    /// ones that repeat within a lifetime of a buffer that nest k uses.
    [[nodiscard]] std::vector<Level> lifetime_loops(int k, Level store, Level level) const;

private:
    struct LoopState {
        Expr trip;
        Interval part;
    };
    /// A name of a body: of a value, or of one integer in memory that a statement sets.
    struct Name {
        std::string name;
        Expr value;
        Stmt set_by;
    };
    struct Body {
        Level level;
        std::vector<Name> names;
        std::map<std::pair<int, Dim>, Interval> missing;
        std::map<std::tuple<int, Dim, Level, Level>, Expr> done;
    };

    template <class I>
    static size_t index(I i) {
        return static_cast<size_t>(i);
    }
    [[nodiscard]] const Nest& nest(int k) const { return group_.nests[index(k)]; }
    [[nodiscard]] const LayerProblem& problem(int k) const { return problems_[index(k)]; }
    [[nodiscard]] const Loop& loop(Level v) const { return nest(v.nest).loops[index(v.loop)]; }
    [[nodiscard]] bool is_grouped(int k) const;

    /// What the body of `level` computes of the output of nest k.
    Interval produced(int k, Dim d, Level level);
    /// Whether the body of `level`, looking at rows or columns alone, calls nest k.
    Expr is_called_along(int k, Dim d, Level level);
    [[nodiscard]] bool indexes(int tensor, Dim axis, Level v) const;
    [[nodiscard]] bool indexes_output(int k, Dim d, Level v) const;

    /// Whether bodies may step over coordinates of a tensor: a window smaller than its stride does,
    /// and what feeds one that does.
    [[nodiscard]] bool skips(int tensor, Dim axis) const;
    /// Whether where a body's new part begins depends on how the loops inside go over it: they step
    /// over some coordinates and return to others, from an earlier body, that are present.
    [[nodiscard]] bool needs_rehearsal(int tensor, Dim axis, Level level) const;
    /// Where the new part of the body under way begins, behind `present`; not before `none` if
    /// there is none. The code finds it by going through the loops inside.
    Expr rehearsed_begin(int tensor, Dim axis, Level level, const Expr& present, const Expr& none);
    Stmt rehearsal(int tensor, Dim axis, size_t position, const std::string& found,
                   const Expr& present, const Expr& none);

    /// End of what earlier trips of loop v, in the iteration of `store` under way, needed of the
    /// tensor; 0: nothing.
    Expr needed_before(int tensor, Dim axis, Level v, Level store);
    /// The same of what nest k computed: of its output d, or of its input channels (Dim::i).
    Expr done_before(int k, Dim d, Level v, Level store);

    [[nodiscard]] Interval window(int k, Dim axis, const Interval& out, bool clipped) const;
    [[nodiscard]] Expr window_end(int k, Dim axis, const Expr& out_end, bool clipped) const;
    /// End of the input channels of the groups of output channels [.., z_end).
    [[nodiscard]] Expr group_end(int k, const Expr& z_end) const;

    const GroupSchedule& group_;
    const std::vector<LayerProblem>& problems_;
    const std::vector<GroupTensor>& tensors_;
    const GroupExtents& extents_;
    std::vector<Placement> placements_;
    std::vector<int> output_tensor_;
    std::vector<std::vector<Level>> paths_;
    std::vector<PerDim<Interval>> calls_;
    std::vector<std::vector<LoopState>> loops_;
    std::vector<Body> bodies_;
};

}  // namespace laminate
