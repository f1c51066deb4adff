// What code tells while it runs, if it is made with events: when a buffer's lifetime begins and
// ends, which box comes into it, which box is computed, written or read back. A memory of two
// levels that does what it is told (forgets a tensor where a lifetime begins, counts the elements
// of each box that is fetched, written or read back) counts exactly the accesses of
// docs/counting.md section 4.
//
// An event is a statement that calls an extern function which nobody defines. The counting pass
// (instrumentation/count_pass.h) counts it, hooks (generators/compile/hooks.h) replace it:
//
//   int laminate_event(int32_t kind, int32_t array, int32_t z_begin, int32_t z_end,
//                      int32_t y_begin, int32_t y_end, int32_t x_begin, int32_t x_end,
//                      int32_t i_begin, int32_t i_end);
//
// `array` is an index into GroupCode::arrays. A box of X or Y is channels, rows, columns; one of W
// is output channels, input channels, and the whole kernel as [0, rows x columns of the window).
// The input channels i are those that a computed box adds up, and [0, 1) otherwise. No box is
// empty. Every box is what the schedule asks for, none rounded up, but for what is told with
// Events::all alone: what kernels read and store instead.
//
// A fetched box is the missing part of what is needed: what rule 2 brings in. Adding boxes up is
// then enough, and a memory that remembers what it holds counts the same.
//
// Where a kernel computes in one go what several loops of the schedule ask for (weights placed at
// yi, a map kernel), the events of these loops come before it, in the schedule's order. Events of a
// map kernel come with its first part.
#pragma once

#include <Halide.h>

#include <array>
#include <cstdint>
#include <optional>

namespace laminate {

enum class EventKind : int32_t {
    lifetime = 0,   ///< of a buffer: nothing of it is present; the box is the whole tensor
    fetch = 1,      ///< a box of X or W comes in
    compute = 2,    ///< a nest's kernel computes a box of its output
    read_back = 3,  ///< partial sums of a box of Y come in
    write = 4,      ///< a box of Y goes out
    end = 5,        ///< of the lifetime that began last; the box as there
    read = 6,       ///< Events::all: what a kernel reads of W, or of a new part of X, filled up
    store = 7,  ///< Events::all: the box of `compute` as stored, with columns behind a row's end
};
inline constexpr int event_kinds = 8;

/// Whether code is made with events. Without, it is what it would be if there were none.
enum class Events {
    none,
    marked,  ///< what the schedule asks for
    all,     ///< and what kernels do instead
};

namespace ir {

inline constexpr const char* event_function = "laminate_event";

struct Event {
    EventKind kind = EventKind::lifetime;
    size_t array = 0;
    std::array<Halide::Expr, 8> box;  ///< begin and end along z, y, x and i
};

[[nodiscard]] Halide::Internal::Stmt event(const Event& event);
/// The event that a statement is, if it is one.
[[nodiscard]] std::optional<Event> as_event(const Halide::Internal::Stmt& statement);

}  // namespace ir

}  // namespace laminate
