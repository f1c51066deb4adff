// A memory of two levels, emulated: a network with hooks runs, and the internal memory does what
// the schedule of each group says.
//
//   TwoLevelMemory memory(256 * 1024);
//   laminate_set_trace(session, TwoLevelMemory::observe, &memory);
//   laminate_run(session, inputs, outputs);
//   if (!memory.failure().empty()) ...          // "group conv1 .. conv5: its buffers take ..."
//   memory.accesses();                          // elements between the two levels
//
// Internal memory is divided into the buffers that live (runtime/trace.h). A buffer has its
// promised size and rotates where it is smaller than its tensor, so an element that comes in takes
// the place of an older one. An element of X or W that a box asks for is fetched unless it lies in
// its place; that is an access. So is each element of Y that is written or read back.
//
// Counts are of one image, the first of each batch, and of the groups that the schedule names, as
// in docs/counting.md; they add up over runs. Code pads its lines and reads some tensors in place,
// so its own memory is another quantity (laminate_arena_bytes).
//
// The emulation takes eight bytes of this machine's memory for each element of a buffer of X or W.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/trace.h"

namespace laminate {

class TwoLevelMemory {
public:
    /// An internal memory of so many bytes.
    explicit TwoLevelMemory(int64_t bytes) : bytes_(bytes) {}

    /// A laminate_trace_function; `memory` is a TwoLevelMemory.
    static void observe(void* memory, const laminate_trace_event* event) noexcept;

    /// What a buffer has seen, in elements; macs: multiply-accumulates of boxes computed into it.
    struct Traffic {
        int64_t reads = 0;  ///< of external memory: X, W, and partial sums of Y
        int64_t writes = 0;
        int64_t computed = 0;
        int64_t macs = 0;
        int64_t size = 0;  ///< of the buffer; 0 if it never lived
    };
    /// All zero for a buffer that had no event.
    [[nodiscard]] Traffic traffic(const laminate_buffer* buffer) const;

    /// Reads and writes of all buffers.
    [[nodiscard]] int64_t accesses() const;
    /// The largest sum of buffers that live at once, in elements: of a step of the manifest, or of
    /// all.
    [[nodiscard]] int64_t peak(int32_t step) const;
    [[nodiscard]] int64_t peak() const;

    /// Empty, or one line about the first thing that the memory could not do. Nothing is counted
    /// after it.
    [[nodiscard]] const std::string& failure() const { return failure_; }

private:
    struct Buffer {
        Traffic traffic;
        bool lives = false;
        /// By place, row major: the element that lies there, numbered row major in its tensor, or
        /// -1.
        std::vector<int64_t> places;
    };

    void see(const laminate_trace_event& event);
    void begin(const laminate_buffer& buffer, Buffer& state);
    void end(const laminate_buffer& buffer, Buffer& state);
    /// Puts the box into the buffer; returns how many of its elements were not there.
    int64_t bring_in(const laminate_trace_event& event, Buffer& state);
    /// Whether the buffer lives and a box of that size fits into it; notes a failure otherwise.
    bool holds(const laminate_trace_event& event, const Buffer& state);
    /// The buffers that live, with their bytes.
    [[nodiscard]] std::string living() const;

    int64_t bytes_;
    int64_t live_ = 0;  ///< elements
    std::map<const laminate_buffer*, Buffer> buffers_;
    std::map<int32_t, int64_t> peaks_;  ///< by step
    std::string failure_;
};

}  // namespace laminate
