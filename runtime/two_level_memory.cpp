#include "runtime/two_level_memory.h"

#include <algorithm>
#include <exception>

#include "base/units.h"
#include "runtime/manifest.h"

namespace laminate {

namespace {

constexpr int64_t none = -1;

int64_t size_of(const laminate_buffer& buffer) {
    return buffer.extent[0] * buffer.extent[1] * buffer.extent[2];
}

/// "X input", "W conv1"
std::string name_of(const laminate_buffer& buffer) {
    return std::string(to_string(buffer.role)) + " " + buffer.tensor;
}

int64_t volume(const laminate_trace_event& event) {
    int64_t volume = 1;
    for (int d = 0; d < 3; ++d) volume *= event.end[d] - event.begin[d];
    return volume;
}

std::string extents_text(const int64_t extent[3]) {
    return std::to_string(extent[0]) + "x" + std::to_string(extent[1]) + "x" +
           std::to_string(extent[2]);
}

}  // namespace

void TwoLevelMemory::observe(void* memory, const laminate_trace_event* event) noexcept {
    auto& self = *static_cast<TwoLevelMemory*>(memory);
    if (!self.failure_.empty() || event->image != 0) return;
    try {
        self.see(*event);
    } catch (const std::exception& error) {
        self.failure_ = std::string("emulating the memory: ") + error.what();
    }
}

void TwoLevelMemory::see(const laminate_trace_event& event) {
    Buffer& state = buffers_[event.buffer];
    if (event.kind == LAMINATE_BEGINS) return begin(*event.buffer, state);
    if (event.kind == LAMINATE_ENDS) return end(*event.buffer, state);
    // The last layer's kernel may compute many boxes of Y at a time: each has its own lifetime.
    const bool is_of_kernel =
        event.kind == LAMINATE_COMPUTES && event.buffer->role == LAMINATE_OUTPUT;
    if (!is_of_kernel && !holds(event, state)) return;
    switch (event.kind) {
        case LAMINATE_FETCHES:
            state.traffic.reads += bring_in(event, state);
            break;
        case LAMINATE_READS_BACK:
            state.traffic.reads += volume(event);
            break;
        case LAMINATE_WRITES:
            state.traffic.writes += volume(event);
            break;
        default:
            state.traffic.computed += volume(event);
            state.traffic.macs += event.macs;
    }
}

void TwoLevelMemory::begin(const laminate_buffer& buffer, Buffer& state) {
    const int64_t size = size_of(buffer);
    live_ += size;
    state.lives = true;
    if (live_ > bytes_ / bytes_per_element) {
        failure_ = "group " + std::string(buffer.group) + ": its buffers take " +
                   std::to_string(live_ * bytes_per_element) + " bytes at once (" + living() +
                   "), the memory has " + std::to_string(bytes_);
        return;
    }
    int64_t& peak = peaks_[buffer.step];
    peak = std::max(peak, live_);
    state.traffic.size = size;
    if (buffer.role == LAMINATE_INPUT || buffer.role == LAMINATE_WEIGHTS)
        state.places.assign(static_cast<size_t>(size), none);
}

void TwoLevelMemory::end(const laminate_buffer& buffer, Buffer& state) {
    if (!state.lives) {
        failure_ = "group " + std::string(buffer.group) + ": " + name_of(buffer) +
                   " ends without having begun";
        return;
    }
    live_ -= size_of(buffer);
    state.lives = false;
}

bool TwoLevelMemory::holds(const laminate_trace_event& event, const Buffer& state) {
    const laminate_buffer& buffer = *event.buffer;
    const std::string what = "group " + std::string(buffer.group) + ": " + name_of(buffer);
    if (!state.lives) {
        failure_ = what + " is used while it does not live";
        return false;
    }
    int64_t size[3];
    bool fits = true;
    for (size_t d = 0; d < 3; ++d) {
        size[d] = event.end[d] - event.begin[d];
        fits = fits && size[d] <= buffer.extent[d];
    }
    if (!fits)
        failure_ = what + ": a box of " + extents_text(size) + ", its buffer has " +
                   extents_text(buffer.extent);
    return fits;
}

int64_t TwoLevelMemory::bring_in(const laminate_trace_event& event, Buffer& state) {
    const laminate_buffer& buffer = *event.buffer;
    int64_t missing = 0;
    for (int64_t z = event.begin[0]; z < event.end[0]; ++z) {
        for (int64_t y = event.begin[1]; y < event.end[1]; ++y) {
            const int64_t row = (z % buffer.extent[0]) * buffer.extent[1] + y % buffer.extent[1];
            const int64_t element = (z * buffer.dims[1] + y) * buffer.dims[2];
            for (int64_t x = event.begin[2]; x < event.end[2]; ++x) {
                int64_t& place =
                    state
                        .places[static_cast<size_t>(row * buffer.extent[2] + x % buffer.extent[2])];
                missing += place != element + x;
                place = element + x;
            }
        }
    }
    return missing;
}

std::string TwoLevelMemory::living() const {
    std::string text;
    for (const auto& [buffer, state] : buffers_) {
        if (!state.lives) continue;
        text += (text.empty() ? "" : ", ") + name_of(*buffer) + " " +
                std::to_string(size_of(*buffer) * bytes_per_element);
    }
    return text;
}

TwoLevelMemory::Traffic TwoLevelMemory::traffic(const laminate_buffer* buffer) const {
    const auto found = buffers_.find(buffer);
    return found == buffers_.end() ? Traffic{} : found->second.traffic;
}

int64_t TwoLevelMemory::accesses() const {
    int64_t sum = 0;
    for (const auto& [buffer, state] : buffers_) sum += state.traffic.reads + state.traffic.writes;
    return sum;
}

int64_t TwoLevelMemory::peak(int32_t step) const {
    const auto found = peaks_.find(step);
    return found == peaks_.end() ? 0 : found->second;
}

int64_t TwoLevelMemory::peak() const {
    int64_t most = 0;
    for (const auto& [step, peak] : peaks_) most = std::max(most, peak);
    return most;
}

}  // namespace laminate
