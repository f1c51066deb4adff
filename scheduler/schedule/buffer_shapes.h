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
// This header is independent of the cost models and of the walker on purpose, and of Halide. Code
// takes the sizes of its buffers from here, and the closed forms of kernels their boxes; the counts
// of code (instrumentation/deployed.h) come from neither.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/range.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// For code that cannot rotate a dimension: the buffer holds neighbours, from a first coordinate on
/// that moves up with the trips of a loop. What a later trip needs again then lies further on and
/// is moved to the front.
struct Slide {
    Level at;              ///< the loop, in whose body the first coordinate stays
    int64_t room = 0;      ///< coordinates that a body holds; of columns, padding among them
    bool returns = false;  ///< a trip may begin before an earlier one: everything that there is room
                           ///< for stays
    friend bool operator==(const Slide&, const Slide&) = default;
};

/// How large each dimension of a buffer has to be.
struct BufferShape {
    std::array<int64_t, 3> extent{
        0, 0, 0};                 ///< tensors: channels, rows, columns; weights: z, i, kernel area
    std::array<bool, 3> folds{};  ///< rotates: coordinate modulo extent
    /// Tensors: what a dimension that folds needs without rotating. None: it holds all of a
    /// lifetime.
    std::array<std::optional<Slide>, 3> slide{};
    int64_t unclipped_columns = 0;  ///< tensors: columns of a lifetime with the padding around them
    [[nodiscard]] int64_t elements() const { return extent[0] * extent[1] * extent[2]; }
    friend bool operator==(const BufferShape&, const BufferShape&) = default;
};

struct BufferShapes {
    std::vector<BufferShape> tensors;  ///< in the order of group_tensors()
    std::vector<BufferShape> weights;  ///< by nest; nothing for layers without weights
    BufferShape output;                ///< Y of the sink
    friend bool operator==(const BufferShapes&, const BufferShapes&) = default;
};

/// Which strips of the sink are executed in one go.
enum class StripRange {
    all,  ///< from first to last, as docs/counting.md says
    any,  ///< any range of the outermost strip loop, as threads divide it: nothing is present where
          ///< a range begins, so a first call computes more than the same strip does after others,
          ///< and may need a larger buffer
};

/// How loops along rows or columns are executed, whose trips do the same further on.
enum class Trips {
    repeated_at_once,  ///< a line of 3840 columns takes as long as one of twenty
    one_by_one,        ///< what tests hold it against
};

[[nodiscard]] BufferShapes buffer_shapes(const GroupSchedule& group,
                                         const std::vector<LayerProblem>& problems,
                                         StripRange strips = StripRange::all,
                                         Trips trips = Trips::repeated_at_once);

/// Along one axis, ranges of coordinates and how often each occurs. The boxes of a nest or tensor
/// are the product of its ranges along every axis.
struct AxisRanges {
    std::optional<Dim> dim;  ///< none: nothing of it lies along the axis, its range is {0, 1}
    std::map<Range, int64_t> times;
    friend bool operator==(const AxisRanges&, const AxisRanges&) = default;
};
using BoxRanges = std::vector<AxisRanges>;

/// The boxes that the loops of a group ask for, with weights resident and the group's strips
/// executed from first to last.
struct AskedBoxes {
    std::vector<BoxRanges> nests;   ///< by nest: what its kernel computes at a time, dims z y x i
    std::vector<BoxRanges> inputs;  ///< by external input: what is brought in at a time, z y x
    /// By nest with weights: what its kernel reads of them for the first time in a lifetime, z i.
    /// A lifetime that begins inside the loops that a kernel executes in one go is one execution.
    std::vector<BoxRanges> weights;
    friend bool operator==(const AskedBoxes&, const AskedBoxes&) = default;
};
/// `channels_together`: by nest, to a multiple of how many output channels a kernel fills up what
/// it reads of the weights; one if not given.
[[nodiscard]] AskedBoxes asked_boxes(const GroupSchedule& group,
                                     const std::vector<LayerProblem>& problems,
                                     const std::vector<int64_t>& channels_together = {},
                                     Trips trips = Trips::repeated_at_once);

/// How often the kernels of all nests are called.
[[nodiscard]] int64_t kernel_calls(const AskedBoxes& boxes);

/// Calls `make` with every combination of ranges, a range of one coordinate for dims without one,
/// and how often it occurs.
void for_each_box(const BoxRanges& ranges,
                  const std::function<void(const PerDim<Range>&, int64_t times)>& make);

/// By nest: whether its kernel is asked for all columns of a strip in one box, and whether what it
/// reads and writes lives for that strip and stays where it is. Without strips of columns: whether its
/// boxes have whole rows.
[[nodiscard]] std::vector<bool> columns_at_once(const GroupSchedule& group,
                                                const std::vector<LayerProblem>& problems);
/// `shapes`: those of StripRange::any.
[[nodiscard]] std::vector<bool> columns_at_once(const GroupSchedule& group,
                                                const std::vector<LayerProblem>& problems,
                                                const BufferShapes& shapes);

/// By nest and dimension: whether every box of its kernel has all of the dimension, whichever strip
/// a thread begins with.
[[nodiscard]] std::vector<PerDim<bool>> whole_dimensions(const GroupSchedule& group,
                                                         const std::vector<LayerProblem>& problems);

/// By nest: blocks of output channels of which every box of its kernel has whole ones, counted from
/// the first, are of a divisor of this number; of any number if it is 0. Only the last block of the
/// layer may be shorter.
[[nodiscard]] std::vector<int64_t> channel_blocks(const GroupSchedule& group,
                                                  const std::vector<LayerProblem>& problems);

/// By nest: the rows of its output that its kernel is asked for at once, whichever strip a thread
/// begins with.
[[nodiscard]] std::vector<std::set<std::pair<int64_t, int64_t>>> row_steps(
    const GroupSchedule& group, const std::vector<LayerProblem>& problems,
    Trips trips = Trips::repeated_at_once);

/// Rows of a tensor that come in with one body of its compute level.
struct IncomingRows {
    int tensor = 0;  ///< number in group_tensors()
    int64_t rows = 0;
    friend auto operator<=>(const IncomingRows&, const IncomingRows&) = default;
};
/// What the rows of a group's intermediate tensors do from step to step of its row loops.
struct RowTraffic {
    /// By tensor: the most rows that a body of its compute level needs of those that came in before
    /// it. None where other loops than those over rows bring parts of rows in, or several nests or
    /// another nest than the one around the body read them.
    std::vector<std::optional<int64_t>> kept;
    /// Rows that come in together, with all others that are there before their body ends. Nothing of
    /// tensors without kept rows.
    std::map<IncomingRows, std::set<IncomingRows>> beside;
    /// The most rows a body needs of those that were there before such rows came in.
    std::map<IncomingRows, int64_t> before;
    friend bool operator==(const RowTraffic&, const RowTraffic&) = default;
};
/// Whichever strip a thread begins with.
[[nodiscard]] RowTraffic row_traffic(const GroupSchedule& group,
                                     const std::vector<LayerProblem>& problems,
                                     Trips trips = Trips::repeated_at_once);

/// What the functions above find of one group, each when it is first asked for. None of it depends
/// on kernels, so one of these serves all choices of kernels for the group's loops.
class GroupLoops {
public:
    /// `problems` outlive this.
    GroupLoops(GroupSchedule group, const std::vector<LayerProblem>& problems)
        : group_(std::move(group)), problems_(problems) {}

    /// Of StripRange::any.
    [[nodiscard]] const BufferShapes& shapes() {
        return known(shapes_, [&] { return buffer_shapes(group_, problems_, StripRange::any); });
    }
    [[nodiscard]] const AskedBoxes& asked() {
        return known(asked_, [&] { return asked_boxes(group_, problems_); });
    }
    [[nodiscard]] const std::vector<bool>& at_once() {
        return known(at_once_, [&] { return columns_at_once(group_, problems_, shapes()); });
    }
    [[nodiscard]] const std::vector<PerDim<bool>>& whole() {
        return known(whole_, [&] { return whole_dimensions(group_, problems_); });
    }
    [[nodiscard]] const std::vector<int64_t>& blocks() {
        return known(blocks_, [&] { return channel_blocks(group_, problems_); });
    }
    [[nodiscard]] const std::vector<std::set<std::pair<int64_t, int64_t>>>& steps() {
        return known(steps_, [&] { return row_steps(group_, problems_); });
    }
    [[nodiscard]] const RowTraffic& traffic() {
        return known(traffic_, [&] { return row_traffic(group_, problems_); });
    }

private:
    template <class T, class Find>
    static const T& known(std::optional<T>& of, const Find& find) {
        if (!of) of = find();
        return *of;
    }

    GroupSchedule group_;
    const std::vector<LayerProblem>& problems_;
    std::optional<BufferShapes> shapes_;
    std::optional<AskedBoxes> asked_;
    std::optional<std::vector<bool>> at_once_;
    std::optional<std::vector<PerDim<bool>>> whole_;
    std::optional<std::vector<int64_t>> blocks_;
    std::optional<std::vector<std::set<std::pair<int64_t, int64_t>>>> steps_;
    std::optional<RowTraffic> traffic_;
};

/// A caller's, or for those who have none, one for this call.
class LoopsInUse {
public:
    LoopsInUse(GroupLoops* known, const GroupSchedule& group,
               const std::vector<LayerProblem>& problems)
        : loops_(known != nullptr ? known : &own_.emplace(group, problems)) {}
    LoopsInUse(const LoopsInUse&) = delete;
    LoopsInUse& operator=(const LoopsInUse&) = delete;
    ~LoopsInUse() = default;
    GroupLoops* operator->() { return loops_; }
    [[nodiscard]] GroupLoops* get() { return loops_; }

private:
    std::optional<GroupLoops> own_;
    GroupLoops* loops_;
};

}  // namespace laminate
