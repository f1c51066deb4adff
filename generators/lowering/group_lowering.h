// From a group's schedule to Halide IR: loops, lifetimes, calls and the regions they move, exactly
// as docs/counting.md says.
//
// Why IR and not Func directives: the schedule decides every region itself. Halide's own inference
// cannot slide the second producer of a chain across a ragged split, slides over one loop at a
// time, and refuses symbolic extents (halide-notes 1.1, 1.2, 3.3), so a literal execution of every
// legal schedule is emitted loop by loop, folds explicit, and Halide takes over from there:
// simplification, vector code, LLVM, objects, JIT.
//
// GroupLowering walks the schedule; a subclass says what a copy, a call and the innermost
// computation look like: one description, several kinds of code (generators/instrumented.h,
// generators/kernels/group_kernels.h).
#pragma once

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

#include "generators/lowering/events.h"
#include "generators/lowering/extents.h"
#include "generators/lowering/regions.h"
#include "nets/network/network.h"
#include "scheduler/schedule/schedule.h"

namespace laminate {

/// A box of output or input elements: channels (z), rows, columns.
using Box = std::array<Interval, 3>;

/// The arguments of a laminate_group_function, by the names that generated code uses.
namespace argument {
inline constexpr const char* inputs = "inputs";
inline constexpr const char* outputs = "outputs";
inline constexpr const char* constants = "constants";
inline constexpr const char* scratch = "scratch";
inline constexpr const char* strip_begin = "strip_begin";
inline constexpr const char* strip_end = "strip_end";
/// In code of any size: the last of the inputs (runtime/compiled_network.h).
inline constexpr const char* sizes = "sizes";
}  // namespace argument

class GroupLowering {
public:
    virtual ~GroupLowering() = default;
    GroupLowering(const GroupLowering&) = delete;
    GroupLowering& operator=(const GroupLowering&) = delete;

    /// The whole group as a statement over the arguments above and whatever names the subclass
    /// binds.
    [[nodiscard]] Stmt lower();
    /// Trips of the outermost strip loop; 1 without strips.
    [[nodiscard]] int64_t strip_count() const;
    /// Loop over [range.begin, range.end) of one index; emits `make(index)`.
    [[nodiscard]] static Stmt for_each(const std::string& name, const Interval& range,
                                       const std::function<Stmt(Expr)>& make);

protected:
    /// `open`: for code of any size, which has no events.
    GroupLowering(const Network& network, const GroupSchedule& group, Events events = Events::none,
                  const TensorSizes* open = nullptr);

    /// Which buffers of a level exist, and how: wraps the body of their store level.
    virtual Stmt allocate_input(int tensor, Stmt body) = 0;
    virtual Stmt allocate_weights(int nest, Stmt body) = 0;
    virtual Stmt allocate_output(int nest, Stmt body) = 0;
    /// Brings the box of an external input in.
    virtual Stmt copy_input(int tensor, const Box& box) = 0;
    /// Brings weights of output channels z and input channels i in.
    virtual Stmt copy_weights(int nest, const Interval& z, const Interval& i) = 0;
    /// Before and after the loops that compute a box of an intermediate tensor.
    virtual Stmt begin_call(int nest, const Box& box) = 0;
    virtual Stmt end_call(int nest, const Box& box) = 0;
    /// Before and after the body of the store level of the sink's output.
    virtual Stmt begin_output(const Box& box) = 0;
    virtual Stmt end_output(const Box& box) = 0;
    /// Everything inside loop number first_loop - 1 of a nest: no buffer is placed there, so order
    /// does not matter to counts.
    virtual Stmt innermost(int nest, int first_loop) = 0;
    /// Around everything in the body of a level, names of the body excepted.
    virtual Stmt around_body(Level, Stmt body) { return body; }
    // What kernels do, for their events: the part of X that is read where `box` is new, the output
    // channels whose weights are read for those of a box, the box that is stored where `box` is
    // computed from input channels `i`.
    [[nodiscard]] virtual Box read_of_input(int, const Box& box) const { return box; }
    [[nodiscard]] virtual Interval weights_read(int, const Interval& z) const { return z; }
    [[nodiscard]] virtual Box stored(int, const Box& box, const Interval&) const { return box; }
    /// False: the subclass itself tells what its kernel reads and stores.
    [[nodiscard]] virtual bool reads_by_boxes() const { return true; }

    /// Not defined without events.
    [[nodiscard]] Stmt event(EventKind kind, size_t array, const Box& box,
                             const Interval& i = {0, 1}) const;
    [[nodiscard]] size_t array_of_output() const;
    [[nodiscard]] size_t array_of_weights(int nest) const;
    [[nodiscard]] size_t array_of_nest(int nest) const;
    /// Whether a level must exist as a loop of its own because something is placed in its body.
    [[nodiscard]] virtual bool is_placed(Level level) const;
    /// The same if kernels read weights in place and keep sums in registers: neither needs a loop
    /// of its own. Strips are what threads divide, so their loop always exists.
    [[nodiscard]] bool is_placed_outside_kernels(Level level) const;

    [[nodiscard]] const Nest& nest(int k) const { return group_.nests[static_cast<size_t>(k)]; }
    [[nodiscard]] const LayerProblem& problem(int k) const {
        return problems_[static_cast<size_t>(k)];
    }
    [[nodiscard]] const Layer& layer(int k) const { return network_.layer(problem(k).layer); }
    [[nodiscard]] int sink() const { return group_.sink(); }
    /// The tensor that a nest reads as its operand, the one that it writes (none: -1, the sink).
    [[nodiscard]] int tensor_of(int k, int operand) const {
        return operand_tensor_[static_cast<size_t>(k)][static_cast<size_t>(operand)];
    }
    [[nodiscard]] int output_tensor(int k) const { return regions_.output_tensor(k); }
    [[nodiscard]] const GroupTensor& tensor(int t) const {
        return tensors_[static_cast<size_t>(t)];
    }
    /// Channels, rows and columns of a tensor.
    [[nodiscard]] std::array<int64_t, 3> tensor_extents(int t) const {
        const TensorReader& first = tensor(t).readers.front();
        return problem(first.nest).operand_extents(first.operand);
    }
    [[nodiscard]] int64_t channels(int t) const { return tensor_extents(t)[0]; }
    /// "X" of a group's only external input, else "X0", "X1", ...
    [[nodiscard]] std::string input_name(int t) const {
        return tensors_.size() < 2 || !tensors_[1].is_external() ? "X" : "X" + std::to_string(t);
    }
    /// What one body of that loop covers, see Regions::covered.
    [[nodiscard]] Interval covered(int k, Dim d, int loop) const {
        return regions_.covered(k, d, loop);
    }
    [[nodiscard]] Interval needed(int tensor, Dim axis, Level level, bool clipped) {
        return regions_.needed(tensor, axis, level, clipped);
    }
    [[nodiscard]] Interval missing(int tensor, Dim axis, Level level) {
        return regions_.missing(tensor, axis, level);
    }
    /// Whether the body of `level` has a reader of the tensor do something, as far as `needed`
    /// does not say it.
    [[nodiscard]] Expr is_read(int t, Level level) {
        return tensor(t).is_shared() ? Halide::Internal::const_true()
                                     : is_called(tensor(t).readers.front().nest, level);
    }
    [[nodiscard]] static std::string unique(const std::string& name) {
        return Halide::Internal::unique_name(name);
    }

    const Network& network_;
    const GroupSchedule& group_;
    std::vector<LayerProblem> problems_;
    std::vector<GroupTensor> tensors_;  ///< external inputs first
    GroupExtents extents_;

private:
    Stmt body(Level level);
    Stmt loops(int k, int first_loop);
    Stmt kernel(int k, int first_loop);
    Stmt bring_weights(int k, Level level);
    Stmt with_output(Level level, const Stmt& loops);
    Stmt call(int k, const Box& box);
    /// GroupExtents::is_single_trip.
    [[nodiscard]] bool is_single_trip(Level level) const;

    /// Whether the body of `level` brings anything of the tensor in.
    Expr is_needed(int tensor, Level level);
    /// Whether the body of `level` calls nest k at all, for a level outside the nest.
    Expr is_called(int k, Level level);
    /// The same looking at the loops over channels alone.
    Expr is_called_along_channels(int k, Level level);
    // Events. Where a kernel computes what several loops ask for, these loops stand before it by
    // themselves, with their events inside.
    /// One after the other; either may be undefined.
    [[nodiscard]] static Stmt before(const Stmt& first, const Stmt& then);
    /// The body of a buffer's store level between the beginning and the end of a lifetime.
    [[nodiscard]] Stmt lifetime(size_t array, const Box& whole, const Stmt& body) const;
    [[nodiscard]] Stmt lifetime_of_input(int tensor, const Stmt& body) const;
    [[nodiscard]] Stmt lifetime_of_weights(int nest, const Stmt& body) const;
    [[nodiscard]] Stmt lifetime_of_output(int nest, const Stmt& body) const;
    [[nodiscard]] Stmt fetch_weights(int nest, const Interval& z, const Interval& i) const;
    [[nodiscard]] Stmt read_back_output(const Box& box, const Interval& i) const;
    [[nodiscard]] Stmt fetch_input(int tensor, const Box& box) const;
    [[nodiscard]] Stmt computed(int nest, int first_loop) const;
    [[nodiscard]] Stmt done(int nest, int first_loop) const;
    [[nodiscard]] Box box_of(int nest, int first_loop) const;
    [[nodiscard]] int inputs() const;

    /// Whether any reader of a shared tensor has something to do, looking at the loops over
    /// channels alone.
    Expr is_shared_needed_along_channels(const GroupTensor& tensor, Level level);

    /// A buffer's loops that repeat within a lifetime without indexing it: what it needs comes in
    /// on the first trip on which it is needed at all. In the nest that uses it alone that is trip
    /// 0; in nests around it, the first trip on which the nest is called, which only the running
    /// code knows: it notes that trip per loop in a small array.
    struct IdleLoops {
        std::string first_trip;  ///< name of the array; first element negative: not needed yet in
                                 ///< this lifetime
        int user = 0;
        Level store;
        std::vector<Level> own;
        std::vector<Level> around;
    };
    [[nodiscard]] IdleLoops idle_loops(const std::string& name, int user, bool is_shared,
                                       const Placement& placement,
                                       const std::function<bool(Level)>& indexed_by) const;
    /// Whether the body of `level` is on that first trip, or will be.
    [[nodiscard]] Expr is_first_need(const IdleLoops& idle, Level level) const;
    [[nodiscard]] static Stmt note_first_need(const IdleLoops& idle, const Regions& regions,
                                              const Stmt& then);
    [[nodiscard]] static Stmt with_first_trip(const IdleLoops& idle, const Stmt& body);

    Regions regions_;
    std::vector<std::vector<int>> operand_tensor_;
    std::vector<IdleLoops> tensor_idle_;
    std::vector<IdleLoops> weights_idle_;  ///< by nest
    Events events_;
    bool only_events_ = false;  ///< loops before a kernel
};

}  // namespace laminate
