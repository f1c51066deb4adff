#include "runtime/group_trace.h"

#include <algorithm>
#include <cstddef>

namespace laminate {

namespace {

/// Taps of the output coordinates [begin, end) along one axis.
int64_t taps(const PromisedNest& nest, size_t axis, int64_t begin, int64_t end) {
    const int64_t kernel = nest.kernel[axis], stride = nest.stride[axis];
    if (!nest.transposed || stride == 1) return (end - begin) * kernel;
    int64_t count = 0;
    for (int64_t at = begin; at < end; ++at) {
        for (int64_t n = 0; n < kernel; ++n) {
            const int64_t shifted = at + nest.pad_begin[axis] - n * nest.dilation[axis];
            count += shifted % stride == 0;
        }
    }
    return count;
}

}  // namespace

int64_t box_macs(const PromisedNest& nest, const int32_t box[8]) {
    if (nest.macs == 0) return 0;  // a layer without weights
    return int64_t{box[1] - box[0]} * (box[7] - box[6]) * taps(nest, 0, box[2], box[3]) *
           taps(nest, 1, box[4], box[5]);
}

GroupTrace::GroupTrace(const GroupStep& step, int32_t step_index) {
    for (const PromisedBuffer& promised : step.trace->buffers) {
        laminate_buffer buffer{promised.role,
                               step.name.c_str(),
                               step_index,
                               promised.layer.c_str(),
                               promised.tensor.c_str(),
                               {},
                               {}};
        std::copy(promised.dims.begin(), promised.dims.end(), buffer.dims);
        std::copy(promised.extent.begin(), promised.extent.end(), buffer.extent);
        buffers_.push_back(buffer);
        const auto nest = std::find_if(
            step.trace->nests.begin(), step.trace->nests.end(),
            [&](const PromisedNest& candidate) { return candidate.layer == promised.layer; });
        nests_.push_back(&*nest);
    }
}

void GroupTrace::Call::report(void* call, int32_t kind, int32_t buffer, const int32_t box[8]) {
    const auto& self = *static_cast<const Call*>(call);
    const auto index = static_cast<size_t>(buffer);
    laminate_trace_event event{static_cast<laminate_trace_kind>(kind),
                               &self.trace_.buffers_[index],
                               self.image_,
                               {box[0], box[2], box[4]},
                               {box[1], box[3], box[5]},
                               0};
    if (event.kind == LAMINATE_BEGINS || event.kind == LAMINATE_ENDS) {
        std::fill_n(event.begin, 3, 0);
        std::copy_n(event.buffer->extent, 3, event.end);
    }
    if (event.kind == LAMINATE_COMPUTES) event.macs = box_macs(*self.trace_.nests_[index], box);
    self.listener_.function(self.listener_.user, &event);
}

}  // namespace laminate
