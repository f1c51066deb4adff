// From what the code of a group with hooks reports to the events of runtime/trace.h.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/compiled_network.h"
#include "runtime/manifest.h"
#include "runtime/trace.h"

namespace laminate {

/// Whom a session tells about its runs.
struct TraceListener {
    laminate_trace_function function = nullptr;
    void* user = nullptr;
};

/// The buffers of one step that has a promise. The step must outlive it and stay where it is.
class GroupTrace {
public:
    GroupTrace(const GroupStep& step, int32_t step_index);

    [[nodiscard]] const std::vector<laminate_buffer>& buffers() const { return buffers_; }

    /// One call of the group's code, whose hook() is valid as long as the call lives.
    class Call {
    public:
        Call(const GroupTrace& trace, const TraceListener& listener, int64_t image)
            : trace_(trace), listener_(listener), image_(image), hook_{&Call::report, this} {}
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        [[nodiscard]] const laminate_hook* hook() const { return &hook_; }

    private:
        static void report(void* call, int32_t kind, int32_t buffer, const int32_t box[8]);

        const GroupTrace& trace_;
        const TraceListener& listener_;
        int64_t image_;
        laminate_hook hook_;
    };

private:
    std::vector<laminate_buffer> buffers_;
    std::vector<const PromisedNest*> nests_;  ///< by buffer: that of its layer
};

/// Multiply-accumulates of a box of a nest's output (docs/counting.md section 6): channels, rows,
/// columns, input channels, begin and end of each.
[[nodiscard]] int64_t box_macs(const PromisedNest& nest, const int32_t box[8]);

}  // namespace laminate
